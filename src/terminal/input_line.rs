//! The text that a user edits: keys change it, and it becomes rows of the live area. The buffer is rustyline's; keys are those of Emacs and of
//! other line editors.

use super::preview::Row;
use super::sanitize::{char_columns, columns};
use super::streams::Style;
use agent_messages as messages;
use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, CharSearch, Movement, RepeatCount, Word};
use std::ops::Range;
use terminput::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum bytes of a text; more is not taken.
const MAX_BYTES: usize = 2 << 20;
/// Lines and bytes of a pasted text from which on it is shown as one mark.
const FOLDED_LINES: usize = 6;
const FOLDED_BYTES: usize = 1_000;
/// The first of the characters that stand for pasted texts: a private use area, which no keyboard has.
const FIRST_MARK: u32 = 0xF_0000;
/// Maximum number of pasted texts that are shown as marks.
const MAX_MARKS: usize = 100;
/// Number of changes that can be undone.
const MAX_UNDO: usize = 100;

/// A change of the text, or a step of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Insert(char),
    Home,
    End,
    Back,
    Forward,
    WordBack,
    WordForward,
    Up,
    Down,
    DeleteBack,
    Delete,
    Transpose,
    KillWordBack(Word),
    KillWord,
    KillToStart,
    KillToEnd,
    Yank,
    Undo,
}

impl Edit {
    /// Returns what a key means, as in Emacs and readline.
    fn of(key: KeyEvent) -> Option<Self> {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CTRL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        Some(match key.code {
            KeyCode::Char(char) if is_ctrl => match char.to_ascii_lowercase() {
                'a' => Self::Home,
                'e' => Self::End,
                'b' => Self::Back,
                'f' => Self::Forward,
                'd' => Self::Delete,
                'h' => Self::DeleteBack,
                't' => Self::Transpose,
                'w' => Self::KillWordBack(Word::Big),
                'u' => Self::KillToStart,
                'k' => Self::KillToEnd,
                'y' => Self::Yank,
                // Ctrl+_ and Ctrl+/ send what Ctrl+7 sends.
                '_' | '/' | '7' => Self::Undo,
                _ => return None,
            },
            KeyCode::Char(char) if is_alt => match char {
                'b' => Self::WordBack,
                'f' => Self::WordForward,
                'd' => Self::KillWord,
                _ => return None,
            },
            KeyCode::Char(char) => Self::Insert(char),
            KeyCode::Backspace if is_ctrl || is_alt => Self::KillWordBack(Word::Emacs),
            KeyCode::Backspace => Self::DeleteBack,
            KeyCode::Delete => Self::Delete,
            KeyCode::Left if is_ctrl || is_alt => Self::WordBack,
            KeyCode::Right if is_ctrl || is_alt => Self::WordForward,
            KeyCode::Left => Self::Back,
            KeyCode::Right => Self::Forward,
            KeyCode::Home => Self::Home,
            KeyCode::End => Self::End,
            KeyCode::Up => Self::Up,
            KeyCode::Down => Self::Down,
            _ => return None,
        })
    }
}

/// Text with a cursor.
pub(super) struct InputLine {
    buffer: LineBuffer,
    /// Texts and positions before the last changes.
    before: Vec<(String, usize)>,
    /// Whether the last key inserted a character: several are one change.
    is_typing: bool,
    killed: Killed,
    /// The texts that marks stand for.
    pasted: Vec<String>,
}

impl Default for InputLine {
    fn default() -> Self {
        Self {
            buffer: LineBuffer::with_capacity(MAX_BYTES),
            before: Vec::new(),
            is_typing: false,
            killed: Killed::default(),
            pasted: Vec::new(),
        }
    }
}

impl InputLine {
    /// Returns the text with what marks stand for.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.buffer.len());
        for char in self.buffer.as_str().chars() {
            match self.pasted_as(char) {
                Some(pasted) => text.push_str(pasted),
                None => text.push(char),
            }
        }
        text
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the text before the cursor.
    pub fn before_cursor(&self) -> &str {
        self.buffer.as_str().get(..self.buffer.pos()).unwrap_or_default()
    }

    /// Checks whether the cursor is at the end.
    pub fn is_at_end(&self) -> bool {
        self.buffer.is_cursor_at_end()
    }

    /// Replaces the text; the cursor stands at its end.
    pub fn set(&mut self, text: &str) {
        self.record(false);
        let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
        self.buffer.update(text, text.len(), &mut Ignored);
    }

