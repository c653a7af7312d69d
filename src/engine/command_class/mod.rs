//! How dangerous a shell command is, from its text. This decides whether to ask, never what contains a command.

mod blocklist;
mod files;
mod plain;
mod words;

pub use files::{NamedFile, named_files};

use regex::{RegexSet, RegexSetBuilder};

/// Bytes that all configured patterns may take together when compiled.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;

/// Commands that build and test (spec.md 1.8): a prefix of words each.
const DEV: &[&str] = &[
    "black --check",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo fmt",
    "cargo test",
    "coverage",
    "eslint",
    "go build",
    "go fmt",
    "go test",
    "go vet",
    "golangci-lint",
    "gradle build",
    "gradle test",
    "make",
    "mvn compile",
    "mvn package",
    "mvn test",
    "mypy",
    "npm audit",
    "npm ci",
    "npm install",
    "npm run",
    "npm test",
    "pip install",
    "prettier --check",
    "pytest",
    "python -m black",
    "python -m coverage",
    "python -m mypy",
    "python -m pytest",
    "python -m ruff",
    "python -m unittest",
    "python3 -m black",
    "python3 -m coverage",
    "python3 -m mypy",
    "python3 -m pytest",
    "python3 -m ruff",
    "python3 -m unittest",
    "ruff",
    "tsc",
    "yarn install",
    "yarn run",
    "yarn test",
];

/// What a command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandClass {
    /// One plain program that only reads.
    Safe,
    /// One plain command that builds or tests: the project's own code runs.
    Dev,
    /// Everything else.
    Dangerous,
    /// Never runs.
    Blocked {
        /// What it falls under, in words or as the configured regex.
        pattern: String,
    },
}

/// What the configuration says about classes.
#[derive(Debug, Clone, Default)]
pub struct CommandOptions {
    blocked: RegexSet,
    safe: Vec<Vec<String>>,
}

/// A `commands.blocked_patterns` entry that is no regex.
#[derive(Debug, thiserror::Error)]
#[error("commands.blocked_patterns: {0}")]
pub struct BadPattern(#[from] regex::Error);

impl CommandOptions {
    /// Compiles `commands.blocked_patterns` (regex, ignoring case, anywhere in the command) and takes
    /// `commands.safe_commands` (prefixes, word by word) along.
    ///
    /// # Errors
    /// When a pattern is no regex or all of them together are too large.
    pub fn new(blocked_patterns: &[String], safe_commands: &[String]) -> Result<Self, BadPattern> {
        let blocked = RegexSetBuilder::new(blocked_patterns)
            .case_insensitive(true)
            .multi_line(true)
            .size_limit(MAX_PATTERN_BYTES)
            .build()?;
        let words = |prefix: &String| prefix.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let safe = safe_commands.iter().map(words).filter(|prefix| !prefix.is_empty()).collect();
        Ok(Self { blocked, safe })
    }
}

/// The class of `command`.
pub fn classify(command: &str, options: &CommandOptions) -> CommandClass {
    if let Some(index) = options.blocked.matches(command).iter().next() {
        return CommandClass::Blocked {
            pattern: options.blocked.patterns().get(index).cloned().unwrap_or_default(),
        };
    }
    if let Some(pattern) = blocklist::blocked(command) {
        return CommandClass::Blocked { pattern: pattern.to_owned() };
    }
    let Some(words) = plain::words(command) else { return CommandClass::Dangerous };
    if plain::is_read_only(&words) || options.safe.iter().any(|prefix| words.starts_with(prefix)) {
        return CommandClass::Safe;
    }
    if DEV.iter().any(|prefix| begins_with(&words, prefix)) {
        CommandClass::Dev
    } else {
        CommandClass::Dangerous
    }
}

/// What the words of a read-only command say about where it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The words after the program: files, and others that are none.
    pub words: Vec<String>,
    /// Whether it reads the files of whole directories.
    pub searches: bool,
    /// Whether it follows the links of a directory that is among its words.
    pub follows: bool,
}

/// Where `command` reads, when it is one of the read-only programs.
pub fn reading(command: &str) -> Option<Reading> {
    let words = plain::words(command).filter(|words| plain::is_read_only(words))?;
    let (name, args) = words.split_first()?;
    Some(Reading {
        words: args.to_vec(),
        searches: name == "rg" || (name == "grep" && plain::is_recursive(args)),
        follows: name == "diff",
    })
}

fn begins_with(words: &[String], prefix: &str) -> bool {
    let mut prefix = prefix.split(' ');
    words.iter().map(String::as_str).zip(prefix.by_ref()).all(|(word, wanted)| word == wanted)
        && prefix.next().is_none()
}

#[cfg(test)]
mod tests;
