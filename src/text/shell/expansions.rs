//! Expansions: variables, arithmetic, ANSI-C quoting, and the substitutions that run commands.

use super::reader::Reader;
use super::script::ShellParseError;
use super::words::WordBuilder;

impl Reader<'_> {
    /// What follows a dollar sign.
    pub(super) fn expansion(
        &mut self,
        made: &mut WordBuilder,
        is_quoted: bool,
    ) -> Result<(), ShellParseError> {
        let start = self.at;
        match self.peek() {
            Some('(') if self.accept("((") => {
                self.arithmetic()?;
                made.expand("$(())");
            }
            Some('(') => {
                self.at += 1;
                self.substitution()?;
                made.expand("$()");
            }
            Some('{') => {
                self.at += 1;
                self.with_depth(|reader| reader.braces(is_quoted))?;
                made.expand("$");
                made.expand(self.since(start));
            }
            Some('\'') if !is_quoted => {
                self.at += 1;
                self.ansi_c(&mut made.text)?;
            }
            Some('"') if !is_quoted => {
                self.at += 1;
                self.double_quoted(made)?;
                made.is_expanded = true;
            }
            // The old form of arithmetic, and a line that is continued in the middle of an expansion.
            Some('[') => return Err(ShellParseError::Syntax),
            Some('\\') if self.is_next("\\\n") => return Err(ShellParseError::Syntax),
            Some(char) if char.is_ascii_alphabetic() || char == '_' => {
                let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
                self.at += self.rest().find(|char| !is_part(char)).unwrap_or(self.rest().len());
                made.expand("$");
                made.expand(self.since(start));
            }
            Some(char) if char.is_ascii_digit() || "@*#?-$!".contains(char) => {
                self.at += 1;
                made.expand("$");
                made.expand(self.since(start));
            }
            _ => made.text.push('$'),
        }
        Ok(())
    }

    /// `${…}` up to its end.
    fn braces(&mut self, is_quoted: bool) -> Result<(), ShellParseError> {
        let mut made = WordBuilder::default();
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '}' => return Ok(()),
                '\\' => {
                    self.next();
                }
                // Whether it quotes depends on the operator.
                '\'' if is_quoted => return Err(ShellParseError::Syntax),
                '\'' => {
                    let (quoted, _) = self.rest().split_once('\'').ok_or(ShellParseError::Syntax)?;
                    self.at += quoted.len() + 1;
                }
                '"' => self.double_quoted(&mut made)?,
                '`' => self.backticks(&mut made, is_quoted)?,
                '$' => self.expansion(&mut made, is_quoted)?,
                '<' | '>' if self.is_next("(") => {
                    self.at += 1;
                    self.substitution()?;
                }
                _ => {}
            }
        }
    }

    /// Arithmetic up to the two parentheses that close it. What is closed by two that do not stand together is a group
    /// of groups, which is not read here.
    pub(super) fn arithmetic(&mut self) -> Result<(), ShellParseError> {
        self.with_depth(|reader| {
            let mut made = WordBuilder::default();
            let mut open = 0_usize;
            loop {
                match reader.next().ok_or(ShellParseError::Syntax)? {
                    '(' => open += 1,
                    ')' if open > 0 => open -= 1,
                    ')' => return reader.expect(")"),
                    '\\' => {
                        reader.next();
                    }
                    '\'' => return Err(ShellParseError::Syntax),
                    '"' => reader.double_quoted(&mut made)?,
                    '`' => reader.backticks(&mut made, true)?,
                    '$' => reader.expansion(&mut made, true)?,
                    _ => {}
                }
            }
        })
    }

    /// A substitution in backticks, the first one already read. What is escaped in it is read without its backslash.
    pub(super) fn backticks(
        &mut self,
        made: &mut WordBuilder,
        is_quoted: bool,
    ) -> Result<(), ShellParseError> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '`' => break,
                '\\' => match self.next().ok_or(ShellParseError::Syntax)? {
                    escaped @ ('`' | '\\' | '$') => text.push(escaped),
                    '"' if is_quoted => text.push('"'),
                    other => text.extend(['\\', other]),
                },
                char => text.push(char),
            }
        }
        let script = self.parse_nested(&text, Reader::list)?.finish()?;
        self.level.nested.push(script);
        made.expand("$()");
        Ok(())
    }

    /// Reads the expansions of a here-document.
    pub(super) fn document(&mut self) -> Result<(), ShellParseError> {
        let mut made = WordBuilder::default();
        while let Some(char) = self.next() {
            match char {
                '\\' => {
                    self.next();
                }
                '`' => self.backticks(&mut made, false)?,
                '$' => self.expansion(&mut made, true)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `$'…'`, its beginning already read: the only quotes in which escapes stand for other characters.
    fn ansi_c(&mut self, text: &mut String) -> Result<(), ShellParseError> {
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '\'' => return Ok(()),
                '\\' => text.push(self.escaped()?),
                char => text.push(char),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, ShellParseError> {
        let char = self.next().ok_or(ShellParseError::Syntax)?;
        Ok(match char {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.number(16, 2)?,
            'u' => self.number(16, 4)?,
            'U' => self.number(16, 8)?,
            '0'..='7' => {
                self.at -= 1;
                self.number(8, 3)?
            }
            '\\' | '\'' | '"' | '?' => char,
            // Among them are control characters, and escapes that mean nothing.
            _ => return Err(ShellParseError::Syntax),
        })
    }

    /// A character by its number of at most so many digits. Those that are no characters are not understood, nor are
    /// bytes of longer ones.
    fn number(&mut self, radix: u32, most: usize) -> Result<char, ShellParseError> {
        let digits = self.rest().chars().take(most).take_while(|char| char.is_digit(radix)).count();
        let number = self.rest().get(..digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        self.at += digits;
        let is_whole = |number: &u32| (1..128).contains(number) || (most > 3 && *number > 0);
        number.filter(is_whole).and_then(char::from_u32).ok_or(ShellParseError::Syntax)
    }
}
