//! Classifies shell commands by risk from their text, to decide whether approval is needed; confinement does not depend on it.

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
pub use needs_approval::Risk;

use agent_text::invisible;
use regex::{RegexSet, RegexSetBuilder};
use roots::Roots;
use std::collections::BTreeSet;
use std::path::Path;
use walk::{Command, ScriptPart};

/// Maximum bytes of all configured patterns when compiled.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;

/// Risk class of a command, in ascending order; a text has the highest class among its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandClass {
    /// Known programs that only read.
    Safe,
    /// Commands whose effects the sandbox contains.
    Confine,
    /// Commands that cannot be undone, reach beyond the workspace or the machine, or cannot be parsed.
    Ask,
    /// Commands that never run.
    Blocked {
        /// Description of the built-in pattern, or the configured regex, that matches.
        pattern: String,
    },
}

/// Classification of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandVerdict {
    /// The highest class among its parts.
    pub class: CommandClass,
    /// Whether every part is a known program that reads, builds or tests; in the sandbox it runs without a prompt.
    pub is_known: bool,
    /// Why it needs approval, if its class is [`CommandClass::Ask`].
    pub risks: BTreeSet<Risk>,
}

/// Settings of the classification.
#[derive(Debug, Clone, Default)]
pub struct CommandOptions {
    blocked: RegexSet,
    safe: Vec<Vec<String>>,
    roots: Roots,
}

/// An entry of `commands.blocked_patterns` that is not a valid regex.
#[derive(Debug, thiserror::Error)]
#[error("commands.blocked_patterns: {0}")]
pub struct BlockedPatternError(#[from] regex::Error);

impl CommandOptions {
    /// Compiles `commands.blocked_patterns` (case-insensitive regexes, searched in the whole command) and stores
    /// `commands.safe_commands` (prefixes of words).
    ///
    /// # Errors
    /// When a pattern is not a valid regex, or all patterns together are too large.
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

    /// Sets the absolute path of the workspace, in which commands start, and the user's home directory.
    #[must_use]
    pub fn with_roots(self, workspace: &Path, home: Option<&Path>) -> Self {
        Self { roots: Roots::new(workspace, home), ..self }
    }
}

/// Classifies `command`.
pub fn classify(command: &str, options: &CommandOptions) -> CommandVerdict {
    if let Some(index) = options.blocked.matches(command).iter().next() {
        return CommandVerdict::blocked(options.blocked.patterns().get(index).cloned().unwrap_or_default());
    }
    let is_visible = |char: char| matches!(char, '\n' | '\t') || !char.is_control();
    let is_shown = command.chars().all(is_visible) && invisible::describe_positions(command).is_none();
    let mut verdict = if is_shown {
        CommandVerdict::new(CommandClass::Safe, true)
    } else {
        CommandVerdict::asked(Risk::Hidden)
    };
    walk::walk(command, &mut |part| verdict.add(options.judge(&part)));
    verdict
}

impl CommandVerdict {
    /// Creates the verdict of a class without a risk.
    pub fn new(class: CommandClass, is_known: bool) -> Self {
        Self { class, is_known, risks: BTreeSet::new() }
    }

    /// Creates the verdict on a command that is no known program and needs approval.
    pub fn asked(risk: Risk) -> Self {
        Self { class: CommandClass::Ask, is_known: false, risks: BTreeSet::from([risk]) }
    }

    fn blocked(pattern: String) -> Self {
        Self::new(CommandClass::Blocked { pattern }, false)
    }

    /// Adds the verdict on another part. Of several blocked patterns the first is reported.
    fn add(&mut self, part: Self) {
        self.is_known &= part.is_known;
        self.risks.extend(part.risks);
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
        match part {
            ScriptPart::Script(script) if script.is_list => CommandVerdict::new(CommandClass::Safe, true),
            ScriptPart::Script(_) => CommandVerdict::new(CommandClass::Confine, false),
            ScriptPart::Unknown => CommandVerdict::asked(Risk::UnknownCode),
            ScriptPart::Unclear(_) => CommandVerdict::asked(Risk::Unclear),
            ScriptPart::Command(command) => self.judge_command(command),
        }
    }

    fn judge_command(&self, command: &Command<'_>) -> CommandVerdict {
        let words = read_only::plain_words(command.simple).filter(|_| command.depth == 0);
        // A command that the user configured as safe is safe with any files as arguments.
        if words.as_ref().is_some_and(|words| self.is_safe(words))
            && !needs_approval::may_run_outside(command)
        {
            return CommandVerdict::new(CommandClass::Safe, true);
        }
        let is_known = words.is_some_and(|words| development::is_known(&words));
        let risks = needs_approval::risks(command);
        let class = if risks.is_empty() { CommandClass::Confine } else { CommandClass::Ask };
        CommandVerdict { class, is_known, risks }
    }

    fn is_safe(&self, words: &[String]) -> bool {
        read_only::is_read_only(words) || self.safe.iter().any(|prefix| words.starts_with(prefix))
    }
}

/// Arguments of a read-only command that determine which files it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTargets {
    /// The words after the program: files and other arguments.
    pub words: Vec<String>,
    /// Whether it reads the files of whole directories.
    pub is_recursive: bool,
    /// Whether it follows links in a directory named among its words.
    pub follows_links: bool,
}

/// Returns what the read-only programs in `command` read, relative to the directory in which it starts.
pub fn read_targets(command: &str) -> Vec<ReadTargets> {
    let mut found = Vec::new();
    walk::walk(command, &mut |part| {
        let ScriptPart::Command(command) = part else { return };
        let reads =
            |words: &Vec<String>| read_only::is_read_only(words) || development::shows_contents(words);
        let words = read_only::plain_words(command.simple).filter(reads);
        let Some((name, args)) = words.as_ref().and_then(|words| words.split_first()) else { return };
        let below =
            |directory: &String| args.iter().map(|arg| walk::join(directory, arg)).collect::<Vec<_>>();
        found.push(ReadTargets {
            words: args.iter().cloned().chain(command.directories.iter().flatten().flat_map(below)).collect(),
            is_recursive: matches!(name.as_str(), "rg" | "git")
                || (name == "grep" && read_only::is_recursive(args)),
            follows_links: name == "diff",
        });
    });
    found
}

#[cfg(test)]
mod tests;
