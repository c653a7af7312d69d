//! Shows Markdown on a terminal while it streams: text appears as it arrives, wrapped between words. The rows of the paragraph, list item or heading that is
//! not finished stand in the live area; finished rows are never touched.

use super::code::{Highlighter, MAX_COLORED_BYTES};
use super::hyperlink::{Address, Link};
use super::live::{Growing, MAX_GROWING, row_columns};
use super::preview::Row;
use super::sanitize::columns;
use super::streams::{PrintOutcome, Style, Terminal};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::io;
use std::ops::Range;

/// Columns of a horizontal rule.
const RULE_COLUMNS: usize = 40;
/// Fewest columns of text, on a terminal that is narrower than its indent.
const MIN_COLUMNS: usize = 10;
/// Bytes of a block that is drawn again when it grows. A longer one goes on as another block: else the work for a paragraph would grow with its square.
const MAX_BLOCK_BYTES: usize = 8 * 1024;
/// Before code in a document.
const CODE_INDENT: &str = "    ";
/// What is Markdown here besides `CommonMark`.
const EXTENSIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_TASKLISTS).union(Options::ENABLE_STRIKETHROUGH);

/// Writes a stream of Markdown to standard output; without colour, writes it unchanged.
#[derive(Debug, Default)]
pub struct MarkdownStream {
    /// Source of the block that is not finished: a paragraph, an item of a list with its children, a heading, a table.
    block: String,
    /// The line of `block` that is not complete, if it has begun.
    line: String,
    /// The code block that is open.
    code: Option<CodeBlock>,
    /// Number of counted characters of the block that are finished.
    finished: usize,
    /// Whether the text written last did not end its line.
    is_open: bool,
}

/// A block that is not finished. Its rows are drawn again from its source when it grows and when the window is resized.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    source: String,
    /// Number of counted characters that are finished: they stand above the live area.
    pub finished: usize,
    has_hyperlinks: bool,
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockRow {
    pub row: Row,
    /// Number of counted characters of the block up to the end of the row. `None` in a table, whose columns can change until its end.
    pub end: Option<usize>,
}

/// A code block whose lines are shown as they arrive.
#[derive(Debug, Clone)]
struct CodeBlock {
    /// The marks that end it, such as three backticks.
    fence: String,
    /// Spaces before the fence, which its lines have too.
    indent: usize,
    highlighter: Option<Highlighter>,
}

