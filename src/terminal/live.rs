//! The live area: the rows below the finished text. It shows unfinished text, the last output of a command, the spinner, the queue of messages and the
//! input, and is drawn again when one of them changes. Rows above the live area are never changed.

use super::preview::Row;
use super::sanitize::{char_columns, sanitize_prose};
use super::streams::Style;
use std::time::Duration;
use tokio::time::Instant;

/// Least time between two drawings of text that grows.
const MIN_BETWEEN: Duration = Duration::from_millis(16);
/// Begins and ends an update that a terminal shows at once (DECSET 2026); others ignore it.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";
/// Erases the row of the cursor and all below it.
const ERASE_BELOW: &str = "\r\x1b[J";

/// How the terminal shows rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub color: bool,
    /// Whether rows that are longer than a smaller window are wrapped by the terminal; else it cuts them.
    pub reflows: bool,
}

/// Size and look of the screen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    pub width: usize,
    pub height: usize,
    pub look: Look,
}

/// The input of the user, and what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputView {
    /// The prompt and the text.
    pub rows: Vec<Row>,
    /// Row and column of the cursor in `rows`.
    pub cursor: (usize, usize),
    /// Rows below the text: a menu, and the footer.
    pub below: Vec<Row>,
}

/// The live area, and what of it is on the screen.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// A line of text without its end.
    pub open: Row,
    /// Rows of a Markdown block that is still streamed.
    pub growing: Vec<Row>,
    /// Number of blocks that were moved to the finished text before their end.
    pub kept: u64,
    /// The row of the spinner.
    pub status: String,
    /// The last rows of a command's output.
    pub tail: Vec<Row>,
    /// The queue of messages.
    pub queued: Vec<Row>,
    pub input: Option<InputView>,
    /// Whether a question is open, which stands in the place of the input.
    pub is_asking: bool,
    /// The answer that is typed.
    pub answer: Option<InputView>,
    drawn: Drawn,
}

/// The rows on the screen.
#[derive(Debug, Default)]
struct Drawn {
    rows: Vec<Row>,
    /// Row and column of the cursor.
    cursor: (usize, usize),
    /// Columns of the screen at that time.
    width: usize,
    at: Option<Instant>,
}

impl Live {
    /// Forgets the rows on the screen, because another program has written below them.
    pub fn forget(&mut self) {
        self.drawn = Drawn::default();
    }

    /// Returns the output that moves the cursor below the rows; the rows stay on the screen.
    pub fn leave(&mut self) -> String {
        let below = self.drawn.rows.len().saturating_sub(self.drawn.cursor.0);
        self.forget();
        "\n".repeat(below)
    }

    /// Returns the output that draws the changed rows. Returns nothing within 16 ms of the last drawing if the spinner is shown, because its next tick draws
    /// them.
    pub fn draw_soon(&mut self, screen: Screen) -> String {
        let is_late = !self.status.is_empty() && self.drawn.at.is_some_and(|at| at.elapsed() < MIN_BETWEEN);
        if is_late { String::new() } else { self.draw("", screen) }
    }

    /// Moves the growing block to the finished text and returns the output for it.
    pub fn keep_growing(&mut self, screen: Screen) -> String {
        if self.drawn.width != screen.width && !self.drawn.rows.is_empty() {
            return self.draw_resized("", screen);
        }
        let rows = self.take_growing(0, screen);
        self.draw(&rows, screen)
    }

    /// Takes the rows of the block that grows, and returns those after the first `skipped` as finished lines.
    fn take_growing(&mut self, skipped: usize, screen: Screen) -> String {
        self.kept += u64::from(!self.growing.is_empty());
        let mut lines = String::new();
        for row in std::mem::take(&mut self.growing).iter().skip(skipped) {
            paint_row(&mut lines, row, screen.look.color);
            lines.push('\n');
        }
        lines
    }

    /// Returns the output that writes the lines `finished` above the live area and draws the changed rows of the live area.
    pub fn draw(&mut self, finished: &str, screen: Screen) -> String {
        if self.drawn.width != screen.width && !self.drawn.rows.is_empty() {
            return self.draw_resized(finished, screen);
        }
        let (rows, cursor) = self.rows(screen);
        if finished.is_empty() && rows == self.drawn.rows && cursor == self.drawn.cursor {
            return String::new();
        }
        if rows.is_empty() && self.drawn.rows.is_empty() {
            return finished.to_owned();
        }
        let mut text = String::from(BEGIN_UPDATE);
        let is_same_size = rows.len() == self.drawn.rows.len();
        let mut at = self.drawn.cursor.0;
        if finished.is_empty() && is_same_size {
            for (row, (new, old)) in rows.iter().zip(&self.drawn.rows).enumerate() {
                if new != old {
                    push_to_row(&mut text, at, row);
                    text.push_str("\r\x1b[K");
                    paint_row(&mut text, new, screen.look.color);
                    at = row;
                }
            }
        } else {
            if !self.drawn.rows.is_empty() {
                push_to_row(&mut text, at, 0);
                text.push_str(ERASE_BELOW);
            }
            text.push_str(finished);
            for (row, new) in rows.iter().enumerate() {
                text.push_str(if row > 0 { "\n" } else { "" });
                paint_row(&mut text, new, screen.look.color);
            }
            at = rows.len().saturating_sub(1);
        }
        push_to_row(&mut text, at, cursor.0);
        if !rows.is_empty() {
            text.push('\r');
            if cursor.1 > 0 {
                text.extend(["\x1b[", &cursor.1.to_string(), "C"]);
            }
        }
        text.push_str(END_UPDATE);
        self.drawn = Drawn { rows, cursor, width: screen.width, at: Some(Instant::now()) };
        text
    }

