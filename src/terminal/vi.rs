//! The keys of vi at the input: its normal mode (`chat.editing: vi`).

use super::input_line::InputLine;
use rustyline::{At, CharSearch, Movement, RepeatCount, Word};
use terminput::{KeyCode, KeyEvent, KeyModifiers};

/// Greatest count before a command, which is more than a message has characters on a screen.
const MAX_COUNT: RepeatCount = 9_999;

/// What a key means in the normal mode.
#[derive(Debug, PartialEq)]
pub(super) enum ViKey {
    /// It was used, or is the beginning of a command.
    Used,
    /// It has the meaning of this key outside the normal mode.
    As(KeyEvent),
}

/// The mode, and the keys of a command that has begun.
#[derive(Debug, Default)]
pub(super) struct Vi {
    is_normal: bool,
    keys: String,
    /// The last search for a character, for `;` and `,`.
    search: Option<CharSearch>,
}

/// A whole command, such as `2d3w`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Command {
    count: RepeatCount,
    /// `d`, `c` or `y`, whose motion follows.
    operator: Option<char>,
    key: char,
    /// The character after `f`, `F`, `t`, `T`, `r` and `g`.
    argument: Option<char>,
}

impl Command {
    /// Reads the keys of a command; `None` if more keys belong to it.
    fn read(keys: &str) -> Option<Self> {
        let mut rest = keys.chars().peekable();
        let mut count: RepeatCount = 1;
        let mut operator = None;
        loop {
            let mut digits = String::new();
            while let Some(digit) =
                rest.next_if(|char| char.is_ascii_digit() && (*char != '0' || !digits.is_empty()))
            {
                digits.push(digit);
            }
            if !digits.is_empty() {
                count = count.saturating_mul(digits.parse().unwrap_or(MAX_COUNT)).min(MAX_COUNT);
            }
            let key = rest.next()?;
            match key {
                'd' | 'c' | 'y' if operator.is_none() => operator = Some(key),
                'f' | 'F' | 't' | 'T' | 'r' | 'g' => {
                    return Some(Self { count, operator, key, argument: Some(rest.next()?) });
                }
                key => return Some(Self { count, operator, key, argument: None }),
            }
        }
    }
}

impl Vi {
    pub fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Goes to the insert mode, in which each message begins.
    pub fn insert(&mut self) {
        self.is_normal = false;
        self.keys.clear();
    }

    /// Handles Esc: leaves the insert mode or a command that has begun; returns false if there is neither.
    pub fn escape(&mut self, line: &mut InputLine) -> bool {
        if self.is_normal {
            return !std::mem::take(&mut self.keys).is_empty();
        }
        self.is_normal = true;
        line.go(&Movement::BackwardChar(1));
        true
    }

    /// Handles a key of the normal mode; `None` outside it, and for keys with the same meaning in both modes.
    pub fn press(&mut self, key: KeyEvent, line: &mut InputLine) -> Option<ViKey> {
        let KeyCode::Char(char) = key.code else {
            if key.code != KeyCode::Esc {
                self.keys.clear();
            }
            return None;
        };
        // Esc and the next key arrive as one key if they are typed quickly.
        if key.modifiers.contains(KeyModifiers::ALT) {
            self.escape(line);
        }
        if !self.is_normal || key.modifiers.contains(KeyModifiers::CTRL) {
            self.keys.clear();
            return None;
        }
        self.keys.push(char);
        let Some(command) = Command::read(&self.keys) else { return Some(ViKey::Used) };
        self.keys.clear();
        let used = self.run(command, line);
        if self.is_normal {
            line.settle();
        }
        Some(used)
    }

