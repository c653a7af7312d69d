//! Tests of which texts are recognised as tagged calls.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, properties: Value| ToolDefinition {
        name: name.into(),
        description: "".into(),
        parameters: json!({ "properties": properties }).into(),
    };
    let text = json!({"type": "string"});
    let number = json!({"type": ["integer", "null"]});
    vec![
        tool("read", json!({"path": text, "from": number, "all": {"type": "boolean"}})),
        tool("write", json!({"path": text, "content": text})),
        tool("list", json!({})),
    ]
}

fn find(text: &str) -> Vec<(String, Value)> {
    let calls = TaggedCallParser::new(&tools()).find(text).into_iter();
    calls.map(|call| (call.name, serde_json::from_str(&call.arguments).unwrap())).collect()
}

/// One call of `read` in every notation.
const READS: [&str; 17] = [
    "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
    "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
    "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "<function=read>{\"path\": \"a\"}</function>",
    "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"path\":\"a\"}\
     <|tool_call_end|><|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\": \"a\"}\n```\
     <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a\
     </｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "<minimax:tool_call>\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>",
    "<|channel|>commentary to=functions.read <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>",
    "<|start|>assistant to=functions.read<|channel|>commentary json<|message|>{\"path\":\"a\"}",
    "<|python_tag|>{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}",
    "[TOOL_CALLS]read[ARGS]{\"path\": \"a\"}",
    "[TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]",
    "  <tool_call>{\"name\": \"functions.read\", \"arguments\": \"{\\\"path\\\": \\\"a\\\"}\"}</tool_call>\n",
];

#[test]
fn l21_a_call_is_found_in_every_form() {
    for text in READS {
        assert_eq!(find(text), [("read".into(), json!({"path": "a"}))], "{text}");
        assert!(
            (1..=text.len())
                .filter(|end| text.is_char_boundary(*end))
                .all(|end| is_possible_prefix(&text[..end]))
        );
    }
}

#[test]
fn several_calls_of_one_answer_are_all_found() {
    let two = "<tool_call>\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>\n\
               <tool_call>\n<function=list>\n</function>\n</tool_call>";
    assert_eq!(find(two), [("read".into(), json!({"path": "a"})), ("list".into(), json!({}))]);
    let list = "[TOOL_CALLS][{\"name\":\"list\",\"arguments\":{}},{\"name\":\"list\",\"arguments\":{}}]";
    assert_eq!(find(list).len(), 2);
    let llama = "<|python_tag|>{\"name\":\"list\",\"parameters\":{}}; <|python_tag|>{\"name\":\"list\",\"parameters\":{}}";
    assert_eq!(find(llama).len(), 2);
}

#[test]
fn values_without_quotes_have_the_type_that_the_tool_wants() {
    let read = "<function=read>\n<parameter=path>\n5\n</parameter>\n<parameter=from>\n5\n</parameter>\n\
                <parameter=all>\nTrue\n</parameter>\n</function>";
    assert_eq!(find(read), [("read".into(), json!({"path": "5", "from": 5, "all": true}))]);
    let dsml = "<|DSML|invoke name=\"read\"><|DSML|parameter name=\"path\" string=\"true\">5</|DSML|parameter>\
                <|DSML|parameter name=\"from\" string=\"false\">5</|DSML|parameter></|DSML|invoke>";
    assert_eq!(find(dsml), [("read".into(), json!({"path": "5", "from": 5}))]);
}

#[test]
fn the_text_of_an_argument_keeps_its_lines_and_marks_in_it_are_text() {
    let write = "<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n\n x\n<tool_call>\n\n</parameter>\n</function>";
    assert_eq!(find(write), [("write".into(), json!({"path": "a", "content": "\n x\n<tool_call>\n"}))]);
    let inner = "{\"name\":\"write\",\"arguments\":{\"path\":\"a\",\"content\":\"</tool_call><tool_call>\"}}";
    let write = format!("<tool_call>{inner}</tool_call>");
    assert_eq!(find(&write), [("write".into(), json!({"path": "a", "content": "</tool_call><tool_call>"}))]);
}

#[test]
fn l21_what_is_not_wholly_calls_of_offered_tools_is_text() {
    let call = READS[0];
    for text in [
        format!("I call it now.\n{call}"),
        format!("{call}\nThat was the call."),
        format!("```xml\n{call}\n```"),
        format!("The file holds\n```\n{call}\n```"),
        format!("<think>{call}</think>"),
        format!("> {call}"),
        call.replace("read", "other"),
        format!("{call}{}", call.replace("read", "other")),
        "<tool_call>".into(),
        "<tool_call></tool_call>".into(),
        "<tool_call>{\"name\":\"read\"}</tool_call>".into(),
        "<tool_call>{\"name\":\"read\",\"arguments\":\"a\"}</tool_call>".into(),
        "<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":".into(),
        "<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nhalf of".into(),
        "<function=write>\n<parameter=path>\na\n</parameter>".into(),
        "<function=write><parameter=path>a</parameter><parameter=path>b</parameter></function>".into(),
        "<|channel|>analysis to=functions.read <|message|>{\"path\":\"a\"}<|call|>".into(),
        "<|channel|>commentary<|message|>{\"path\":\"a\"}<|call|>".into(),
        format!("<tool_call>{}", "[".repeat(100_000)),
        "<tool_calls_section_begin>".into(),
        String::new(),
    ] {
        assert_eq!(find(&text), [], "{text:.200}");
    }
}

proptest! {
    #[test]
    fn l21_words_around_a_call_keep_it_text(
        call in prop::sample::select(READS.to_vec()),
        before in "([a-zé`>.\\n ]{0,9})",
        after in "([a-zé`<.\\n ]{0,9})",
    ) {
        prop_assume!(!before.trim().is_empty() || !after.trim().is_empty());
        prop_assert_eq!(find(&format!("{before}{call}{after}")), []);
    }

    #[test]
    fn no_text_makes_it_fail(parts in prop::collection::vec(prop::sample::select(vec![
        "<tool_call>", "</tool_call>", "<function=", "read", ">", "<parameter=", "</parameter>", "</function>", "{", "}",
        "\"", ":", "<|channel|>commentary", "to=functions.", "<|message|>", "[TOOL_CALLS]", "[ARGS]", "[", "]",
        "<invoke name=\"", "\">", "<parameter name=\"", "</invoke>", " string=\"false\"", "<arg_key>", "</arg_key>",
        "<arg_value>", "<｜tool▁call▁begin｜>", SEPARATOR, "```json", "<|tool_call_begin|>", "é", "\n", " ",
    ]), 0..24)) {
        let text = parts.concat();
        let _ = find(&text);
        let _ = is_possible_prefix(&text);
    }
}
