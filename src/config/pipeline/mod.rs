//! The file of `agent pipeline`: steps with variables, conditions and checks.

pub mod expression;
pub mod fields;
mod parse;
mod step;
pub mod variables;

pub use parse::parse;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::iter;

/// Maximum size of a pipeline file in bytes.
pub const MAX_PIPELINE_BYTES: u64 = 256 << 10;

/// A pipeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pipeline {
    /// Its name; empty if it has none.
    pub name: String,
    /// The values of variables unless `--var` gives others.
    pub variables: BTreeMap<String, String>,
    /// The steps, in order; their names differ.
    pub steps: Vec<Step>,
}

impl Pipeline {
    /// Returns the names of the steps (or `variables`) that differ from those of `before`; none if both do the same.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changed = Vec::new();
        if self.variables != before.variables {
            changed.push("variables".to_owned());
        }
        let at = |pipeline: &Self, index: usize| pipeline.steps.get(index).cloned();
        for index in 0..self.steps.len().max(before.steps.len()) {
            let (new, old) = (at(self, index), at(before, index));
            if new != old {
                changed.extend(new.or(old).map(|step| format!("step {}", step.name)));
            }
        }
        changed
    }

    /// Returns the texts that may name files: the commands of all steps, and the files of schemas.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        let schemas = self.all_steps().filter_map(|step| match &step.output_schema {
            Some(Schema::File(file)) => Some(file.as_str()),
            Some(Schema::Inline(_)) | None => None,
        });
        self.all_steps().flat_map(Step::commands).chain(schemas)
    }

    /// Returns all steps; those of `parallel` follow it.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|step| iter::once(step).chain(step.inner()))
    }
}

/// One step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Its name, without `/` and control characters.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// The agent of its runs.
    pub agent: Option<String>,
    /// The model of its runs.
    pub model: Option<String>,
    /// The checkpoint after it.
    pub checkpoint: Checkpoint,
    /// A text that must be true after variables are replaced.
    pub condition: Option<String>,
    /// An expression that must be true.
    pub if_expression: Option<String>,
    /// A command that must exit with 0.
    pub if_command: Option<String>,
    /// The variable that receives its output.
    pub output_var: Option<String>,
    /// The JSON Schema of its answer.
    pub output_schema: Option<Schema>,
    /// Commands that must exit with 0 after it.
    pub checks: Vec<String>,
    /// Time limit in seconds.
    pub timeout: Option<u64>,
    /// Whether the pipeline goes on after it failed.
    pub continue_on_error: bool,
    /// Maximum cost in US dollars.
    pub budget: Option<f64>,
}

impl Step {
    /// Returns its commands, in the order in which they run, without those of its own steps.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let run = match &self.action {
            Action::Run(command) => Some(command),
            Action::Prompt(_) | Action::Chain { .. } | Action::Parallel(_) | Action::Consolidate(_) => None,
        };
        self.if_command.iter().chain(run).chain(&self.checks).map(String::as_str)
    }

    /// Returns its own steps, if it is a `parallel` step.
    pub fn inner(&self) -> &[Self] {
        match &self.action {
            Action::Parallel(steps) => steps,
            Action::Prompt(_) | Action::Chain { .. } | Action::Run(_) | Action::Consolidate(_) => &[],
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A run of the agent with this prompt.
    Prompt(String),
    /// A run of each agent on the same prompt; each also receives the answer of the one before.
    Chain {
        /// The prompt.
        prompt: String,
        /// The agents, in order.
        agents: Vec<String>,
    },
    /// A command.
    Run(String),
    /// Steps that run at the same time; they have no steps of their own and no checkpoint.
    Parallel(Vec<Step>),
    /// Models that answer a question in rounds.
    Consolidate(Debate),
}

/// A question to several models, and the model that judges their answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debate {
    /// The question.
    pub question: String,
    /// The models that answer.
    pub models: Vec<String>,
    /// The model that judges and sums up; none of `models`.
    pub judge: String,
    /// Maximum number of rounds.
    pub rounds: u32,
}

impl Default for Action {
    fn default() -> Self {
        Self::Prompt(String::new())
    }
}

/// The checkpoint after a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Checkpoint {
    /// None.
    #[default]
    Off,
    /// A commit under `refs/agent`.
    Reference,
    /// A commit on the current branch.
    Commit,
}

/// The schema of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Schema {
    /// A file, relative to the directory in which the program runs.
    File(String),
    /// The schema.
    Inline(Value),
}

/// A problem of a pipeline file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineError {
    /// Line, from 1; 0 when unknown.
    pub line: u64,
    /// Column in characters, from 1; 0 when unknown.
    pub column: u64,
    /// The problem and how to solve it.
    pub message: String,
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.message),
            (line, 0) => write!(f, "{line}: {}", self.message),
            (line, column) => write!(f, "{line}:{column}: {}", self.message),
        }
    }
}
