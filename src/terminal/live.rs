//! The live area: the rows below the finished text. It shows unfinished text, the last output of a command, the spinner, the queue of messages and the
//! input, and is drawn again when one of them changes. Rows above the live area are never changed.

use super::markdown::{Block, BlockRow};
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
/// Most rows that are shown of text that is not finished.
pub(super) const MAX_GROWING: usize = 12;
/// Stands between the parts of a row.
const SEPARATOR: &str = " · ";
/// Erases the row of the cursor and all below it. Not from the first column on: tmux would store a whole screen that is erased so.
const ERASE_BELOW: &str = "\r\x1b[K\x1b[C\x1b[J\r";

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

/// Text that is not finished, below the finished text.
#[derive(Debug, Default)]
pub(super) struct Growing {
    pub rows: Vec<BlockRow>,
    /// Columns of the screen that the rows are for.
    pub width: usize,
    /// What draws the rows for another width; empty for code, whose rows are the same at each.
    pub block: Block,
}

impl Growing {
    /// Draws the rows for a screen of `width` columns, if they are for another.
    fn fit(&mut self, width: usize) {
        if self.width != width && !self.block.is_empty() {
            self.rows = self.block.rows(width);
            self.width = width;
        }
    }

    /// Records that the block is finished up to the character with that number.
    fn finish(&mut self, end: usize) {
        self.block.finished = end;
        self.rows = self.block.rows(self.width);
    }
}

/// The live area, and what of it is on the screen.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// A line of text without its end.
    pub open: Row,
    /// A Markdown block that is still streamed.
    pub growing: Growing,
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
    /// Least number of rows of finished text above the live area on the screen.
    above: usize,
}

/// The rows on the screen.
#[derive(Debug, Default)]
struct Drawn {
    rows: Vec<Row>,
    /// Row and column of the cursor.
    cursor: (usize, usize),
    /// For each of the first rows, which show a block that grows, the end of the row in the block.
    ends: Vec<usize>,
    /// Columns and rows of the screen at that time.
    size: (usize, usize),
    at: Option<Instant>,
}

impl Live {
    /// Forgets the rows on the screen, because another program has written below them.
    pub fn forget(&mut self) {
        (self.drawn, self.above) = (Drawn::default(), 0);
    }