impl MarkdownStream {
    /// Writes what `piece` adds.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn push(&mut self, terminal: &Terminal, piece: &str) -> io::Result<PrintOutcome> {
        if !terminal.has_output_color() {
            if !piece.is_empty() {
                self.is_open = !piece.ends_with('\n');
            }
            return terminal.print_spans(&[(Style::Plain, piece)]);
        }
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.complete_line(terminal)?;
            }
        }
        if self.block.len() + self.line.len() > MAX_BLOCK_BYTES {
            self.cut_block(terminal)?;
        }
        self.draw_growing(terminal)
    }

    /// Writes the rest and ends its line; the next text is a new document.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn finish(&mut self, terminal: &Terminal) -> io::Result<PrintOutcome> {
        if !self.line.is_empty() {
            self.complete_line(terminal)?;
        }
        let outcome = self.end_block(terminal)?;
        let end = if self.is_open { terminal.print_spans(&[(Style::Plain, "\n")])? } else { outcome };
        *self = Self::default();
        Ok(end)
    }

    /// Adds the line to the block, or begins another one with it.
    fn complete_line(&mut self, terminal: &Terminal) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if let Some(code) = &mut self.code {
            if !self.is_open && code.is_end(&line) {
                self.code = None;
                return Ok(());
            }
            return self.complete_code(terminal, line.strip_suffix('\n').unwrap_or(&line));
        }
        let text = line.trim_end();
        if let Some(code) = CodeBlock::begun_by(text) {
            self.end_block(terminal)?;
            self.code = Some(code);
            return terminal.end_line();
        }
        if text.is_empty() {
            self.end_block(terminal)?;
            terminal.print_spans(&[(Style::Plain, "\n")])?;
            return Ok(());
        }
        if !self.block.is_empty() && begins_block(&self.block, text) {
            self.end_block(terminal)?;
        }
        self.block.push_str(text);
        self.block.push('\n');
        Ok(())
    }

    /// Shows a line of code as it is, so that it can be copied, or the rest of a long one.
    fn complete_code(&mut self, terminal: &Terminal, line: &str) -> io::Result<()> {
        if std::mem::take(&mut self.is_open) {
            return terminal.print_spans(&[(Style::Code, line), (Style::Plain, "\n")]).map(drop);
        }
        let row = self.code.as_mut().map(|code| code.row(line)).unwrap_or_default();
        terminal.print_growing(&[row], Growing::default()).map(drop)
    }

    /// Shows a line of code that is not complete. What is written of a long one is not drawn again.
    fn draw_growing_code(&mut self, terminal: &Terminal, mut code: CodeBlock) -> io::Result<PrintOutcome> {
        if !self.is_open && code.could_end(&self.line) {
            return Ok(PrintOutcome::Written);
        }
        if !self.is_open && self.line.len() <= MAX_COLORED_BYTES {
            let rows = vec![BlockRow { row: code.row(&self.line), end: None }];
            return terminal.print_growing(&[], Growing { rows, ..Growing::default() });
        }
        let line = std::mem::take(&mut self.line);
        let text = if self.is_open { &line } else { code.text(&line) };
        if !std::mem::replace(&mut self.is_open, true) {
            terminal.print_growing(&[], Growing::default())?;
        }
        terminal.print_spans(&[(Style::Code, text)])
    }

    fn end_block(&mut self, terminal: &Terminal) -> io::Result<PrintOutcome> {
        let block = std::mem::take(&mut self.block);
        let outcome =
            if block.is_empty() { PrintOutcome::Written } else { self.draw(terminal, block, true)? };
        self.finished = 0;
        Ok(outcome)
    }

    /// Ends the block in the middle; the rest of its text is another one.
    fn cut_block(&mut self, terminal: &Terminal) -> io::Result<()> {
        if self.code.is_some() {
            return Ok(());
        }
        if !self.waits() || self.line.len() > MAX_BLOCK_BYTES {
            self.block.push_str(&std::mem::take(&mut self.line));
        }
        self.end_block(terminal).map(drop)
    }

    /// Checks whether the incomplete line is not shown yet: a row of a table is shown whole, and marks may become anything.
    fn waits(&self) -> bool {
        let first = if self.block.is_empty() { &self.line } else { &self.block };
        first.trim_start().starts_with('|') || fence_of(&self.line).is_some() || is_only_marks(&self.line)
    }

    /// Draws the block with the line that is not complete.
    fn draw_growing(&mut self, terminal: &Terminal) -> io::Result<PrintOutcome> {
        if let Some(code) = self.code.clone() {
            return self.draw_growing_code(terminal, code);
        }
        if !self.block.is_empty() && !self.line.is_empty() && begins_block(&self.block, &self.line) {
            self.end_block(terminal)?;
        }
        // A table grows by whole rows, from the line below its first row on.
        let is_table = self.block.trim_start().starts_with('|') && self.block.lines().nth(1).is_some();
        let source = if is_table { self.block.clone() } else { format!("{}{}", self.block, self.line) };
        if self.waits() && !is_table || source.trim().is_empty() {
            return Ok(PrintOutcome::Written);
        }
        self.draw(terminal, source, false)
    }

    /// Shows the rows of a block; with `ends`, they are finished.
    fn draw(&mut self, terminal: &Terminal, source: String, ends: bool) -> io::Result<PrintOutcome> {
        let (screen, finished) = terminal.screen_and_finished();
        self.finished = self.finished.max(finished);
        let has_hyperlinks = terminal.has_hyperlinks();
        let mut block = Block { source, finished: self.finished, has_hyperlinks };
        let width = screen.width;
        let mut rows = block.rows(width);
        if !ends && let Some(open) = open_link(&block.source) {
            // What is shown of a link changes when the link is complete: no row of it is finished before.
            let source = block.source.get(..open).unwrap_or_default().to_owned();
            let before = Block { source, finished: 0, has_hyperlinks }.rows(width);
            let end = before.last().and_then(|row| row.end).unwrap_or_default();
            for row in rows.iter_mut().filter(|row| row.end > Some(end)) {
                row.end = None;
            }
        }
        let most = if ends { 0 } else { MAX_GROWING.min(screen.height / 2) };
        let surplus = rows.len().saturating_sub(most);
        let done = rows.iter().take(surplus).take_while(|row| ends || row.end.is_some()).count();
        let growing = rows.split_off(done);
        self.finished = rows.iter().rev().find_map(|row| row.end).unwrap_or(self.finished);
        block.finished = self.finished;
        let finished: Vec<Row> = rows.into_iter().map(|row| row.row).collect();
        let growing = if ends { Growing::default() } else { Growing { rows: growing, width, block } };
        terminal.print_growing(&finished, growing)
    }
}

