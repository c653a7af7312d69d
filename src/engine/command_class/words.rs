//! Splits a shell text into simple commands: enough of the grammar to find what would run, not to run it.
//!
//! What cannot be understood is kept as text; whoever wants to call something harmless must not rely on this splitter.

/// One command with its words after quote removal. Expansions stay as they are written.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Program and arguments, with assignments and reserved words in front as they stand.
    pub(super) words: Vec<String>,
    /// Files that output is redirected to.
    pub(super) targets: Vec<String>,
    /// Files that input is redirected from.
    pub(super) sources: Vec<String>,
    /// The text of its here-documents.
    pub(super) documents: String,
    /// Whether it reads what the command before it writes.
    pub(super) is_piped_into: bool,
}

/// A split text.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Its commands, in order; those of groups, loops and subshells among them.
    pub(super) commands: Vec<Simple>,
    /// Texts of command and process substitutions.
    pub(super) nested: Vec<String>,
}

/// Splits `text`. Never fails; takes time linear in its length.
pub(super) fn split(text: &str) -> Script {
    let mut splitter = Splitter { rest: text.chars().collect(), ..Splitter::default() };
    splitter.rest.reverse();
    splitter.run();
    splitter.script
}

#[derive(Default)]
struct Splitter {
    /// The characters to come, the next one last.
    rest: Vec<char>,
    script: Script,
    current: Simple,
    word: Option<String>,
    /// Where the next word goes.
    place: Place,
    /// Delimiters of the here-documents that begin after this line.
    awaited: Vec<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Argument,
    Target,
    Source,
    /// A descriptor, or the text of a here-string.
    NoFile,
    Delimiter,
}