    /// Returns the output that erases the rows on the screen.
    pub fn erase(&mut self) -> String {
        let mut text = String::new();
        if !self.drawn.rows.is_empty() {
            push_to_row(&mut text, self.drawn.cursor.0, 0);
            text.push_str(ERASE_BELOW);
        }
        self.drawn = Drawn::default();
        text
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

    /// Checks whether the rows were drawn on a screen of another size.
    pub fn is_resized(&self, screen: Screen) -> bool {
        self.drawn.size != (screen.width, screen.height) && !self.drawn.rows.is_empty()
    }

    /// Returns the output that writes the lines `finished` above the live area and draws the changed rows of the live area.
    pub fn draw(&mut self, finished: &str, screen: Screen) -> String {
        if self.is_resized(screen) {
            return self.draw_resized(finished, screen);
        }
        self.growing.fit(screen.width);
        self.above += finished.matches('\n').count();
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
            text.push_str(&self.erase());
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
        let growing = rows.iter().zip(&self.growing.rows);
        let ends = growing.map_while(|(drawn, row)| row.end.filter(|_| *drawn == row.row)).collect();
        let size = (screen.width, screen.height);
        self.drawn = Drawn { rows, cursor, ends, size, at: Some(Instant::now()) };
        text
    }

    /// Like [`draw`](Self::draw), after the size of the window has changed: erases the rows and draws them again. Rows of a block that grows
    /// are finished if the terminal has moved them out of the screen, where they cannot be erased.
    fn draw_resized(&mut self, finished: &str, screen: Screen) -> String {
        let (row, column) = self.drawn.cursor;
        let is_wrapped = screen.look.reflows;
        let height = |row: &Row| if is_wrapped { row_columns(row).div_ceil(screen.width).max(1) } else { 1 };
        let heights: Vec<usize> = self.drawn.rows.iter().map(height).collect();
        // Rows that were wrapped move as many rows out of the screen, also where empty rows are below the text.
        let total: usize = heights.iter().sum();
        let more = total - heights.len();
        let finished_rows = self.above.min(self.drawn.size.1.saturating_sub(heights.len()));
        let gone = more.saturating_sub(finished_rows).max(total.saturating_sub(screen.height));
        let begins = heights.iter().scan(0, |next, height| Some(std::mem::replace(next, *next + height)));
        let kept = begins.zip(&self.drawn.ends).take_while(|(begin, _)| *begin < gone).count().min(row);
        self.above = finished_rows.saturating_sub(more);
        if let Some(end) = self.drawn.ends.get(..kept).and_then(<[usize]>::last) {
            self.growing.finish(*end);
        }
        let above: usize = heights.iter().take(row).skip(kept).sum();
        let mut text = String::new();
        push_to_row(&mut text, above + if is_wrapped { column / screen.width } else { 0 }, 0);
        text.push_str(ERASE_BELOW);
        self.drawn = Drawn::default();
        text + &self.draw(finished, screen)
    }

    /// Returns the rows, none wider than the screen and not more than fit, and row and column of the cursor.
    fn rows(&self, screen: Screen) -> (Vec<Row>, (usize, usize)) {
        let Screen { width, height, .. } = screen;
        let growing = &self.growing.rows;
        let growing = growing.iter().skip(growing.len().saturating_sub(MAX_GROWING));
        let mut rows: Vec<Row> = growing.flat_map(|row| wrapped(&row.row, width)).collect();
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

/// Returns the beginning of a row that fits into `width` columns. It ends after a part or after a word, if most of the row is left then.
fn cut(row: &Row, width: usize) -> Row {
    if row_columns(row) <= width {
        return row.clone();
    }
    let mut first = wrapped(row, width.saturating_sub(1)).into_iter().next().unwrap_or_default();
    let text: String = first.iter().map(|(_, piece)| piece.as_str()).collect();
    let mut ends = [SEPARATOR, " "].iter().filter_map(|end| Some(text.rfind(end)? + end.len()));
    let mut left = ends.find(|end| *end > text.len() / 2).unwrap_or(text.len());
    for (_, piece) in &mut first {
        piece.truncate(left);
        left -= piece.len();
    }
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
        reflows: bool,
    }

    fn emulator(width: u16) -> vt100::Parser {
        vt100::Parser::new(cells(10), cells(width), 100)
    }

    fn cells(count: u16) -> NonZero<u16> {
        NonZero::new(count).unwrap()
    }

    impl Shown {
        fn new() -> Self {
            Self { emulator: emulator(20), live: Live::default(), width: 20, reflows: false }
        }

        /// Changes the width; a terminal that reflows wraps its rows anew, others cut them.
        fn resize(&mut self, width: u16) {
            let rows: Vec<String> = self.seen().lines().map(str::to_owned).collect();
            self.width = width;
            if !self.reflows {
                return self.emulator.screen_mut().set_size(cells(10), cells(width));
            }
            let (at, column) = self.emulator.screen().cursor_position();
            let below = rows.len() - self.emulator.screen().contents().trim_end().lines().count();
            let height = |row: &String| row.chars().count().div_ceil(usize::from(width)).max(1);
            self.emulator = emulator(width);
            self.emulator.process(rows.join("\r\n").as_bytes());
            let total: usize = rows.iter().map(height).sum();
            let above = rows.iter().take(below + usize::from(at)).map(height).sum::<usize>()
                + usize::from(column / width);
            let row = above + 1 - total.saturating_sub(10);
            self.emulator.process(format!("\u{1b}[{row};{}H", column % width + 1).as_bytes());
        }

        /// Returns the rows of the screen after those that scrolled out of it.
        fn seen(&mut self) -> String {
            let screen = self.emulator.screen_mut();
            screen.set_scrollback(usize::MAX);
            let mut rows = Vec::new();
            for back in (1..=screen.scrollback()).rev() {
                screen.set_scrollback(back);
                rows.extend(screen.rows(0, self.width).next());
            }
            screen.set_scrollback(0);
            rows.extend(screen.rows(0, self.width));
            rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
        }

        /// Shows a block that grows.
        fn grow(&mut self, source: &str) {
            let block = Block::of(source);
            self.live.growing = Growing { block, ..Growing::default() };
            self.draw("");
        }

        /// Writes lines above the live area and returns the text on the screen.
        fn draw(&mut self, finished: &str) -> String {
            let look = Look { color: false, reflows: self.reflows };
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
        shown.grow("grows");
        assert_eq!(shown.draw(""), "one\ngrows\nworking\n> ab\nfooter");
        assert_eq!(shown.emulator.screen().cursor_position(), (3, 4));
        shown.live.growing = Growing::default();
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
        for reflows in [false, true] {
            let mut shown = Shown::new();
            shown.reflows = reflows;
            shown.input("> typed");
            shown.draw("one\n");
            shown.grow("- with words\n  - a second level of it");
            let wide = "one\n• with words\n  • a second level\n    of it\n> typed\nfooter";
            assert_eq!(shown.draw(""), wide, "{reflows}");
            shown.resize(40);
            let wider = "one\n• with words\n  • a second level of it\n> typed\nfooter";
            assert_eq!(shown.draw(""), wider, "{reflows}");
            shown.resize(15);
            let narrow = "one\n• with words\n  • a second\n    level of it\n> typed\nfooter";
            assert_eq!(shown.draw(""), narrow, "{reflows}");
        }
    }

    #[test]
    fn u03_text_that_a_resize_moves_out_of_the_screen_is_not_shown_again() {
        let mut shown = Shown::new();
        shown.reflows = true;
        shown.input("> typed");
        let source = (10..31).map(|number| format!("wor-{number}")).collect::<Vec<_>>().join(" ");
        shown.grow(&source);
        shown.resize(14);
        shown.draw("");
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(letters(&shown.seen()), letters(&format!("{source} > typed footer")));
    }

    #[test]
    fn u08_a_row_that_is_too_long_is_cut_after_a_part_or_a_word() {
        for (text, short) in [
            ("auto · ~/dir · openai/model", "auto · ~/dir · …"),
            ("one two three four five", "one two three four …"),
            ("run abcdefghijklmnopqrstuvwxyz", "run abcdefghijklmno…"),
        ] {
            let pieces: String = cut(&row(text), 20).iter().map(|(_, piece)| piece.as_str()).collect();
            assert_eq!(pieces, short);
        }
    }

    #[test]
    fn a_low_screen_keeps_the_input() {
        let mut shown = Shown::new();
        shown.input("> typed");
        let rows: Vec<String> = (0..30).map(|at| format!("row {at}")).collect();
        shown.grow(&rows.join("\n"));
        assert_eq!(shown.draw("").lines().count(), 9);
        assert!(shown.draw("").ends_with("row 29\n> typed\nfooter"));
    }
}