/// Returns where a link begins that is not complete.
fn open_link(source: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = source.get(at..)?.find('[').map(|found| at + found) {
        let Some(end) = source.get(start..)?.find(']').map(|found| start + found + 1) else {
            return Some(start);
        };
        let rest = source.get(end..)?;
        if rest.is_empty() || rest.starts_with('(') && !rest.contains(')') {
            return Some(start);
        }
        at = start + 1;
    }
    None
}

/// Returns the marks of a line that begins a code block: three or more backticks or tildes.
fn fence_of(line: &str) -> Option<String> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let marks: String = text.chars().take_while(|char| *char == mark).collect();
    let is_fence = marks.len() >= 3 && !text.get(marks.len()..).unwrap_or_default().contains('`');
    is_fence.then_some(marks)
}

impl CodeBlock {
    /// Returns the block that `line` begins.
    fn begun_by(line: &str) -> Option<Self> {
        let fence = fence_of(line)?;
        let text = line.trim_start_matches(' ');
        let highlighter = Highlighter::new(text.trim_start().get(fence.len()..).unwrap_or_default());
        Some(Self { fence, indent: line.len() - text.len(), highlighter })
    }

    fn is_end(&self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.fence.len() && text.chars().all(|char| self.fence.starts_with(char))
    }

    /// Checks whether the beginning of a line can be that of the end of the block.
    fn could_end(&self, line: &str) -> bool {
        line.trim().chars().all(|char| self.fence.starts_with(char))
    }

    /// Returns a line without the indent of the block.
    fn text<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        line.get(spaces..).unwrap_or_default()
    }

    /// Returns the next line in its colours.
    fn row(&mut self, line: &str) -> Row {
        let text = self.text(line).to_owned();
        match &mut self.highlighter {
            Some(highlighter) if text.len() <= MAX_COLORED_BYTES => highlighter.line(&text),
            _ => vec![(Style::Code, text)],
        }
    }
}

/// Checks whether a line has no text yet.
fn is_only_marks(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|char| char.is_whitespace() || "#>*-+_=`~|".contains(char))
}

/// Checks whether a line is an item of a list, a heading or the like, which needs no blank line before it.
fn begins_block(block: &str, line: &str) -> bool {
    let is_item = |text: &str| {
        let digits = text.chars().take_while(char::is_ascii_digit).count();
        let after = text.get(digits..).unwrap_or_default();
        (digits > 0 && (after.starts_with(". ") || after.starts_with(") ")))
            || ["- ", "* ", "+ "].iter().any(|bullet| text.starts_with(bullet))
    };
    let is_heading = |text: &str| text.starts_with('#');
    let is_quote = |text: &str| text.starts_with('>');
    let is_table = |text: &str| text.trim_start().starts_with('|');
    let first = block.lines().next().unwrap_or_default();
    is_item(line)
        || is_heading(line)
        || is_heading(first)
        || is_quote(line) != is_quote(first) && !line.starts_with(' ')
        || is_table(line) != is_table(first)
}