    /// Removes the text, and what could be undone.
    pub fn clear(&mut self) {
        self.buffer.update("", 0, &mut Ignored);
        self.before.clear();
        self.pasted.clear();
        self.is_typing = false;
    }

    /// Replaces the text between byte `from` and the cursor.
    pub fn complete(&mut self, from: usize, text: &str) {
        let end = self.buffer.pos();
        if self.buffer.as_str().get(from..end).is_some() {
            self.record(false);
            self.buffer.replace(from..end, text, &mut Ignored);
        }
    }

    /// Inserts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.record(false);
        self.buffer.yank(text, 1, &mut Ignored);
    }

    /// Inserts pasted text; a long one is shown as one mark.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text.chars().filter(|char| self.pasted_as(*char).is_none()).collect();
        let is_long = text.lines().count() >= FOLDED_LINES || text.len() >= FOLDED_BYTES;
        let mark = u32::try_from(self.pasted.len()).ok().and_then(|at| char::from_u32(FIRST_MARK + at));
        match mark.filter(|_| is_long && self.pasted.len() < MAX_MARKS) {
            Some(mark) => {
                self.pasted.push(text);
                self.insert(mark.encode_utf8(&mut [0; 4]));
            }
            None => self.insert(&text),
        }
    }

    /// Returns the text that a mark stands for.
    fn pasted_as(&self, char: char) -> Option<&String> {
        let at = u32::from(char).checked_sub(FIRST_MARK)?;
        self.pasted.get(usize::try_from(at).ok()?)
    }

    /// Changes the text or moves the cursor as `key` says; returns false if the key has no such meaning.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        let Some(edit) = Edit::of(key) else { return false };
        match edit {
            Edit::Up | Edit::Down => return self.move_to_line(edit == Edit::Up),
            Edit::Undo => self.undo(),
            Edit::Yank => self.insert(&self.killed.0.clone()),
            Edit::Home | Edit::End | Edit::Back | Edit::Forward | Edit::WordBack | Edit::WordForward => {
                self.is_typing = false;
            }
            edit => self.record(matches!(edit, Edit::Insert(_))),
        }
        let (buffer, killed) = (&mut self.buffer, &mut Killed::default());
        match edit {
            Edit::Insert(char) => drop(buffer.insert(char, 1, &mut Ignored)),
            Edit::Home => drop(buffer.move_home()),
            Edit::End => drop(buffer.move_end()),
            Edit::Back => drop(buffer.move_backward(1)),
            Edit::Forward => drop(buffer.move_forward(1)),
            Edit::WordBack => drop(buffer.move_to_prev_word(Word::Emacs, 1)),
            Edit::WordForward => drop(buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1)),
            Edit::DeleteBack => drop(buffer.backspace(1, &mut Ignored)),
            Edit::Delete => drop(buffer.delete(1, &mut Ignored)),
            Edit::Transpose => drop(buffer.transpose_chars(&mut Ignored)),
            Edit::KillWordBack(word) => drop(buffer.delete_prev_word(word, 1, killed)),
            Edit::KillWord => drop(buffer.delete_word(At::AfterEnd, Word::Emacs, 1, killed)),
            Edit::KillToStart => drop(buffer.discard_line(killed)),
            Edit::KillToEnd => drop(buffer.kill_line(killed)),
            Edit::Up | Edit::Down | Edit::Undo | Edit::Yank => {}
        }
        if !killed.0.is_empty() {
            self.killed = std::mem::take(killed);
        }
        true
    }

    /// Moves the cursor.
    pub fn go(&mut self, movement: &Movement) {
        self.is_typing = false;
        let buffer = &mut self.buffer;
        match *movement {
            Movement::BackwardChar(count) => drop(buffer.move_backward(count)),
            Movement::ForwardChar(count) => drop(buffer.move_forward(count)),
            Movement::BeginningOfLine => drop(buffer.move_home()),
            Movement::EndOfLine => drop(buffer.move_end()),
            Movement::ViFirstPrint => {
                buffer.move_home();
                let rest = buffer.as_str().get(buffer.pos()..).unwrap_or_default();
                let blanks = rest.find(|char: char| !matches!(char, ' ' | '\t')).unwrap_or_default();
                buffer.set_pos(buffer.pos() + blanks);
            }
            Movement::BackwardWord(count, word) => drop(buffer.move_to_prev_word(word, count)),
            Movement::ForwardWord(count, at, word) => drop(buffer.move_to_next_word(at, word, count)),
            Movement::ViCharSearch(count, search) => drop(buffer.move_to(search, count)),
            Movement::BeginningOfBuffer => drop(buffer.move_buffer_start()),
            Movement::EndOfBuffer => drop(buffer.move_buffer_end()),
            // The others are no movements, or have keys of their own.
            _ => {}
        }
    }

    /// Removes the text that a movement passes.
    pub fn kill(&mut self, movement: &Movement) {
        self.record(false);
        let range = self.passed(movement);
        if !range.is_empty() {
            self.killed = Killed(self.text_in(range.clone()));
            self.buffer.set_pos(range.start);
            self.buffer.delete_range(range, &mut Ignored);
        }
    }

    /// Copies the text that a movement passes.
    pub fn copy(&mut self, movement: &Movement) {
        let range = self.passed(movement);
        if !range.is_empty() {
            self.killed = Killed(self.text_in(range));
        }
    }

    fn text_in(&self, range: Range<usize>) -> String {
        self.buffer.as_str().get(range).unwrap_or_default().to_owned()
    }

    /// Returns the bytes that a movement passes; the buffer's own `copy` and `kill` panic where the first print of a line is behind the cursor.
    fn passed(&mut self, movement: &Movement) -> Range<usize> {
        let from = self.buffer.pos();
        if *movement == Movement::WholeLine {
            let (before, after) = self.buffer.as_str().split_at(from);
            let start = before.rfind('\n').map_or(0, |end| end + 1);
            return start..from + after.find('\n').unwrap_or(after.len());
        }
        self.go(movement);
        let mut to = self.buffer.pos();
        let is_inclusive = matches!(
            movement,
            Movement::ViCharSearch(_, CharSearch::Forward(_) | CharSearch::ForwardBefore(_))
        );
        if is_inclusive && to > from {
            let rest = self.buffer.as_str().get(to..).unwrap_or_default();
            to += rest.chars().next().map_or(0, char::len_utf8);
        }
        self.buffer.set_pos(from);
        from.min(to)..from.max(to)
    }

    /// Inserts what was removed or copied `count` times, behind the character at the cursor or before it.
    pub fn put(&mut self, is_behind: bool, count: usize) {
        if is_behind {
            self.buffer.move_forward(1);
        }
        let text = self.killed.0.clone();
        if text.len().saturating_mul(count) <= MAX_BYTES {
            self.insert(&text.repeat(count));
            self.buffer.move_backward(1);
        }
    }

    /// Returns the number of characters from the cursor to the end of the line.
    pub fn after_cursor_in_line(&self) -> RepeatCount {
        let rest = self.buffer.as_str().get(self.buffer.pos()..).unwrap_or_default();
        count_of(rest.split('\n').next().unwrap_or_default())
    }

    /// Returns the number of characters from the start of the line to the cursor.
    pub fn before_cursor_in_line(&self) -> RepeatCount {
        count_of(self.before_cursor().rsplit('\n').next().unwrap_or_default())
    }

    /// Replaces `count` characters of the line from the cursor on by `with`, if it has so many.
    pub fn replace_chars(&mut self, with: char, count: usize) {
        if usize::from(self.after_cursor_in_line()) < count {
            return;
        }
        self.change_chars(count, |_| with.to_string());
        self.buffer.move_backward(1);
    }

    /// Changes between small and capital letters.
    pub fn toggle_case(&mut self, count: usize) {
        self.change_chars(count, |char| {
            if char.is_lowercase() { char.to_uppercase().collect() } else { char.to_lowercase().collect() }
        });
    }

    /// Changes `count` characters of the line from the cursor on; the cursor stands behind them.
    fn change_chars(&mut self, count: usize, change: impl Fn(char) -> String) {
        self.record(false);
        let from = self.buffer.pos();
        let rest = self.buffer.as_str().get(from..).unwrap_or_default();
        let chars: String = rest.chars().take_while(|char| *char != '\n').take(count).collect();
        let changed: String = chars.chars().map(change).collect();
        self.buffer.replace(from..from + chars.len(), &changed, &mut Ignored);
    }

    /// Moves the cursor from the end of a line onto its last character, where it stands in the normal mode of vi.
    pub fn settle(&mut self) {
        let (text, at) = (self.buffer.as_str(), self.buffer.pos());
        let is_at_end = text.get(at..).is_none_or(|rest| rest.is_empty() || rest.starts_with('\n'));
        let is_at_start = text.get(..at).is_none_or(|before| before.is_empty() || before.ends_with('\n'));
        if is_at_end && !is_at_start {
            self.buffer.move_backward(1);
        }
    }

    /// Records the text before a change, for [`undo`](Self::undo).
    fn record(&mut self, is_typing: bool) {
        if !(is_typing && std::mem::replace(&mut self.is_typing, is_typing)) {
            self.before.push((self.buffer.as_str().to_owned(), self.buffer.pos()));
            let surplus = self.before.len().saturating_sub(MAX_UNDO);
            self.before.drain(..surplus);
        }
        self.is_typing = is_typing;
    }

    fn undo(&mut self) {
        while let Some((text, position)) = self.before.pop() {
            let changed = text != self.buffer.as_str();
            self.buffer.update(&text, position, &mut Ignored);
            if changed {
                break;
            }
        }
        self.is_typing = false;
    }

    /// Moves the cursor to the line above or below; returns false without one.
    fn move_to_line(&mut self, up: bool) -> bool {
        let (text, at) = (self.buffer.as_str(), self.buffer.pos());
        let start = |at: usize| text.get(..at).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1);
        let begin = start(at);
        let column = text.get(begin..at).map_or(0, |text| text.chars().count());
        let line = if up {
            begin.checked_sub(1).map(start)
        } else {
            text.get(at..).and_then(|text| text.find('\n')).map(|end| at + end + 1)
        };
        let Some(line) = line else { return false };
        let rest = text.get(line..).unwrap_or_default();
        let rest = rest.split('\n').next().unwrap_or_default();
        let offset = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        self.buffer.set_pos(line + offset);
        self.is_typing = false;
        true
    }

    /// Returns the rows of `prompt` and the text on a screen of `width` columns, at most `max_rows` around the cursor, and row and column of the cursor.
    pub fn rows(&self, prompt: &str, width: usize, max_rows: usize) -> (Vec<Row>, (usize, usize)) {
        let indent = columns(prompt);
        let mut rows = vec![vec![(Style::Bold, prompt.to_owned())]];
        let (mut text, mut used) = (String::new(), indent);
        let mut cursor = (0, indent);
        let end_row = |rows: &mut Vec<Row>, text: &mut String, used: &mut usize| {
            push(rows, Style::Plain, std::mem::take(text));
            rows.push(vec![(Style::Plain, " ".repeat(indent))]);
            *used = indent;
        };
        for (at, char) in self.buffer.as_str().char_indices() {
            let mark = self.pasted_as(char).map(|pasted| messages::pasted(pasted.lines().count()));
            let size = mark.as_deref().map_or_else(|| shown_columns(char), columns);
            if char != '\n' && used + size >= width && used > indent {
                end_row(&mut rows, &mut text, &mut used);
            }
            if at == self.buffer.pos() {
                cursor = (rows.len() - 1, used);
            }
            match mark {
                Some(mark) => {
                    push(&mut rows, Style::Plain, std::mem::take(&mut text));
                    push(&mut rows, Style::Code, mark);
                }
                None if char == '\n' => {
                    end_row(&mut rows, &mut text, &mut used);
                    continue;
                }
                None if char == '\t' => text.push_str("    "),
                None => text.push(char),
            }
            used += size;
        }
        push(&mut rows, Style::Plain, text);
        if self.buffer.is_cursor_at_end() {
            cursor = (rows.len() - 1, used);
        }
        let first = (cursor.0 + 1).saturating_sub(max_rows).min(rows.len().saturating_sub(max_rows));
        let rows = rows.into_iter().skip(first).take(max_rows).collect();
        (rows, (cursor.0 - first, cursor.1))
    }
}

