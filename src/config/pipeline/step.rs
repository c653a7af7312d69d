//! Parses one step of a pipeline file.

use super::parse::Parser;
use super::{Action, Checkpoint, Debate, Schema, Step, expression};
use crate::error::quoted;
use crate::yaml::{Content, Entry, Node};
use agent_core::work::{DEFAULT_ROUNDS, MAX_DEBATE_MODELS, MAX_ROUNDS};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum characters of the name of a step.
const MAX_NAME_CHARS: usize = 80;
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
/// Keys of which a step has one.
const KINDS: [&str; 4] = ["prompt", "run", "parallel", "consolidate"];
/// Keys without effect on a step with one of the keys before them.
const WITHOUT_EFFECT: [(&str, &[&str]); 4] = [
    ("run", &["agent", "model", "output_schema", "budget", "chain"]),
    ("parallel", &["agent", "model", "output_schema", "budget", "chain"]),
    ("consolidate", &["model", "chain"]),
    ("chain", &["agent"]),
];
/// Keys that a step of `parallel` cannot have.
const NOT_INNER: [&str; 3] = ["parallel", "consolidate", "checkpoint"];
/// Keys of `consolidate`.
const DEBATE_KEYS: [&str; 4] = ["question", "models", "judge", "rounds"];

impl Parser<'_> {
    /// Reads a step, which has `default_name` without another one. `is_inner`: it is a step of `parallel`.
    pub(super) fn step(&mut self, item: &Node, default_name: String, is_inner: bool) -> Option<Step> {
        let mut step = StepReader { default_name, ..StepReader::default() };
        for entry in self.fields.map(item, "a step") {
            if is_inner && NOT_INNER.contains(&entry.name.as_str()) {
                let message = format!("a step of `parallel` cannot have `{}`", entry.name);
                self.fields.error_at((entry.line, entry.column), message);
                step.keys.insert(entry.name.clone(), (entry.line, entry.column));
            } else {
                self.field(&mut step, entry);
            }
        }
        if step.step.name.is_empty() {
            step.step.name.clone_from(&step.default_name);
        }
        self.check_unique(&step.step.name, item);
        matches!(item.content, Content::Map(_)).then(|| self.finish(step, item))?
    }

    fn field(&mut self, step: &mut StepReader, entry: &Entry) {
        let (key, node) = (entry.name.as_str(), &entry.node);
        step.keys.insert(entry.name.clone(), (entry.line, entry.column));
        match key {
            "name" => step.step.name = self.step_name(node),
            "prompt" => step.prompt = self.fields.filled(key, node),
            "run" => step.run = self.fields.command(key, node),
            "chain" => step.chain = self.chain(node),
            "parallel" => step.parallel = self.steps(node, Some(&step.default_name)),
            "consolidate" => step.debate = self.debate(node),
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
            _ => self.fields.unknown_key(entry, &STEP_KEYS),
        }
    }

    /// Returns the step; its keys together must make one.
    fn finish(&mut self, step: StepReader, item: &Node) -> Option<Step> {
        let is_given = |key: &&str| step.keys.contains_key(*key);
        let kinds: Vec<&str> = KINDS.into_iter().filter(is_given).collect();
        if kinds.is_empty() && is_given(&"chain") {
            self.fields.error(item, "`chain` needs `prompt`: the task of its agents");
        } else if kinds.is_empty() && !is_given(&"task") {
            self.fields.error(item, "a step needs `prompt`, `run`, `parallel` or `consolidate`");
        } else if kinds.len() > 1 {
            self.fields.error(item, format!("a step has only one of {}", kinds.join(", ")));
        }
        for (kind, others) in WITHOUT_EFFECT.iter().filter(|(kind, _)| is_given(kind)) {
            for (key, at) in others.iter().filter_map(|key| step.keys.get_key_value(*key)) {
                self.fields.error_at(*at, format!("`{key}` has no effect on a step with `{kind}`"));
            }
        }
        let action = match (step.prompt, step.run, step.debate) {
            (Some(prompt), None, None) if step.chain.is_empty() => Action::Prompt(prompt),
            (Some(prompt), None, None) => Action::Chain { prompt, agents: step.chain },
            (None, Some(command), None) => Action::Run(command),
            (None, None, Some(debate)) => Action::Consolidate(debate),
            (None, None, None) if !step.parallel.is_empty() => Action::Parallel(step.parallel),
            _ => return None,
        };
        Some(Step { action, ..step.step })
    }

    /// Reads the value of `consolidate`.
    fn debate(&mut self, node: &Node) -> Option<Debate> {
        let (mut question, mut models, mut judge, mut rounds) = (None, Vec::new(), None, DEFAULT_ROUNDS);
        for entry in self.fields.map(node, "`consolidate`") {
            let (key, value) = (entry.name.as_str(), &entry.node);
            match key {
                "question" => question = self.fields.filled(key, value),
                "models" => models = self.fields.list(value, |fields, item| fields.filled(key, item)),
                "judge" => judge = self.fields.filled(key, value),
                "rounds" => {
                    let number = self.fields.whole(key, value, MAX_ROUNDS.into(), "rounds");
                    rounds = number.and_then(|number| number.try_into().ok()).unwrap_or(rounds);
                }
                _ => self.fields.unknown_key(entry, &DEBATE_KEYS),
            }
        }
        let distinct: BTreeSet<&String> = models.iter().chain(&judge).collect();
        if !(2..=MAX_DEBATE_MODELS).contains(&models.len()) || distinct.len() != models.len() + 1 {
            let message = format!(
                "`consolidate` needs `question`, `models` (2 to {MAX_DEBATE_MODELS}, all different) and `judge`, another model"
            );
            self.fields.error(node, message);
            return None;
        }
        let (Some(question), Some(judge)) = (question, judge) else {
            self.fields.error(node, "`consolidate` needs `question`");
            return None;
        };
        Some(Debate { question, models, judge, rounds })
    }

    fn step_name(&mut self, node: &Node) -> String {
        let name = self.fields.filled("name", node).unwrap_or_default();
        if name.chars().any(|char| char == '/' || char.is_control()) || name.chars().count() > MAX_NAME_CHARS
        {
            let message =
                format!("the name of a step is one line without `/`, at most {MAX_NAME_CHARS} characters");
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
        self.variable(&name, (node.line, node.column)).then_some(name)
    }

    fn schema(&mut self, node: &Node) -> Option<Schema> {
        match &node.content {
            Content::Map(_) => Some(Schema::Inline(node.to_json())),
            Content::Scalar(_) | Content::List(_) => {
                self.fields.filled("output_schema", node).map(Schema::File)
            }
        }
    }
}

/// The keys of a step, as far as they are read.
#[derive(Default)]
struct StepReader {
    /// Its name if it has no other one, and the first part of those of its own steps.
    default_name: String,
    /// Positions of all keys.
    keys: BTreeMap<String, (u64, u64)>,
    prompt: Option<String>,
    chain: Vec<String>,
    run: Option<String>,
    parallel: Vec<Step>,
    debate: Option<Debate>,
    /// All other keys.
    step: Step,
}
