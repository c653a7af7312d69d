//! What a session has changed and run so far, as the fold of its events, and how much of it may be.

use super::edit::Edit;
use super::test_commands::TestCommands;
use crate::change::{Change, FileState};
use crate::decision::Refusal;
use crate::event::Event;
use crate::language::Language;
use crate::messages::{self, Changed};
use crate::text::lines::enumerated;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Files that a refusal names.
const NAMED_FILES: usize = 10;

/// What says of a name in a command that the shell fills it in: which files it stands for is not known before.
const FILLED_IN: [char; 5] = ['$', '`', '*', '?', '['];

/// How much a session may change and run; absent: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Files that it may change.
    pub files: Option<u64>,
    /// Lines that it may add and remove, together.
    pub lines: Option<u64>,
    /// Commands that it may run.
    pub commands: Option<u64>,
}

/// What has been changed and run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    files: BTreeSet<String>,
    lines: u64,
    commands: u64,
    /// What is not as it was when tests last passed, and what it was then.
    untested: BTreeMap<String, FileState>,
}

impl Counts {
    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        if let Event::Subagent { event, .. } = event {
            self.apply(event);
        } else if let Event::ToolEnd { changed, counted, .. } = event {
            self.files.extend(changed.iter().map(|change| change.path.clone()));
            self.lines = self.lines.saturating_add(counted.lines);
            self.commands = self.commands.saturating_add(counted.command.into());
            match counted.tests_passed {
                Some(true) => self.untested.clear(),
                // What tests write themselves is not what they are to test.
                Some(false) => {}
                None => self.changed(changed),
            }
        } else if let Event::Restored { changed, .. } = event {
            self.changed(changed);
        }
    }

    fn changed(&mut self, changes: &[Change]) {
        for change in changes {
            let was = self.untested.entry(change.path.clone()).or_insert_with(|| change.was());
            if was.agrees(&change.became()) && *was != FileState::Unknown {
                self.untested.remove(&change.path);
            }
        }
    }

    /// Whether `edits` go beyond a limit.
    ///
    /// # Errors
    /// The refusal, with the figures.
    pub fn check_edits(&self, limits: &Limits, edits: &[Edit], language: Language) -> Result<(), Refusal> {
        self.check_files(limits, edits.iter().map(|edit| edit.path.as_str()), language)?;
        let lines: u64 = edits.iter().map(Edit::lines).sum();
        match limits.lines.filter(|most| self.lines.saturating_add(lines) > *most) {
            None => Ok(()),
            Some(most) => {
                Err(refusal("max_lines_changed", messages::too_many_lines(lines, self.lines, most, language)))
            }
        }
    }

    /// Whether `paths` are more files than may be changed.
    fn check_files<'a>(
        &self,
        limits: &Limits,
        paths: impl Iterator<Item = &'a str>,
        language: Language,
    ) -> Result<(), Refusal> {
        let Some(most) = limits.files else { return Ok(()) };
        let new: BTreeSet<&str> = paths.filter(|path| !self.files.contains(*path)).collect();
        if new.is_empty() || (self.files.len() + new.len()) as u64 <= most {
            return Ok(());
        }
        Err(refusal(
            "max_files_modified",
            messages::too_many_files(
                &named(new.into_iter()),
                self.files.len(),
                most,
                &named(self.files.iter()),
                language,
            ),
        ))
    }

    /// Whether another command may run that writes the files `named`; one that `only_reads` changes nothing.
    ///
    /// # Errors
    /// The refusal, with the figures.
    pub fn check_command(
        &self,
        limits: &Limits,
        named: &BTreeSet<String>,
        only_reads: bool,
        language: Language,
    ) -> Result<(), Refusal> {
        if let Some(most) = limits.commands.filter(|most| self.commands >= *most) {
            return Err(refusal(
                "max_commands_executed",
                messages::too_many_commands(self.commands, most, language),
            ));
        }
        let is_whole = |path: &&String| !path.contains(FILLED_IN);
        self.check_files(limits, named.iter().filter(is_whole).map(String::as_str), language)?;
        let beyond =
            |limit: Option<u64>, used: u64| limit.filter(|most| used > *most).map(|most| (used, most));
        let files = beyond(limits.files, self.files.len() as u64)
            .map(|used| ("max_files_modified", Changed::Files, used));
        let lines = beyond(limits.lines, self.lines).map(|used| ("max_lines_changed", Changed::Lines, used));
        match files.or(lines).filter(|_| !only_reads) {
            None => Ok(()),
            Some((rule, what, (used, most))) => {
                Err(refusal(rule, messages::commands_changed_too_much(what, used, most, language)))
            }
        }
    }

    /// Whether `edits` may be made before one of `tests` has run: where nothing has changed since tests passed, or to put
    /// back what has.
    ///
    /// # Errors
    /// The refusal, which says what to do.
    pub fn check_tested(
        &self,
        tests: &TestCommands,
        edits: &[Edit],
        language: Language,
    ) -> Result<(), Refusal> {
        let puts_back =
            |edit: &Edit| self.untested.get(&edit.path).is_some_and(|was| was.agrees(&edit.becomes()));
        if self.untested.is_empty() || edits.iter().all(puts_back) {
            Ok(())
        } else {
            Err(self.untested(tests, language))
        }
    }

    /// Whether a command that writes the files `named`, and tests nothing, may run before one of `tests` has.
    ///
    /// # Errors
    /// As [`check_tested`](Self::check_tested).
    pub fn check_writes(
        &self,
        tests: &TestCommands,
        named: &BTreeSet<String>,
        language: Language,
    ) -> Result<(), Refusal> {
        if self.untested.is_empty() || named.is_empty() {
            Ok(())
        } else {
            Err(self.untested(tests, language))
        }
    }

    fn untested(&self, tests: &TestCommands, language: Language) -> Refusal {
        refusal(
            "require_test_after_edit",
            messages::not_tested(&named(self.untested.keys()), &tests.examples(), language),
        )
    }
}

fn named(paths: impl Iterator<Item = impl AsRef<str>>) -> String {
    enumerated(paths.map(|path| path.as_ref().to_owned()), NAMED_FILES).unwrap_or_default()
}

fn refusal(key: &str, reason: String) -> Refusal {
    Refusal { reason, rule: format!("guardrails.{key}") }
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
