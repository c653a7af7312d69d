//! The messages of JSON-RPC 2.0 (<https://www.jsonrpc.org/specification>) as a client sends them.

use crate::client_lines::MAX_LINE_BYTES;
use agent_client_protocol_schema::v1::{Error, RequestId};
use agent_text::json_bounds;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A message of the client.
#[derive(Debug)]
pub enum Message {
    /// Expects a response.
    Request {
        /// Names the response.
        id: RequestId,
        /// Its method.
        method: String,
        /// Its parameters; `Null` if absent.
        params: Value,
    },
    /// Expects no response.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters; `Null` if absent.
        params: Value,
    },
    /// The response to a request of this program.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The result, or what the client reports instead.
        result: Result<Value, Value>,
    },
}

/// What becomes of fields of a message that JSON-RPC does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherFields {
    /// They have no effect.
    Ignored,
    /// The message is refused.
    Refused,
}

/// A message that is answered with an error, for the request `id` as far as it is known.
#[derive(Debug)]
pub struct Malformed {
    /// The id, or null.
    pub id: RequestId,
    /// The error.
    pub error: Error,
}

impl Message {
    /// Parses a line.
    ///
    /// # Errors
    /// When it is not JSON (-32700) or no message (-32600).
    pub fn parse(line: &[u8], others: OtherFields) -> Result<Self, Box<Malformed>> {
        let malformed = |error: Error| Box::new(Malformed { id: RequestId::Null, error });
        json_bounds::check(line).map_err(|error| malformed(invalid_request(&error)))?;
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| malformed(Error::new(Error::parse_error().code.into(), error.to_string())))?;
        let Value::Object(mut object) = value else {
            return Err(malformed(invalid_request("a message is a JSON object")));
        };
        let id = object.remove("id").map(serde_json::from_value::<RequestId>).transpose();
        let id = id.map_err(|_| malformed(invalid_request("an id is a text or an integer")))?;
        let shown = id.clone().unwrap_or(RequestId::Null);
        Self::from_parts(id, &mut object)
            .and_then(|message| match object.keys().next() {
                Some(name) if others == OtherFields::Refused => {
                    Err(invalid_request(&format!("unknown field `{name}`")))
                }
                _ => Ok(message),
            })
            .map_err(|error| Box::new(Malformed { id: shown, error }))
    }

    fn from_parts(id: Option<RequestId>, object: &mut Map<String, Value>) -> Result<Self, Error> {
        if object.remove("jsonrpc") != Some("2.0".into()) {
            return Err(invalid_request("`jsonrpc` must be \"2.0\""));
        }
        let params = object.remove("params").unwrap_or_default();
        match (id, object.remove("method")) {
            (Some(id), Some(Value::String(method))) => Ok(Self::Request { id, method, params }),
            (None, Some(Value::String(method))) => Ok(Self::Notification { method, params }),
            (Some(id), None) => match (object.remove("result"), object.remove("error")) {
                (Some(result), None) => Ok(Self::Response { id, result: Ok(result) }),
                (None, Some(error)) => Ok(Self::Response { id, result: Err(error) }),
                _ => Err(invalid_request("neither a method nor one result or error")),
            },
            _ => Err(invalid_request("`method` must be a text")),
        }
    }
}

/// Returns what a line above the limit is answered with.
pub fn line_too_long() -> Malformed {
    let error = invalid_request(&format!("a line has at most {MAX_LINE_BYTES} bytes"));
    Malformed { id: RequestId::Null, error }
}

/// Returns the error for something that is no request.
pub fn invalid_request(why: &(impl ToString + ?Sized)) -> Error {
    Error::new(Error::invalid_request().code.into(), why.to_string())
}

/// Returns the error for wrong parameters.
pub fn invalid_params(why: &(impl ToString + ?Sized)) -> Error {
    Error::new(Error::invalid_params().code.into(), why.to_string())
}

/// Returns the error for what failed in this program.
pub fn failed(why: &(impl ToString + ?Sized)) -> Error {
    Error::new(Error::internal_error().code.into(), why.to_string())
}

/// Returns the parameters of a method.
///
/// # Errors
/// When they do not fit (-32602).
pub fn parameters<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| invalid_params(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_gets_the_error_of_the_protocol_and_the_id_if_there_is_one() {
        let nested = "[".repeat(200_000);
        for (line, code, id) in [
            ("{\"half", -32700, RequestId::Null),
            (nested.as_str(), -32600, RequestId::Null),
            ("[]", -32600, RequestId::Null),
            ("{}", -32600, RequestId::Null),
            (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, -32600, RequestId::Number(1)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, -32600, RequestId::Null),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32600, RequestId::Str("a".to_owned())),
            (r#"{"jsonrpc":"2.0","id":2,"result":1,"error":2}"#, -32600, RequestId::Number(2)),
        ] {
            let malformed = Message::parse(line.as_bytes(), OtherFields::Ignored).unwrap_err();
            assert_eq!((i32::from(malformed.error.code), malformed.id), (code, id), "{line:.60}");
        }
    }

    #[test]
    fn other_fields_are_refused_where_the_protocol_does_not_allow_them() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"y":1},"other":2}"#;
        assert!(Message::parse(line, OtherFields::Ignored).is_ok());
        let malformed = Message::parse(line, OtherFields::Refused).unwrap_err();
        assert_eq!((i32::from(malformed.error.code), malformed.id), (-32600, RequestId::Number(1)));
        assert!(malformed.error.message.contains("`other`"), "{}", malformed.error.message);
    }
}