impl Block {
    #[cfg(test)]
    pub fn of(source: &str) -> Self {
        Self { source: source.to_owned(), ..Self::default() }
    }

    /// Checks whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Returns the rows after the finished characters on a terminal of `width` columns.
    pub fn rows(&self, width: usize) -> Vec<BlockRow> {
        let source = &self.source;
        let first = source.lines().next().unwrap_or_default();
        let renderer = Renderer {
            width,
            finished: self.finished,
            has_hyperlinks: self.has_hyperlinks,
            ..Renderer::default()
        };
        if (first.starts_with("    ") || first.starts_with('\t')) && !begins_block("", first.trim_start()) {
            return renderer.code_rows(source);
        }
        // The block can be a part of an item whose beginning is finished: its indent stays, and is no sign of code.
        let indent: String = source.chars().take_while(|char| *char == ' ').collect();
        let lines = source.split_inclusive('\n').map(|line| {
            let spaces = line.bytes().take(indent.len()).take_while(|byte| *byte == b' ').count();
            line.get(spaces..).unwrap_or_default()
        });
        let source: String = lines.collect();
        Renderer { source: &source, first: indent.clone(), rest: indent, ..renderer }.rows()
    }
}

/// Returns the rows of a whole document on a terminal of `width` columns: the lines of a paragraph are joined and wrapped anew, code is indented, and a
/// blank row stands between blocks.
pub fn document_rows(source: &str, width: usize) -> Vec<Row> {
    let rows = Renderer { source, width, is_document: true, ..Renderer::default() }.rows();
    rows.into_iter().map(|row| row.row).collect()
}

/// How a code block in a document or a quote looks.
enum CodeLook {
    Colored(Highlighter),
    Uniform(Style),
}

/// Turns the events of a block into rows.
#[derive(Default)]
struct Renderer<'a> {
    source: &'a str,
    width: usize,
    rows: Vec<BlockRow>,
    /// Number of counted characters so far.
    counted: usize,
    /// Number of counted characters that are finished.
    finished: usize,
    /// The text of the paragraph so far.
    text: Row,
    /// Before the first row of the next text, and before the others.
    first: String,
    rest: String,
    /// The indents around each open item and quote.
    indents: Vec<String>,
    styles: Vec<Style>,
    /// For each open list the number of its next item.
    lists: Vec<Option<u64>>,
    /// Whether each open emphasis has marks that are shown as they are.
    literal: Vec<bool>,
    /// End of the source that was shown.
    shown: usize,
    link: Option<(String, usize)>,
    table: Option<Table>,
    code: Option<CodeLook>,
    /// Whether the source is a whole document, whose line breaks are no breaks of its text.
    is_document: bool,
    /// Whether the terminal shows links.
    has_hyperlinks: bool,
}

