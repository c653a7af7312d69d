//! Reads the values of a pipeline file, and collects what is wrong with them.

use super::PipelineError;
use super::variables::{environment_name, first_variable};
use crate::error::{did_you_mean, quoted};
use crate::flag_values::parse_seconds;
use crate::yaml::{Content, Entry, Node};
use agent_messages as messages;
use serde_json::Value;

/// Maximum number of errors that are reported.
const MAX_ERRORS: usize = 100;
/// Maximum of a time limit in seconds: a day.
const MAX_SECONDS: u64 = 86_400;

/// The errors found so far.
#[derive(Debug, Default)]
pub struct Fields {
    /// The errors, in the order in which they were found.
    pub errors: Vec<PipelineError>,
}

impl Fields {
    /// Adds an error at a position.
    pub fn error_at(&mut self, (line, column): (u64, u64), message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(PipelineError { line, column, message: message.into() });
        }
    }

    /// Adds an error at a value.
    pub fn error(&mut self, node: &Node, message: impl Into<String>) {
        self.error_at((node.line, node.column), message);
    }

    /// Adds an error about a key that is not one of `known`.
    pub fn unknown_key(&mut self, entry: &Entry, known: &[&str]) {
        let hint = match entry.name.as_str() {
            "task" if known.contains(&"prompt") => Some("did you mean `prompt`?".to_owned()),
            name => did_you_mean(name, known.iter().copied()),
        };
        let hint = hint.unwrap_or_else(|| format!("the keys here are {}", known.join(", ")));
        self.error_at((entry.line, entry.column), format!("unknown key {} ({hint})", quoted(&entry.name)));
    }

    /// Returns the keys of a map.
    pub fn map<'a>(&mut self, node: &'a Node, what: &str) -> &'a [Entry] {
        if let Content::Map(entries) = &node.content {
            return entries;
        }
        self.error(node, format!("{what} is a map of keys and values"));
        &[]
    }

    /// Returns a text; numbers and booleans are texts too.
    pub fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.content {
            Content::Scalar(Value::String(text)) => Some(text.clone()),
            Content::Scalar(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                self.error(node, format!("`{key}` is a text"));
                None
            }
        }
    }

    /// Returns a text that is not blank.
    pub fn filled(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = self.text(key, node)?;
        if text.trim().is_empty() {
            self.error(node, format!("`{key}` is empty"));
            return None;
        }
        Some(text)
    }

    /// Returns a command.
    pub fn command(&mut self, key: &str, node: &Node) -> Option<String> {
        let command = self.filled(key, node)?;
        if let Some(name) = first_variable(&command) {
            let message = format!(
                "`{{{{{name}}}}}` in a command: a variable never becomes part of a command, write \"${}\"",
                environment_name(name)
            );
            self.error(node, message);
        }
        if command.contains('\0') {
            self.error(node, format!("`{key}` contains a NUL character"));
        }
        Some(command)
    }

    /// Returns the items that `read` accepts of a list, or of a single value.
    pub fn list<T>(&mut self, node: &Node, mut read: impl FnMut(&mut Self, &Node) -> Option<T>) -> Vec<T> {
        match &node.content {
            Content::List(items) => items.iter().filter_map(|item| read(self, item)).collect(),
            Content::Scalar(_) | Content::Map(_) => read(self, node).into_iter().collect(),
        }
    }

    /// Returns a boolean.
    pub fn flag(&mut self, key: &str, node: &Node) -> bool {
        match node.content {
            Content::Scalar(Value::Bool(value)) => value,
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                self.error(node, format!("`{key}` is true or false"));
                false
            }
        }
    }

    /// Returns a duration in seconds.
    pub fn seconds(&mut self, key: &str, node: &Node) -> Option<u64> {
        let seconds = match &node.content {
            Content::Scalar(Value::String(text)) => parse_seconds(text).ok(),
            Content::Scalar(value) => value.as_u64(),
            Content::List(_) | Content::Map(_) => None,
        };
        let seconds = seconds.filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
        if seconds.is_none() {
            self.error(node, format!("`{key}` {}", messages::duration_out_of_range(1, MAX_SECONDS)));
        }
        seconds
    }

    /// Returns a whole number of `unit`, 1 to `max`.
    pub fn whole(&mut self, key: &str, node: &Node, max: u64, unit: &str) -> Option<u64> {
        let number = match &node.content {
            Content::Scalar(value) => value.as_u64().filter(|number| (1..=max).contains(number)),
            Content::List(_) | Content::Map(_) => None,
        };
        if number.is_none() {
            self.error(node, format!("`{key}` is a number of {unit}, 1 to {max}"));
        }
        number
    }

    /// Returns an amount of US dollars.
    pub fn dollars(&mut self, key: &str, node: &Node) -> Option<f64> {
        let dollars = match &node.content {
            Content::Scalar(value) => value.as_f64().filter(|dollars| *dollars > 0.0 && *dollars < 1e6),
            Content::List(_) | Content::Map(_) => None,
        };
        if dollars.is_none() {
            self.error(node, format!("`{key}` is a number of US dollars above 0, such as 0.50"));
        }
        dollars
    }
}
