//! Checks the encoded messages of a request against the rules of each wire format.

use agent_llm::Request;
use agent_llm::codec::ModelParameters;
use agent_llm::encoded_history::EncodedHistory;
use agent_llm::quirks::Quirks;
use agent_llm::wire_format::WireFormat;
use serde_json::Value;

/// Encodes `request` in every format and checks its messages.
pub fn check(request: &Request<'_>) {
    for format in WireFormat::ALL {
        let codec = format.codec(Quirks::default());
        let mut history = EncodedHistory::default();
        let messages = history.encode_messages(request.messages, None, codec.as_ref()).unwrap();
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

/// Checks that the calls of a message are followed directly by one result each, in order.
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

/// Checks that the roles alternate and the user is first.
fn alternate(items: &[Value], key: &str) -> Option<String> {
    let twice = items.windows(2).find(|two| two[0][key] == two[1][key]);
    let first = items.first().is_some_and(|item| item[key] != "user");
    twice.map(|two| format!("one role twice: {two:?}")).or(first.then(|| "the model begins".to_owned()))
}

/// Checks that the results of a turn are the first blocks of the next message.
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

/// Checks that a turn is followed directly by as many results as it has calls.
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

/// Checks that each call has an output, and no output precedes its call.
fn responses(items: &[Value]) -> Option<String> {
    let mut open: Vec<&Value> = Vec::new();
    for item in items {
        match item["type"].as_str() {
            Some("function_call") => open.push(&item["call_id"]),
            Some("function_call_output") => match open.iter().position(|id| **id == item["call_id"]) {
                Some(at) => drop(open.remove(at)),
                None => return Some(format!("an output without its call: {item}")),
            },
            // The model may add a text after its calls.
            _ if item["role"] == "assistant" || item["type"] == "reasoning" || open.is_empty() => {}
            _ => return Some(format!("calls without outputs before {item}")),
        }
    }
    (!open.is_empty()).then(|| "calls without outputs at the end".to_owned())
}
