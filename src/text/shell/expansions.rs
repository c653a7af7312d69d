//! Parses expansions: variables, arithmetic, ANSI-C quoting, and command substitutions.

use super::reader::Reader;
use super::script::ShellParseError;
use super::words::WordBuilder;

impl Reader<'_> {
    /// Parses what follows a dollar sign.
    pub(super) fn expansion(
        &mut self,
        builder: &mut WordBuilder,
        is_quoted: bool,
    ) -> Result<(), ShellParseError> {
        let start = self.at;
        match self.peek() {
            Some('(') if self.accept("((") => {
                self.arithmetic()?;
                builder.expand("$(())");
            }
            Some('(') => {
                self.at += 1;
                self.substitution()?;
                builder.expand("$()");
            }
            Some('{') => {
                self.at += 1;
                self.with_depth(|reader| reader.braces(is_quoted))?;
                builder.expand("$");
                builder.expand(self.since(start));
            }
            Some('\'') if !is_quoted => {
                self.at += 1;
                self.ansi_c(&mut builder.text)?;
            }
            Some('"') if !is_quoted => {
                self.at += 1;
                self.double_quoted(builder)?;
                builder.is_expanded = true;
            }
            // Unsupported: `$[…]`, the old form of arithmetic, and a line continuation inside an expansion.
            Some('[') => return Err(ShellParseError::Syntax),
            Some('\\') if self.is_next("\\\n") => return Err(ShellParseError::Syntax),
            Some(char) if char.is_ascii_alphabetic() || char == '_' => {
                let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
                self.at += self.rest().find(|char| !is_part(char)).unwrap_or(self.rest().len());
                builder.expand("$");
                builder.expand(self.since(start));
            }
            Some(char) if char.is_ascii_digit() || "@*#?-$!".contains(char) => {
                self.at += 1;
                builder.expand("$");
                builder.expand(self.since(start));
            }
            _ => builder.text.push('$'),
        }
        Ok(())
    }

    /// Parses `${…}` up to its end.
    fn braces(&mut self, is_quoted: bool) -> Result<(), ShellParseError> {
        let mut builder = WordBuilder::default();
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '}' => return Ok(()),
                '\\' => {
                    self.next();
                }
                // Whether a single quote quotes here depends on the operator.
                '\'' if is_quoted => return Err(ShellParseError::Syntax),
                '\'' => {
                    let (quoted, _) = self.rest().split_once('\'').ok_or(ShellParseError::Syntax)?;
                    self.at += quoted.len() + 1;
                }
                '"' => self.double_quoted(&mut builder)?,
                '`' => self.backticks(&mut builder, is_quoted)?,
                '$' => self.expansion(&mut builder, is_quoted)?,
                '<' | '>' if self.is_next("(") => {
                    self.at += 1;
                    self.substitution()?;
                }
                _ => {}
            }
        }
    }

    /// Parses arithmetic up to the closing `))`. If the two parentheses are not adjacent, the text is nested groups, which are not
    /// supported.
    pub(super) fn arithmetic(&mut self) -> Result<(), ShellParseError> {
        self.with_depth(|reader| {
            let mut builder = WordBuilder::default();
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
                    '"' => reader.double_quoted(&mut builder)?,
                    '`' => reader.backticks(&mut builder, true)?,
                    '$' => reader.expansion(&mut builder, true)?,
                    _ => {}
                }
            }
        })
    }

    /// Parses a substitution in backticks after the first backtick. Removes the backslashes of escapes in it before parsing.
    pub(super) fn backticks(
        &mut self,
        builder: &mut WordBuilder,
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
        builder.expand("$()");
        Ok(())
    }

    /// Parses the expansions of a here-document.
    pub(super) fn document(&mut self) -> Result<(), ShellParseError> {
        let mut builder = WordBuilder::default();
        while let Some(char) = self.next() {
            match char {
                '\\' => {
                    self.next();
                }
                '`' => self.backticks(&mut builder, false)?,
                '$' => self.expansion(&mut builder, true)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses `$'…'` after its opening quote: the only quotes with escapes for other characters.
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
            // Unsupported: control characters (`\c…`) and unknown escapes.
            _ => return Err(ShellParseError::Syntax),
        })
    }

    /// Parses a character code of at most `most` digits. Invalid characters and single bytes of multi-byte characters are
    /// errors.
    fn number(&mut self, radix: u32, most: usize) -> Result<char, ShellParseError> {
        let digits = self.rest().chars().take(most).take_while(|char| char.is_digit(radix)).count();
        let number = self.rest().get(..digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        self.at += digits;
        let is_whole = |number: &u32| (1..128).contains(number) || (most > 3 && *number > 0);
        number.filter(is_whole).and_then(char::from_u32).ok_or(ShellParseError::Syntax)
    }
}