    fn run(&mut self, command: Command, line: &mut InputLine) -> ViKey {
        let Command { count, operator, key, .. } = command;
        let ctrl = |char| ViKey::As(KeyEvent::new(KeyCode::Char(char)).modifiers(KeyModifiers::CTRL));
        match (operator, key) {
            (Some(operator), _) => self.operate(operator, command, line),
            (None, 'i' | 'a' | 'I' | 'A' | 'o' | 'O') => self.begin_insert(key, line),
            (None, 'k') => return ViKey::As(KeyEvent::new(KeyCode::Up)),
            (None, 'j') => return ViKey::As(KeyEvent::new(KeyCode::Down)),
            (None, 'u') => return ctrl('7'),
            (None, 'v') => return ctrl('g'),
            (None, '/' | '?') => return ctrl('r'),
            (None, 'x') => line.kill(&Movement::ForwardChar(count.min(line.after_cursor_in_line()))),
            (None, 'X') => line.kill(&Movement::BackwardChar(count.min(line.before_cursor_in_line()))),
            (None, 'D') => line.kill(&Movement::EndOfLine),
            (None, 'C') => self.change(&Movement::EndOfLine, line),
            (None, 's') => self.change(&Movement::ForwardChar(count.min(line.after_cursor_in_line())), line),
            (None, 'S') => self.change(&Movement::WholeLine, line),
            (None, 'Y') => line.copy(&Movement::WholeLine),
            (None, 'p' | 'P') => line.put(key == 'p', count.into()),
            (None, '~') => line.toggle_case(count.into()),
            (None, 'r') => line.replace_chars(command.argument.unwrap_or(' '), count.into()),
            (None, _) => {
                if let Some(movement) = self.movement(command) {
                    line.go(&movement);
                }
            }
        }
        ViKey::Used
    }

    fn begin_insert(&mut self, key: char, line: &mut InputLine) {
        self.insert();
        match key {
            'a' => line.go(&Movement::ForwardChar(1)),
            'I' => line.go(&Movement::ViFirstPrint),
            'A' => line.go(&Movement::EndOfLine),
            'o' => {
                line.go(&Movement::EndOfLine);
                line.insert("\n");
            }
            'O' => {
                line.go(&Movement::BeginningOfLine);
                line.insert("\n");
                line.go(&Movement::BackwardChar(1));
            }
            _ => {}
        }
    }

    fn change(&mut self, movement: &Movement, line: &mut InputLine) {
        line.kill(movement);
        self.insert();
    }

    fn operate(&mut self, operator: char, command: Command, line: &mut InputLine) {
        let Command { count, key, .. } = command;
        let movement = match key {
            key if key == operator => Some(Movement::WholeLine),
            // A change of a word leaves the blanks after it.
            'w' if operator == 'c' => Some(Movement::ForwardWord(count, At::AfterEnd, Word::Vi)),
            'W' if operator == 'c' => Some(Movement::ForwardWord(count, At::AfterEnd, Word::Big)),
            'e' => Some(Movement::ForwardWord(count, At::AfterEnd, Word::Vi)),
            'E' => Some(Movement::ForwardWord(count, At::AfterEnd, Word::Big)),
            _ => self.movement(command),
        };
        match movement {
            Some(movement) if operator == 'd' => line.kill(&movement),
            Some(movement) if operator == 'c' => self.change(&movement, line),
            Some(movement) => line.copy(&movement),
            None => {}
        }
    }

    /// Returns the movement that a command means.
    fn movement(&mut self, command: Command) -> Option<Movement> {
        let Command { count, key, argument, .. } = command;
        Some(match key {
            'h' => Movement::BackwardChar(count),
            'l' | ' ' => Movement::ForwardChar(count),
            '0' => Movement::BeginningOfLine,
            '^' => Movement::ViFirstPrint,
            '$' => Movement::EndOfLine,
            'w' => Movement::ForwardWord(count, At::Start, Word::Vi),
            'W' => Movement::ForwardWord(count, At::Start, Word::Big),
            'e' => Movement::ForwardWord(count, At::BeforeEnd, Word::Vi),
            'E' => Movement::ForwardWord(count, At::BeforeEnd, Word::Big),
            'b' => Movement::BackwardWord(count, Word::Vi),
            'B' => Movement::BackwardWord(count, Word::Big),
            'G' => Movement::EndOfBuffer,
            'g' if argument == Some('g') => Movement::BeginningOfBuffer,
            'f' | 'F' | 't' | 'T' => {
                let char = argument?;
                let search = match key {
                    'f' => CharSearch::Forward(char),
                    'F' => CharSearch::Backward(char),
                    't' => CharSearch::ForwardBefore(char),
                    _ => CharSearch::BackwardAfter(char),
                };
                self.search = Some(search);
                Movement::ViCharSearch(count, search)
            }
            ';' => Movement::ViCharSearch(count, self.search?),
            ',' => Movement::ViCharSearch(count, opposite(self.search?)),
            _ => return None,
        })
    }
}

