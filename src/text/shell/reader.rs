//! Parser state: position in the text, results so far, and remaining limits.

use super::script::{Script, ShellParseError, SimpleCommand};

/// Maximum nesting of groups, loops and substitutions.
const MAX_DEPTH: usize = 48;

/// Maximum number of commands of one text, including those in substitutions.
const MAX_COMMANDS: usize = 256;

/// Here-document that starts after the current line.
#[derive(Debug)]
pub(super) struct PendingHeredoc {
    pub(super) delimiter: String,
    /// Whether leading tabs of its lines are removed.
    pub(super) drops_tabs: bool,
    /// Whether its text is expanded.
    pub(super) expands: bool,
    /// Index of the command that reads it.
    pub(super) command: usize,
}

/// Parse results of one level of substitution.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) is_list: bool,
    /// Substitutions in the words of the current command.
    pub(super) nested: Vec<Script>,
    pub(super) pending_heredocs: Vec<PendingHeredoc>,
}

impl Level {
    fn new() -> Self {
        Self { commands: Vec::new(), is_list: true, nested: Vec::new(), pending_heredocs: Vec::new() }
    }

    pub(super) fn finish(self) -> Result<Script, ShellParseError> {
        let is_complete = self.pending_heredocs.is_empty() && self.nested.is_empty();
        let script = Script { commands: self.commands, is_list: self.is_list };
        if is_complete { Ok(script) } else { Err(ShellParseError::Syntax) }
    }
}

/// Parser that reads a text from left to right.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    /// Offset of the next byte.
    pub(super) at: usize,
    pub(super) level: Level,
    depth: usize,
    /// Number of commands that may still be parsed.
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, level: Level::new(), depth: 0, left: MAX_COMMANDS }
    }

    /// Parses the whole text.
    pub(super) fn script(mut self) -> Result<Script, ShellParseError> {
        self.list()?;
        if self.peek().is_some() {
            return Err(ShellParseError::Syntax);
        }
        self.level.finish()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    pub(super) fn is_next(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Consumes `text` if it is next; returns whether it was.
    pub(super) fn accept(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), ShellParseError> {
        if self.accept(text) { Ok(()) } else { Err(ShellParseError::Syntax) }
    }

    /// Runs `read` one level deeper.
    pub(super) fn with_depth<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        if self.depth == MAX_DEPTH {
            return Err(ShellParseError::TooDeep);
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// Parses the commands of a substitution up to its closing parenthesis.
    pub(super) fn substitution(&mut self) -> Result<(), ShellParseError> {
        let start = self.at;
        let outer = std::mem::replace(&mut self.level, Level::new());
        self.with_depth(Self::list)?;
        self.expect(")")?;
        let inner = std::mem::replace(&mut self.level, outer);
        // Shells differ in whether the outer here-document starts after this line or after the substitution.
        if !self.level.pending_heredocs.is_empty() && self.since(start).contains('\n') {
            return Err(ShellParseError::Syntax);
        }
        self.level.nested.push(inner.finish()?);
        Ok(())
    }

    /// Parses all of `text`, which is nested in the current text, with the remaining depth and number of commands.
    pub(super) fn parse_nested<'b>(
        &mut self,
        text: &'b str,
        read: impl FnOnce(&mut Reader<'b>) -> Result<(), ShellParseError>,
    ) -> Result<Level, ShellParseError> {
        self.with_depth(|outer| {
            let mut inner = Reader { text, at: 0, level: Level::new(), depth: outer.depth, left: outer.left };
            read(&mut inner)?;
            outer.left = inner.left;
            if inner.peek().is_some() { Err(ShellParseError::Syntax) } else { Ok(inner.level) }
        })
    }

    /// Stores a command with the substitutions of its words.
    pub(super) fn push_command(&mut self, mut simple: SimpleCommand) -> Result<(), ShellParseError> {
        self.left = self.left.checked_sub(1).ok_or(ShellParseError::TooMany)?;
        simple.nested.append(&mut self.level.nested);
        self.level.commands.push(simple);
        Ok(())
    }
}
