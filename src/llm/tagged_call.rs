//! Recognises tool calls that a model writes as text in its own tags and that the server did not parse.
//!
//! Sources: the tool parsers of vLLM (`vllm/tool_parsers`), the chat templates of the models, `OpenAI`'s description of
//! the harmony format. Used only for servers marked with `text_calls`, and only if the text consists of calls: other text with
//! such tags, such as a file that a model repeats, stays text.

use crate::ToolDefinition;
use crate::embedded_call::{self, EmbeddedCall, offered_name};
use serde_json::{Map, Value};

/// Tags around the calls of one answer; the end tag may be missing.
const WRAPPERS: [(&str, &str); 8] = [
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    ("<|DSML|function_calls>", "</|DSML|function_calls>"),
    ("<|DSML|tool_calls>", "</|DSML|tool_calls>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<function_calls>", "</function_calls>"),
];

/// Prefixes of a single call.
const OPENINGS: [&str; 11] = [
    "<tool_call>",
    "<function=",
    "<invoke name=",
    "<｜DSML｜invoke name=",
    "<|DSML|invoke name=",
    "<|tool_call_begin|>",
    "<｜tool▁call▁begin｜>",
    "<|channel|>commentary",
    "<|start|>assistant",
    "<|python_tag|>",
    "[TOOL_CALLS]",
];

/// `DeepSeek`'s separator between the parts of a call.
const SEPARATOR: &str = "<｜tool▁sep｜>";

/// Recognises calls of the offered tools.
#[derive(Debug)]
pub struct TaggedCallParser {
    tools: Vec<Tool>,
}

/// Properties of a tool that are needed to read its arguments.
#[derive(Debug)]
struct Tool {
    name: String,
    /// Arguments that do not accept text: notations without quotes do not distinguish `5` from `"5"`.
    non_string_arguments: Vec<String>,
}

