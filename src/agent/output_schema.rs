//! A structured answer: the schema it must fit, read from outside, and what is wrong with one that does not.
//!
//! A schema is hostile like any file: it can fetch nothing, its patterns run in linear time, and everything it or an
//! answer says about itself is cut to a length.

use crate::llm::response_schema::{AnswerValidator, ResponseSchema};
use crate::redactor::unique_keys;
use crate::terminal::one_line;
use jsonschema::{PatternOptions, ValidationError, Validator};
use regex::Regex;
use serde_json::Value;
use std::sync::{Arc, LazyLock, mpsc};
use std::time::Duration;

/// Bytes of a schema: it is told to the model with every request, and this is about 64,000 tokens.
pub const MAX_SCHEMA_BYTES: u64 = 256 * 1024;
/// How long an answer is checked. A schema whose alternatives multiply takes longer than anybody waits, and the library
/// can be neither limited nor interrupted: the thread is left behind and ends with the process.
const CHECK_TIME: Duration = Duration::from_secs(2);
/// The stack of that thread, which is that of a main thread.
const CHECK_STACK_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of a compiled pattern of a schema; the engine's own default is five times as much, for each of them.
const MAX_PATTERN_BYTES: usize = 2 * 1024 * 1024;
/// Problems of one answer that the model is told: more do not help it.
const MAX_PROBLEMS: usize = 8;
/// Characters of one problem.
const MAX_PROBLEM_CHARS: usize = 300;
/// Characters of the place of a problem.
const MAX_PLACE_CHARS: usize = 200;

/// The strings and numbers of a JSON text. A pattern that is none finds nothing; the tests see that it is one.
static STRING_OR_NUMBER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*"#).ok());

/// The schema that the answer of a run must fit.
#[derive(Debug)]
pub struct OutputSchema {
    /// As the model is told it: JSON without blanks.
    text: String,
    /// As servers are told it.
    server_schema: ResponseSchema,
    validator: Arc<Validator>,
}

impl PartialEq for OutputSchema {
    /// One text is one schema.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A schema that is none; says where.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The JSON is not a schema that can be used.
    #[error("is not a usable JSON Schema: at `{place}`: {problem}")]
    NotSchema {
        /// Where, as a JSON pointer.
        place: String,
        /// What is wrong there.
        problem: String,
    },
}

/// What is wrong with an answer: a few lines for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolations {
    /// Each with its place, one line.
    pub lines: Vec<String>,
    /// Whether there are more than these.
    pub more: bool,
}

impl OutputSchema {
    /// Reads a schema: draft 2020-12, or the draft that its `$schema` names. `format` is an annotation.
    ///
    /// # Errors
    /// When it is not JSON or not a schema, refers to something outside of itself, or has a pattern that is not a
    /// regular expression in the strict sense.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let schema: Value = serde_json::from_str(text).map_err(SchemaError::NotJson)?;
        let patterns =
            PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let options =
            jsonschema::options().offline().should_validate_formats(false).with_pattern_options(patterns);
        let validator = options.build(&schema).map_err(|error| SchemaError::NotSchema {
            place: place(&error),
            problem: one_line(&error.to_string(), MAX_PROBLEM_CHARS),
        })?;
        Ok(Self {
            text: schema.to_string(),
            server_schema: ResponseSchema::new(schema),
            validator: Arc::new(validator),
        })
    }

    /// The schema as the model is told it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The schema as servers are told it.
    pub fn server_schema(&self) -> &ResponseSchema {
        &self.server_schema
    }

    /// The value that `answer` is.
    ///
    /// # Errors
    /// When it is more than one JSON value, perhaps in a code fence, or does not fit the schema.
    pub fn parse_answer(&self, answer: &str) -> Result<Value, SchemaViolations> {
        let json = unfenced(answer);
        let value = unique_keys::read_with_unique_keys(json).map_err(|error| {
            SchemaViolations::one(format!(
                "it is not one JSON value: {}",
                one_line(&error.to_string(), MAX_PROBLEM_CHARS)
            ))
        })?;
        if let Some(digits) = inexact_integer(json) {
            let digits = one_line(digits, MAX_PROBLEM_CHARS);
            return Err(SchemaViolations::one(format!(
                "the integer {digits} has more than 64 bits and would lose digits: write it as a string, if the schema allows it"
            )));
        }
        let unchecked =
            |why: &str| SchemaViolations::one(format!("it could not be checked against the schema: {why}"));
        let (tell, told) = mpsc::channel();
        let validator = Arc::clone(&self.validator);
        let check = move || drop(tell.send(judged(&validator, value)));
        let thread = std::thread::Builder::new().stack_size(CHECK_STACK_BYTES).spawn(check);
        thread.map_err(|error| unchecked(&error.to_string()))?;
        told.recv_timeout(CHECK_TIME).map_err(|_| unchecked("the schema has too many alternatives"))?
    }
}

impl SchemaViolations {
    fn one(line: String) -> Self {
        Self { lines: vec![line], more: false }
    }
}

impl AnswerValidator for OutputSchema {
    fn is_valid(&self, text: &str) -> bool {
        self.parse_answer(text).is_ok()
    }
}

/// The value when it fits.
fn judged(validator: &Validator, value: Value) -> Result<Value, SchemaViolations> {
    if validator.is_valid(&value) {
        return Ok(value);
    }
    let mut errors = validator.iter_errors(&value);
    let lines = errors.by_ref().take(MAX_PROBLEMS).map(|error| problem(&error)).collect();
    Err(SchemaViolations { lines, more: errors.next().is_some() })
}

/// The first integer of a JSON text that a value cannot hold as it stands there: it would become the nearest float.
fn inexact_integer(json: &str) -> Option<&str> {
    let mut tokens = STRING_OR_NUMBER.as_ref()?.find_iter(json).map(|token| token.as_str());
    tokens.find(|token| {
        let is_integer = token.strip_prefix('-').unwrap_or(token).bytes().all(|byte| byte.is_ascii_digit());
        is_integer && token.parse::<u64>().is_err() && token.parse::<i64>().is_err()
    })
}

/// An answer without the one code fence that is around all of it.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inside = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let body = inside.and_then(|inside| inside.split_once('\n')).filter(|(language, _)| {
        let language = language.trim();
        language.is_empty() || language.eq_ignore_ascii_case("json")
    });
    body.map_or(answer, |(_, body)| body)
}

/// One problem in one line: where, what, and the keyword that says so. The value itself is left out: the model has it.
fn problem(error: &ValidationError<'_>) -> String {
    let what = one_line(&error.masked().to_string(), MAX_PROBLEM_CHARS);
    format!("at `{}`: {what} (`{}`)", place(error), one_line(error.kind().keyword(), MAX_PLACE_CHARS))
}

/// A place as a JSON pointer; the root, whose pointer is empty, as `/`.
fn place(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    one_line(if pointer.is_empty() { "/" } else { pointer }, MAX_PLACE_CHARS)
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
mod tests;
