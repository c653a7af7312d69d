//! What each wire format demands of the messages of a request, looked at in what the codecs write.

use crate::llm::Request;
use crate::llm::codec::ModelParameters;
use crate::llm::encoded_history::EncodedHistory;
use crate::llm::quirks::Quirks;
use crate::llm::wire_format::WireFormat;
use serde_json::Value;

/// Writes `request` in every format and looks at its messages.
pub fn check(request: &Request<'_>) {
    for format in WireFormat::ALL {
        let codec = format.codec(Quirks::default());
        let mut history = EncodedHistory::default();
        let messages = history.json(request.messages, codec.as_ref()).unwrap();
        let body = codec.encode(request, &ModelParameters::default(), messages).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let key = match format {
            WireFormat::ChatCompletions | WireFormat::Messages | WireFormat::Ollama => "messages",
            WireFormat::Gemini => "contents",
            WireFormat::Responses => "input",
        };
        let items = body[key].as_array().unwrap();
        let problem = match format {
            WireFormat::ChatCompletions | WireFormat::Ollama => chat(items),
            WireFormat::Messages => alternate(items, "role").or_else(|| blocks(items)),
            WireFormat::Gemini => parts(items),
            WireFormat::Responses => responses(items),
        };
        assert!(problem.is_none(), "{format:?}: {}", problem.unwrap_or_default());
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The calls of a message are answered by as many results directly after it, in their order.
fn chat(items: &[Value]) -> Option<String> {
    let mut open: Vec<&Value> = Vec::new();
    for item in items {
        match item["role"].as_str() {
            Some("tool") if open.is_empty() => return Some(format!("a result without its call: {item}")),
            Some("tool") => {
                let id = open.remove(0);
                if !id.is_null() && *id != item["tool_call_id"] {
                    return Some(format!("the result of another call than {id}: {item}"));
                }
            }
            _ if !open.is_empty() => return Some(format!("calls without results before {item}")),
            _ => open = list(&item["tool_calls"]).iter().map(|call| &call["id"]).collect(),
        }
    }
    (!open.is_empty()).then(|| "calls without results at the end".to_owned())
}

/// No two neighbours have one role, and the person begins.
fn alternate(items: &[Value], key: &str) -> Option<String> {
    let twice = items.windows(2).find(|two| two[0][key] == two[1][key]);
    let first = items.first().is_some_and(|item| item[key] != "user");
    twice.map(|two| format!("one role twice: {two:?}")).or(first.then(|| "the model begins".to_owned()))
}

/// The results of a turn are the first blocks of the message after it.
fn blocks(items: &[Value]) -> Option<String> {
    let of = |item: &Value, kind: &str, id: &str| -> Vec<Value> {
        let blocks = list(&item["content"]).iter().filter(|block| block["type"] == kind);
        blocks.map(|block| block[id].clone()).collect()
    };
    let mut open = Vec::new();
    for item in items {
        let results = of(item, "tool_result", "tool_use_id");
        let first: Vec<_> = list(&item["content"]).iter().take(results.len()).collect();
        if results != open || first.iter().any(|block| block["type"] != "tool_result") {
            return Some(format!("{open:?} are called and {results:?} answered"));
        }
        open = of(item, "tool_use", "id");
    }
    (!open.is_empty()).then(|| "calls without results at the end".to_owned())
}

/// As many results directly after a turn as it has calls.
fn parts(items: &[Value]) -> Option<String> {
    let of =
        |item: &Value, key: &str| list(&item["parts"]).iter().filter(|part| !part[key].is_null()).count();
    let mut open = 0;
    for item in items {
        if of(item, "functionResponse") != open {
            return Some(format!("{open} calls are answered by {item}"));
        }
        open = of(item, "functionCall");
    }
    (open > 0).then(|| "calls without results at the end".to_owned())
}

/// Each call has its output, and no output comes before its call.
fn responses(items: &[Value]) -> Option<String> {
    let mut open: Vec<&Value> = Vec::new();
    for item in items {
        match item["type"].as_str() {
            Some("function_call") => open.push(&item["call_id"]),
            Some("function_call_output") => match open.iter().position(|id| **id == item["call_id"]) {
                Some(at) => drop(open.remove(at)),
                None => return Some(format!("an output without its call: {item}")),
            },
            // The model may say something after its calls.
            _ if item["role"] == "assistant" || item["type"] == "reasoning" || open.is_empty() => {}
            _ => return Some(format!("calls without outputs before {item}")),
        }
    }
    (!open.is_empty()).then(|| "calls without outputs at the end".to_owned())
}