    /// Like [`draw`](Self::draw), after the width of the window has changed. The growing block becomes finished text, because the terminal may have wrapped
    /// its rows and moved them out of the screen.
    fn draw_resized(&mut self, finished: &str, screen: Screen) -> String {
        let (row, column) = self.drawn.cursor;
        let kept = self.growing.iter().zip(&self.drawn.rows).take_while(|(new, old)| new == old).count();
        let kept = kept.min(row);
        let height = |row: &Row| row_columns(row).div_ceil(screen.width).max(1);
        let above = if screen.look.reflows {
            let rows = self.drawn.rows.iter().take(row).skip(kept);
            rows.map(height).sum::<usize>() + column / screen.width
        } else {
            row - kept
        };
        let mut text = String::new();
        push_to_row(&mut text, above, 0);
        text.push_str(ERASE_BELOW);
        let lines = self.take_growing(kept, screen) + finished;
        self.forget();
        text + &self.draw(&lines, screen)
    }

    /// Returns the rows, none wider than the screen and not more than fit, and row and column of the cursor.
    fn rows(&self, screen: Screen) -> (Vec<Row>, (usize, usize)) {
        let Screen { width, height, .. } = screen;
        let mut rows: Vec<Row> = self.growing.iter().flat_map(|row| wrapped(row, width)).collect();
        rows.extend((!self.open.is_empty()).then(|| wrapped(&self.open, width)).into_iter().flatten());
        let end = |rows: &[Row]| {
            let last = rows.last().map(|row| row_columns(row).min(width.saturating_sub(1)));
            (rows.len().saturating_sub(1), last.unwrap_or_default())
        };
        let mut cursor = end(&rows);
        if !self.is_asking {
            rows.extend(self.tail.iter().map(|row| cut(row, width)));
            if !self.status.is_empty() {
                rows.push(cut(&vec![(Style::Plain, self.status.clone())], width));
                cursor = end(&rows);
            }
            rows.extend(self.queued.iter().map(|row| cut(row, width)));
        }
        if let Some(input) = if self.is_asking { &self.answer } else { &self.input } {
            cursor = (rows.len() + input.cursor.0, input.cursor.1.min(width.saturating_sub(1)));
            rows.extend(input.rows.iter().cloned());
            rows.extend(input.below.iter().map(|row| cut(row, width)));
        }
        let surplus = rows.len().saturating_sub(height.saturating_sub(1).max(1));
        rows.drain(..surplus);
        (rows, (cursor.0.saturating_sub(surplus), cursor.1))
    }
}

/// Adds what moves the cursor from one row to another (CUU and CUD of ECMA-48).
fn push_to_row(text: &mut String, from: usize, to: usize) {
    match (from.checked_sub(to), to.checked_sub(from)) {
        (Some(up @ 1..), _) => text.extend(["\x1b[", &up.to_string(), "A"]),
        (_, Some(down @ 1..)) => text.extend(["\x1b[", &down.to_string(), "B"]),
        _ => {}
    }
}

/// Adds a row to what is written to the terminal.
pub(super) fn paint_row(text: &mut String, row: &Row, color: bool) {
    for (style, piece) in row {
        let style = if color { style } else { &Style::Plain };
        text.push_str(&style.paint(&sanitize_prose(piece)));
    }
}

pub(super) fn row_columns(row: &Row) -> usize {
    row.iter().flat_map(|(_, piece)| piece.chars()).map(char_columns).sum()
}

/// Returns the rows that a row takes on a screen of `width` columns.
pub(super) fn wrapped(row: &Row, width: usize) -> Vec<Row> {
    let mut rows = vec![Row::new()];
    let mut used = 0;
    for (style, piece) in row {
        let piece = piece.replace('\t', "    ");
        let mut text = String::new();
        for char in piece.chars() {
            let columns = char_columns(char);
            if used + columns > width && used > 0 {
                push_piece(&mut rows, style, &mut text);
                rows.push(Row::new());
                used = 0;
            }
            text.push(char);
            used += columns;
        }
        push_piece(&mut rows, style, &mut text);
    }
    rows
}

