//! Data types for a parsed shell text: commands, words, redirections and nested scripts.

/// Commands that a text may run, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Commands, including those of groups, loops, branches and functions.
    pub commands: Vec<SimpleCommand>,
    /// Whether the text contains only lists, pipes and groups: no loops, branches, functions, tests or arithmetic.
    pub is_list: bool,
}

/// Simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Whether it contains variable assignments.
    pub assigns: bool,
    /// Program and arguments. Empty for parts outside of commands, like the words of a loop.
    pub words: Vec<Word>,
    /// Redirections, except here-documents.
    pub redirections: Vec<Redirection>,
    /// Text of its here-documents and here-strings.
    pub document: String,
    /// Command and process substitutions in its words, redirections and here-documents.
    pub nested: Vec<Script>,
    /// Whether it, or a group around it, reads from a pipe.
    pub is_piped_into: bool,
    /// Whether it, or a list around it, runs in the background.
    pub is_background: bool,
    /// Name of the innermost function that contains it.
    pub function: Option<String>,
}

/// Word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Text without quotes. Expansions are unchanged; command substitutions become `$()`.
    pub text: String,
    /// Text as written.
    pub raw: String,
    /// Whether the program receives exactly `text`, without any expansion.
    pub is_literal: bool,
}

/// Access of a redirection to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads the file.
    Read,
    /// Writes the file.
    Write,
}

/// Redirection from or to a file. Redirections between descriptors are not stored, because they access no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Whether the file is read or written.
    pub direction: Direction,
    /// File name.
    pub target: Word,
}

/// Reason why a text was not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShellParseError {
    /// The text is too long.
    #[error("a command of more than 10,000 bytes: split it, or write long texts with the file tools")]
    TooLong,
    /// The text has too many commands.
    #[error("more than 256 commands in one: split it")]
    TooMany,
    /// The text is nested too deeply.
    #[error("commands nested deeper than 48 levels: split it")]
    TooDeep,
    /// The syntax is invalid or not supported.
    #[error("it is not understood")]
    Syntax,
}