impl Renderer<'_> {
    fn rows(mut self) -> Vec<BlockRow> {
        for (event, range) in Parser::new_ext(self.source, EXTENSIONS).into_offset_iter() {
            self.event(event, range);
        }
        self.end_text();
        self.rows
    }

    /// Returns the rows of indented code.
    fn code_rows(mut self, source: &str) -> Vec<BlockRow> {
        for line in source.lines() {
            self.push_row("", vec![(Style::Code, line.to_owned())]);
        }
        self.rows
    }

    /// Adds a row of text after `lead`.
    fn push_row(&mut self, lead: &str, mut row: Row) {
        let counted = count(&row);
        if !lead.is_empty() {
            row.insert(0, (Style::Plain, lead.to_owned()));
        }
        self.push_counted(row, counted);
    }

    /// Adds a row with that number of counted characters, unless it is finished.
    fn push_counted(&mut self, row: Row, counted: usize) {
        let is_finished = self.counted < self.finished;
        self.counted += counted;
        if !is_finished {
            self.rows.push(BlockRow { row, end: Some(self.counted) });
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => {
                self.escape(&range);
                self.shown = range.end;
                self.push(&text);
            }
            Event::Code(text) => self.push_as(Style::Code, &text),
            Event::InlineHtml(text) => self.push(&text),
            Event::Html(text) => {
                self.push(text.trim_end_matches('\n'));
                self.end_text();
            }
            Event::SoftBreak | Event::HardBreak if self.table.is_some() => self.push(" "),
            Event::SoftBreak if self.is_document => self.push(" "),
            Event::SoftBreak | Event::HardBreak => self.end_text(),
            Event::Rule => {
                let rule = vec![(Style::Dim, "─".repeat(RULE_COLUMNS.min(self.width)))];
                self.push_counted(rule, 1);
            }
            Event::TaskListMarker(is_done) => {
                let lead = self.first.trim_end().trim_end_matches('•').len();
                self.first.truncate(lead);
                self.first.push_str(if is_done { "☑ " } else { "☐ " });
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Heading { .. } => {
                self.separate();
                self.styles.push(Style::Bold);
            }
            Tag::Paragraph => self.separate(),
            Tag::BlockQuote(_) => {
                self.end_text();
                self.separate();
                self.indent("│ ", "│ ");
                self.styles.push(Style::Dim);
            }
            Tag::List(number) => {
                self.end_text();
                if self.lists.is_empty() {
                    self.separate();
                }
                self.lists.push(number);
            }
            Tag::Item => self.start_item(),
            Tag::CodeBlock(kind) => {
                self.end_text();
                self.separate();
                self.code = Some(match kind {
                    CodeBlockKind::Fenced(info) => {
                        Highlighter::new(&info).map_or(CodeLook::Uniform(Style::Code), CodeLook::Colored)
                    }
                    CodeBlockKind::Indented if self.is_document => CodeLook::Uniform(Style::Code),
                    // In a part of a document, indented text is no code: it is text of an item whose beginning is finished.
                    CodeBlockKind::Indented => CodeLook::Uniform(Style::Plain),
                });
            }
            Tag::Emphasis => self.start_emphasis(Style::Italic, 1, range),
            Tag::Strong => self.start_emphasis(Style::Bold, 2, range),
            Tag::Strikethrough => self.start_emphasis(Style::Struck, self.tildes(range), range),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.text.len()));
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.separate();
                self.table = Some(Table { alignments, cells: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.cells.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    /// Puts a blank row before a block of a document, unless the block begins an item.
    fn separate(&mut self) {
        let is_below_text = self.rows.last().is_some_and(|row| !row.row.is_empty());
        if self.is_document && self.first == self.rest && is_below_text {
            self.push_row("", Row::new());
        }
    }

    fn start_item(&mut self) {
        self.end_text();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        self.indent(&mark, &" ".repeat(mark.chars().count()));
    }

    /// Begins an item or a quote: `first` stands before its first row, and `rest` before the others.
    fn indent(&mut self, first: &str, rest: &str) {
        self.indents.push(self.rest.clone());
        self.first.push_str(first);
        self.rest.push_str(rest);
    }

    fn end_indent(&mut self) {
        self.end_text();
        self.rest = self.indents.pop().unwrap_or_default();
        self.first.clone_from(&self.rest);
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_indent();
                self.styles.pop();
            }
            TagEnd::CodeBlock => {
                self.end_text();
                self.code = None;
            }
            TagEnd::Paragraph => self.end_text(),
            TagEnd::Item => self.end_indent(),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Emphasis => self.end_emphasis(1, range),
            TagEnd::Strong => self.end_emphasis(2, range),
            TagEnd::Strikethrough => self.end_emphasis(self.tildes(range), range),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.cells.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take();
                let rows = table.into_iter().flat_map(|table| table.rows(self.width));
                self.rows.extend(rows.map(|row| BlockRow { row, end: None }));
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        self.push_as(self.styles.last().cloned().unwrap_or(Style::Plain), text);
    }

    fn push_as(&mut self, style: Style, text: &str) {
        let Some(mut look) = self.code.take() else {
            return self.text.push((style, text.to_owned()));
        };
        for line in text.lines() {
            let row = match &mut look {
                CodeLook::Colored(highlighter) => highlighter.line(line),
                CodeLook::Uniform(style) => vec![(style.clone(), line.to_owned())],
            };
            if self.is_document {
                self.push_code(row, line);
            } else {
                self.push_row(&self.rest.clone(), row);
            }
        }
        self.code = Some(look);
    }

    /// Shows a line of code in a document; one that is too long goes on in rows with more indent.
    fn push_code(&mut self, mut code: Row, line: &str) {
        let text = line.trim_start();
        let indent = line.strip_suffix(text).unwrap_or_default();
        let lead = format!("{}{CODE_INDENT}{indent}", self.rest);
        let rest = format!("{lead}{CODE_INDENT}");
        let is_whole = columns(&lead) + columns(text) <= self.width;
        let room = if is_whole { self.width } else { self.width.saturating_sub(columns(&rest)) };
        trim_start(&mut code);
        let rows = wrap(&code, room.max(MIN_COLUMNS));
        if rows.is_empty() {
            self.push_row("", Row::new());
        }
        for (at, row) in rows.into_iter().enumerate() {
            self.push_row(if at == 0 { &lead } else { &rest }, row);
        }
    }

    /// Shows a backslash that the parser has taken for an escape, unless it stands before a mark.
    fn escape(&mut self, range: &Range<usize>) {
        let before = self.source.get(self.shown..range.start).unwrap_or_default();
        let next = self.source.get(range.clone()).and_then(|text| text.chars().next());
        if before.ends_with('\\') && next.is_some_and(|next| !"*_`[]#<>\\~|!".contains(next)) {
            self.push("\\");
        }
    }

    /// Begins emphasis between marks of `count` characters.
    fn start_emphasis(&mut self, style: Style, count: usize, range: &Range<usize>) {
        let is_literal = !self.is_clear(range) || style == Style::Struck && count < 2;
        self.literal.push(is_literal);
        if is_literal {
            let marks = self.source.get(range.start..range.start + count).unwrap_or_default().to_owned();
            self.push(&marks);
        } else {
            self.styles.push(style);
        }
    }

    fn end_emphasis(&mut self, count: usize, range: &Range<usize>) {
        if self.literal.pop() == Some(true) {
            let marks = self.source.get(range.end - count..range.end).unwrap_or_default().to_owned();
            self.push(&marks);
        } else {
            self.styles.pop();
        }
    }

    /// Returns the number of tildes before struck text.
    fn tildes(&self, range: &Range<usize>) -> usize {
        let text = self.source.get(range.clone()).unwrap_or_default();
        if text.starts_with("~~") { 2 } else { 1 }
    }

    /// Checks whether emphasis stands between words: not in `src/**/*.rs` or `2*3*4`.
    fn is_clear(&self, range: &Range<usize>) -> bool {
        let is_edge = |char: char| char.is_whitespace() || "([{<>)]}\"'.,:;!?—-*_~".contains(char);
        let before = self.source.get(..range.start).and_then(|text| text.chars().next_back());
        let mut after = self.source.get(range.end..).unwrap_or_default().chars();
        let (next, second) = (after.next(), after.next());
        let is_in_word =
            next.is_some_and(|char| !char.is_whitespace()) && second.is_some_and(char::is_alphanumeric);
        // `__init__` is a name, not strong.
        let text = self.source.get(range.clone()).unwrap_or_default();
        let is_name = text.starts_with('_') && !text.contains(char::is_whitespace);
        before.is_none_or(is_edge) && next.is_none_or(is_edge) && !is_in_word && !is_name
    }

    /// Makes a text a link, and shows the address after it unless the link or the text does.
    fn end_link(&mut self) {
        let Some((address, from)) = self.link.take() else { return };
        let text: String = self.text.iter().skip(from).map(|(_, text)| text.as_str()).collect();
        let target = Address::parse(&address).filter(|_| self.has_hyperlinks);
        if let Some(target) = &target {
            for (style, _) in self.text.iter_mut().skip(from) {
                let of_text = std::mem::replace(style, Style::Plain);
                *style = Style::Link(Link::new(target, of_text));
            }
        }
        let is_address = text == address || format!("mailto:{text}") == address;
        let is_hidden = target.is_some_and(|target| !text.trim().is_empty() && !target.is_denied_by(&text));
        if !is_address && !is_hidden {
            self.push_as(Style::Dim, &format!(" ({address})"));
        }
    }

    /// Ends the text and wraps what is not finished of it between words.
    fn end_text(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return;
        }
        let rest = self.rest.clone();
        let mut lead = std::mem::replace(&mut self.first, rest.clone());
        if let Some(finished @ 1..) = self.finished.checked_sub(self.counted) {
            let total = count(&text);
            remove_first(&mut text, finished);
            self.counted += total - count(&text);
            lead.clone_from(&rest);
        }
        let columns = self.width.saturating_sub(columns(&rest)).max(MIN_COLUMNS);
        for (at, row) in wrap(&text, columns).into_iter().enumerate() {
            self.push_row(if at == 0 { &lead } else { &rest }, row);
        }
    }
}