fn opposite(search: CharSearch) -> CharSearch {
    match search {
        CharSearch::Forward(char) => CharSearch::Backward(char),
        CharSearch::ForwardBefore(char) => CharSearch::BackwardAfter(char),
        CharSearch::Backward(char) => CharSearch::Forward(char),
        CharSearch::BackwardAfter(char) => CharSearch::ForwardBefore(char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types `keys` of the normal mode on `text`, whose cursor is at the end; returns the text with `|` at the cursor.
    fn after(text: &str, keys: &str) -> String {
        let (mut line, mut vi) = (InputLine::default(), Vi::default());
        line.insert(text);
        for char in keys.chars() {
            let key = KeyEvent::new(if char == '\u{1b}' { KeyCode::Esc } else { KeyCode::Char(char) });
            let as_key = match vi.press(key, &mut line) {
                Some(ViKey::Used) => continue,
                Some(ViKey::As(key)) => key,
                None => key,
            };
            if as_key.code == KeyCode::Esc {
                vi.escape(&mut line);
            } else {
                line.press(as_key);
            }
        }
        let mut shown = line.text();
        shown.insert(line.before_cursor().len(), '|');
        shown
    }

    #[test]
    fn u17_the_normal_mode_of_vi_moves_and_changes() {
        for (text, keys, wanted) in [
            ("one two three", "\u{1b}", "one two thre|e"),
            ("one two three", "\u{1b}0", "|one two three"),
            ("one two three", "\u{1b}0w", "one |two three"),
            ("one two three", "\u{1b}02w", "one two |three"),
            ("one two three", "\u{1b}0e", "on|e two three"),
            ("one two three", "\u{1b}bb", "one |two three"),
            ("one two three", "\u{1b}0ft", "one |two three"),
            ("one two three", "\u{1b}0ft;", "one two |three"),
            ("one two three", "\u{1b}0ft;,", "one |two three"),
            ("one two three", "\u{1b}0dw", "|two three"),
            ("one two three", "\u{1b}0d2w", "|three"),
            ("one two three", "\u{1b}02dw", "|three"),
            ("one two three", "\u{1b}0cwx\u{1b}", "|x two three"),
            ("one two three", "\u{1b}0dt ", "| two three"),
            ("one two three", "\u{1b}0df ", "|two three"),
            ("one two three", "\u{1b}bD", "one two| "),
            ("one two three", "\u{1b}bCx", "one two x|"),
            ("one two three", "\u{1b}3x", "one two thr|e"),
            ("one two three", "\u{1b}0xp", "n|oe two three"),
            ("one two three", "\u{1b}0yw$p", "one two threeone| "),
            ("one two", "\u{1b}0yyp", "oone tw|one two"),
            ("  one", "\u{1b}0y^p", "  |  one"),
            ("  one", "\u{1b}0d^", "|one"),
            ("one two three", "\u{1b}0rX", "|Xne two three"),
            ("one two three", "\u{1b}03~", "ONE| two three"),
            ("one two three", "\u{1b}0dwu", "|one two three"),
            ("one two three", "\u{1b}ddu", "one two thre|e"),
            ("one two three", "\u{1b}Ax", "one two threex|"),
            ("one two three", "\u{1b}Ix", "x|one two three"),
            ("one\ntwo", "\u{1b}kx", "o|n\ntwo"),
            ("one\ntwo", "\u{1b}k05x", "|\ntwo"),
            ("one\ntwo", "\u{1b}05X", "one\n|two"),
            ("one\n\ntwo", "\u{1b}kra", "one\n|\ntwo"),
            ("one\ntwo", "\u{1b}ggOx", "x|\none\ntwo"),
            ("one", "\u{1b}ox", "one\nx|"),
            ("one two", "\u{1b}0d\u{1b}w", "one |two"),
            ("one two", "\u{1b}0zw", "one |two"),
            ("日本 語", "\u{1b}0xw", "本 |語"),
        ] {
            assert_eq!(after(text, keys), wanted, "{text:?} {keys:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn u17_no_keys_of_vi_leave_the_text(text in "[a-z日\u{301}\n ]{0,12}", keys in "[0-9a-zA-Z$^;,~\u{1b} ]{0,24}") {
            let shown = after(&text, &format!("\u{1b}{keys}"));
            proptest::prop_assert!(shown.contains('|'));
        }
    }
}
