//! Lists, pipelines, simple commands and functions.

use super::reader::Reader;
use super::script::{Simple, Unclear};
use super::words::{ends_word, is_assignment};

/// Words that end a list where a command could begin.
const CLOSING: &[&str] = &["}", "do", "done", "elif", "else", "esac", "fi", "then"];

impl Reader<'_> {
    /// Goes past blanks and lines that are continued.
    pub(super) fn blanks(&mut self) {
        while self.accept(" ") || self.accept("\t") || self.accept("\\\n") {}
    }

    /// Goes past blanks, ends of lines and comments.
    pub(super) fn lines(&mut self) -> Result<(), Unclear> {
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

    /// The word that is next, as it is written, as far as it has no quotes: enough to know reserved words.
    pub(super) fn bare(&self) -> &str {
        let rest = self.rest();
        rest.get(..rest.find(ends_word).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Goes past the reserved word `word`, before which lines may end.
    pub(super) fn reserved(&mut self, word: &str) -> Result<(), Unclear> {
        self.lines()?;
        if self.bare() == word { self.expect(word) } else { Err(Unclear::Syntax) }
    }

    /// Commands up to whatever ends them, which is left unread.
    pub(super) fn list(&mut self) -> Result<(), Unclear> {
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
                _ => return Err(Unclear::Syntax),
            }
        }
    }

    /// A list that must not be empty.
    pub(super) fn body(&mut self) -> Result<(), Unclear> {
        let first = self.level.commands.len();
        self.list()?;
        if self.level.commands.len() > first { Ok(()) } else { Err(Unclear::Syntax) }
    }

    fn ends_list(&self) -> bool {
        self.peek().is_none_or(|char| char == ')')
            || self.looks_at(";;")
            || self.looks_at(";&")
            || CLOSING.contains(&self.bare())
    }

    fn mark(&mut self, first: usize, mark: impl Fn(&mut Simple)) {
        self.level.commands.iter_mut().skip(first).for_each(mark);
    }

    fn and_or(&mut self) -> Result<(), Unclear> {
        loop {
            self.pipeline()?;
            self.blanks();
            if !self.accept("&&") && !self.accept("||") {
                return Ok(());
            }
            self.lines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Unclear> {
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
        while self.looks_at("|") && !self.looks_at("||") {
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

    fn command(&mut self) -> Result<(), Unclear> {
        if self.compound()? { self.trailing() } else { self.simple() }
    }

    /// The redirections behind a compound command.
    fn trailing(&mut self) -> Result<(), Unclear> {
        let mut simple = Simple::default();
        let (mut is_redirected, at) = (false, self.at);
        self.blanks();
        while self.redirection(&mut simple)? {
            is_redirected = true;
            self.blanks();
        }
        if is_redirected {
            return self.keep(simple);
        }
        self.at = at;
        Ok(())
    }

    fn simple(&mut self) -> Result<(), Unclear> {
        let mut simple = Simple::default();
        let start = self.at;
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('#') => self.comment(),
                Some('(') if simple.words.len() == 1 && !simple.assigns => return self.function(simple),
                Some('(') => return Err(Unclear::Syntax),
                Some('&') if !self.looks_at("&>") => break,
                Some(_) if self.redirection(&mut simple)? => {}
                Some(_) => {
                    let word = self.word()?;
                    // On two lines it may be a reserved word all the same.
                    if simple.words.is_empty() && word.raw.contains("\\\n") {
                        return Err(Unclear::Syntax);
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
            return Err(Unclear::Syntax);
        }
        self.keep(simple)
    }

    /// `NAME() BODY`, from its parentheses on.
    fn function(&mut self, named: Simple) -> Result<(), Unclear> {
        self.at += 1;
        self.blanks();
        self.expect(")")?;
        let is_alone = named.redirections.is_empty() && named.document.is_empty();
        let name = named.words.into_iter().next().filter(|name| name.is_literal && is_alone);
        self.function_body(&name.ok_or(Unclear::Syntax)?.text)
    }

    /// The body of a function: a compound command, whose commands are known by its name.
    pub(super) fn function_body(&mut self, name: &str) -> Result<(), Unclear> {
        self.level.is_list = false;
        self.lines()?;
        let first = self.level.commands.len();
        let is_compound = self.deeper(Self::compound)?;
        self.trailing()?;
        self.mark(first, |simple| {
            simple.function.get_or_insert_with(|| name.to_owned());
        });
        if is_compound { Ok(()) } else { Err(Unclear::Syntax) }
    }
}