/// Checks whether a character of a text is counted: no space, whose number depends on the width, and no mark, which disappears when its pair arrives.
fn is_counted(char: char) -> bool {
    !char.is_whitespace() && !"*_`~[]()<>!\\".contains(char)
}

fn count(row: &Row) -> usize {
    row.iter().flat_map(|(_, text)| text.chars()).filter(|char| is_counted(*char)).count()
}

/// Removes the beginning of a text with that number of counted characters, the marks that end its last word, and the spaces after it.
fn remove_first(text: &mut Row, mut count: usize) {
    let mut has_ended = false;
    let mut is_removed = |char: char| {
        if is_counted(char) {
            let left = count.checked_sub(1);
            count = left.unwrap_or_default();
            return left.is_some();
        }
        has_ended |= count == 0 && char.is_whitespace();
        char.is_whitespace() || !has_ended
    };
    while let Some((_, piece)) = text.first_mut() {
        if let Some((at, _)) = piece.char_indices().find(|(_, char)| !is_removed(*char)) {
            piece.drain(..at);
            return;
        }
        text.remove(0);
    }
}

/// Wraps the last piece of a row between words; the other rows begin below it.
pub(super) fn hang(row: &Row, width: usize) -> Vec<Row> {
    let Some((text, lead)) = row.split_last().filter(|_| row_columns(row) > width) else {
        return vec![row.clone()];
    };
    let lead = lead.to_vec();
    let indent = row_columns(&lead);
    let mut rows = wrap(&vec![text.clone()], width.saturating_sub(indent).max(MIN_COLUMNS));
    for (at, row) in rows.iter_mut().enumerate() {
        let before = if at == 0 { lead.clone() } else { vec![(Style::Plain, " ".repeat(indent))] };
        row.splice(..0, before);
    }
    rows
}

