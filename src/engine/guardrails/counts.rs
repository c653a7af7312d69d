//! What a session has changed and run so far, as the fold of its events, and how much of it may be.

use super::edit::Edit;
use super::test_commands::TestCommands;
use crate::core::decision::DenialReason;
use crate::core::event::Event;
use crate::core::file_change::{Change, FileState};
use crate::core::language::Language;
use crate::messages::{self, CountedChanges};
use crate::text::lines::list_first;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Files that a refusal names.
const NAMED_FILES: usize = 10;

/// What says of a name in a command that the shell fills it in: which files it stands for is not known before.
const EXPANSION_CHARS: [char; 5] = ['$', '`', '*', '?', '['];

/// How much a session may change and run; absent: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountLimits {
    /// Files that it may change.
    pub files: Option<u64>,
    /// Lines that it may add and remove, together.
    pub lines: Option<u64>,
    /// Commands that it may run.
    pub commands: Option<u64>,
}

/// What has been changed and run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    files: BTreeSet<String>,
    lines: u64,
    commands: u64,
    /// What is not as it was when tests last passed, and what it was then.
    untested: BTreeMap<String, FileState>,
}

impl SessionCounts {
    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        if let Event::Subagent { event, .. } = event {
            self.apply(event);
        } else if let Event::ToolCallEnd { changed, counted, .. } = event {
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
            let was = self.untested.entry(change.path.clone()).or_insert_with(|| change.before_state());
            if was.is_consistent_with(&change.after_state()) && *was != FileState::Unknown {
                self.untested.remove(&change.path);
            }
        }
    }

    /// Whether `edits` go beyond a limit.
    ///
    /// # Errors
    /// The refusal, with the figures.
    pub fn check_edits(
        &self,
        limits: &CountLimits,
        edits: &[Edit],
        language: Language,
    ) -> Result<(), DenialReason> {
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
        limits: &CountLimits,
        paths: impl Iterator<Item = &'a str>,
        language: Language,
    ) -> Result<(), DenialReason> {
        let Some(most) = limits.files else { return Ok(()) };
        let new: BTreeSet<&str> = paths.filter(|path| !self.files.contains(*path)).collect();
        if new.is_empty() || (self.files.len() + new.len()) as u64 <= most {
            return Ok(());
        }
        Err(refusal(
            "max_files_modified",
            messages::too_many_files(
                &file_list(new.into_iter()),
                self.files.len(),
                most,
                &file_list(self.files.iter()),
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
        limits: &CountLimits,
        named: &BTreeSet<String>,
        only_reads: bool,
        language: Language,
    ) -> Result<(), DenialReason> {
        if let Some(most) = limits.commands.filter(|most| self.commands >= *most) {
            return Err(refusal(
                "max_commands_executed",
                messages::too_many_commands(self.commands, most, language),
            ));
        }
        let is_whole = |path: &&String| !path.contains(EXPANSION_CHARS);
        self.check_files(limits, named.iter().filter(is_whole).map(String::as_str), language)?;
        let beyond =
            |limit: Option<u64>, used: u64| limit.filter(|most| used > *most).map(|most| (used, most));
        let files = beyond(limits.files, self.files.len() as u64)
            .map(|used| ("max_files_modified", CountedChanges::Files, used));
        let lines =
            beyond(limits.lines, self.lines).map(|used| ("max_lines_changed", CountedChanges::Lines, used));
        match files.or(lines).filter(|_| !only_reads) {
            None => Ok(()),
            Some((rule, what, (used, most))) => {
                Err(refusal(rule, messages::command_changes_over_limit(what, used, most, language)))
            }
        }
    }

    /// Whether `edits` may be made before one of `tests` has run: where nothing has changed since tests passed, or to put
    /// back what has.
    ///
    /// # Errors
    /// The refusal, which says what to do.
    pub fn check_edits_tested(
        &self,
        tests: &TestCommands,
        edits: &[Edit],
        language: Language,
    ) -> Result<(), DenialReason> {
        let puts_back = |edit: &Edit| {
            self.untested.get(&edit.path).is_some_and(|was| was.is_consistent_with(&edit.new_state()))
        };
        if self.untested.is_empty() || edits.iter().all(puts_back) {
            Ok(())
        } else {
            Err(self.untested_refusal(tests, language))
        }
    }

    /// Whether a command that writes the files `named`, and tests nothing, may run before one of `tests` has.
    ///
    /// # Errors
    /// As [`check_edits_tested`](Self::check_edits_tested).
    pub fn check_command_tested(
        &self,
        tests: &TestCommands,
        named: &BTreeSet<String>,
        language: Language,
    ) -> Result<(), DenialReason> {
        if self.untested.is_empty() || named.is_empty() {
            Ok(())
        } else {
            Err(self.untested_refusal(tests, language))
        }
    }

    fn untested_refusal(&self, tests: &TestCommands, language: Language) -> DenialReason {
        refusal(
            "require_test_after_edit",
            messages::tests_required(&file_list(self.untested.keys()), &tests.examples(), language),
        )
    }
}

fn file_list(paths: impl Iterator<Item = impl AsRef<str>>) -> String {
    list_first(paths.map(|path| path.as_ref().to_owned()), NAMED_FILES).unwrap_or_default()
}

fn refusal(key: &str, reason: String) -> DenialReason {
    DenialReason { reason, rule: format!("guardrails.{key}") }
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
