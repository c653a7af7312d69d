//! Tests of decoding unusual lines and bodies.

use super::super::request::CODEC;
use super::*;
use crate::call_assembler::CALLS_CAP;
use crate::{Response, testing};
use proptest::prelude::*;
use serde_json::json;

fn decode(lines: &[&str], body: bool) -> Result<Response, LlmError> {
    testing::decode(CODEC, &mut LineDecoder::default(), lines, body).1
}

fn kind(lines: &[&str]) -> FailureKind {
    decode(lines, false).unwrap_err().kind
}

fn said(message: &Value) -> String {
    json!({"message": message, "done": false}).to_string()
}

fn end(reason: &Value) -> String {
    json!({"message": {"content": ""}, "done": true, "done_reason": reason}).to_string()
}

fn calls(response: &Response) -> Vec<(&str, &str)> {
    response.message.tool_calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect()
}

#[test]
fn only_a_done_line_completes_an_answer() {
    let text = said(&json!({"content": "a"}));
    assert_eq!(decode(&[&text, "{\"done\":true}"], false).unwrap().finish, FinishReason::Stop);
    assert_eq!(kind(&[&text]), FailureKind::CutStream);
    assert_eq!(kind(&[&text, "{\"message\":{\"con"]), FailureKind::CutStream);
    assert_eq!(decode(&[&text], true).unwrap_err().kind, FailureKind::CutStream);
    assert_eq!(kind(&[]), FailureKind::CutStream);
}

#[test]
fn finish_reasons_are_brought_to_one_meaning_and_unknown_ones_named() {
    let text = said(&json!({"content": "a"}));
    for (sent, expected) in [
        (json!("stop"), FinishReason::Stop),
        (json!("length"), FinishReason::Length),
        (json!(""), FinishReason::Stop),
        (Value::Null, FinishReason::Stop),
        (json!("brand_new"), FinishReason::Other("brand_new".into())),
        (json!(7), FinishReason::Other("7".into())),
    ] {
        assert_eq!(decode(&[&text, &end(&sent)], false).unwrap().finish, expected, "{sent}");
    }
    for sent in ["load", "unload"] {
        let error = decode(&[&end(&json!(sent))], false).unwrap_err();
        assert!(error.kind == FailureKind::EmptyAnswer && error.message.contains(sent), "{error}");
    }
}

#[test]
fn calls_stay_apart_and_keep_their_arguments_as_written() {
    let arguments = "{\"b\": 1.50, \"a\": [12345678901234567890123]}";
    let call = |id: &str, arguments: &str| {
        format!(
            "{{\"message\":{{\"tool_calls\":[{{\"id\":{id},\"function\":{{\"index\":0,\"name\":\"read\",\
             \"arguments\":{arguments}}}}}]}}}}"
        )
    };
    let lines = [
        call("null", arguments),
        call("\"\"", arguments),
        call("\"call_x\"", "{}"),
        call("\"call_y\"", "null"),
        call("null", "\"{\\\"p\\\":\""),
        end(&json!("stop")),
    ];
    let response = decode(&lines.each_ref().map(String::as_str), false).unwrap();
    let expected =
        [("new1", arguments), ("new2", arguments), ("call_x", "{}"), ("call_y", "{}"), ("new3", "{\"p\":")];
    assert_eq!(calls(&response), expected);
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn a_body_is_one_document_or_the_lines_of_a_server_that_streams_all_the_same() {
    let message = json!({"content": "a", "thinking": "t"});
    let whole = json!({"message": message, "done": true, "done_reason": "stop", "eval_count": 3}).to_string();
    let lines = format!("{}\n{}", said(&message), json!({"done": true, "eval_count": 3}));
    for body in [whole, lines] {
        let response = decode(&[&body], true).unwrap();
        assert_eq!(response.message.joined_text(), "a");
        assert_eq!(response.usage, Some(Usage { output: 3, ..Usage::default() }));
    }
}

#[test]
fn tokens_are_those_of_the_done_line_as_far_as_it_names_any() {
    let usage = |line: &str| decode(&[line], false).unwrap().usage;
    let both = "{\"message\":{\"content\":\"a\"},\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}";
    assert_eq!(usage(both), Some(Usage { input: 10, output: 5, ..Usage::default() }));
    assert_eq!(usage("{\"done\":true,\"prompt_eval_count\":-1,\"eval_count\":\"5\"}"), None);
}

#[test]
fn an_error_line_ends_the_answer_with_its_words_and_class() {
    let text = said(&json!({"content": "a"}));
    let error = decode(&[&text, "{\"error\":\"an error was encountered\"}"], false).unwrap_err();
    assert!(error.kind == FailureKind::Server && error.message.ends_with(": an error was encountered"));
    let inner = json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}});
    for body in
        [json!({"error": inner.to_string()}), json!({"error": "the input length exceeds the context length"})]
    {
        let error = decode(&[&text, &body.to_string()], false).unwrap_err();
        assert_eq!((error.kind, error.retryable), (FailureKind::ContextOverflow, false), "{error}");
        let error = status_error(400, body.to_string().as_bytes());
        assert_eq!(error.kind, FailureKind::ContextOverflow, "{error}");
    }
    let error = status_error(404, b"{\"error\":\"model 'm' not found\"}");
    assert_eq!((error.kind, error.message.as_str()), (FailureKind::Request, "model 'm' not found"));
    assert_eq!(status_error(502, b"upstream gone").message, "upstream gone");
}

#[test]
fn a_window_too_large_for_the_machine_is_not_asked_for_again() {
    let body = b"{\"error\":\"model requires more system memory (5.0 GiB) than is available (3.9 GiB)\"}";
    let error = status_error(500, body);
    assert!(!error.retryable && error.message.contains("num_ctx"), "{error}");
    assert!(status_error(500, b"{\"error\":\"llama runner process has terminated\"}").retryable);
}

#[test]
fn an_invalid_line_is_an_error_that_quotes_it() {
    for line in [
        "{}",
        "[]",
        "null",
        "oops",
        "{\"message\":7}",
        "{\"choices\":[]}",
        "{\"message\":{\"tool_calls\":[{}]}}",
    ] {
        let error = decode(&[line], false).unwrap_err();
        assert!(error.kind == FailureKind::Malformed && error.message.contains(line), "{line}: {error}");
    }
}

#[test]
fn limits_hold_and_depth_is_no_danger() {
    let call = said(&json!({"tool_calls": [{"function": {"name": "read", "arguments": {}}}]}));
    let mut lines = vec![call.as_str(); 100_000];
    lines.push("{\"done\":true}");
    assert_eq!(decode(&lines, false).unwrap().message.tool_calls().count(), CALLS_CAP + 1);
    let deep = format!("{{\"error\":{}", "[".repeat(200_000));
    assert_eq!(kind(&[&deep]), FailureKind::Malformed);
    let deep = format!(
        "{{\"message\":{{\"tool_calls\":[{{\"function\":{{\"name\":\"read\",\"arguments\":{}1{}}}}}]}},\"done\":true}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert!(decode(&[&deep], false).is_ok_and(|response| response.finish == FinishReason::ToolCalls));
}

proptest! {
    #[test]
    fn nothing_a_server_sends_makes_the_decoder_panic(
        lines in prop::collection::vec("(\\{\"(message|done|error)\":)?[\\[\\]{}\",:a-z0-9 ]{0,40}", 0..6),
        body in any::<bool>(),
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        drop(decode(&lines, body));
    }
}