/// Breaks a text into rows of at most `width` columns, between words where there is a space.
fn wrap(text: &Row, width: usize) -> Vec<Row> {
    let (mut rows, mut row, mut used) = (Vec::new(), Row::new(), 0);
    // A word can have several styles: what fits is decided on the whole word.
    let mut word = Row::new();
    let mut end_word = |word: &mut Row, row: &mut Row, used: &mut usize| {
        let size: usize = row_columns(word);
        if *used > 0 && *used + size > width {
            trim_end(row);
            rows.push(std::mem::take(row));
            *used = 0;
        }
        for (style, piece) in word.drain(..) {
            for char in piece.chars() {
                let size = columns(char.encode_utf8(&mut [0; 4]));
                if *used > 0 && *used + size > width {
                    rows.push(std::mem::take(row));
                    *used = 0;
                }
                *used += size;
                match row.last_mut() {
                    Some((last, text)) if *last == style => text.push(char),
                    _ => row.push((style.clone(), char.to_string())),
                }
            }
        }
    };
    for (style, piece) in text {
        for part in piece.split_inclusive(' ') {
            let (body, space) = part.strip_suffix(' ').map_or((part, false), |body| (body, true));
            if !body.is_empty() {
                word.push((style.clone(), body.to_owned()));
            }
            if space {
                end_word(&mut word, &mut row, &mut used);
                if used > 0 && used < width {
                    end_word(&mut vec![(style.clone(), " ".to_owned())], &mut row, &mut used);
                }
            }
        }
    }
    end_word(&mut word, &mut row, &mut used);
    trim_end(&mut row);
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

/// Removes the space at the beginning of a row.
fn trim_start(row: &mut Row) {
    while let Some((_, text)) = row.first_mut() {
        let spaces = text.len() - text.trim_start().len();
        text.drain(..spaces);
        if !text.is_empty() {
            break;
        }
        row.remove(0);
    }
}

/// Removes the space at the end of a row.
fn trim_end(row: &mut Row) {
    if let Some((_, text)) = row.last_mut() {
        text.truncate(text.trim_end_matches(' ').len());
        if text.is_empty() {
            row.pop();
        }
    }
}

/// A table, whose first row has the names of the columns.
struct Table {
    alignments: Vec<Alignment>,
    cells: Vec<Vec<Row>>,
}

impl Table {
    /// Draws the table: columns as wide as their widest cell, narrowed together until the rows fit, and cells wrapped.
    fn rows(mut self, width: usize) -> Vec<Row> {
        for (style, _) in self.cells.first_mut().into_iter().flatten().flatten() {
            if *style == Style::Plain {
                *style = Style::Bold;
            }
        }
        let widths = self.widths(width);
        let mut rows = Vec::new();
        for (number, cells) in self.cells.iter().enumerate() {
            let of_column = |(at, width): (usize, &usize)| wrap(cells.get(at).unwrap_or(&Row::new()), *width);
            let columns: Vec<Vec<Row>> = widths.iter().enumerate().map(of_column).collect();
            let height = columns.iter().map(Vec::len).max().unwrap_or_default().max(1);
            for line in 0..height {
                let pieces = columns.iter().map(|rows| rows.get(line).cloned().unwrap_or_default());
                rows.push(self.row(pieces, &widths));
            }
            if number == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                rows.push(vec![(Style::Dim, rule)]);
            }
        }
        rows
    }

    /// Returns the columns of the screen that each column of the table takes.
    fn widths(&self, width: usize) -> Vec<usize> {
        let count = self.cells.iter().map(Vec::len).max().unwrap_or_default();
        let of_column =
            |at: usize| self.cells.iter().filter_map(move |row| row.get(at)).map(row_columns).max();
        let mut widths: Vec<usize> = (0..count).map(|at| of_column(at).unwrap_or(1).max(1)).collect();
        let room = width.saturating_sub(3 * count.saturating_sub(1)).max(count * 3);
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max() else { break };
            *widest -= 1;
        }
        widths
    }

    /// Returns a row of the screen with one piece of each column.
    fn row(&self, pieces: impl Iterator<Item = Row>, widths: &[usize]) -> Row {
        let mut row = Row::new();
        for (at, (piece, width)) in pieces.zip(widths).enumerate() {
            if at > 0 {
                row.push((Style::Dim, " │ ".to_owned()));
            }
            let space = width.saturating_sub(row_columns(&piece));
            let before = match self.alignments.get(at) {
                Some(Alignment::Right) => space,
                Some(Alignment::Center) => space / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            row.push((Style::Plain, " ".repeat(before)));
            row.extend(piece);
            row.push((Style::Plain, " ".repeat(space - before)));
        }
        row.retain(|(_, text)| !text.is_empty());
        trim_end(&mut row);
        row
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
