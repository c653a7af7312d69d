//! Counts what a session has changed and run, folded from its events, and checks the limits.

use super::edit::Edit;
use super::test_commands::TestCommands;
use agent_core::decision::DenialReason;
use agent_core::event::Event;
use agent_core::file_change::{Change, FileState};
use agent_core::language::Language;
use agent_messages::{self as messages, CountedChanges};
use agent_text::lines::list_first;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of files named in a refusal.
const NAMED_FILES: usize = 10;

/// Characters that mark a file name in a command as a shell expansion, whose files are unknown before it runs.
const EXPANSION_CHARS: [char; 5] = ['$', '`', '*', '?', '['];

/// Limits of a session; absent: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountLimits {
    /// Number of files that it may change.
    pub files: Option<u64>,
    /// Number of lines that it may add and remove, in total.
    pub lines: Option<u64>,
    /// Number of commands that it may run.
    pub commands: Option<u64>,
}

/// Counts of changes and commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionCounts {
    files: BTreeSet<String>,
    lines: u64,
    commands: u64,
    /// Files that differ from their state when tests last passed, with that state.
    untested: BTreeMap<String, FileState>,
}

impl SessionCounts {
    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        if let Event::Subagent { event, .. } = event {
            self.apply(event);
        } else if let Event::ToolCallEnd { changed, guardrail_counts, .. } = event {
            self.files.extend(changed.iter().map(|change| change.path.clone()));
            self.lines = self.lines.saturating_add(guardrail_counts.lines);
            self.commands = self.commands.saturating_add(guardrail_counts.command.into());
            match guardrail_counts.tests_passed {
                Some(true) => self.untested.clear(),
                // Files that tests write themselves need no test.
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

    /// Checks whether `edits` exceed a limit.
    ///
    /// # Errors
    /// The refusal, with the counts.
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

    /// Checks whether changing `paths` exceeds the limit of files.
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

    /// Checks whether another command, which writes the files `named`, may run; a command that `only_reads` changes nothing.
    ///
    /// # Errors
    /// The refusal, with the counts.
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

    /// Checks whether `edits` may be made before one of `tests` has run: only if nothing has changed since tests passed, or to
    /// revert changes.
    ///
    /// # Errors
    /// The refusal, with the commands to run.
    pub fn check_edits_tested(
        &self,
        tests: &TestCommands,
        edits: &[Edit],
        language: Language,
    ) -> Result<(), DenialReason> {
        let reverts = |edit: &Edit| {
            self.untested.get(&edit.path).is_some_and(|was| was.is_consistent_with(&edit.new_state()))
        };
        if self.untested.is_empty() || edits.iter().all(reverts) {
            Ok(())
        } else {
            Err(self.untested_refusal(tests, language))
        }
    }

    /// Checks whether a command that is not a test and writes the files `named` may run before one of `tests`.
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
    list_first(paths.map(|path| path.as_ref().to_owned()), NAMED_FILES, ", ").unwrap_or_default()
}

fn refusal(key: &str, reason: String) -> DenialReason {
    DenialReason { reason, rule: format!("guardrails.{key}") }
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
