//! What a finished call did, as a person reads it: one line, and the rows of its diff or of its output.

use agent_core::event::Event;
use agent_core::file_change::{Change, ChangeAction};
use agent_core::language::Language;
use agent_core::message::{ToolCall, ToolResult};
use agent_core::todo::{StepStatus, TodoList, TodoStep};
use agent_messages as messages;
use agent_terminal::preview::{Preview, Row};
use agent_terminal::{Style, Terminal, first_line, one_line, truncate_end, truncate_middle, wrap_words};
use agent_text::diff;
use agent_text::excerpt::omitted_lines;
use agent_text::lines::{as_shown, pluralize};
use agent_tools::TypedTool;
use agent_tools::ask_user::NO_ANSWER;
use agent_tools::outputs::is_note;
use agent_tools::run_command::{IN_BACKGROUND, RunCommand, background_id_in, exit_code_in};
use agent_tools::toolbox::EDIT_TOOLS;
use agent_tools::write_file::WriteFile;
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Lines shown of what a call printed.
const OUTPUT_LINES: usize = 5;
/// Lines shown of what a failed call printed: the last ones, which say why.
const FAILURE_LINES: usize = 10;
/// Rows shown of a new file.
const NEW_FILE_ROWS: usize = 12;
/// Characters of a title, and of the reason of a refusal.
const TITLE_CHARS: usize = 160;
/// Columns shown of the last line of a failure, which can take several rows.
const REASON_COLUMNS: usize = 300;
/// Rows of the screen that a diff leaves for what stands around it.
const ROWS_AROUND: u16 = 6;
/// Columns before a line of output.
const INDENT_COLUMNS: u16 = 11;

/// A finished call.
pub(super) struct CallView {
    /// One line, such as `Edit src/dates.py (+1 −1)`.
    pub title: String,
    /// The style of the line: whether it succeeded, failed or was refused.
    pub style: Style,
    /// Result and duration of a call that succeeded, such as `+1 −1, 1.2 s`.
    pub note: String,
    /// The command, if its title does not show all of it.
    command: Option<String>,
    /// Whether its whole output is stored, because the model reads a part of it.
    pub is_stored: bool,
    /// What it printed, or the diff of what it changed; without what it is about.
    body: Body,
}

enum Body {
    Nothing,
    Diff(String),
    /// The diff of a new file, of which fewer rows are shown.
    NewFile(String),
    /// `most` of the lines are shown, of a failure the last ones.
    Output {
        lines: Vec<String>,
        most: usize,
        is_failure: bool,
    },
    /// The list of steps that the model keeps.
    Steps(Vec<TodoStep>),
}

impl CallView {
    /// Returns the view of a `ToolCallEnd`; `None` for other events. `call` is the call, if it is known.
    pub(super) fn of(event: &Event, call: Option<&ToolCall>, language: Language) -> Option<Self> {
        let Event::ToolCallEnd { name, summary, result, changed, denial, simulated, duration_ms, .. } = event
        else {
            return None;
        };
        let command =
            call.filter(|call| call.name == RunCommand::NAME).and_then(|call| argument_of(call, "command"));
        let lines = command.as_deref().map_or(0, |command| command.trim().lines().count());
        // The end of a long command can be its most important part.
        let command = command.filter(|command| lines > 1 || command.chars().count() > TITLE_CHARS);
        let title = |summary: &str| {
            let more = if lines > 1 { messages::call_more_lines(lines - 1, language) } else { String::new() };
            messages::call_title(name, &format!("{}{more}", truncate_middle(summary, TITLE_CHARS)), language)
        };
        let is_stored = result.text.lines().any(is_note);
        let view = |title, style, body| Self { title, style, note: String::new(), command, is_stored, body };
        if let Some(denial) = denial {
            let reason = first_line(&denial.reason, TITLE_CHARS);
            let why = messages::call_declined(&reason, language)
                .unwrap_or_else(|| messages::call_refused(&reason, language));
            let title = format!("{} {why}", title(summary));
            return Some(view(title, Style::Warning, Body::Nothing));
        }
        let text = without_label(&result.text);
        let duration = Duration::from_millis(*duration_ms);
        if result.is_error {
            let (why, lines) = failure(name, text);
            let why = messages::call_failed(one_line(&why, TITLE_CHARS).trim_end_matches('.'), duration);
            let body = Body::Output { lines, most: FAILURE_LINES, is_failure: true };
            return Some(view(format!("{} {why}", title(summary)), Style::Error, body));
        }
        let (about, body) = match call.and_then(|call| new_file(call, changed)) {
            Some(diff) => (None, Body::NewFile(diff)),
            None => success(name, &result.text, summary, language),
        };
        let took = messages::call_took(duration);
        let note = about.as_ref().map_or("", |(_, note)| note);
        let note = format!("{note}{took}").trim_start_matches(", ").to_owned();
        let mut title =
            about.map_or_else(|| title(summary), |(summary, note)| format!("{} ({note})", title(&summary)));
        title.push_str(if *simulated { messages::call_simulated(language) } else { &took });
        Some(Self { note, ..view(title, Style::Success, body) })
    }

