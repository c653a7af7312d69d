//! Parses lists, pipelines, simple commands and functions.

use super::reader::Reader;
use super::script::{ShellParseError, SimpleCommand};
use super::words::{ends_word, is_assignment};

/// Reserved words that end a list.
const CLOSING: &[&str] = &["}", "do", "done", "elif", "else", "esac", "fi", "then"];

impl Reader<'_> {
    /// Skips blanks and line continuations.
    pub(super) fn blanks(&mut self) {
        while self.accept(" ") || self.accept("\t") || self.accept("\\\n") {}
    }

    /// Skips blanks, ends of lines and comments.
    pub(super) fn lines(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.blanks();
            match self.peek() {
                Some('\n') => self.end_line()?,
                Some('#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Returns the raw next word up to a separator, quotes included: sufficient to recognize reserved words.
    pub(super) fn bare(&self) -> &str {
        let rest = self.rest();
        rest.get(..rest.find(ends_word).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Consumes the reserved word `word`, after optional ends of lines.
    pub(super) fn reserved(&mut self, word: &str) -> Result<(), ShellParseError> {
        self.lines()?;
        if self.bare() == word { self.expect(word) } else { Err(ShellParseError::Syntax) }
    }

    /// Parses commands up to the end of the list, and leaves the end unread.
    pub(super) fn list(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.lines()?;
            if self.ends_list() {
                return Ok(());
            }
            let first = self.level.commands.len();
            self.and_or()?;
            self.blanks();
            if self.ends_list() {
                return Ok(());
            }
            match self.peek() {
                Some('&') => {
                    self.at += 1;
                    self.mark(first, |simple| simple.is_background = true);
                }
                Some(';') => self.at += 1,
                Some('\n' | '#') => {}
                _ => return Err(ShellParseError::Syntax),
            }
        }
    }

    /// Parses a list that must not be empty.
    pub(super) fn body(&mut self) -> Result<(), ShellParseError> {
        let first = self.level.commands.len();
        self.list()?;
        if self.level.commands.len() > first { Ok(()) } else { Err(ShellParseError::Syntax) }
    }

    fn ends_list(&self) -> bool {
        self.peek().is_none_or(|char| char == ')')
            || self.is_next(";;")
            || self.is_next(";&")
            || CLOSING.contains(&self.bare())
    }

    fn mark(&mut self, first: usize, mark: impl Fn(&mut SimpleCommand)) {
        self.level.commands.iter_mut().skip(first).for_each(mark);
    }

    fn and_or(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.pipeline()?;
            self.blanks();
            if !self.accept("&&") && !self.accept("||") {
                return Ok(());
            }
            self.lines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), ShellParseError> {
        self.blanks();
        while matches!(self.bare(), "!" | "time") {
            self.at += self.bare().len();
            self.blanks();
            while matches!(self.bare(), "-p" | "--") {
                self.at += 2;
                self.blanks();
            }
        }
        self.command()?;
        self.blanks();
        while self.is_next("|") && !self.is_next("||") {
            self.at += 1;
            self.accept("&");
            self.lines()?;
            let first = self.level.commands.len();
            self.command()?;
            self.mark(first, |simple| simple.is_piped_into = true);
            self.blanks();
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), ShellParseError> {
        if self.compound()? { self.trailing() } else { self.simple() }
    }

    /// Parses the redirections after a compound command.
    fn trailing(&mut self) -> Result<(), ShellParseError> {
        let mut simple = SimpleCommand::default();
        let (mut is_redirected, at) = (false, self.at);
        self.blanks();
        while self.redirection(&mut simple)? {
            is_redirected = true;
            self.blanks();
        }
        if is_redirected {
            return self.push_command(simple);
        }
        self.at = at;
        Ok(())
    }

    fn simple(&mut self) -> Result<(), ShellParseError> {
        let mut simple = SimpleCommand::default();
        let start = self.at;
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('#') => self.comment(),
                Some('(') if simple.words.len() == 1 && !simple.assigns => return self.function(simple),
                Some('(') => return Err(ShellParseError::Syntax),
                Some('&') if !self.is_next("&>") => break,
                Some(_) if self.redirection(&mut simple)? => {}
                Some(_) => {
                    let word = self.word()?;
                    // A word with a line continuation could be a reserved word.
                    if simple.words.is_empty() && word.raw.contains("\\\n") {
                        return Err(ShellParseError::Syntax);
                    }
                    if simple.words.is_empty() && is_assignment(&word.raw) {
                        simple.assigns = true;
                    } else {
                        simple.words.push(word);
                    }
                }
            }
        }
        if self.since(start).trim().is_empty() {
            return Err(ShellParseError::Syntax);
        }
        self.push_command(simple)
    }

    /// Parses `NAME() BODY` from its parentheses on.
    fn function(&mut self, named: SimpleCommand) -> Result<(), ShellParseError> {
        self.at += 1;
        self.blanks();
        self.expect(")")?;
        let is_alone = named.redirections.is_empty() && named.document.is_empty();
        let name = named.words.into_iter().next().filter(|name| name.is_literal && is_alone);
        self.function_body(&name.ok_or(ShellParseError::Syntax)?.text)
    }

    /// Parses the body of a function, a compound command, and sets the function name of its commands.
    pub(super) fn function_body(&mut self, name: &str) -> Result<(), ShellParseError> {
        self.level.is_list = false;
        self.lines()?;
        let first = self.level.commands.len();
        let is_compound = self.with_depth(Self::compound)?;
        self.trailing()?;
        self.mark(first, |simple| {
            simple.function.get_or_insert_with(|| name.to_owned());
        });
        if is_compound { Ok(()) } else { Err(ShellParseError::Syntax) }
    }
}
