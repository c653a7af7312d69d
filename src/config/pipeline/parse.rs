//! Parses a pipeline file; all its errors are found at once.

use super::fields::{Fields, to_json};
use super::variables::check_name;
use super::{Action, Checkpoint, MAX_PIPELINE_BYTES, Pipeline, PipelineError, Schema, Step, expression};
use crate::config::error::quoted;
use crate::config::yaml::{self, Content, Entry, Node};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps.
const MAX_STEPS: usize = 200;
/// Maximum characters of the name of a step.
const MAX_STEP_NAME_CHARS: usize = 80;

/// Keys of the file.
const KEYS: [&str; 3] = ["name", "variables", "steps"];
/// Keys of a step.
const STEP_KEYS: [&str; 18] = [
    "name",
    "prompt",
    "run",
    "chain",
    "parallel",
    "consolidate",
    "agent",
    "model",
    "checkpoint",
    "condition",
    "if",
    "if_command",
    "output_var",
    "output_schema",
    "checks",
    "timeout",
    "continue_on_error",
    "budget",
];
/// Kinds of steps that this version does not run.
const UNSUPPORTED: [&str; 2] = ["parallel", "consolidate"];
/// Keys without effect on a step with `run`.
const RUN_KEYS: [&str; 5] = ["agent", "model", "output_schema", "budget", "chain"];

