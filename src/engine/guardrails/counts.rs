//! What a session has changed and run so far, as the fold of its events, and how much of it may be.

use super::edit::Edit;
use super::test_commands::TestCommands;
use crate::change::{Change, FileState};
use crate::decision::Refusal;
use crate::event::Event;
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
    pub fn check_edits(&self, limits: &Limits, edits: &[Edit]) -> Result<(), Refusal> {
        self.check_files(limits, edits.iter().map(|edit| edit.path.as_str()))?;
        let lines: u64 = edits.iter().map(Edit::lines).sum();
        match limits.lines.filter(|most| self.lines.saturating_add(lines) > *most) {
            None => Ok(()),
            Some(most) => Err(refusal(
                "max_lines_changed",
                format!(
                    "Change refused by guardrail: it adds and removes {lines} lines, and {} of at most {most} are used \
                     in this session.\nNothing was written: make a smaller change where that is enough, and say in your \
                     answer what else should change.",
                    self.lines
                ),
            )),
        }
    }

    /// Whether `paths` are more files than may be changed.
    fn check_files<'a>(&self, limits: &Limits, paths: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
        let Some(most) = limits.files else { return Ok(()) };
        let new: BTreeSet<&str> = paths.filter(|path| !self.files.contains(*path)).collect();
        if new.is_empty() || (self.files.len() + new.len()) as u64 <= most {
            return Ok(());
        }
        Err(refusal(
            "max_files_modified",
            format!(
                "Change refused by guardrail: {} would be changed, and {} of at most {most} files have been in this \
                 session{}.\nNothing was written: change only those, and say in your answer what else should change.",
                named(new.into_iter()),
                self.files.len(),
                if self.files.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", named(self.files.iter()))
                }
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
    ) -> Result<(), Refusal> {
        if let Some(most) = limits.commands.filter(|most| self.commands >= *most) {
            return Err(refusal(
                "max_commands_executed",
                format!(
                    "Command refused by guardrail: {} of at most {most} commands have run in this session.\nNo more run: \
                     go on with the file tools, and say in your answer what a person should run.",
                    self.commands
                ),
            ));
        }
        let is_whole = |path: &&String| !path.contains(FILLED_IN);
        self.check_files(limits, named.iter().filter(is_whole).map(String::as_str))?;
        let beyond =
            |limit: Option<u64>, used: u64| limit.filter(|most| used > *most).map(|most| (used, most));
        let files =
            beyond(limits.files, self.files.len() as u64).map(|used| ("max_files_modified", "files", used));
        let lines = beyond(limits.lines, self.lines).map(|used| ("max_lines_changed", "lines", used));
        match files.or(lines).filter(|_| !only_reads) {
            None => Ok(()),
            Some((rule, what, (used, most))) => Err(refusal(
                rule,
                format!(
                    "Command refused by guardrail: commands of this session have brought the number of changed {what} to \
                     {used}, at most {most} are allowed.\nOnly commands that read run now: say in your answer what is \
                     done and what a person should look at."
                ),
            )),
        }
    }

    /// Whether `edits` may be made before one of `tests` has run: where nothing has changed since tests passed, or to put
    /// back what has.
    ///
    /// # Errors
    /// The refusal, which says what to do.
    pub fn check_tested(&self, tests: &TestCommands, edits: &[Edit]) -> Result<(), Refusal> {
        let puts_back =
            |edit: &Edit| self.untested.get(&edit.path).is_some_and(|was| was.agrees(&edit.becomes()));
        if self.untested.is_empty() || edits.iter().all(puts_back) {
            Ok(())
        } else {
            Err(self.untested(tests))
        }
    }

    /// Whether a command that writes the files `named`, and tests nothing, may run before one of `tests` has.
    ///
    /// # Errors
    /// As [`check_tested`](Self::check_tested).
    pub fn check_writes(&self, tests: &TestCommands, named: &BTreeSet<String>) -> Result<(), Refusal> {
        if self.untested.is_empty() || named.is_empty() { Ok(()) } else { Err(self.untested(tests)) }
    }

    fn untested(&self, tests: &TestCommands) -> Refusal {
        refusal(
            "require_test_after_edit",
            format!(
                "Change refused by guardrail: no test has passed since {} changed, and nothing else changes until one has.\nRun \
                 the tests with run_command ({}): in the foreground, alone or joined to other commands by `&&`, neither in a \
                 pipe nor before `;`. While they fail, the only change that is allowed puts a file back as it was before; then \
                 make the whole change in one call.",
                named(self.untested.keys()),
                tests.examples()
            ),
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
