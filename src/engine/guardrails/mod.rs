//! Guardrails: what the configuration says about every call and every text, whoever makes them.

pub mod blocked_commands;
pub mod code_rules;
pub mod counts;
pub mod edit;
pub mod quality_gate;
pub mod test_commands;
pub mod text_rules;

use crate::core::decision::DenialReason;
use crate::core::event::Event;
use crate::core::language::Language;
use crate::engine::command_class::CommandClass;
use crate::messages;
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

/// Limits that hold for every call and every text. A project may only tighten them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailSettings {
    /// Whether the other keys of this section hold; what is built in holds always.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub enabled: bool,
    /// Globs of files and directories that may be read but not changed, besides the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub protected_files: Vec<String>,
    /// Globs of files and directories that may be neither read nor changed.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub sensitive_files: Vec<String>,
    /// Regular expressions of commands that never run: held against each program of a command, and all of it.
    #[schemars(extend("x-merge" = "add", "x-format" = "regex"))]
    pub blocked_commands: Vec<String>,
    /// Files that a session may change; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000),
        extend("x-scope" = "needs-trust", "x-lowers" = true, "x-unit" = "files")
    )]
    pub max_files_modified: Option<u64>,
    /// Lines that a session may add and remove, together; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000_000),
        extend("x-scope" = "needs-trust", "x-lowers" = true, "x-unit" = "lines")
    )]
    pub max_lines_changed: Option<u64>,
    /// Commands that a session may run; absent: no limit.
    #[schemars(
        range(min = 0, max = 1_000_000),
        extend("x-scope" = "needs-trust", "x-lowers" = true, "x-unit" = "commands")
    )]
    pub max_commands_executed: Option<u64>,
    /// Regular expressions of what edits must not write, or should not: `pattern`, `message`, `severity`, `path`.
    #[schemars(extend("x-merge" = "add"))]
    pub code_rules: Vec<CodeRule>,
    /// Whether files are changed again only when a test has passed since they last were.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub require_test_after_edit: bool,
    /// Beginnings of commands that are tests, besides the built-in ones.
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add", "x-format" = "filled"))]
    pub test_commands: Vec<String>,
    /// Commands that must pass before the run counts as done: `name`, `command`, `required`, `timeout`.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add"))]
    pub quality_gates: Vec<QualityGate>,
    /// How often the model is told that required ones do not pass before the run ends all the same.
    #[schemars(range(min = 0, max = 100), extend("x-unit" = "rounds"))]
    pub max_gate_rounds: u32,
    /// Regular expressions of what the model must not read or write: `name`, `on`, `pattern`, `message`, `severity`, `action`.
    #[schemars(extend("x-merge" = "add"))]
    pub text_rules: Vec<TextRule>,
}

impl GuardrailSettings {
    /// The gates of a run whose command line asks for `checks`, which hold whatever the configuration says; none where nothing is
    /// really done.
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
    /// One of the rules about code.
    #[error("guardrails.code_rules: {0}")]
    Code(#[from] CodeRuleError),
    /// One of the rules about texts.
    #[error("guardrails.text_rules: {0}")]
    Text(#[from] regex::Error),
}

/// The guardrails of a run, and what counts towards them. Those that need no content of files are in the policy.
#[derive(Debug)]
pub struct Guardrails {
    /// What texts must not hold.
    pub texts: TextRules,
    code: CodeRules,
    limits: CountLimits,
    /// What a test is, where edits must be tested.
    tests: Option<TestCommands>,
    counts: RefCell<SessionCounts>,
    /// The language of refusals.
    language: Language,
}

impl GuardrailSettings {
    /// These settings, or none of them where they are switched off.
    #[must_use]
    pub fn if_enabled(self) -> Self {
        if self.enabled { self } else { Self { max_gate_rounds: self.max_gate_rounds, ..Self::default() } }
    }
}

impl Guardrails {
    /// Compiles what `settings` say; absolute paths count from `root`. Refusals are in `language`.
    ///
    /// # Errors
    /// A pattern that is none.
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

    /// Goes on from what was counted before.
    pub fn restore(&self, counts: SessionCounts) {
        self.counts.replace(counts);
    }

    /// Takes note of what counts.
    pub fn note(&self, event: &Event) {
        self.counts.borrow_mut().apply(event);
    }

    /// Whether the order matters in which calls run that do more than read.
    pub fn has_limits(&self) -> bool {
        self.limits != CountLimits::default() || self.tests.is_some()
    }

    /// Whether lines are counted.
    pub fn counts_lines(&self) -> bool {
        self.limits.lines.is_some()
    }

    /// Whether it matters what edits do.
    pub fn checks_edits(&self) -> bool {
        self.has_limits() || !self.code.is_empty()
    }

    /// Looks at what a call would make of files; what the model is told of it besides the result.
    ///
    /// # Errors
    /// Why it may not.
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

    /// Looks at a command of `class` that writes the files `named`.
    ///
    /// # Errors
    /// Why it may not run.
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

    /// Whether `command` runs tests that are asked for.
    pub fn is_test(&self, command: &str) -> bool {
        self.tests.as_ref().is_some_and(|tests| tests.is_test(command))
    }
}
