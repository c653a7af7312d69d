//! Session report as one HTML page without scripts, network access or other files, in light and dark colours.

use super::html_page::{HEAD, STYLE};
use super::html_writer::HtmlWriter;
use super::text::{self, StatusLabel};
use super::{Call, CallStatus, FileChange, Hook, ReportedMessage, SessionReport, Step, chart};
use agent_core::event::{HookVerdict, MessageAuthor, MessageOrigin};
use agent_core::file_change::ChangeAction;
use agent_core::language::Language;
use agent_messages as messages;
use agent_text::lines::one_line;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters of a heading and of a folded line.
const LINE_CHARS: usize = 200;
/// Maximum number of files with unfolded diffs, and of entries in an unfolded list.
const UNFOLDED: usize = 10;

/// Renders the whole report.
pub(super) fn render(report: &SessionReport) -> String {
    let mut page = HtmlWriter::default();
    page.markup(HEAD)
        .text("agent: ")
        .text(&one_line(text::task(report), LINE_CHARS))
        .markup("</title>\n<style>");
    page.markup(STYLE).markup("</style>\n</head>\n<body>\n");
    header(&mut page, report);
    page.markup("<main>\n");
    if !report.output.is_empty() {
        page.markup("<section id=\"answer\"><h2>Answer</h2><div class=\"said\">");
        page.text(&report.output).markup("</div></section>\n");
    }
    for (title, lines) in text::attention(report) {
        attention(&mut page, title, &lines);
    }
    chart::draw(&mut page, &report.steps);
    files(&mut page, &report.files_modified);
    if !report.steps.is_empty() {
        page.markup("<section id=\"steps\"><h2>Steps</h2>\n");
        for (number, step) in (1_u64..).zip(&report.steps) {
            self::step(&mut page, number, step, report.model.as_deref());
        }
        page.markup("</section>\n");
    }
    page.markup("</main>\n");
    footer(&mut page, report);
    page.markup("</body>\n</html>\n");
    page.finish()
}

fn header(page: &mut HtmlWriter, report: &SessionReport) {
    let label = StatusLabel::of(report);
    page.markup(match label {
        StatusLabel::Ok => "<header class=\"ok\">",
        StatusLabel::Warn => "<header class=\"warn\">",
        StatusLabel::Fail => "<header class=\"fail\">",
    });
    page.markup("<p class=\"verdict\"><b>").text(label.name()).markup("</b> ");
    page.text(&text::verdict(report)).markup("</p><h1>");
    let first = text::task(report).lines().next().unwrap_or_default();
    page.text(&one_line(first, LINE_CHARS)).markup("</h1>");
    if first.chars().count() > LINE_CHARS || text::task(report) != first {
        page.markup("<details><summary>The whole task</summary><pre>").text(&report.task);
        page.markup("</pre></details>");
    }
    page.markup("<dl class=\"figures\">");
    pairs(page, text::figures(report));
    page.markup("</dl><dl class=\"setting\">");
    pairs(page, text::setting(report));
    page.markup("</dl></header>\n");
}

