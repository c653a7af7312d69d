//! Parses compound commands: groups, loops, branches, tests and arithmetic.

use super::reader::Reader;
use super::script::{ShellParseError, SimpleCommand};

impl Reader<'_> {
    /// Parses a compound command or a function definition with the word `function`; returns whether one was next.
    pub(super) fn compound(&mut self) -> Result<bool, ShellParseError> {
        if self.accept("((") {
            self.arithmetic()?;
            self.push_substitutions()?;
        } else if self.accept("(") {
            self.with_depth(Self::body)?;
            self.expect(")")?;
        } else {
            let read = match self.bare() {
                "{" => Self::group,
                "if" => Self::branches,
                "while" | "until" => Self::repeated,
                "for" | "select" => Self::each,
                "case" => Self::cases,
                "[[" => Self::test,
                "function" => Self::named_function,
                // The word after `coproc` may be a command or a name.
                "coproc" => return Err(ShellParseError::Syntax),
                _ => return Ok(false),
            };
            self.at += self.bare().len();
            self.with_depth(read)?;
        }
        Ok(true)
    }

    /// Stores the substitutions of words outside of commands in a command without words.
    fn push_substitutions(&mut self) -> Result<(), ShellParseError> {
        self.level.is_list = false;
        if self.level.nested.is_empty() { Ok(()) } else { self.push_command(SimpleCommand::default()) }
    }

    fn group(&mut self) -> Result<(), ShellParseError> {
        self.body()?;
        self.reserved("}")
    }

    fn branches(&mut self) -> Result<(), ShellParseError> {
        self.level.is_list = false;
        loop {
            self.body()?;
            self.reserved("then")?;
            self.body()?;
            match self.bare() {
                "elif" => self.at += 4,
                "else" => {
                    self.at += 4;
                    self.body()?;
                    return self.reserved("fi");
                }
                _ => return self.reserved("fi"),
            }
        }
    }

    fn repeated(&mut self) -> Result<(), ShellParseError> {
        self.level.is_list = false;
        self.body()?;
        self.looped()
    }

    fn looped(&mut self) -> Result<(), ShellParseError> {
        self.reserved("do")?;
        self.body()?;
        self.reserved("done")
    }

    fn each(&mut self) -> Result<(), ShellParseError> {
        self.blanks();
        if self.accept("((") {
            self.arithmetic()?;
        } else {
            self.word()?;
            self.lines()?;
            if self.bare() == "in" {
                self.at += 2;
                self.words()?;
            }
        }
        self.push_substitutions()?;
        self.blanks();
        self.accept(";");
        self.looped()
    }

    /// Parses words up to the end of a list.
    fn words(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.blanks();
            match self.peek() {
                Some(';' | '\n' | '#') => return Ok(()),
                _ => self.word()?,
            };
        }
    }

    fn cases(&mut self) -> Result<(), ShellParseError> {
        self.blanks();
        self.word()?;
        self.push_substitutions()?;
        self.reserved("in")?;
        loop {
            self.lines()?;
            if self.bare() == "esac" {
                self.at += 4;
                return Ok(());
            }
            self.patterns()?;
            self.list()?;
            if !self.accept(";;&") && !self.accept(";;") && !self.accept(";&") {
                return self.reserved("esac");
            }
        }
    }

    /// Parses the patterns of one case, up to their parenthesis.
    fn patterns(&mut self) -> Result<(), ShellParseError> {
        self.accept("(");
        loop {
            self.blanks();
            self.word()?;
            self.blanks();
            if !self.accept("|") {
                self.push_substitutions()?;
                return self.expect(")");
            }
        }
    }

    /// Parses `[[ … ]]` from its first word on. Operators and operands are not distinguished.
    fn test(&mut self) -> Result<(), ShellParseError> {
        loop {
            self.blanks();
            if self.bare() == "]]" {
                self.at += 2;
                return self.push_substitutions();
            }
            let is_substitution = self.is_next("<(") || self.is_next(">(");
            match self.peek() {
                Some('&' | '|' | '(' | ')' | '\n') => self.at += 1,
                Some('<' | '>') if !is_substitution => self.at += 1,
                _ => {
                    self.word()?;
                }
            }
        }
    }

    fn named_function(&mut self) -> Result<(), ShellParseError> {
        self.blanks();
        let name = self.word()?;
        self.blanks();
        if self.accept("(") {
            self.blanks();
            self.expect(")")?;
        }
        if name.is_literal { self.function_body(&name.text) } else { Err(ShellParseError::Syntax) }
    }
}
