//! Schema of a structured answer: parses the schema, validates answers, and reports violations.
//!
//! Schemas are untrusted input: they can fetch nothing, their patterns run in linear time, and all texts from a schema or an answer are cut to a
//! length.

use agent_llm::response_schema::{AnswerValidator, ResponseSchema};
use agent_redactor::unique_keys;
use agent_terminal::one_line;
use jsonschema::{PatternOptions, ValidationError, Validator};
use regex::Regex;
use serde_json::Value;
use std::sync::{Arc, LazyLock, mpsc};
use std::time::Duration;

/// Bytes of the largest schema (about 64,000 tokens, sent with every request).
pub const MAX_SCHEMA_BYTES: u64 = 256 * 1024;
/// Time limit of a validation. Nested alternatives can multiply, and the library can be neither limited nor interrupted: the thread is abandoned
/// and ends with the process.
const CHECK_TIME: Duration = Duration::from_secs(2);
/// Stack size of that thread. Each reference on the way to a value takes a call, at each of the 128 levels that an answer can have: about 25 MB
/// with [`MAX_REFERENCES`] in a build without optimisation. Memory that is not used is not taken.
const CHECK_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Number of references (`$ref`) in a schema.
const MAX_REFERENCES: usize = 500;
/// Bytes of one pattern, and of all patterns of a schema: the time to compile one grows with the square of its length.
const MAX_PATTERN_TEXT: usize = 1_000;
const MAX_PATTERN_TEXTS: usize = 16_000;
/// Bytes of a compiled pattern of a schema, a fifth of the regex engine's default.
const MAX_PATTERN_BYTES: usize = 2 * 1024 * 1024;
/// Number of violations reported to the model.
const MAX_PROBLEMS: usize = 8;
/// Characters of one violation.
const MAX_PROBLEM_CHARS: usize = 300;
/// Characters of the location of a violation.
const MAX_PLACE_CHARS: usize = 200;

/// Matches the strings and numbers of a JSON text. `None` if the pattern does not compile, which a test rules out.
static STRING_OR_NUMBER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*"#).ok());

/// The schema that the answer of a run must fit.
#[derive(Debug)]
pub struct OutputSchema {
    /// Text for the model: JSON without whitespace.
    text: String,
    /// Form for the server.
    server_schema: ResponseSchema,
    validator: Arc<Validator>,
}

impl PartialEq for OutputSchema {
    /// Schemas with equal texts are equal.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// An invalid schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The JSON is not a usable schema.
    #[error("is not a usable JSON Schema: at `{place}`: {problem}")]
    NotSchema {
        /// Location, as a JSON pointer.
        place: String,
        /// The problem at that location.
        problem: String,
    },
}

/// Violations of the schema by an answer, as text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolations {
    /// One line for each violation, with its location.
    pub lines: Vec<String>,
    /// Whether there are more violations.
    pub more: bool,
}

impl OutputSchema {
    /// Parses a schema of draft 2020-12, or of the draft named by its `$schema`. `format` is only an annotation.
    ///
    /// # Errors
    /// When the text is not JSON or not a schema, refers to an external resource, or contains a pattern that is not a strict regular expression.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let schema: Value = serde_json::from_str(text).map_err(SchemaError::NotJson)?;
        SchemaSize::of(&schema).check()?;
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

    /// Returns the text of the schema for the model.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the schema in the form for servers.
    pub fn server_schema(&self) -> &ResponseSchema {
        &self.server_schema
    }

    /// Parses `answer` and validates it.
    ///
    /// # Errors
    /// When it is not exactly one JSON value (a code fence around it is allowed), or does not fit the schema.
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
        let (sender, receiver) = mpsc::channel();
        let validator = Arc::clone(&self.validator);
        let check = move || drop(sender.send(validate(&validator, value)));
        let thread = std::thread::Builder::new().stack_size(CHECK_STACK_BYTES).spawn(check);
        thread.map_err(|error| unchecked(&error.to_string()))?;
        receiver.recv_timeout(CHECK_TIME).map_err(|_| unchecked("the schema has too many alternatives"))?
    }
}

/// What of a schema costs time or stack beyond its length.
#[derive(Default)]
struct SchemaSize {
    references: usize,
    longest_pattern: usize,
    patterns: usize,
}

impl SchemaSize {
    fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        size.add(schema);
        size
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.add(value)),
            Value::Object(object) => {
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => self.references += 1,
                        ("pattern", Value::String(pattern)) => self.add_pattern(pattern),
                        ("patternProperties", Value::Object(patterns)) => {
                            patterns.keys().for_each(|pattern| self.add_pattern(pattern));
                        }
                        _ => {}
                    }
                    self.add(value);
                }
            }
            _ => {}
        }
    }

    fn add_pattern(&mut self, pattern: &str) {
        self.longest_pattern = self.longest_pattern.max(pattern.len());
        self.patterns += pattern.len();
    }

    fn check(&self) -> Result<(), SchemaError> {
        let problem = if self.references > MAX_REFERENCES {
            format!("it has {} references ($ref), more than {MAX_REFERENCES}", self.references)
        } else if self.longest_pattern > MAX_PATTERN_TEXT {
            format!("a pattern has {} bytes, more than {MAX_PATTERN_TEXT}", self.longest_pattern)
        } else if self.patterns > MAX_PATTERN_TEXTS {
            format!("its patterns have {} bytes together, more than {MAX_PATTERN_TEXTS}", self.patterns)
        } else {
            return Ok(());
        };
        Err(SchemaError::NotSchema { place: "/".to_owned(), problem })
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

/// Returns the value if it fits.
fn validate(validator: &Validator, value: Value) -> Result<Value, SchemaViolations> {
    if validator.is_valid(&value) {
        return Ok(value);
    }
    let mut errors = validator.iter_errors(&value);
    let lines = errors.by_ref().take(MAX_PROBLEMS).map(|error| problem(&error)).collect();
    Err(SchemaViolations { lines, more: errors.next().is_some() })
}

/// Returns the first integer of a JSON text that is too large to be represented exactly; it would become the nearest float.
fn inexact_integer(json: &str) -> Option<&str> {
    let mut tokens = STRING_OR_NUMBER.as_ref()?.find_iter(json).map(|token| token.as_str());
    tokens.find(|token| {
        let is_integer = token.strip_prefix('-').unwrap_or(token).bytes().all(|byte| byte.is_ascii_digit());
        is_integer && token.parse::<u64>().is_err() && token.parse::<i64>().is_err()
    })
}

/// Returns an answer without the code fence around it.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inside = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let body = inside.and_then(|inside| inside.split_once('\n')).filter(|(language, _)| {
        let language = language.trim();
        language.is_empty() || language.eq_ignore_ascii_case("json")
    });
    body.map_or(answer, |(_, body)| body)
}

/// Renders a violation as one line: location, problem, keyword. The value is omitted, because the model has it.
fn problem(error: &ValidationError<'_>) -> String {
    let what = one_line(&error.masked().to_string(), MAX_PROBLEM_CHARS);
    format!("at `{}`: {what} (`{}`)", place(error), one_line(error.kind().keyword(), MAX_PLACE_CHARS))
}

/// Returns a location as a JSON pointer; `/` for the root, whose pointer is empty.
fn place(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    one_line(if pointer.is_empty() { "/" } else { pointer }, MAX_PLACE_CHARS)
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
mod tests;