fn pairs(page: &mut HtmlWriter, pairs: Vec<(&'static str, String)>) {
    for (name, value) in pairs {
        page.markup("<div><dt>").text(name).markup("</dt><dd>").text(&value).markup("</dd></div>");
    }
}

fn attention(page: &mut HtmlWriter, title: &str, lines: &[String]) {
    page.markup("<section class=\"attention\">");
    page.markup(if lines.len() > UNFOLDED { "<details>" } else { "<details open>" });
    page.markup("<summary><h2>")
        .text(title)
        .markup("</h2> <span class=\"count\">")
        .number(lines.len() as u64);
    page.markup("</span></summary><ul>");
    for line in lines {
        page.markup("<li>").text(line).markup("</li>");
    }
    page.markup("</ul></details></section>\n");
}

fn files(page: &mut HtmlWriter, files: &[FileChange]) {
    if files.is_empty() {
        return;
    }
    page.markup("<section id=\"files\"><h2>Files changed</h2>");
    for FileChange { file, diff } in files {
        let open = files.len() <= UNFOLDED && diff.is_some();
        page.markup(if open {
            "<details class=\"file\" open><summary>"
        } else {
            "<details class=\"file\"><summary>"
        });
        page.markup(match file.action {
            ChangeAction::Created => "<b class=\"badge ok\">",
            ChangeAction::Modified => "<b class=\"badge\">",
            ChangeAction::Deleted => "<b class=\"badge fail\">",
        });
        page.text(file.action.name()).markup("</b> <code>").verbatim(&one_line(&file.path, LINE_CHARS));
        page.markup("</code> <span class=\"meta\">by ").text(file.by.name());
        if let Some(diff) = diff {
            let (added, removed) = (lines(diff, "+"), lines(diff, "-"));
            page.text(&format!(" · +{added} −{removed}"));
        }
        page.markup("</span></summary>");
        match diff {
            Some(diff) => self::diff(page, diff),
            None => drop(page.markup("<p class=\"meta\">No diff: the file is not text, its earlier content was not stored, or there are too many diffs.</p>")),
        }
        page.markup("</details>");
    }
    page.markup("</section>\n");
}

/// Counts the lines of a diff that start with `sign`, without its header.
fn lines(diff: &str, sign: &str) -> usize {
    diff.lines().skip_while(|line| !line.starts_with("@@")).filter(|line| line.starts_with(sign)).count()
}

/// Writes a diff with a colour for each kind of line.
fn diff(page: &mut HtmlWriter, text: &str) {
    page.markup("<pre class=\"diff\">");
    for line in text.split_inclusive('\n') {
        page.markup(match line.as_bytes().first() {
            _ if line.starts_with("+++ ") || line.starts_with("--- ") => "<span class=\"file\">",
            Some(b'+') => "<span class=\"add\">",
            Some(b'-') => "<span class=\"cut\">",
            Some(b'@') => "<span class=\"hunk\">",
            _ => "<span>",
        });
        page.verbatim(line).markup("</span>");
    }
    page.markup("</pre>");
}

fn step(page: &mut HtmlWriter, number: u64, step: &Step, default_model: Option<&str>) {
    page.markup("<article id=\"step-").number(number).markup("\"><h3>").text(&text::step_name(step));
    page.markup("</h3><p class=\"meta\">").text(&step_line(step, default_model)).markup("</p>");
    for ReportedMessage { origin, text } in &step.added_messages {
        page.markup("<details><summary>")
            .text(author_name(*origin))
            .markup(": ")
            .text(&one_line(text, LINE_CHARS));
        page.markup("</summary><pre>").text(text).markup("</pre></details>");
    }
    if !step.thinking.is_empty() {
        page.markup("<details><summary>Reasoning</summary><pre>").text(&step.thinking);
        page.markup("</pre></details>");
    }
    if !step.text.is_empty() {
        page.markup("<div class=\"said\">").text(&step.text).markup("</div>");
    }
    step.calls.iter().for_each(|call| self::call(page, call));
    step.hooks.iter().for_each(|hook| self::hook(page, hook));
    page.markup("</article>\n");
}

/// Returns the cost and time of a step, and its model unless it is the default model.
fn step_line(step: &Step, default_model: Option<&str>) -> String {
    let answered = match (&step.finish_reason, step.usage) {
        (None, _) => "no answer".to_owned(),
        (Some(_), None) => "tokens unknown".to_owned(),
        (Some(_), Some(usage)) => messages::tokens(usage, Language::En),
    };
    let mut line = format!(
        "{answered} · {} · model {}",
        messages::money(step.cost_usd, Language::En),
        text::time(step.latency_ms)
    );
    if !step.calls.is_empty() {
        let _infallible = write!(line, " · tools {}", text::time(step.tool_time_ms));
    }
    if step.requests > 1 {
        let _infallible = write!(line, " · {}", messages::count(step.requests, "request"));
    }
    if default_model != Some(step.model.as_str()) {
        let _infallible = write!(line, " · {}", one_line(&step.model, LINE_CHARS));
    }
    line
}

fn call(page: &mut HtmlWriter, call: &Call) {
    page.markup("<details class=\"call\"><summary>");
    page.markup(match call.outcome {
        CallStatus::Ok => "<b class=\"badge ok\">",
        CallStatus::Failed => "<b class=\"badge fail\">",
        CallStatus::Refused | CallStatus::Simulated | CallStatus::Waiting | CallStatus::Unfinished => {
            "<b class=\"badge warn\">"
        }
    });
    page.text(text::outcome(call.outcome)).markup("</b> <b>").text(&one_line(&call.tool, LINE_CHARS));
    page.markup("</b> <code>")
        .verbatim(&one_line(&call.summary, LINE_CHARS))
        .markup("</code> <span class=\"meta\">");
    page.text(&text::time(call.latency_ms)).markup("</span>");
    if let Some(error) = &call.error {
        page.markup("<span class=\"why\">").text(error).markup("</span>");
    }
    page.markup("</summary><h4>Arguments</h4><pre>")
        .verbatim(&format_arguments(&call.arguments))
        .markup("</pre>");
    if !matches!(call.outcome, CallStatus::Waiting | CallStatus::Unfinished) {
        page.markup("<h4>Result <span class=\"meta\">").text(&messages::bytes(call.result_bytes));
        page.markup("</span></h4>");
        let changes = !call.changed.is_empty() || call.outcome == CallStatus::Simulated;
        let at = if changes { start_of_diff(&call.result) } else { call.result.len() };
        let (message, diff_text) = call.result.split_at(at);
        if !message.is_empty() {
            page.markup("<pre>").text(message).markup("</pre>");
        }
        if !diff_text.is_empty() {
            diff(page, diff_text);
        }
    }
    page.markup("</details>");
}

/// Returns the offset of the diff in the result of an edit; the end of the text if there is none.
fn start_of_diff(text: &str) -> usize {
    match text.find("\n--- ") {
        _ if text.starts_with("--- ") => 0,
        Some(at) => at + 1,
        None => text.len(),
    }
}

/// Formats arguments for reading: one key per line, texts with line breaks unescaped. Arguments that are not an object stay
/// unchanged.
fn format_arguments(arguments: &str) -> Cow<'_, str> {
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return Cow::Borrowed(arguments);
    };
    let mut text = String::new();
    for (key, value) in &arguments {
        let _infallible = match value {
            Value::String(value) if value.contains('\n') => writeln!(text, "{key}:\n{value}"),
            Value::String(value) => writeln!(text, "{key}: {value}"),
            value => writeln!(text, "{key}: {value}"),
        };
    }
    Cow::Owned(text)
}

