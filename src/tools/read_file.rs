//! The `read_file` tool: reads a page of a file or of a stored output.

use crate::file_change;
use crate::outputs::{CHARS_PER_TOKEN, is_stored};
use crate::page::{self, LineRange, MAX_SCAN_BYTES, Page};
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_core::file_change::ObservedFile;
use agent_core::image::MAX_IMAGE_BYTES;
use agent_core::image_header::{MAGIC_BYTES, format_of};
use agent_messages as messages;
use agent_text::excerpt;
use agent_text::lines::{QUOTE_CHARS, one_line, pluralize};
use agent_workspace::error::FileError;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;

/// Maximum number of lines in a page.
const PAGE_LINES: usize = 2000;

/// Maximum bytes of a page.
const PAGE_BYTES: usize = 50 * 1024;

/// Characters of a result reserved for its header and the note on how to continue.
const FRAME_CHARS: usize = 600;

/// Minimum bytes of a page, whatever the limit on results.
const MIN_PAGE_BYTES: usize = 1000;

/// The `read_file` tool.
#[derive(Debug)]
pub struct ReadFile {
    /// Maximum tokens of one result (0: no limit); a page requested by lines is shortened to fit.
    pub max_result_tokens: usize,
}

/// The arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// File, or output:ID.
    path: String,
    /// First line, from 1.
    start_line: Option<usize>,
    /// Number of lines.
    limit: Option<usize>,
}

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Read a text file or image. Of a long text, the middle is omitted.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        if is_stored(&args.path) {
            Plan { summary: one_line(&args.path, QUOTE_CHARS), ..Plan::default() }
        } else {
            Plan::file(&args.path, false)
        }
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let range = self.range(&args)?;
        if let Some(file) = cx.outputs.open_named(&args.path, &cx.workspace).transpose()? {
            let page =
                page::read(file, range).map_err(|error| format!("Cannot read {}: {error}", args.path))?;
            return Ok(ToolOutput::ok(self.page_text(&args.path, &page, range, Decoding::Lossy)?));
        }
        let path = file_change::checked_path(cx, &args.path)?;
        let opened = cx.workspace.open_file(&path).map_err(|error| match error {
            FileError::Missing(_) => file_change::missing_file_text(cx, &path),
            error => error.to_string(),
        })?;
        let mut file = opened.file;
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        let started = file.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic);
        started.map_err(|error| FileError::io(&path, "read", error).to_string())?;
        if format_of(&magic).is_some() {
            return image(&path.to_string(), magic, file, cx);
        }
        let page = page::read(magic.as_slice().chain(file), range)
            .map_err(|error| FileError::io(&path, "read", error).to_string())?;
        let mut output = ToolOutput::ok(self.page_text(&path.to_string(), &page, range, Decoding::Strict)?);
        if let Some(hash) = page.hash {
            cx.observed_files.record(opened.path.as_str(), &hash);
            output.seen.push(ObservedFile { path: opened.path.as_str().to_owned(), hash });
        }
        Ok(output)
    }
}

impl ReadFile {
    fn range(&self, args: &Args) -> Result<LineRange, String> {
        let start = args.start_line.unwrap_or(1);
        if start == 0 || args.limit == Some(0) {
            return Err("Invalid arguments: start_line and limit count from 1.".to_owned());
        }
        let is_range_requested = args.start_line.is_some() || args.limit.is_some();
        let room = self.room();
        Ok(LineRange {
            start,
            lines: args.limit.unwrap_or(PAGE_LINES).min(PAGE_LINES),
            bytes: if is_range_requested && room > 0 { PAGE_BYTES.min(room) } else { PAGE_BYTES },
        })
    }

    /// Returns the characters of file text that fit into one result; 0 means no limit.
    fn room(&self) -> usize {
        match self.max_result_tokens.saturating_mul(CHARS_PER_TOKEN) {
            0 => 0,
            limit => limit.saturating_sub(FRAME_CHARS).max(MIN_PAGE_BYTES),
        }
    }