impl Splitter {
    fn run(&mut self) {
        while let Some(char) = self.rest.pop() {
            match char {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command(false);
                    self.read_documents();
                }
                '&' if self.peek() == Some('>') => self.end_word(),
                // `>&2`, `>&-` and `<&3` name a descriptor, `>& FILE` a file.
                '&' if self.place == Place::Target && self.word.is_none() => {
                    if self.peek().is_some_and(|next| next.is_ascii_digit() || next == '-') {
                        self.place = Place::NoFile;
                    }
                }
                '&' if self.place == Place::Source && self.word.is_none() => self.place = Place::NoFile,
                ';' | '(' | ')' | '&' => self.end_command(false),
                '|' if self.peek() == Some('|') => {
                    self.rest.pop();
                    self.end_command(false);
                }
                '|' if self.place == Place::Target && self.word.is_none() => {}
                '|' => {
                    if self.peek() == Some('&') {
                        self.rest.pop();
                    }
                    self.end_command(true);
                }
                '#' if self.word.is_none() => self.skip_comment(),
                '<' | '>' => self.redirect(char),
                _ => self.word_part(char),
            }
        }
        self.end_command(false);
    }

    fn peek(&self) -> Option<char> {
        self.rest.last().copied()
    }

    fn push(&mut self, char: char) {
        self.word.get_or_insert_default().push(char);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::take(&mut self.place) {
            Place::Argument => self.current.words.push(word),
            Place::Target => self.current.targets.push(word),
            Place::Source => self.current.sources.push(word),
            Place::NoFile => {}
            Place::Delimiter => self.awaited.push(word),
        }
    }

    fn end_command(&mut self, pipes_on: bool) {
        self.end_word();
        self.place = Place::Argument;
        let next = Simple { is_piped_into: pipes_on, ..Simple::default() };
        let done = std::mem::replace(&mut self.current, next);
        if done != Simple::default() {
            self.script.commands.push(done);
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|char| char != '\n') {
            self.rest.pop();
        }
    }

    fn redirect(&mut self, direction: char) {
        if self.peek() == Some('(') {
            // A process substitution: its commands follow like those of a subshell, but are not part of this word.
            self.rest.pop();
            let inner = self.until_closing_parenthesis();
            self.script.nested.push(inner);
            self.push('/');
            return;
        }
        // `2>` and `>` are the same to us: the number is not a word.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|char| char.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.place = match (direction, self.peek()) {
            ('<', Some('<')) => {
                self.rest.pop();
                if self.peek() == Some('<') {
                    self.rest.pop();
                    Place::NoFile
                } else {
                    if self.peek() == Some('-') {
                        self.rest.pop();
                    }
                    Place::Delimiter
                }
            }
            ('<' | '>', Some('>')) => {
                self.rest.pop();
                Place::Target
            }
            ('>', _) => Place::Target,
            _ => Place::Source,
        };
    }

    fn word_part(&mut self, char: char) {
        match char {
            '\\' => match self.rest.pop() {
                Some('\n') | None => {}
                Some(escaped) => self.push(escaped),
            },
            '\'' => {
                self.word.get_or_insert_default();
                while let Some(quoted) = self.rest.pop().filter(|char| *char != '\'') {
                    self.push(quoted);
                }
            }
            '"' => self.double_quoted(),
            '`' => self.backticks(),
            '$' => self.expansion(),
            _ => self.push(char),
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(char) = self.rest.pop() {
            match char {
                '"' => return,
                '\\' if matches!(self.peek(), Some('$' | '`' | '"' | '\\')) => {
                    if let Some(escaped) = self.rest.pop() {
                        self.push(escaped);
                    }
                }
                '`' => self.backticks(),
                '$' => self.expansion(),
                _ => self.push(char),
            }
        }
    }

    fn expansion(&mut self) {
        if self.peek() == Some('(') {
            self.rest.pop();
            let inner = self.until_closing_parenthesis();
            self.script.nested.push(inner);
        }
        self.push('$');
    }

    fn backticks(&mut self) {
        let mut inner = String::new();
        while let Some(char) = self.rest.pop().filter(|char| *char != '`') {
            inner.push(char);
        }
        self.script.nested.push(inner);
        self.push('$');
    }

    fn until_closing_parenthesis(&mut self) -> String {
        let (mut inner, mut depth, mut quote) = (String::new(), 1_usize, None);
        while let Some(char) = self.rest.pop() {
            match (quote, char) {
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, '\'' | '"') => quote = Some(char),
                (Some(open), close) if open == close => quote = None,
                (None | Some('"'), '\\') => {
                    inner.push(char);
                    inner.extend(self.rest.pop());
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(char);
        }
        inner
    }

    /// Reads the bodies of the here-documents that the line just ended announced.
    fn read_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.awaited) {
            while !self.rest.is_empty() {
                let mut line = String::new();
                while let Some(char) = self.rest.pop().filter(|char| *char != '\n') {
                    line.push(char);
                }
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
                if let Some(command) = self.script.commands.last_mut() {
                    command.documents.push_str(&line);
                    command.documents.push('\n');
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        split(text).commands.into_iter().map(|command| command.words).collect()
    }

    #[test]
    fn separators_quotes_and_comments() {
        assert_eq!(
            words("a 'b c' \"d\\\"e\"; f|g&&h||i&j\nk # l; m"),
            [vec!["a", "b c", "d\"e"], vec!["f"], vec!["g"], vec!["h"], vec!["i"], vec!["j"], vec!["k"],]
        );
        assert_eq!(
            words(
                r#"\rm r""m a\
b x#y"#
            ),
            [["rm", "rm", "ab", "x#y"]]
        );
    }

    #[test]
    fn redirections_are_no_arguments() {
        let script = split("a 2>err >>out <in b &>all >| clobber 2>&1 >& both >&one <<<text <&0");
        let [command] = script.commands.as_slice() else { panic!("{script:?}") };
        assert_eq!(command.words, ["a", "b"]);
        assert_eq!(command.targets, ["err", "out", "all", "clobber", "both", "one"]);
        assert_eq!(command.sources, ["in"]);
    }

    #[test]
    fn substitutions_are_texts_of_their_own() {
        assert_eq!(split("echo $(a \"(\" ) `b` <(c (d))").nested, ["a \"(\" ", "b", "c (d)"]);
        assert_eq!(split("echo \"x $(a)\" '$(b)'").nested, ["a"]);
    }

    #[test]
    fn a_here_document_belongs_to_its_command() {
        let script = split("cat <<'EOF' > f\nrm -rf /\nEOF\nls");
        assert_eq!(script.commands.len(), 2);
        assert_eq!(
            (script.commands[0].documents.as_str(), script.commands[0].targets.as_slice()),
            ("rm -rf /\n", ["f".to_owned()].as_slice())
        );
    }

    proptest! {
        #[test]
        fn any_text_is_split_and_nothing_is_made_up(text in "[a-c $()`'\"\\\\|&;<>#\n{}-]{0,60}") {
            let script = split(&text);
            let kept: usize = script.commands.iter().flat_map(|command| &command.words).map(String::len).sum();
            prop_assert!(kept <= text.len());
        }
    }
}