    /// Prints the rows below the title, as many as a person wants to see at once, and that `key` shows the others. A diff that the user has just approved is not shown again.
    pub(super) fn print_rows(
        &self,
        terminal: &Terminal,
        indent: &str,
        key: Option<&str>,
        language: Language,
    ) -> io::Result<()> {
        let (mut rows, left_out, is_cut) = self.rows(terminal);
        match &self.body {
            Body::Output { is_failure, most: 1.., .. } if left_out > 0 => {
                let more = vec![(Style::Dim, messages::call_more(left_out, key, language))];
                rows.insert(if *is_failure { 0 } else { rows.len() }, more);
            }
            _ if is_cut => {
                rows.extend(key.map(|key| vec![(Style::Dim, messages::call_whole(key, language))]));
            }
            _ => {}
        }
        for row in &mut rows {
            row.insert(0, (Style::Plain, indent.to_owned()));
        }
        if matches!(self.body, Body::Steps(_)) {
            terminal.eprint_texts(&rows)
        } else {
            terminal.eprint_rows(&rows)
        }
    }

    /// Returns the rows below the title, how many lines are left out, and whether one is shown in part.
    fn rows(&self, terminal: &Terminal) -> (Vec<Row>, usize, bool) {
        match &self.body {
            Body::Nothing => (Vec::new(), 0, false),
            Body::Diff(diff) | Body::NewFile(diff) if terminal.was_approved(diff) => (Vec::new(), 0, false),
            Body::Diff(diff) => {
                let Preview { mut rows, is_cut } = terminal.preview(diff, ROWS_AROUND);
                rows.drain(..named_rows(diff));
                (rows, 0, is_cut)
            }
            Body::NewFile(diff) => {
                let width = usize::from(terminal.width());
                let Preview { mut rows, is_cut } = Preview::fitting(diff, NEW_FILE_ROWS, width);
                rows.drain(..named_rows(diff));
                (rows, 0, is_cut)
            }
            Body::Steps(steps) => (steps.iter().map(step_row).collect(), 0, false),
            Body::Output { lines, most, is_failure } => {
                // A row that says how much is left out takes the place of one line.
                let most = if lines.len() == most + 1 && *most > 0 { most + 1 } else { *most };
                let at = if *is_failure { lines.len().saturating_sub(most) } else { lines.len().min(most) };
                let (first, last) = lines.split_at(at);
                let (shown, hidden) = if *is_failure { (last, first) } else { (first, last) };
                let left_out = hidden
                    .iter()
                    .fold(0_usize, |sum, line| sum.saturating_add(omitted_lines(line).unwrap_or(1)));
                let columns = usize::from(terminal.width().saturating_sub(INDENT_COLUMNS));
                let (shown, cut): (Vec<String>, Vec<bool>) = shown
                    .iter()
                    .enumerate()
                    .map(|(at, line)| {
                        // The last line of a failure is its reason.
                        let is_reason = *is_failure && at + 1 == shown.len();
                        truncate_end(line, if is_reason { columns.max(REASON_COLUMNS) } else { columns })
                    })
                    .unzip();
                let wrapped = shown.iter().map(|line| wrap_words(line, columns));
                let rows = wrapped.flat_map(|line| line.lines().map(output_row).collect::<Vec<_>>());
                (rows.collect(), left_out, cut.contains(&true))
            }
        }
    }

    /// Returns the command if the title does not show all of it.
    pub(super) fn command_rows(&self) -> Vec<Row> {
        let command = self.command.iter().flat_map(|command| command.lines());
        command.map(|line| vec![(Style::Dim, "   $ ".to_owned()), (Style::Plain, line.to_owned())]).collect()
    }