    /// Formats the page for the model. If a page requested without a range is too long, the middle is omitted and a note
    /// names the line to continue from; nothing is stored because the file itself remains readable.
    fn page_text(
        &self,
        name: &str,
        page: &Page,
        range: LineRange,
        decoding: Decoding,
    ) -> Result<String, String> {
        if page.binary && decoding == Decoding::Strict {
            return Err(format!("File {name} is not a valid text file (UTF-8); it is binary"));
        }
        if page.lines == 0 {
            return empty_page_text(name, page, range);
        }
        let text = text_of(page, name, decoding)?;
        let crlf = text.contains("\r\n");
        let text = file_change::without_bom(&text).replace("\r\n", "\n");
        let last = range.start + page.lines - 1;
        let total = page.total.map_or_else(|| "many".to_owned(), |total| total.to_string());
        let endings = if crlf { ", CRLF line endings" } else { "" };
        let shown = excerpt::fit(&text, self.room());
        let head = excerpt::whole_lines_of_head(&text, &shown);
        let mut out =
            format!("Contents of {name} (lines {}-{last} of {total}{endings}):\n{shown}", range.start);
        let Some(note) = continuation_note(page, last, head.map(|lines| range.start + lines)) else {
            return Ok(out);
        };
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&note);
        Ok(out)
    }
}

/// Returns the image `name`, whose first bytes are `start` and whose other bytes are in `file`.
fn image(name: &str, start: Vec<u8>, file: File, cx: &ToolContext) -> Result<ToolOutput, String> {
    let fail = |why: &str| Err(messages::image_unreadable(name, why));
    let mut bytes = start;
    // One byte more than the limit suffices to detect a file above it.
    if let Err(error) = file.take(MAX_IMAGE_BYTES).read_to_end(&mut bytes) {
        return fail(&error.to_string());
    }
    match cx.store_image(name, &bytes) {
        Ok(image) => {
            Ok(ToolOutput { images: vec![image.clone()], ..ToolOutput::ok(messages::image_read(&image)) })
        }
        Err(why) => fail(&why),
    }
}

/// How bytes are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decoding {
    /// Requires UTF-8. For files, because the model would otherwise edit text that it did not see.
    Strict,
    /// Replaces invalid UTF-8. For outputs of commands.
    Lossy,
}

/// Returns the result for a page without lines.
fn empty_page_text(name: &str, page: &Page, range: LineRange) -> Result<String, String> {
    match page.total {
        Some(0) => Ok(format!("Contents of {name} (empty file)")),
        Some(total) => Err(format!(
            "start_line {} is past the end: {name} has {}.",
            range.start,
            pluralize(total, "line")
        )),
        None => Err(format!(
            "Line {} of {name} lies beyond the first {} MiB, the most that read_file scans. search_code finds text in it.",
            range.start,
            MAX_SCAN_BYTES / (1024 * 1024)
        )),
    }
}

/// Describes what is not shown and how to continue; `gap` is the first line omitted from the middle.
fn continuation_note(page: &Page, last: usize, gap: Option<usize>) -> Option<String> {
    let what = match gap {
        Some(line) if page.lines > 1 => {
            return Some(format!("[The middle was omitted. To continue: read_file with start_line {line}.]"));
        }
        Some(_) => format!("Line {last} is too long and was cut; grep shows the context of a text in it."),
        None if page.is_line_cut => {
            format!("Line {last} is too long and was cut here; grep shows the context of a text in it.")
        }
        None => "More lines follow.".to_owned(),
    };
    let more = page.total.is_none_or(|total| last < total);
    let next =
        if more { format!(" To continue: read_file with start_line {}.", last + 1) } else { String::new() };
    (more || gap.is_some() || page.is_line_cut).then(|| format!("[{what}{next}]"))
}

/// Decodes the page; the end of a cut line may be inside a character, which is then dropped.
fn text_of(page: &Page, name: &str, decoding: Decoding) -> Result<String, String> {
    if decoding == Decoding::Lossy {
        return Ok(String::from_utf8_lossy(&page.bytes).into_owned());
    }
    match std::str::from_utf8(&page.bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) if page.is_line_cut && error.error_len().is_none() => {
            let whole = page.bytes.get(..error.valid_up_to()).unwrap_or_default();
            Ok(String::from_utf8_lossy(whole).into_owned())
        }
        Err(_) => Err(format!("File {name} is not a valid text file (UTF-8)")),
    }
}
