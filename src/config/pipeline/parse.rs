//! Parses a pipeline file; all its errors are found at once.

use super::fields::Fields;
use super::variables::check_name;
use super::{MAX_PIPELINE_BYTES, Pipeline, PipelineError, Step};
use crate::error::quoted;
use crate::yaml::{self, Content, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps, those of `parallel` included.
const MAX_STEPS: usize = 200;

/// Keys of the file.
const KEYS: [&str; 3] = ["name", "variables", "steps"];

/// Parses a pipeline. `is_agent` checks whether there is an agent of a name.
///
/// # Errors
/// All problems, in the order of the file; at most 100.
pub fn parse(text: &str, is_agent: &dyn Fn(&str) -> bool) -> Result<Pipeline, Vec<PipelineError>> {
    let mut parser = Parser {
        fields: Fields::default(),
        is_agent,
        variables: BTreeMap::new(),
        names: BTreeSet::new(),
        count: 0,
    };
    if text.len() as u64 > MAX_PIPELINE_BYTES {
        parser.fields.error_at((0, 0), format!("it is larger than {MAX_PIPELINE_BYTES} bytes"));
        return Err(parser.fields.errors);
    }
    let pipeline = match yaml::parse(text) {
        Ok(node) => parser.pipeline(&node),
        Err(error) => {
            let at = (error.line.unwrap_or_default(), error.column.unwrap_or_default().into());
            parser.fields.error_at(at, error.message);
            Pipeline::default()
        }
    };
    let mut errors = parser.fields.errors;
    errors.sort_by_key(|error| (error.line, error.column));
    if errors.is_empty() { Ok(pipeline) } else { Err(errors) }
}

/// Reads a pipeline; `step.rs` reads its steps.
pub(super) struct Parser<'a> {
    pub(super) fields: Fields,
    pub(super) is_agent: &'a dyn Fn(&str) -> bool,
    /// The names of variables by their upper-case form, under which commands find them.
    variables: BTreeMap<String, String>,
    /// The names of the steps so far.
    names: BTreeSet<String>,
    /// Number of steps so far.
    count: usize,
}

impl Parser<'_> {
    fn pipeline(&mut self, node: &Node) -> Pipeline {
        let mut pipeline = Pipeline::default();
        let mut has_steps = false;
        for entry in self.fields.map(node, "a pipeline") {
            match entry.name.as_str() {
                "name" => pipeline.name = self.fields.text("name", &entry.node).unwrap_or_default(),
                "variables" => pipeline.variables = self.variables(&entry.node),
                "steps" => {
                    has_steps = true;
                    pipeline.steps = self.steps(&entry.node, None);
                }
                _ => self.fields.unknown_key(entry, &KEYS),
            }
        }
        if !has_steps && matches!(node.content, Content::Map(_)) {
            self.fields.error(node, "a pipeline needs `steps`");
        }
        pipeline
    }

    fn variables(&mut self, node: &Node) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        for entry in self.fields.map(node, "`variables`") {
            if self.variable(&entry.name, (entry.line, entry.column))
                && let Some(value) = self.fields.text(&entry.name, &entry.node)
            {
                variables.insert(entry.name.clone(), value.replace('\0', ""));
            }
        }
        variables
    }

    /// Checks whether `name` can be that of a variable, and that no other one has the same name for commands.
    pub(super) fn variable(&mut self, name: &str, at: (u64, u64)) -> bool {
        if let Err(why) = check_name(name) {
            self.fields.error_at(at, format!("{}: {why}", quoted(name)));
            return false;
        }
        let known = self.variables.entry(name.to_ascii_uppercase()).or_insert_with(|| name.to_owned());
        if *known != name {
            let message = format!("`{name}` and `{known}` have the same name in the environment of commands");
            self.fields.error_at(at, message);
        }
        true
    }

    /// Reads a list of steps: those of the pipeline, or of the `parallel` step called `outer`.
    pub(super) fn steps(&mut self, node: &Node, outer: Option<&str>) -> Vec<Step> {
        let (key, prefix) = outer.map_or(("steps", "step"), |name| ("parallel", name));
        let Content::List(items) = &node.content else {
            self.fields.error(node, format!("`{key}` is a list of steps"));
            return Vec::new();
        };
        if items.is_empty() {
            self.fields.error(node, format!("`{key}` is empty"));
        }
        self.count += items.len();
        if self.count > MAX_STEPS {
            self.fields.error(node, format!("{} steps are too many: at most {MAX_STEPS}", self.count));
            return Vec::new();
        }
        let mut steps = Vec::new();
        for (index, item) in items.iter().enumerate() {
            steps.extend(self.step(item, format!("{prefix}-{}", index + 1), outer.is_some()));
        }
        steps
    }

    /// Checks that no other step has the name.
    pub(super) fn check_unique(&mut self, name: &str, item: &Node) {
        if !self.names.insert(name.to_owned()) {
            self.fields.error(item, format!("another step has the name {}", quoted(name)));
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
