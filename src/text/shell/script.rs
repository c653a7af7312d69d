//! What a shell text consists of, as far as somebody who decides about it needs to know: the commands that may run,
//! their words and redirections, and the scripts inside of those.

/// What a text may run, in the order in which it stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Its commands; those of groups, loops, branches and functions among them.
    pub commands: Vec<SimpleCommand>,
    /// Whether it is made of lists, pipes and groups only: no loops, branches, functions, tests or arithmetic.
    pub is_list: bool,
}

/// One command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Whether variables are assigned in front of it, or by it alone.
    pub assigns: bool,
    /// The program and its arguments. None for what stands around commands, like the words of a loop.
    pub words: Vec<Word>,
    /// Its redirections, here-documents aside.
    pub redirections: Vec<Redirection>,
    /// The text of its here-documents and here-strings.
    pub document: String,
    /// The scripts that run while its words, redirections and documents are made: substitutions of commands and processes.
    pub nested: Vec<Script>,
    /// Whether it, or a group that it is in, reads what another command writes.
    pub is_piped_into: bool,
    /// Whether it, or a list that it is in, runs in the background.
    pub is_background: bool,
    /// The innermost function whose body it is in.
    pub function: Option<String>,
}

/// A word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// As it is after quotes are removed. Expansions stay as they are written; substitutions of commands are `$()`.
    pub text: String,
    /// As it is written.
    pub raw: String,
    /// Whether the program gets exactly `text`: nothing in it is expanded.
    pub is_literal: bool,
}

/// What a redirection does with the file that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

/// A redirection from or to a file. Those between descriptors are not kept: they reach nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Whether the file is read or written.
    pub direction: Direction,
    /// The file.
    pub target: Word,
}

/// Why a text was not taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShellParseError {
    /// It is longer than anybody looks through.
    #[error("a command of more than 10,000 bytes: split it, or write long texts with the file tools")]
    TooLong,
    /// It has more commands than anybody looks through.
    #[error("more than 256 commands in one: split it")]
    TooMany,
    /// It is nested too deeply.
    #[error("commands nested deeper than 48 levels: split it")]
    TooDeep,
    /// It is no valid shell, or something rare that is not read here.
    #[error("it is not understood")]
    Syntax,
}