    /// Returns everything that it printed for the model, or the whole diff; empty if there is nothing.
    pub(super) fn whole(&self) -> Vec<Row> {
        match &self.body {
            Body::Nothing => Vec::new(),
            Body::Steps(steps) => steps.iter().map(step_row).collect(),
            Body::Diff(diff) | Body::NewFile(diff) => Preview::whole(diff).rows,
            Body::Output { lines, .. } => lines.iter().map(|line| output_row(line)).collect(),
        }
    }
}

/// Returns an argument of a call that is a text.
fn argument_of(call: &ToolCall, name: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the diff of a file that a call of `write_file` created; its result has none, because the model knows the content.
fn new_file(call: &ToolCall, changed: &[Change]) -> Option<String> {
    let file = changed.first().filter(|file| file.action == ChangeAction::Created)?;
    let content = argument_of(call, "content").filter(|_| call.name == WriteFile::NAME)?;
    Some(diff::unified_full(&file.path, "", &content))
}

/// Returns how many of the first rows of a diff only repeat the title, which names a file that is alone.
fn named_rows(diff: &str) -> usize {
    usize::from(!diff.contains("\n--- "))
}

/// Returns the row of a line of output.
pub fn output_row(line: &str) -> Row {
    vec![(Style::Dim, "   │ ".to_owned()), (Style::Plain, line.to_owned())]
}

fn step_row(step: &TodoStep) -> Row {
    let (mark, style) = match step.status {
        StepStatus::Pending => ((Style::Dim, "   ☐ "), Style::Plain),
        StepStatus::InProgress => ((Style::Warning, "   ▸ "), Style::Bold),
        StepStatus::Done => ((Style::Success, "   ✔ "), Style::Dim),
    };
    vec![(mark.0, mark.1.to_owned()), (style, step.text.clone())]
}

/// Returns why a call failed, and what it printed.
fn failure(name: &str, text: &str) -> (String, Vec<String>) {
    if name == RunCommand::NAME {
        return failed_command(text);
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    (first.to_owned(), output_lines(rest))
}

/// What a command printed, and why it failed if it did.
pub struct CommandOutput {
    /// The lines of its output and of its errors.
    pub lines: Vec<String>,
    /// How it failed: `exit 1`, or a sentence.
    pub failure: Option<String>,
}

impl CommandOutput {
    /// Reads the result of a call of `run_command`.
    pub fn of(result: &ToolResult) -> Self {
        if !result.is_error {
            return Self { lines: printed(&result.text), failure: None };
        }
        let (why, lines) = failed_command(without_label(&result.text));
        Self { lines, failure: Some(why) }
    }
}

/// Returns the text of a failed call without the label for the model.
fn without_label(text: &str) -> &str {
    text.strip_prefix("Error: ").unwrap_or(text)
}

fn failed_command(text: &str) -> (String, Vec<String>) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let why = exit_code_in(text).map_or_else(|| first.to_owned(), |code| format!("exit {code}"));
    (why, printed(rest))
}

/// Returns the lines of a result without the notes for the model.
fn output_lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !is_note(line)).map(str::to_owned).collect()
}

/// Returns the summary and a note for the title, and what is shown below it.
fn success(name: &str, text: &str, summary: &str, language: Language) -> (Option<(String, String)>, Body) {
    let output = |lines, most| Body::Output { lines, most, is_failure: false };
    let with = |note: &str| (!note.is_empty()).then(|| (summary.to_owned(), note.to_owned()));
    match name {
        "read_file" => {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            (read_note(first).and_then(|note| with(&note)), output(output_lines(rest), 0))
        }
        "run_command" if let Some(id) = background_id_in(text) => {
            let command = summary.trim_end_matches(IN_BACKGROUND).to_owned();
            (Some((command, messages::call_in_background(id, language))), Body::Nothing)
        }
        "ask_user" => {
            let note = if text == NO_ANSWER { messages::call_no_answer(language) } else { "" };
            (with(note), output(output_lines(text), 0))
        }
        "run_command" | "command_output" => (None, output(printed(text), OUTPUT_LINES)),
        "list_files" => {
            let (rest, total) = text.rsplit_once("\nTotal: ").unwrap_or((text, ""));
            (with(total), output(output_lines(rest), 0))
        }
        "find_files" => {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            let found = first.strip_prefix("Found ").and_then(|first| first.split_once(" matching"));
            (with(found.map_or(first, |(count, _)| count)), output(output_lines(rest), 0))
        }
        name if EDIT_TOOLS.contains(&name) => edited(text, summary),
        "delete_file" => (None, Body::Nothing),
        TodoList::TOOL => (None, Body::Steps(TodoList::parse(text).steps)),
        _ => (None, output(output_lines(text), OUTPUT_LINES)),
    }
}