/// Parser of one notation; reads the call with which a text starts.
type CallSyntax = fn(&TaggedCallParser, &mut Cursor<'_>) -> Option<EmbeddedCall>;

impl TaggedCallParser {
    /// Creates a parser for these tools.
    pub fn new(tools: &[ToolDefinition]) -> Self {
        let tool = |tool: &ToolDefinition| {
            let properties = tool.parameters.get("properties").and_then(Value::as_object);
            let non_string_arguments =
                properties.into_iter().flatten().filter(|(_, schema)| !allows_string(schema));
            Tool {
                name: tool.name.clone(),
                non_string_arguments: non_string_arguments.map(|(name, _)| name.clone()).collect(),
            }
        };
        Self { tools: tools.iter().map(tool).collect() }
    }

    /// Returns the calls that make up `text`; none if the text contains anything else, a call is incomplete, or one names a
    /// tool that is not offered.
    pub fn find(&self, text: &str) -> Vec<EmbeddedCall> {
        let text = text.trim();
        let wrapper = WRAPPERS.iter().find_map(|(begin, end)| Some((text.strip_prefix(begin)?, *end)));
        let inner = wrapper.map_or(text, |(inner, end)| inner.strip_suffix(end).unwrap_or(inner));
        if let Some(list) =
            inner.strip_prefix("[TOOL_CALLS]").filter(|list| list.trim_start().starts_with('['))
        {
            return embedded_call::find(list, &|name| self.offers(name));
        }
        let mut rest = Cursor(inner);
        let mut calls = Vec::new();
        while !rest.is_over() {
            let Some(call) = self.call(&mut rest) else { return Vec::new() };
            calls.push(call);
        }
        calls
    }

    fn call(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        const SYNTAXES: [CallSyntax; 8] = [
            TaggedCallParser::in_tool_call,
            TaggedCallParser::bare_function,
            TaggedCallParser::invoke,
            TaggedCallParser::kimi,
            TaggedCallParser::deepseek,
            TaggedCallParser::harmony,
            TaggedCallParser::llama,
            TaggedCallParser::mistral,
        ];
        SYNTAXES.iter().find_map(|form| {
            let mut tried = Cursor(rest.0);
            let call = form(self, &mut tried)?;
            let text = rest.0.strip_suffix(tried.0).unwrap_or(rest.0).to_owned();
            *rest = tried;
            Some(EmbeddedCall { text, ..call })
        })
    }

    /// Reads `<tool_call>` around JSON (Hermes, Qwen), around [`function`](Self::function) (Qwen Coder), or around a name and
    /// pairs of keys and values (GLM).
    fn in_tool_call(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("<tool_call>")?;
        let call = match rest.peek() {
            '{' => self.object(rest.json()?)?,
            '<' => self.function(rest)?,
            _ => self.pairs(rest)?,
        };
        rest.end("</tool_call>")?;
        Some(call)
    }

    /// Reads a function whose `<tool_call>` is missing, and perhaps its end tag, as Qwen Coder sometimes writes it.
    fn bare_function(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        let call = self.function(rest)?;
        let _ = rest.eat("</tool_call>");
        Some(call)
    }

    /// Reads `<function=NAME>` with `<parameter=KEY>` in it (Qwen Coder), or with JSON (Llama).
    fn function(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("<function=")?;
        let tool = self.tool(rest.take_until(">")?)?;
        if rest.peek() == '{' {
            let arguments = rest.json()?;
            rest.end("</function>")?;
            return build_call(tool, &arguments);
        }
        let mut arguments = Map::new();
        while rest.eat("<parameter=").is_some() {
            let key = rest.take_until(">")?.trim();
            let value = rest.take_until("</parameter>")?;
            add(&mut arguments, key, tool.value(key, value))?;
        }
        rest.eat("</function>")?;
        build_call(tool, &Value::Object(arguments))
    }

    /// Reads a name, and then alternating `<arg_key>` and `<arg_value>`.
    fn pairs(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        let end = rest.0.find('<')?;
        let (name, after) = rest.0.split_at(end);
        let tool = self.tool(name)?;
        rest.0 = after;
        let mut arguments = Map::new();
        while rest.eat("<arg_key>").is_some() {
            let key = rest.take_until("</arg_key>")?.trim();
            rest.eat("<arg_value>")?;
            let value = rest.take_until("</arg_value>")?;
            add(&mut arguments, key, tool.value(key, value))?;
        }
        build_call(tool, &Value::Object(arguments))
    }

    /// Reads `<invoke name="NAME">` with `<parameter name="KEY">` in it (`MiniMax`, `DeepSeek` with its DSML tags).
    fn invoke(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        let mark = ["｜DSML｜", "|DSML|", ""]
            .into_iter()
            .find(|mark| rest.eat(&format!("<{mark}invoke name=\"")).is_some())?;
        let tool = self.tool(rest.take_until("\">")?)?;
        let (begin, end) = (format!("<{mark}parameter name=\""), format!("</{mark}parameter>"));
        let mut arguments = Map::new();
        while rest.eat(&begin).is_some() {
            let head = rest.take_until(">")?;
            let value = rest.take_until(&end)?;
            let (key, more) = head.split_once('"')?;
            let value = match more.trim() {
                "string=\"true\"" => Value::String(value.to_owned()),
                "string=\"false\"" => serde_json::from_str(value).ok()?,
                "" => tool.value(key, value),
                _ => return None,
            };
            add(&mut arguments, key, value)?;
        }
        rest.eat(&format!("</{mark}invoke>"))?;
        build_call(tool, &Value::Object(arguments))
    }

    fn kimi(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("<|tool_call_begin|>")?;
        let tool = self.tool(rest.take_until("<|tool_call_argument_begin|>")?)?;
        let arguments = rest.json()?;
        rest.end("<|tool_call_end|>")?;
        build_call(tool, &arguments)
    }

    /// Reads a name, a separator and JSON; in older models the word `function`, the separator, a name and JSON in a fence.
    fn deepseek(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("<｜tool▁call▁begin｜>")?;
        let first = rest.take_until(SEPARATOR)?;
        let fenced = first.trim() == "function";
        let name = if fenced { rest.take_until("```json")? } else { first };
        let tool = self.tool(name)?;
        let arguments = rest.json()?;
        if fenced {
            rest.eat("```")?;
        }
        rest.end("<｜tool▁call▁end｜>")?;
        build_call(tool, &arguments)
    }

    /// Reads `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>`; the recipient may also
    /// precede the channel.
    fn harmony(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        let started = rest.eat("<|start|>assistant").is_some();
        if !started && !rest.0.trim_start().starts_with("<|channel|>commentary") {
            return None;
        }
        let head = rest.take_until("<|message|>")?;
        let (channel, recipient) = head.split_once("to=")?;
        if channel.contains("analysis") || channel.contains("final") {
            return None;
        }
        let name = recipient.split(|c: char| c.is_whitespace() || c == '<').next()?;
        let tool = self.tool(name)?;
        let arguments = rest.json()?;
        rest.end("<|call|>")?;
        build_call(tool, &arguments)
    }

    fn llama(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("<|python_tag|>")?;
        let call = self.object(rest.json()?)?;
        // Several calls are separated by semicolons.
        let _ = rest.eat(";");
        Some(call)
    }

    fn mistral(&self, rest: &mut Cursor<'_>) -> Option<EmbeddedCall> {
        rest.eat("[TOOL_CALLS]")?;
        let tool = self.tool(rest.take_until("[ARGS]")?)?;
        build_call(tool, &rest.json()?)
    }

    fn object(&self, item: Value) -> Option<EmbeddedCall> {
        embedded_call::parse_call(item, &|name| self.offers(name))
    }

    fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        let name = offered_name(name, &|name| self.offers(name))?;
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl Tool {
    /// Converts an argument between its tags to JSON; line breaks next to the tags are ignored.
    fn value(&self, key: &str, written: &str) -> Value {
        let text = written.strip_prefix('\n').unwrap_or(written);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let read = || match text.trim() {
            // Python notation.
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            json => serde_json::from_str(json).ok(),
        };
        let non_string_arguments = self.non_string_arguments.iter().any(|name| name == key);
        non_string_arguments.then(read).flatten().unwrap_or_else(|| Value::String(text.to_owned()))
    }
}

/// Checks whether a partial answer could still become tagged calls.
pub fn is_possible_prefix(text: &str) -> bool {
    let text = text.trim_start();
    let begins = |mark: &str| text.starts_with(mark) || mark.starts_with(text);
    OPENINGS.iter().any(|mark| begins(mark)) || WRAPPERS.iter().any(|(mark, _)| begins(mark))
}

fn build_call(tool: &Tool, arguments: &Value) -> Option<EmbeddedCall> {
    let arguments = arguments.is_object().then(|| arguments.to_string())?;
    Some(EmbeddedCall { name: tool.name.clone(), arguments, text: String::new() })
}

/// Adds an argument, unless it is already present.
fn add(arguments: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
    arguments.insert(key.to_owned(), value).is_none().then_some(())
}

/// Checks whether a schema allows text, or does not restrict the type.
fn allows_string(schema: &Value) -> bool {
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    match (schema.get("type"), alternatives) {
        (Some(Value::String(kind)), _) => kind == "string",
        (Some(Value::Array(kinds)), _) => kinds.iter().any(|kind| kind == "string"),
        (_, Some(alternatives)) => alternatives.iter().any(allows_string),
        _ => true,
    }
}

/// The unread rest of a text.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    /// Checks whether only white space is left.
    fn is_over(&self) -> bool {
        self.0.trim_start().is_empty()
    }

    /// Returns the next character that is not white space; a space at the end.
    fn peek(&self) -> char {
        self.0.trim_start().chars().next().unwrap_or(' ')
    }

    /// Skips a tag and the white space before it.
    fn eat(&mut self, mark: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(mark)?;
        Some(())
    }

    /// Skips the last tag of a call, which may be missing at the end: servers treat it as a stop word.
    fn end(&mut self, mark: &str) -> Option<()> {
        if self.is_over() { Some(()) } else { self.eat(mark) }
    }

    /// Skips everything up to and including a tag; returns the text before it.
    fn take_until(&mut self, mark: &str) -> Option<&'a str> {
        let (before, after) = self.0.split_once(mark)?;
        self.0 = after;
        Some(before)
    }

    /// Reads one JSON value; tags in it are plain text.
    fn json(&mut self) -> Option<Value> {
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<Value>();
        let value = values.next()?.ok()?;
        self.0 = self.0.get(values.byte_offset()..)?;
        Some(value)
    }
}

#[cfg(test)]
#[path = "tagged_call_tests.rs"]
mod tests;