/// Parses a pipeline. `is_agent` checks whether there is an agent of a name.
///
/// # Errors
/// All problems, in the order of the file; at most 100.
pub fn parse(text: &str, is_agent: &dyn Fn(&str) -> bool) -> Result<Pipeline, Vec<PipelineError>> {
    let mut parser = Parser { fields: Fields::default(), is_agent, variables: BTreeMap::new() };
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

struct Parser<'a> {
    fields: Fields,
    is_agent: &'a dyn Fn(&str) -> bool,
    /// The names of variables by their upper-case form, under which commands find them.
    variables: BTreeMap<String, String>,
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
                    pipeline.steps = self.steps(&entry.node);
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
            self.variable(&entry.name, (entry.line, entry.column));
            if let Some(value) = self.fields.text(&entry.name, &entry.node) {
                variables.insert(entry.name.clone(), value.replace('\0', ""));
            }
        }
        variables
    }

    /// Checks the name of a variable, and that no other one has the same name for commands.
    fn variable(&mut self, name: &str, at: (u64, u64)) {
        if let Err(why) = check_name(name) {
            return self.fields.error_at(at, format!("{}: {why}", quoted(name)));
        }
        let known = self.variables.entry(name.to_ascii_uppercase()).or_insert_with(|| name.to_owned());
        if *known != name {
            let message = format!("`{name}` and `{known}` have the same name in the environment of commands");
            self.fields.error_at(at, message);
        }
    }

    fn steps(&mut self, node: &Node) -> Vec<Step> {
        let Content::List(items) = &node.content else {
            self.fields.error(node, "`steps` is a list");
            return Vec::new();
        };
        if items.is_empty() {
            self.fields.error(node, "`steps` is empty");
        }
        if items.len() > MAX_STEPS {
            self.fields.error(node, format!("{} steps are too many: at most {MAX_STEPS}", items.len()));
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let mut steps = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut step = StepReader::default();
            for entry in self.fields.map(item, "a step") {
                self.field(&mut step, entry);
            }
            if step.step.name.is_empty() {
                step.step.name = format!("step-{}", index + 1);
            }
            if !names.insert(step.step.name.clone()) {
                self.fields.error(item, format!("another step has the name {}", quoted(&step.step.name)));
            }
            if matches!(item.content, Content::Map(_)) {
                steps.extend(self.finish(step, item));
            }
        }
        steps
    }

    fn field(&mut self, step: &mut StepReader, entry: &Entry) {
        let (key, node) = (entry.name.as_str(), &entry.node);
        step.keys.insert(entry.name.clone(), (entry.line, entry.column));
        match key {
            "name" => step.step.name = self.step_name(node),
            "prompt" => step.prompt = self.fields.filled(key, node),
            "run" => step.run = self.fields.command(key, node),
            "chain" => step.chain = self.chain(node),
            "agent" => step.step.agent = self.agent(key, node),
            "model" => step.step.model = self.fields.filled(key, node),
            "checkpoint" => step.step.checkpoint = self.checkpoint(node),
            "condition" => step.step.condition = self.fields.text(key, node),
            "if" => step.step.if_expression = self.expression(node),
            "if_command" => step.step.if_command = self.fields.command(key, node),
            "output_var" => step.step.output_var = self.output_variable(node),
            "output_schema" => step.step.output_schema = self.schema(node),
            "checks" => {
                step.step.checks = self.fields.list(node, |fields, item| fields.command("checks", item));
            }
            "timeout" => step.step.timeout = self.fields.seconds(key, node),
            "continue_on_error" => step.step.continue_on_error = self.fields.flag(key, node),
            "budget" => step.step.budget = self.fields.dollars(key, node),
            _ if UNSUPPORTED.contains(&key) => {
                let message = format!("`{key}` steps are not supported yet");
                self.fields.error_at((entry.line, entry.column), message);
            }
            _ => self.fields.unknown_key(entry, &STEP_KEYS),
        }
    }

    /// Returns the step; its keys together must make one.
    fn finish(&mut self, step: StepReader, item: &Node) -> Option<Step> {
        let is_given = |key: &str| step.keys.contains_key(key);
        let kinds: Vec<&str> =
            ["prompt", "run"].into_iter().chain(UNSUPPORTED).filter(|key| is_given(key)).collect();
        if kinds.is_empty() && is_given("chain") {
            self.fields.error(item, "`chain` needs `prompt`: the task of its agents");
        } else if kinds.is_empty() && !is_given("task") {
            self.fields.error(item, "a step needs `prompt` or `run`");
        } else if kinds.len() > 1 {
            self.fields.error(item, format!("a step has only one of {}", kinds.join(", ")));
        }
        let pointless = |key: &&&str| is_given("run") && is_given(key);
        for key in RUN_KEYS.iter().filter(pointless) {
            let at = step.keys.get(*key).copied().unwrap_or_default();
            self.fields.error_at(at, format!("`{key}` has no effect on a step with `run`"));
        }
        if is_given("chain")
            && let Some(at) = step.keys.get("agent")
        {
            self.fields.error_at(*at, "`agent` has no effect on a step with `chain`");
        }
        let action = match (step.prompt, step.chain, step.run) {
            (Some(prompt), agents, None) if agents.is_empty() => Action::Prompt(prompt),
            (Some(prompt), agents, None) => Action::Chain { prompt, agents },
            (None, _, Some(command)) => Action::Run(command),
            _ => return None,
        };
        Some(Step { action, ..step.step })
    }

    fn step_name(&mut self, node: &Node) -> String {
        let name = self.fields.filled("name", node).unwrap_or_default();
        if name.chars().any(|char| char == '/' || char.is_control())
            || name.chars().count() > MAX_STEP_NAME_CHARS
        {
            let message = format!(
                "the name of a step is one line without `/`, at most {MAX_STEP_NAME_CHARS} characters"
            );
            self.fields.error(node, message);
        }
        name
    }

    fn agent(&mut self, key: &str, node: &Node) -> Option<String> {
        let agent = self.fields.filled(key, node)?;
        if !(self.is_agent)(&agent) {
            self.fields
                .error(node, format!("no agent is called {}; `agent agents` lists them", quoted(&agent)));
        }
        Some(agent)
    }

    fn chain(&mut self, node: &Node) -> Vec<String> {
        let Content::List(items) = &node.content else {
            self.fields.error(node, "`chain` is a list of agents");
            return Vec::new();
        };
        if items.is_empty() {
            self.fields.error(node, "`chain` is empty");
        }
        items.iter().filter_map(|item| self.agent("chain", item)).collect()
    }

    fn checkpoint(&mut self, node: &Node) -> Checkpoint {
        match &node.content {
            Content::Scalar(Value::Bool(false)) => Checkpoint::Off,
            Content::Scalar(Value::Bool(true)) => Checkpoint::Reference,
            Content::Scalar(Value::String(text)) if text == "commit" => Checkpoint::Commit,
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                self.fields.error(node, "`checkpoint` is true, false or commit");
                Checkpoint::Off
            }
        }
    }

    fn expression(&mut self, node: &Node) -> Option<String> {
        let text = self.fields.filled("if", node)?;
        if let Err(why) = expression::check(&text) {
            self.fields.error(node, format!("`if` is no expression: {why}"));
        }
        Some(text)
    }

    fn output_variable(&mut self, node: &Node) -> Option<String> {
        let name = self.fields.filled("output_var", node)?;
        self.variable(&name, (node.line, node.column));
        Some(name)
    }

    fn schema(&mut self, node: &Node) -> Option<Schema> {
        match &node.content {
            Content::Map(_) => Some(Schema::Inline(to_json(node))),
            Content::Scalar(_) | Content::List(_) => {
                self.fields.filled("output_schema", node).map(Schema::File)
            }
        }
    }
}

/// The keys of a step, as far as they are read.
#[derive(Default)]
struct StepReader {
    /// Positions of all keys.
    keys: BTreeMap<String, (u64, u64)>,
    prompt: Option<String>,
    chain: Vec<String>,
    run: Option<String>,
    /// All other keys.
    step: Step,
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