/// Returns file and changed lines for the title of an edit, and its diff, with which the result ends.
fn edited(text: &str, summary: &str) -> (Option<(String, String)>, Body) {
    let diff = text.find("--- ").filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'));
    let Some(diff) = diff.and_then(|at| text.get(at..)) else { return (None, Body::Nothing) };
    let count = |sign: &str, header: &str| {
        diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(header)).count()
    };
    let file = summary.rsplit_once(" (").map_or(summary, |(file, _)| file);
    let note = format!("+{} −{}", count("+", "+++ "), count("-", "--- "));
    (Some((file.to_owned(), note)), Body::Diff(diff.to_owned()))
}

/// Returns how much of a file was read, from the first line of the result: `Contents of FILE (lines 1-2 of 2):`.
fn read_note(first: &str) -> Option<String> {
    let (_, range) = first.strip_suffix("):")?.rsplit_once(" (lines ")?;
    let (lines, total) = range.split_once(" of ")?;
    if lines.strip_prefix("1-") == Some(total) {
        Some(pluralize(total.parse().ok()?, "line"))
    } else {
        Some(format!("lines {lines} of {total}"))
    }
}

/// Returns what a command printed: the result for the model without its labels.
fn printed(text: &str) -> Vec<String> {
    let mut labels = vec!["stdout:", "stderr:"];
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.last() == Some(&"exit_code: 0") {
        lines.pop();
    }
    lines.retain(|line| match labels.iter().position(|label| label == line) {
        Some(at) => {
            labels.remove(at);
            false
        }
        None => true,
    });
    lines.into_iter().filter(|line| !is_note(line)).map(as_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_terminal::{StreamInfo, TerminalEnvironment};

    /// The title and the rows that a person sees of a call with this result.
    fn seen(name: &str, summary: &str, text: &str) -> (String, Vec<String>) {
        let is_error = text.starts_with("Error: ");
        let result =
            ToolResult { call_id: String::new(), text: text.to_owned(), is_error, images: Vec::new() };
        let event = serde_json::json!({"type": "tool_call_end", "name": name, "summary": summary, "result": result, "duration_ms": 1_234});
        let view = CallView::of(&serde_json::from_value(event).unwrap(), None, Language::En).unwrap();
        let [out, err]: [Box<dyn io::Write + Send>; 2] = [Box::new(io::sink()), Box::new(io::sink())];
        let terminal =
            Terminal::with_streams(StreamInfo::default(), &TerminalEnvironment::default(), out, err);
        let text = |row: &Row| row.iter().map(|(_, piece)| piece.as_str()).collect();
        (view.title.clone(), view.rows(&terminal).0.iter().map(text).collect())
    }

    #[test]
    fn u01_each_call_says_what_it_did() {
        for (name, summary, result, title) in [
            ("read_file", "a.py", "Contents of a.py (lines 1-2 of 2):\nx\ny\n", "Read a.py (2 lines), 1.2 s"),
            (
                "read_file",
                "a.py",
                "Contents of a.py (lines 3-4 of 9):\nx\ny\n",
                "Read a.py (lines 3-4 of 9), 1.2 s",
            ),
            ("list_files", ".", "📄 a\n📄 b\nTotal: 2 items", "List . (2 items), 1.2 s"),
            (
                "find_files",
                "\"*.py\" in .",
                "Found 1 file matching '*.py':\na.py",
                "Find \"*.py\" in . (1 file), 1.2 s",
            ),
            ("run_command", "false", "Error: Command failed with exit_code: 1", "$ false ✗ exit 1, 1.2 s"),
            ("edit_file", "a.py", "Error: No such text.\nRead it.", "Edit a.py ✗ No such text, 1.2 s"),
            ("issues__list", "open", "12 issues", "issues__list open, 1.2 s"),
            (
                "run_command",
                "make",
                "Started in the background: bg1\nIt runs until it exits.",
                "$ make (in the background: bg1), 1.2 s",
            ),
            ("ask_user", "Which?", NO_ANSWER, "Asked Which? (no answer), 1.2 s"),
            ("ask_user", "Which?", "Which?\nAnswer: ISO", "Asked Which?, 1.2 s"),
        ] {
            assert_eq!(seen(name, summary, result).0, title);
        }
    }

    #[test]
    fn u05_an_edit_shows_its_diff_and_counts_its_lines() {
        let result = "File a.py edited:\n--- a/a.py\n+++ b/a.py\n@@ -7 +7,2 @@\n-old\n+new\n+more\n";
        let (title, rows) = seen("edit_file", "a.py (1→2 lines)", result);
        assert_eq!(title, "Edit a.py (+2 −1), 1.2 s");
        assert_eq!(rows, ["  7 - old", "  7 + new", "  8 + more"]);
    }

    #[test]
    fn u05_a_new_file_shows_what_was_written() {
        let event = |action: &str| {
            serde_json::json!({
                "type": "tool_call_end", "name": "write_file", "summary": "a.py (1 line)", "duration_ms": 1,
                "result": {"call_id": "c", "text": "File a.py created successfully (2 characters)", "is_error": false},
                "changed": [{"path": "a.py", "action": action}],
            })
        };
        let call = ToolCall::new("c", "write_file", r#"{"path": "./a.py", "content": "x\n"}"#);
        let whole = |action: &str| -> String {
            let event = serde_json::from_value(event(action)).unwrap();
            let rows = CallView::of(&event, Some(&call), Language::En).unwrap().whole();
            rows.into_iter().flatten().map(|(_, text)| text).collect()
        };
        assert_eq!(whole("created"), "  a.py  1 + x");
        assert_eq!(whole("modified"), "");
    }

    #[test]
    fn u01_of_an_output_the_first_lines_are_shown_and_of_a_failure_the_last() {
        let lines = |range: std::ops::RangeInclusive<u32>| -> String {
            range.fold(String::new(), |all, line| all + &line.to_string() + "\n")
        };
        let result = format!("stdout:\n{}exit_code: 0", lines(1..=20));
        assert_eq!(seen("run_command", "seq", &result).1, ["   │ 1", "   │ 2", "   │ 3", "   │ 4", "   │ 5"]);
        let result =
            format!("Error: Command failed with exit_code: 2\nstdout:\n{}stderr:\nwhy", lines(1..=20));
        let rows = seen("run_command", "seq", &result).1;
        assert_eq!((rows.len(), rows[0].as_str(), rows[9].as_str()), (10, "   │ 12", "   │ why"));
        // A row that says that one line is left out would take its place.
        assert_eq!(seen("run_command", "seq", &lines(1..=6)).1.len(), 6);
        let rows = seen(
            "run_command",
            "seq",
            &format!("Error: Command failed with exit_code: 2\n{}", "why ".repeat(30)),
        );
        assert!(rows.1.len() == 2 && rows.1.iter().all(|row| row.starts_with("   │ why why")), "{rows:?}");
        let reason = "x".repeat(200);
        let rows =
            seen("run_command", "seq", &format!("Error: Command failed with exit_code: 2\n{reason}")).1;
        assert_eq!(rows, [format!("   │ {reason}")]);
    }

    #[test]
    fn u01_of_a_long_command_the_end_is_shown_and_all_of_it_on_request() {
        for (command, end) in [
            ("true\nrm -f a\ntrue".to_owned(), " +2 lines"),
            (format!("true {}; rm -f a", "x".repeat(300)), "; rm -f a"),
        ] {
            let summary = command.lines().next().unwrap().to_owned();
            let result = ToolResult {
                call_id: "c".to_owned(),
                text: "exit_code: 0".to_owned(),
                is_error: false,
                images: Vec::new(),
            };
            let event = serde_json::json!({"type": "tool_call_end", "name": "run_command", "summary": summary, "result": result, "duration_ms": 1});
            let call =
                ToolCall::new("c", "run_command", serde_json::json!({ "command": command }).to_string());
            let view =
                CallView::of(&serde_json::from_value(event).unwrap(), Some(&call), Language::En).unwrap();
            assert!(view.title.ends_with(end), "{}", view.title);
            let whole: String = view.command_rows().into_iter().flatten().map(|(_, text)| text).collect();
            assert!(whole.contains("rm -f a"), "{whole}");
        }
    }
}
