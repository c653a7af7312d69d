//! Requests in any wire format, read back as the scripted server needs them: what was said, called and answered.

use agent_llm::scripted::RequestView;
use agent_llm::wire_format::WireFormat;
use serde_json::{Value, json};

/// A request, read.
pub struct Dialect {
    pub format: WireFormat,
    said: Vec<Said>,
    tools: bool,
    stream: bool,
}

/// A piece of the conversation, in its order.
enum Said {
    /// Role and text.
    Text(String, String),
    /// The id of a call.
    Call(String),
    /// The id of the answered call, and the result.
    Result(String, String),
}

impl Dialect {
    /// The format belongs to the path of the request.
    pub fn of(target: &str, body: &Value) -> Option<Self> {
        let path = target.split_once(' ')?.1.split('?').next()?;
        let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let tools = tools && body["tool_choice"] != "none" && body["tool_choice"]["type"] != "none";
        let stream = body["stream"] == json!(true);
        if path.ends_with("/chat/completions") {
            Some(Self { format: WireFormat::ChatCompletions, said: chat_completions(body), tools, stream })
        } else if path.ends_with("/messages") {
            Some(Self { format: WireFormat::Messages, said: messages(body), tools, stream })
        } else if path.ends_with("/api/chat") {
            Some(Self { format: WireFormat::Ollama, said: ollama(body), tools, stream })
        } else if path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent") {
            let stream = target.ends_with(":streamGenerateContent?alt=sse");
            Some(Self { format: WireFormat::Gemini, said: gemini(body), tools, stream })
        } else if path.ends_with("/responses") {
            Some(Self { format: WireFormat::Responses, said: responses(body), tools, stream })
        } else {
            None
        }
    }

    /// The request as a script's expectations look at it.
    pub fn asked(&self) -> RequestView<'_> {
        let messages = self.said.iter().filter_map(|said| match said {
            Said::Text(role, text) => Some((role.as_str(), text.as_str())),
            Said::Result(_, text) => Some(("tool", text.as_str())),
            Said::Call(_) => None,
        });
        RequestView { messages: messages.collect(), tools: self.tools, stream: self.stream }
    }

    /// Whether every result stands between marks of its own.
    pub fn marked(&self) -> Result<(), String> {
        let unmarked = self.said.iter().find_map(|said| match said {
            Said::Result(_, text) => between_marks(text).is_none().then_some(text),
            Said::Text(..) | Said::Call(_) => None,
        });
        unmarked.map_or(Ok(()), |text| Err(format!("a result has no marks around it: {text}")))
    }

    /// Whether the results after the calls of a turn answer exactly these, in order.
    pub fn paired(&self) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        let mut answering = false;
        for said in &self.said {
            match said {
                Said::Result(id, _) => {
                    if open.first() != Some(&id.as_str()) {
                        return Err(format!(
                            "the result `{id}` does not answer the next open call of {open:?}"
                        ));
                    }
                    open.remove(0);
                    answering = true;
                }
                Said::Call(id) if open.is_empty() || !answering => {
                    open.push(id);
                    answering = false;
                }
                Said::Text(role, _) if open.is_empty() || role == "assistant" && !answering => {
                    answering = false;
                }
                Said::Call(_) | Said::Text(..) => return Err(format!("the calls {open:?} have no results")),
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("the calls {open:?} have no results")) }
    }
}

/// What stands between an opening mark and the closing one with the same word.
fn between_marks(text: &str) -> Option<&str> {
    let (word, rest) = text.strip_prefix("<data ")?.split_once(">\n")?;
    rest.strip_suffix(&format!("\n</data {word}>"))
}

/// Takes the marks off every text of a request: tests look at what tools said.
pub fn take_marks_off(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(inside) = between_marks(text) {
                *text = inside.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(take_marks_off),
        Value::Object(entries) => entries.values_mut().for_each(take_marks_off),
        _ => {}
    }
}

/// A text, or the texts of a list of parts.
fn text(value: &Value) -> String {
    let part = |part: &Value| text(&part["text"]);
    value.as_str().map_or_else(|| items(value).map(part).collect(), str::to_owned)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn chat_completions(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    for message in items(&body["messages"]) {
        let content = text(&message["content"]);
        if message["role"] == "tool" {
            said.push(Said::Result(text(&message["tool_call_id"]), content));
        } else {
            said.push(Said::Text(text(&message["role"]), content));
        }
        said.extend(items(&message["tool_calls"]).map(|call| Said::Call(text(&call["id"]))));
    }
    said
}

fn messages(body: &Value) -> Vec<Said> {
    let system = items(&body["system"]).map(|block| Said::Text("system".into(), text(&block["text"])));
    let mut said: Vec<_> = system.collect();
    for message in items(&body["messages"]) {
        for block in items(&message["content"]) {
            match block["type"].as_str() {
                Some("text") => said.push(Said::Text(text(&message["role"]), text(&block["text"]))),
                Some("tool_use") => said.push(Said::Call(text(&block["id"]))),
                Some("tool_result") => {
                    said.push(Said::Result(text(&block["tool_use_id"]), text(&block["content"])));
                }
                _ => {}
            }
        }
    }
    said
}

/// There are no ids: a call is known by its place and its tool.
fn ollama(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    let (mut calls, mut results) = (0, 0);
    for message in items(&body["messages"]) {
        let content = text(&message["content"]);
        if message["role"] == "tool" {
            results += 1;
            said.push(Said::Result(format!("{results} {}", message["tool_name"]), content));
        } else {
            said.push(Said::Text(text(&message["role"]), content));
        }
        for call in items(&message["tool_calls"]) {
            calls += 1;
            let function = &call["function"];
            let odd =
                if function["arguments"].is_object() { "" } else { " with arguments that are no object" };
            said.push(Said::Call(format!("{calls} {}{odd}", function["name"])));
        }
    }
    said
}

fn gemini(body: &Value) -> Vec<Said> {
    let mut said: Vec<_> = items(&body["systemInstruction"]["parts"])
        .map(|part| Said::Text("system".into(), text(&part["text"])))
        .collect();
    for content in items(&body["contents"]) {
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        for part in items(&content["parts"]) {
            let (call, result) = (&part["functionCall"], &part["functionResponse"]);
            // Without an id, calls and results are matched by name and order.
            let id = |of: &Value| text(of.get("id").unwrap_or(&of["name"]));
            said.push(if call.is_object() {
                Said::Call(id(call))
            } else if result.is_object() {
                let response = &result["response"];
                Said::Result(id(result), text(response.get("output").unwrap_or(&response["error"])))
            } else {
                Said::Text(role.into(), text(&part["text"]))
            });
        }
    }
    said
}

fn responses(body: &Value) -> Vec<Said> {
    let said = |item: &Value| match item["type"].as_str()? {
        "message" => {
            let texts: Vec<String> = items(&item["content"]).map(|part| text(&part["text"])).collect();
            Some(Said::Text(text(&item["role"]), texts.concat()))
        }
        "function_call" => Some(Said::Call(text(&item["call_id"]))),
        "function_call_output" => Some(Said::Result(text(&item["call_id"]), text(&item["output"]))),
        _ => None,
    };
    items(&body["input"]).filter_map(said).collect()
}