fn push(rows: &mut [Row], style: Style, text: String) {
    if let Some(row) = rows.last_mut().filter(|_| !text.is_empty()) {
        row.push((style, text));
    }
}

/// Returns the columns of a character in the input.
fn shown_columns(char: char) -> usize {
    match char {
        '\t' => 4,
        // A combining character has none of its own.
        char if !char.is_ascii() && console::measure_text_width(char.encode_utf8(&mut [0; 4])) == 0 => 0,
        char => char_columns(char),
    }
}

fn count_of(text: &str) -> RepeatCount {
    RepeatCount::try_from(text.chars().count()).unwrap_or(RepeatCount::MAX)
}

/// Does not follow changes.
struct Ignored;

impl DeleteListener for Ignored {
    fn delete(&mut self, _: usize, _: &str, _: Direction) {}
}

impl ChangeListener for Ignored {
    fn insert_char(&mut self, _: usize, _: char) {}
    fn insert_str(&mut self, _: usize, _: &str) {}
    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

/// Text that was removed, to be inserted again.
#[derive(Default)]
struct Killed(String);

impl DeleteListener for Killed {
    fn delete(&mut self, _: usize, text: &str, direction: Direction) {
        match direction {
            Direction::Forward => self.0.push_str(text),
            Direction::Backward => self.0.insert_str(0, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code)
    }

    fn ctrl(char: char) -> KeyEvent {
        key(KeyCode::Char(char)).modifiers(KeyModifiers::CTRL)
    }

    fn alt(char: char) -> KeyEvent {
        key(KeyCode::Char(char)).modifiers(KeyModifiers::ALT)
    }

    fn typed(text: &str) -> InputLine {
        let mut line = InputLine::default();
        for char in text.chars() {
            line.press(key(KeyCode::Char(char)));
        }
        line
    }

    fn shown(line: &InputLine, width: usize, rows: usize) -> (Vec<String>, (usize, usize)) {
        let (rows, cursor) = line.rows("> ", width, rows);
        let text = |row: &Row| row.iter().map(|(_, piece)| piece.as_str()).collect::<String>();
        (rows.iter().map(text).collect(), cursor)
    }

    #[test]
    fn u17_keys_edit_as_in_other_line_editors() {
        let mut line = typed("one two three");
        for (key, text) in [
            (ctrl('w'), "one two "),
            (ctrl('a'), "one two "),
            (alt('d'), " two "),
            (ctrl('y'), "one two "),
            (ctrl('k'), "one"),
            (ctrl('e'), "one"),
            (ctrl('t'), "oen"),
            (ctrl('7'), "one"),
            (key(KeyCode::Backspace), "on"),
            (ctrl('u'), ""),
            (ctrl('y'), "on"),
        ] {
            assert!(line.press(key));
            assert_eq!(line.text(), text, "{key:?}");
        }
        assert!(!line.press(key(KeyCode::F(1))));
    }

    #[test]
    fn u17_the_cursor_moves_between_lines_and_over_whole_characters() {
        let mut line = typed("long line");
        line.insert("\nab\n");
        line.insert("e\u{301}日");
        assert!(line.press(key(KeyCode::Left)) && line.press(key(KeyCode::Up)));
        line.insert("|");
        assert!(line.press(key(KeyCode::Up)));
        line.insert("|");
        assert_eq!(line.text(), "lon|g line\nab|\ne\u{301}日");
        assert!(!line.press(key(KeyCode::Up)), "the history is above the first line");
    }

    #[test]
    fn u08_rows_are_wrapped_and_the_cursor_stands_where_the_next_character_comes() {
        let mut line = typed("abcdefgh");
        assert_eq!(shown(&line, 8, 9), (vec!["> abcde".into(), "  fgh".into()], (1, 5)));
        line.press(key(KeyCode::Home));
        assert_eq!(shown(&line, 8, 9).1, (0, 2));
        let line = typed("日本");
        assert_eq!(shown(&line, 80, 9).1, (0, 6));
        let mut line = typed("1");
        line.insert("\n2\n3\n4");
        assert_eq!(shown(&line, 80, 2), (vec!["  3".into(), "  4".into()], (1, 3)));
    }

    #[test]
    fn u16_a_long_paste_is_one_mark_and_is_sent_whole() {
        let mut line = typed("see ");
        let pasted = "row\r\n".repeat(200);
        line.paste(&pasted);
        assert_eq!(shown(&line, 80, 9).0, ["> see [pasted: 200 lines]"]);
        assert_eq!(line.text(), format!("see {}", "row\n".repeat(200)));
        line.press(key(KeyCode::Backspace));
        assert_eq!(line.text(), "see ");
        line.paste("short\tone");
        assert_eq!(
            (line.text().as_str(), shown(&line, 80, 9).0[0].as_str()),
            ("see short\tone", "> see short    one")
        );
    }
}
