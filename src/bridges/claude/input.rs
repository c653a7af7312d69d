//! The lines of a client: messages of the user, control requests, and responses to control requests. Fields that are not used are
//! ignored: the published types of the messages (`sdk.d.ts`) are structural, so further properties are allowed. Those of
//! `initialize` are named in a warning.

use super::outbox::Answer;
use agent_messages as messages;
use agent_text::json_bounds;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A line of a client.
#[derive(Debug, PartialEq)]
pub enum Input {
    /// A message of the user.
    User(Prompt),
    /// A message of the user that cannot be used, and why.
    InvalidUser(String),
    /// A control request with its id.
    Request(String, Value),
    /// The answer to a control request.
    Response(String, Answer),
    /// A line without effect.
    Nothing,
}

/// A message of the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Images.
    pub images: Vec<Vec<u8>>,
}

/// Parses a line.
///
/// # Errors
/// Why it cannot be used, and the id of the control request if it is one.
pub fn parse(line: &[u8]) -> Result<Input, (Option<String>, String)> {
    let unusable = |why: String| (None, why);
    if line.trim_ascii().is_empty() {
        return Ok(Input::Nothing);
    }
    json_bounds::check(line).map_err(|error| unusable(error.to_string()))?;
    let mut message: Value = serde_json::from_slice(line).map_err(|error| unusable(error.to_string()))?;
    let id = |message: &Value| message["request_id"].as_str().map(str::to_owned);
    match message["type"].as_str() {
        Some("user") => Ok(prompt(&message["message"]).map_or_else(Input::InvalidUser, Input::User)),
        Some("control_request") => {
            let id =
                id(&message).ok_or_else(|| unusable("a control request has no `request_id`".to_owned()))?;
            match message["request"].take() {
                request @ Value::Object(_) => Ok(Input::Request(id, request)),
                _ => Err((Some(id), "`request` must be an object".to_owned())),
            }
        }
        Some("control_response") => {
            let mut response = message["response"].take();
            let id =
                id(&response).ok_or_else(|| unusable("a control response has no `request_id`".to_owned()))?;
            let answer = match response["subtype"].as_str() {
                Some("success") => Ok(response["response"].take()),
                _ => Err(response["error"].as_str().unwrap_or(messages::CLAUDE_NO_ANSWER).to_owned()),
            };
            Ok(Input::Response(id, answer))
        }
        Some("keep_alive" | "control_cancel_request" | "update_environment_variables") => Ok(Input::Nothing),
        Some(kind) => Err(unusable(format!("unknown type `{kind}`"))),
        None => Err(unusable("it has no `type`".to_owned())),
    }
}

/// Returns the text and the images of a message.
fn prompt(message: &Value) -> Result<Prompt, String> {
    if message["role"] != "user" {
        return Err("its role is not `user`".to_owned());
    }
    let mut prompt = Prompt::default();
    match &message["content"] {
        Value::String(text) => prompt.text.clone_from(text),
        Value::Array(blocks) => blocks.iter().try_for_each(|block| prompt.add(block))?,
        _ => return Err("its content is neither text nor blocks".to_owned()),
    }
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(messages::CLAUDE_EMPTY_MESSAGE.to_owned());
    }
    Ok(prompt)
}

impl Prompt {
    fn add(&mut self, block: &Value) -> Result<(), String> {
        match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().ok_or("a block of text has no `text`")?;
                if !self.text.is_empty() {
                    self.text.push_str("\n\n");
                }
                self.text.push_str(text);
                Ok(())
            }
            Some("image") if block["source"]["type"] == "base64" => {
                let data = block["source"]["data"].as_str().ok_or("an image has no `data`")?;
                let bytes =
                    STANDARD.decode(data).map_err(|error| format!("an image is not base64: {error}"))?;
                self.images.push(bytes);
                Ok(())
            }
            Some(kind) => {
                Err(format!("blocks of the type `{kind}` are not taken: only `text`, and `image` as base64"))
            }
            None => Err("a block has no `type`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(message: &Value) -> Result<Input, (Option<String>, String)> {
        parse(message.to_string().as_bytes())
    }

    fn user(content: &Value) -> Result<Input, (Option<String>, String)> {
        read(&json!({"type": "user", "message": {"role": "user", "content": content}}))
    }

    #[test]
    fn texts_and_images_of_a_message_are_read() {
        let text = |text: &str| Input::User(Prompt { text: text.to_owned(), images: Vec::new() });
        assert_eq!(user(&json!("hi")).unwrap(), text("hi"));
        assert_eq!(
            user(&json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])).unwrap(),
            text("a\n\nb")
        );
        let image = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}}]);
        assert_eq!(
            user(&image).unwrap(),
            Input::User(Prompt { text: String::new(), images: vec![b"GIF".to_vec()] })
        );
        for wrong in [
            json!(""),
            json!([]),
            json!(7),
            json!([{"type": "document"}]),
            json!([{"type": "text"}]),
            json!([{"type": "image", "source": {"type": "base64", "data": "%"}}]),
        ] {
            assert!(matches!(user(&wrong), Ok(Input::InvalidUser(_))), "{wrong}");
        }
    }

    #[test]
    fn requests_and_responses_have_ids_and_everything_else_is_refused() {
        let request =
            json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}});
        assert_eq!(read(&request).unwrap(), Input::Request("1".to_owned(), json!({"subtype": "interrupt"})));
        let failed = json!({"type": "control_response", "response": {"subtype": "error", "request_id": "2", "error": "no"}});
        assert_eq!(read(&failed).unwrap(), Input::Response("2".to_owned(), Err("no".to_owned())));
        let (id, _) = read(&json!({"type": "control_request", "request_id": "3", "request": 1})).unwrap_err();
        assert_eq!(id.as_deref(), Some("3"));
        let nested = "[".repeat(200_000);
        for line in [
            "{\"half",
            "[]",
            "{}",
            "null",
            "{\"type\":\"x\"}",
            "{\"type\":\"control_request\"}",
            nested.as_str(),
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line:.40}");
        }
        assert_eq!(parse(b" \r").unwrap(), Input::Nothing);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in any::<Vec<u8>>(), content in "\\PC*") {
            let _read = parse(&line);
            let _read = user(&json!(content));
        }
    }
}
