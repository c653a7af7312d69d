//! Guardrails: configured limits and rules for every call and every text.

pub mod blocked_commands;
pub mod code_rules;
pub mod counts;
pub mod edit;
pub mod quality_gate;
pub mod test_commands;
pub mod text_rules;

use crate::command_class::CommandClass;
use agent_core::decision::DenialReason;
use agent_core::event::Event;
use agent_core::language::Language;
use agent_messages as messages;
use code_rules::{CodeRule, CodeRuleError, CodeRules, CodeSeverity};
use counts::{CountLimits, SessionCounts};
use edit::Edit;
use quality_gate::QualityGate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use test_commands::TestCommands;
use text_rules::{TextRule, TextRules};

/// Limits on every call and every text. A project may only tighten them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailSettings {
    /// Whether the other keys of this section apply; built-in limits always apply.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub enabled: bool,
    /// Globs of files and directories that may be read but not changed, in addition to the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub protected_files: Vec<String>,
    /// Globs of files and directories that may be neither read nor changed.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub sensitive_files: Vec<String>,
    /// Regular expressions of commands that never run, matched against each program of a command and the whole text.
    #[schemars(extend("x-merge" = "add", "x-format" = "regex"))]
    pub blocked_commands: Vec<String>,
    /// Number of files that a session may change; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000),
        extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "files")
    )]
    pub max_files_modified: Option<u64>,
    /// Number of lines that a session may add and remove, in total; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000_000),
        extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "lines")
    )]
    pub max_lines_changed: Option<u64>,
    /// Number of commands that a session may run; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000),
        extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "commands")
    )]
    pub max_commands_executed: Option<u64>,
    /// Regular expressions of code that edits must not or should not write: `pattern`, `message`, `severity`, `path`.
    #[schemars(extend("x-merge" = "add"))]
    pub code_rules: Vec<CodeRule>,
    /// Whether tests must pass after a change before files may be changed again.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub require_test_after_edit: bool,
    /// First words of commands that are tests, in addition to the built-in ones.
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add", "x-format" = "filled"))]
    pub test_commands: Vec<String>,
    /// Commands that must pass before the run counts as done: `name`, `command`, `required`, `timeout`.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add"))]
    pub quality_gates: Vec<QualityGate>,
    /// Number of times that failed required gates are sent to the model before the run ends anyway.
    #[schemars(range(min = 0, max = 100), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "rounds"))]
    pub max_gate_rounds: u32,
    /// Regular expressions of text that the model must not read or write: `name`, `on`, `pattern`, `message`, `severity`, `action`.
    #[schemars(extend("x-merge" = "add"))]
    pub text_rules: Vec<TextRule>,
}

impl GuardrailSettings {
    /// Returns these settings, or the defaults if they are disabled.
    #[must_use]
    pub fn if_enabled(self) -> Self {
        if self.enabled { self } else { Self { max_gate_rounds: self.max_gate_rounds, ..Self::default() } }
    }

    /// Adds the gates `checks` of the command line, which apply even if guardrails are disabled. In a dry run, all gates are
    /// removed.
    pub fn set_gates(&mut self, checks: &[String], dry_run: bool) {
        self.quality_gates.extend(checks.iter().cloned().map(QualityGate::from_command_line));
        if dry_run {
            self.quality_gates.clear();
        }
    }
}

/// A guardrail that cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum GuardrailError {
    /// An invalid code rule.
    #[error("guardrails.code_rules: {0}")]
    Code(#[from] CodeRuleError),
    /// An invalid text rule.
    #[error("guardrails.text_rules: {0}")]
    Text(#[from] regex::Error),
}

/// The guardrails of a run with their counts. Protected files, sensitive files and blocked commands are in the policy.
#[derive(Debug)]
pub struct Guardrails {
    /// The text rules.
    pub texts: TextRules,
    code: CodeRules,
    limits: CountLimits,
    /// The test commands, if edits must be tested.
    tests: Option<TestCommands>,
    counts: RefCell<SessionCounts>,
    /// The language of refusals.
    language: Language,
}

impl Guardrails {
    /// Compiles `settings`; absolute paths are made relative to `root`. Refusals are in `language`.
    ///
    /// # Errors
    /// When a pattern is not valid.
    pub fn new(
        settings: GuardrailSettings,
        root: String,
        language: Language,
    ) -> Result<Self, GuardrailError> {
        let tests = settings.require_test_after_edit.then(|| TestCommands::new(&settings.test_commands));
        Ok(Self {
            texts: TextRules::new(settings.text_rules)?,
            code: CodeRules::new(settings.code_rules, root)?,
            limits: CountLimits {
                files: settings.max_files_modified,
                lines: settings.max_lines_changed,
                commands: settings.max_commands_executed,
            },
            tests,
            counts: RefCell::default(),
            language,
        })
    }

    /// Replaces the counts by those of the resumed session.
    pub fn restore(&self, counts: SessionCounts) {
        self.counts.replace(counts);
    }

    /// Counts an event.
    pub fn note(&self, event: &Event) {
        self.counts.borrow_mut().apply(event);
    }

    /// Checks whether there are limits or required tests, so that calls with effects must run in order.
    pub fn has_limits(&self) -> bool {
        self.limits != CountLimits::default() || self.tests.is_some()
    }

    /// Checks whether changed lines are counted.
    pub fn counts_lines(&self) -> bool {
        self.limits.lines.is_some()
    }

    /// Checks whether edits must be checked.
    pub fn checks_edits(&self) -> bool {
        self.has_limits() || !self.code.is_empty()
    }

    /// Checks the planned edits of a call, and returns remarks for the model.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_edits(&self, edits: &[Edit]) -> Result<Vec<String>, DenialReason> {
        let counts = self.counts.borrow();
        if let Some(tests) = &self.tests {
            counts.check_edits_tested(tests, edits, self.language)?;
        }
        counts.check_edits(&self.limits, edits, self.language)?;
        let findings: Vec<_> = edits.iter().flat_map(|edit| self.code.find(edit)).collect();
        match findings.iter().find(|finding| finding.severity == CodeSeverity::Block) {
            Some(finding) => Err(DenialReason {
                reason: messages::code_rule_refusal(&finding.text, self.language),
                rule: format!("guardrails.code_rules[{}]", finding.index),
            }),
            None => Ok(findings.into_iter().map(|finding| format!("Code rule: {}", finding.text)).collect()),
        }
    }

    /// Checks a command of `class` that writes the files `named`.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_command(
        &self,
        command: &str,
        class: &CommandClass,
        named: &BTreeSet<String>,
    ) -> Result<(), DenialReason> {
        let counts = self.counts.borrow();
        counts.check_command(&self.limits, named, *class == CommandClass::Safe, self.language)?;
        match &self.tests {
            Some(tests) if !tests.is_test(command) => {
                counts.check_command_tested(tests, named, self.language)
            }
            _ => Ok(()),
        }
    }

    /// Checks whether `command` is a test, if tests are required.
    pub fn is_test(&self, command: &str) -> bool {
        self.tests.as_ref().is_some_and(|tests| tests.is_test(command))
    }
}
