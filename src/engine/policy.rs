//! What may run: modes compiled to rules, the agent's tools, protected and sensitive files, blocked commands.

use super::command_class::{CommandClass, Verdict};
use super::guardrails::blocked_commands::BlockedCommands;
use super::patterns::Patterns;
use super::rules::{Action, PolicyRule, RuleError, Rules, Ruling};
use crate::decision::Decision;
use crate::process::sandbox::configurations::CONFIGURATIONS;
use crate::process::sandbox::repositories::GIT;
use crate::tools::{Access, Plan};
use crate::workspace::Guard;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How much the agent may do without asking, the least first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call is asked.
    ConfirmAll,
    /// Calls that change something are asked.
    ConfirmSensitive,
    /// Nothing is asked; refusals stand.
    Yolo,
}

impl Mode {
    /// Its name in files, flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfirmAll => "confirm-all",
            Self::ConfirmSensitive => "confirm-sensitive",
            Self::Yolo => "yolo",
        }
    }
}

/// What a policy is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOptions {
    /// How much is asked.
    pub mode: Mode,
    /// The agent's name, for reasons.
    pub agent: String,
    /// The tools the agent may use; empty: all.
    pub allowed_tools: Vec<String>,
    /// Globs of files that may be read but not changed, besides [`CONFIGURATIONS`].
    pub protected_files: Vec<String>,
    /// Globs of files that may be neither read nor changed.
    pub sensitive_files: Vec<String>,
    /// Regular expressions of commands that never run.
    pub blocked_commands: Vec<String>,
    /// Whether dangerous commands are refused in every mode.
    pub allowed_only: bool,
    /// Whether the kernel keeps commands inside the workspace, and that is enough to build and test unasked.
    pub contained: bool,
    /// What people have said about calls, in order.
    pub rules: Vec<PolicyRule>,
    /// The workspace's path, so that absolute paths below it match relative patterns.
    pub root: String,
}

/// The rules of one run. Pure: asks nothing and touches nothing.
#[derive(Debug, Clone)]
pub struct Policy {
    mode: Mode,
    agent: String,
    allowed_tools: Vec<String>,
    allowed_only: bool,
    contained: bool,
    root: String,
    protected: Patterns,
    sensitive: Patterns,
    blocked: BlockedCommands,
    rules: Rules,
}