fn hook(page: &mut HtmlWriter, hook: &Hook) {
    page.markup("<details class=\"call\"><summary>");
    page.markup(match hook.verdict {
        HookVerdict::Allow => "<b class=\"badge ok\">",
        HookVerdict::Block | HookVerdict::Stop => "<b class=\"badge fail\">",
        HookVerdict::Warn => "<b class=\"badge warn\">",
    });
    page.text("hook").markup("</b> <b>").text(&hook.hook).markup("</b> <span class=\"meta\">").text(&hook.on);
    page.markup(" · ")
        .text(&text::time(hook.duration_ms))
        .markup("</span></summary><pre>")
        .text(&hook.output);
    page.markup("</pre></details>");
}

fn author_name(origin: MessageOrigin) -> &'static str {
    match origin.author() {
        MessageAuthor::Person => "You",
        MessageAuthor::Hook => "A hook",
        MessageAuthor::Loop => "agent",
    }
}

fn footer(page: &mut HtmlWriter, report: &SessionReport) {
    page.markup("<footer>");
    for omission in text::omissions(report) {
        page.markup("<p>").text(&omission).markup("</p>");
    }
    if let Some(id) = &report.session_id {
        page.markup("<p>Generated by agent. <code>agent report ")
            .verbatim(id)
            .markup("</code> generates it again; ");
        page.markup("<code>agent resume ").verbatim(id).markup("</code> continues the session.</p>");
    }
    page.markup("</footer>\n");
}
