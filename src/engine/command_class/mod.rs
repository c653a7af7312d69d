//! How dangerous a shell command is, from its text. This decides whether to ask, never what contains a command.

mod blocklist;
mod development;
mod inner_text;
mod named_files;
mod needs_approval;
pub(super) mod program;
mod read_only;
mod roots;
pub(super) mod walk;

pub use named_files::{NamedFile, named_files};

use crate::text::invisible;
use regex::{RegexSet, RegexSetBuilder};
use roots::Roots;
use std::path::Path;
use walk::{Command, ScriptPart};

/// Bytes that all configured patterns may take together when compiled.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;

/// What may happen to a command, from the harmless to the impossible: a text is what the worst of its parts is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandClass {
    /// Plain programs that only read.
    Safe,
    /// Everything that the walls around it hold.
    Confine,
    /// What cannot be undone, reaches beyond the workspace, leaves the machine, or is not understood.
    Ask,
    /// Never runs.
    Blocked {
        /// What it falls under, in words or as the configured regex.
        pattern: String,
    },
}

/// What is known of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandVerdict {
    /// The class of its worst part.
    pub class: CommandClass,
    /// Whether each of its parts is known: plain programs that read, build or test.
    pub is_known: bool,
}

/// What the configuration says about classes.
#[derive(Debug, Clone, Default)]
pub struct CommandOptions {
    blocked: RegexSet,
    safe: Vec<Vec<String>>,
    roots: Roots,
}

/// A `commands.blocked_patterns` entry that is no regex.
#[derive(Debug, thiserror::Error)]
#[error("commands.blocked_patterns: {0}")]
pub struct BlockedPatternError(#[from] regex::Error);

impl CommandOptions {
    /// Compiles `commands.blocked_patterns` (regex, ignoring case, anywhere in the command) and takes
    /// `commands.safe_commands` (prefixes, word by word) along.
    ///
    /// # Errors
    /// When a pattern is no regex or all of them together are too large.
    pub fn new(blocked_patterns: &[String], safe_commands: &[String]) -> Result<Self, BlockedPatternError> {
        let blocked = RegexSetBuilder::new(blocked_patterns)
            .case_insensitive(true)
            .multi_line(true)
            .size_limit(MAX_PATTERN_BYTES)
            .build()?;
        let words = |prefix: &String| prefix.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let safe = safe_commands.iter().map(words).filter(|prefix| !prefix.is_empty()).collect();
        Ok(Self { blocked, safe, roots: Roots::default() })
    }

    /// The same options for commands that begin in `workspace`, an absolute path, of a user with the directory `home`.
    #[must_use]
    pub fn with_roots(self, workspace: &Path, home: Option<&Path>) -> Self {
        Self { roots: Roots::new(workspace, home), ..self }
    }
}

/// What `command` is.
pub fn classify(command: &str, options: &CommandOptions) -> CommandVerdict {
    if let Some(index) = options.blocked.matches(command).iter().next() {
        return CommandVerdict::blocked(options.blocked.patterns().get(index).cloned().unwrap_or_default());
    }
    let is_visible = |char: char| matches!(char, '\n' | '\t') || !char.is_control();
    let is_shown = command.chars().all(is_visible) && invisible::describe_positions(command).is_none();
    let class = if is_shown { CommandClass::Safe } else { CommandClass::Ask };
    let mut verdict = CommandVerdict { class, is_known: is_shown };
    walk::walk(command, &mut |part| verdict.add(options.judge(&part)));
    verdict
}

impl CommandVerdict {
    fn blocked(pattern: String) -> Self {
        Self { class: CommandClass::Blocked { pattern }, is_known: false }
    }

    /// Takes a further part into account. What was blocked first is why.
    fn add(&mut self, part: Self) {
        self.is_known &= part.is_known;
        if part.class > self.class && !matches!(self.class, CommandClass::Blocked { .. }) {
            self.class = part.class;
        }
    }
}

impl CommandOptions {
    fn judge(&self, part: &ScriptPart<'_>) -> CommandVerdict {
        if let Some(pattern) = blocklist::blocked(part) {
            return CommandVerdict::blocked(pattern);
        }
        if matches!(part, ScriptPart::Command(command) if self.roots.are_lost(command)) {
            return CommandVerdict::blocked(roots::LOST.to_owned());
        }
        let (class, is_known) = match part {
            ScriptPart::Script(script) if script.is_list => (CommandClass::Safe, true),
            ScriptPart::Script(_) => (CommandClass::Confine, false),
            ScriptPart::Unknown | ScriptPart::Unclear(_) => (CommandClass::Ask, false),
            ScriptPart::Command(command) => return self.judge_command(command),
        };
        CommandVerdict { class, is_known }
    }

    fn judge_command(&self, command: &Command<'_>) -> CommandVerdict {
        let words = read_only::plain_words(command.simple).filter(|_| command.depth == 0);
        // What the user calls safe is, whatever it names.
        if words.as_ref().is_some_and(|words| self.is_safe(words))
            && !needs_approval::may_run_outside(command)
        {
            return CommandVerdict { class: CommandClass::Safe, is_known: true };
        }
        let class =
            if needs_approval::needs_approval(command) { CommandClass::Ask } else { CommandClass::Confine };
        CommandVerdict { class, is_known: words.is_some_and(|words| development::is_development(&words)) }
    }

    fn is_safe(&self, words: &[String]) -> bool {
        read_only::is_read_only(words) || self.safe.iter().any(|prefix| words.starts_with(prefix))
    }
}

/// What the words of a read-only command say about where it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTargets {
    /// The words after the program: files, and others that are none.
    pub words: Vec<String>,
    /// Whether it reads the files of whole directories.
    pub is_recursive: bool,
    /// Whether it follows the links of a directory that is among its words.
    pub follows_links: bool,
}

/// Where the read-only programs among the commands of `command` read, from where it begins.
pub fn read_targets(command: &str) -> Vec<ReadTargets> {
    let mut found = Vec::new();
    walk::walk(command, &mut |part| {
        let ScriptPart::Command(command) = part else { return };
        let words = read_only::plain_words(command.simple).filter(|words| read_only::is_read_only(words));
        let Some((name, args)) = words.as_ref().and_then(|words| words.split_first()) else { return };
        let below = |place: &String| args.iter().map(|arg| walk::join(place, arg)).collect::<Vec<_>>();
        found.push(ReadTargets {
            words: args.iter().cloned().chain(command.directories.iter().flatten().flat_map(below)).collect(),
            is_recursive: name == "rg" || (name == "grep" && read_only::is_recursive(args)),
            follows_links: name == "diff",
        });
    });
    found
}

#[cfg(test)]
mod tests;