/// A policy that cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A pattern of the guardrails.
    #[error("guardrails: {0}")]
    Pattern(#[from] globset::Error),
    /// A regular expression of blocked commands.
    #[error("guardrails.blocked_commands: {0}")]
    Blocked(#[from] regex::Error),
    /// One of the rules.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Policy {
    /// Compiles the rules.
    ///
    /// # Errors
    /// A glob that is not valid, or another part of a rule.
    pub fn new(options: PolicyOptions) -> Result<Self, PolicyError> {
        let own = options.protected_files.into_iter();
        let built_in = [GIT].into_iter().chain(CONFIGURATIONS.iter().copied());
        let protected = Patterns::new(built_in.map(str::to_owned).chain(own))?;
        Ok(Self {
            rules: Rules::new(&options.rules, &options.agent)?,
            mode: options.mode,
            agent: options.agent,
            allowed_tools: options.allowed_tools,
            allowed_only: options.allowed_only,
            contained: options.contained,
            root: options.root,
            protected,
            sensitive: Patterns::new(options.sensitive_files.into_iter())?,
            blocked: BlockedCommands::new(&options.blocked_commands)?,
        })
    }

    /// Whether the agent may use this tool at all; others are not offered to the model either.
    pub fn offers(&self, tool: &str) -> bool {
        self.allowed_tools.is_empty() || self.allowed_tools.iter().any(|allowed| allowed == tool)
    }

    /// Whether a path is one of the sensitive files, which searches leave out.
    pub fn hidden(&self, path: &str) -> bool {
        self.sensitive.find(path, &self.root).is_some()
    }

    /// The same rules about files for the workspace, which knows where a path really leads when it is opened.
    pub fn guard(policy: &Arc<Self>) -> Guard {
        let (sensitive, protected) = (Arc::clone(policy), Arc::clone(policy));
        Guard {
            sensitive: Arc::new(move |path| sensitive.hidden(path)),
            protected: Arc::new(move |path| protected.protected.find(path, &protected.root).is_some()),
            named: policy.protected.literals(),
        }
    }

    /// Whether there are sensitive files at all.
    pub fn hides(&self) -> bool {
        !self.sensitive.is_empty()
    }

    /// May this call run? `command` is what is known of the plan's command. Refusals come first, in every mode; then the
    /// rules.
    pub fn decide(&self, tool: &str, access: Access, plan: &Plan, command: Option<&Verdict>) -> Decision {
        self.refusal(tool, plan, command)
            .or_else(|| self.ruling(tool, plan).map(by_rule))
            .unwrap_or_else(|| self.by_mode(access, plan, command))
    }

    /// What the rules say about a call that is not refused anyway.
    pub fn ruling(&self, tool: &str, plan: &Plan) -> Option<Ruling> {
        self.rules.decide(tool, plan, &self.root)
    }

    /// How much is asked where no rule says anything.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn refusal(&self, tool: &str, plan: &Plan, command: Option<&Verdict>) -> Option<Decision> {
        if !self.offers(tool) {
            let (agent, allowed) = (&self.agent, self.allowed_tools.join(", "));
            let reason = format!("The agent `{agent}` may not use `{tool}`. It may use: {allowed}.");
            return Some(deny("agent.allowed_tools", reason));
        }
        plan.touches
            .iter()
            .find_map(|touch| self.file_refusal(&touch.path, touch.write))
            .or_else(|| self.blocked_refusal(plan.command.as_deref()?))
            .or_else(|| self.command_refusal(command?))
    }

    fn blocked_refusal(&self, command: &str) -> Option<Decision> {
        let pattern = self.blocked.find(command)?;
        let reason = format!(
            "Command blocked by guardrail (pattern: {pattern}).\nIt never runs, in no mode and in no other words: reach \
             the goal in another way, or say in your answer what a person should run."
        );
        Some(deny("guardrails.blocked_commands", reason))
    }

    fn file_refusal(&self, path: &str, write: bool) -> Option<Decision> {
        if let Some(pattern) = self.sensitive.find(path, &self.root) {
            let reason = format!(
                "Sensitive file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be neither read nor \
                 changed: go on without it, and say in your answer if the task needs it."
            );
            return Some(deny("guardrails.sensitive_files", reason));
        }
        let pattern = self.protected.find(path, &self.root).filter(|_| write)?;
        let reason = format!(
            "Protected file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be read but not changed: go on \
             without changing it, and say in your answer what a person should change there."
        );
        Some(deny("guardrails.protected_files", reason))
    }

    fn command_refusal(&self, command: &Verdict) -> Option<Decision> {
        match &command.class {
            CommandClass::Blocked { pattern } => {
                let reason = format!(
                    "Command blocked by security policy: '{pattern}'.\nIt never runs, in no mode: reach the goal in \
                     another way, or say in your answer what a person should run."
                );
                Some(deny("commands.blocked_patterns", reason))
            }
            _ if self.allowed_only && !command.is_known => {
                let reason = "Command refused: `commands.allowed_only` permits only commands that are known to be \
                              safe and development commands.\nUse plain commands of those, in lists and pipes but \
                              without variables and redirections, or the file tools.";
                Some(deny("commands.allowed_only", reason.to_owned()))
            }
            _ => None,
        }
    }

    fn by_mode(&self, access: Access, plan: &Plan, command: Option<&Verdict>) -> Decision {
        let what = match access {
            _ if self.mode == Mode::Yolo => return Decision::Allow,
            _ if self.mode == Mode::ConfirmAll => "every tool call is confirmed",
            Access::Execute if command.is_some_and(|command| self.runs_unasked(command)) => {
                return Decision::Allow;
            }
            Access::Execute if command.is_some_and(|command| command.class == CommandClass::Ask) => {
                "commands that destroy, reach beyond the workspace or are not understood are confirmed"
            }
            Access::Execute => "commands that are not known to be safe are confirmed",
            Access::Network => "requests to the web are confirmed",
            Access::Write => "changes to files are confirmed",
            Access::Read if plan.touches.iter().any(|touch| touch.write) => "changes to files are confirmed",
            Access::Read => return Decision::Allow,
        };
        let mode = self.mode.name();
        Decision::Ask { reason: format!("{what} (mode {mode})"), rule: format!("{MODE_RULES}{mode}") }
    }

    /// Whether a command runs in the mode that asks about changes only: it reads, or it builds and tests behind walls.
    fn runs_unasked(&self, command: &Verdict) -> bool {
        match command.class {
            CommandClass::Safe => true,
            CommandClass::Confine => command.is_known && self.contained,
            CommandClass::Ask | CommandClass::Blocked { .. } => false,
        }
    }
}

/// What the names of modes begin with where they stand in place of a rule.
pub const MODE_RULES: &str = "mode.";
/// What stands in place of a rule where the person who was asked said no.
pub const SAID_NO_RULE: &str = "person";

/// What a question becomes when there is nobody to answer it: a refusal, in these words for the model.
pub fn nobody_to_ask(tool: &str, rule: &str) -> String {
    let remedy = if rule.starts_with(MODE_RULES) {
        "A person can allow it with `--mode yolo`, look at it with `--dry-run`, or set `mode: yolo` for this agent."
    } else {
        "A person can allow it at a terminal, or with a rule that stands before this one."
    };
    format!(
        "`{tool}` needs a confirmation and there is nobody to ask ({rule}).\nIt did not run. {remedy} Go on with what \
         needs no confirmation, and say in your answer what was left undone."
    )
}

fn by_rule(Ruling { action, rule, reason }: Ruling) -> Decision {
    let words = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    match action {
        Action::Allow => Decision::Allow,
        Action::Ask => Decision::Ask { reason: format!("a rule asks about it ({rule}){words}"), rule },
        Action::Deny => {
            let reason = format!(
                "Denied by a rule of the person ({rule}){words}.\nIt does not run in any form: go on without it, and say \
                 in your answer if the task needs it."
            );
            Decision::Deny { reason, rule }
        }
    }
}

fn deny(rule: &str, reason: String) -> Decision {
    Decision::Deny { reason, rule: rule.to_owned() }
}

/// A pattern that matches exactly this path and what is below it.
pub fn literal_pattern(path: &str) -> String {
    format!("/{}", globset::escape(path))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