fn push_piece(rows: &mut [Row], style: &Style, text: &mut String) {
    if let Some(row) = rows.last_mut().filter(|_| !text.is_empty()) {
        row.push((style.clone(), std::mem::take(text)));
    }
}

/// Returns the beginning of a row that fits into `width` columns.
fn cut(row: &Row, width: usize) -> Row {
    if row_columns(row) <= width {
        return row.clone();
    }
    let mut first = wrapped(row, width.saturating_sub(1)).into_iter().next().unwrap_or_default();
    first.push((Style::Dim, "…".to_owned()));
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    /// A screen of 10 rows and 20 columns, and what a program has written to it.
    struct Shown {
        emulator: vt100::Parser,
        live: Live,
        width: u16,
    }

    impl Shown {
        fn new() -> Self {
            let size = |cells| NonZero::new(cells).unwrap();
            Self { emulator: vt100::Parser::new(size(10), size(20), 100), live: Live::default(), width: 20 }
        }

        /// Writes lines above the live area and returns the text on the screen.
        fn draw(&mut self, finished: &str) -> String {
            // The emulator cuts the rows of a smaller window.
            let look = Look { color: false, reflows: false };
            let screen = Screen { width: usize::from(self.width), height: 10, look };
            let written = self.live.draw(finished, screen).replace('\n', "\r\n");
            self.emulator.process(written.as_bytes());
            self.emulator.screen().contents().trim_end().to_owned()
        }

        fn input(&mut self, text: &str) {
            let rows = vec![row(text)];
            let cursor = (0, text.chars().count());
            self.live.input = Some(InputView { rows, cursor, below: vec![row("footer")] });
        }
    }

    fn row(text: &str) -> Row {
        vec![(Style::Plain, text.to_owned())]
    }

    #[test]
    fn u08_finished_text_stands_above_the_input_and_is_written_once() {
        let mut shown = Shown::new();
        shown.input("> a");
        shown.live.status = "working".into();
        assert_eq!(shown.draw(""), "working\n> a\nfooter");
        assert_eq!(shown.draw("one\n"), "one\nworking\n> a\nfooter");
        shown.input("> ab");
        shown.live.growing = vec![row("grows")];
        assert_eq!(shown.draw(""), "one\ngrows\nworking\n> ab\nfooter");
        assert_eq!(shown.emulator.screen().cursor_position(), (3, 4));
        shown.live.growing.clear();
        shown.live.status.clear();
        shown.live.input = None;
        assert_eq!(shown.draw("grows\n"), "one\ngrows");
    }

    #[test]
    fn u08_text_that_scrolls_away_leaves_no_row_of_the_input_behind() {
        let mut shown = Shown::new();
        shown.input("> typed");
        for line in 1..=40 {
            shown.draw(&format!("line {line}\n"));
        }
        let seen = shown.draw("");
        assert!(seen.starts_with("line 33\n") && seen.ends_with("line 40\n> typed\nfooter"), "{seen}");
        shown.emulator.screen_mut().set_scrollback(usize::MAX);
        let above = shown.emulator.screen().contents();
        assert!(above.starts_with("line 1\nline 2\n") && !above.contains("typed"), "{above}");
    }

    #[test]
    fn u08_a_question_takes_the_place_of_the_input_which_comes_back() {
        let mut shown = Shown::new();
        shown.input("> typed");
        shown.live.status = "working".into();
        shown.draw("");
        shown.live.is_asking = true;
        shown.live.open = row("yes or no: ");
        assert_eq!(shown.draw("question\n"), "question\nyes or no:");
        assert_eq!(shown.emulator.screen().cursor_position(), (1, 11));
        shown.live.open.clear();
        shown.live.is_asking = false;
        assert_eq!(shown.draw("yes or no: y\n"), "question\nyes or no: y\nworking\n> typed\nfooter");
    }

    #[test]
    fn u03_a_window_that_is_resized_neither_doubles_nor_loses_rows() {
        let mut shown = Shown::new();
        shown.input("> typed");
        shown.live.growing = vec![row("twelve chars")];
        shown.draw("one\n");
        for width in [10, 20] {
            shown.width = width;
            shown.emulator.screen_mut().set_size(NonZero::new(10).unwrap(), NonZero::new(width).unwrap());
            let seen = shown.draw("");
            // The emulator has cut the row off.
            assert_eq!(seen, "one\ntwelve cha\n> typed\nfooter", "{width}");
        }
    }

    #[test]
    fn a_low_screen_keeps_the_input() {
        let mut shown = Shown::new();
        shown.live.growing = (0..30).map(|at| row(&format!("row {at}"))).collect();
        shown.input("> typed");
        assert_eq!(shown.draw("").lines().count(), 9);
        assert!(shown.draw("").ends_with("row 29\n> typed\nfooter"));
    }
}
