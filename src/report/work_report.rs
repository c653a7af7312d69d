//! The report on a command of several runs: a table of its runs and their sums.

use crate::json;
use crate::ranking_page;
use crate::session_report::ReportFormat;
use crate::session_report::html_page::{HEAD, STYLE};
use crate::session_report::html_writer::HtmlWriter;
use agent_core::language::Language;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::{WorkResult, WorkRun};
use agent_messages::ranking;
use agent_terminal::one_line;
use serde::Serialize;
use std::fmt::Write as _;
use std::io;

/// The last line of `stream-json`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamLine<'a> {
    /// The result of the command.
    WorkResult(&'a WorkResult),
}

/// Columns of the table.
const COLUMNS: [&str; 7] = ["Run", "Status", "Reason", "Steps", "Cost", "Time", "Checks"];
/// Characters of a text in the table.
const CELL_CHARS: usize = 80;

/// Renders the report.
///
/// # Errors
/// For a format that is about one session, and when the result cannot be serialized.
pub fn render(form: ReportFormat, result: &WorkResult) -> io::Result<String> {
    match form {
        ReportFormat::Json => json::line(result),
        ReportFormat::Markdown | ReportFormat::Github => Ok(markdown(result)),
        ReportFormat::Html => Ok(html(result)),
        ReportFormat::Junit | ReportFormat::Sarif => {
            let why = "a report on several runs is json, markdown, github or html";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

fn rows(result: &WorkResult) -> Vec<[String; 7]> {
    result.runs.iter().map(row).collect()
}

fn row(run: &WorkRun) -> [String; 7] {
    let result = &run.result;
    let failed: Vec<&str> =
        run.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
    let checks = match (run.checks.len(), failed.as_slice()) {
        (0, _) => "-".to_owned(),
        (count, []) => format!("{count} passed"),
        (count, failed) => format!("{} of {count} failed: {}", failed.len(), failed.join(", ")),
    };
    let reason = result.stop_reason.map(StopReason::name);
    let cells = [
        run.name.clone(),
        run.skipped.as_ref().map_or(result.status.name(), |_| "skipped").to_owned(),
        run.skipped.as_deref().or(reason).unwrap_or("-").to_owned(),
        result.steps.to_string(),
        result.cost.total_usd.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string()),
        format!("{:.1} s", result.duration_seconds),
        checks,
    ];
    cells.map(|cell| one_line(&cell, CELL_CHARS))
}

fn title(result: &WorkResult) -> String {
    let reason = result.stop_reason.map_or("not started", |reason| reason.name());
    format!("agent {}: {} ({reason})", result.command, result.status.name())
}

fn sums(result: &WorkResult) -> String {
    let cost = result.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    let (runs, steps, time) = (result.runs.len(), result.steps, result.duration_seconds);
    format!("{runs} runs, {steps} steps, cost {cost}, {time:.1} s")
}

fn markdown(result: &WorkResult) -> String {
    let mut text = format!("# {}\n\n{}\n\n", title(result), sums(result));
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(&COLUMNS.map(str::to_owned)));
    text.push_str(&line(&COLUMNS.map(|_| "---".to_owned())));
    for row in rows(result) {
        text.push_str(&line(&row.map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"))));
    }
    for run in &result.runs {
        if let Some(id) = &run.result.session_id {
            let _infallible = write!(text, "\n- {}: `agent report {id}`", run.name);
        }
    }
    text.push('\n');
    if !result.ranking.is_empty() {
        let _infallible = write!(text, "\n## Ranking\n\n{}", ranking(&result.ranking, Language::En));
    }
    text
}

fn html(result: &WorkResult) -> String {
    let mut page = HtmlWriter::default();
    page.markup(HEAD).text(&title(result)).markup("</title>\n<style>").markup(STYLE);
    page.markup("</style>\n</head>\n<body>\n").markup(match result.status {
        Status::Success => "<header class=\"ok\">",
        Status::Partial => "<header class=\"warn\">",
        Status::Failed => "<header class=\"fail\">",
    });
    page.markup("<h1>")
        .text(&title(result))
        .markup("</h1><p>")
        .text(&sums(result))
        .markup("</p></header>\n<main>\n");
    ranking_page::draw(&mut page, &result.ranking, &result.task_scores);
    page.markup("<section id=\"runs\"><h2>Runs</h2><table><tr>");
    for column in COLUMNS {
        page.markup("<th>").text(column).markup("</th>");
    }
    page.markup("</tr>");
    for row in rows(result) {
        ranking_page::row(&mut page, &row);
    }
    page.markup("</table></section>\n</main>\n</body>\n</html>\n");
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::quality_gate::GateResult;
    use agent_core::ranking::{RunScore, ScoreParts, TaskScore};
    use agent_core::score::rank;
    use agent_core::work::WorkStopReason;

    fn result() -> WorkResult {
        let check = |name: &str, passed| GateResult {
            name: name.to_owned(),
            required: true,
            passed,
            output: String::new(),
            duration_ms: 1,
        };
        let checks = vec![check("a | b", false), check("<script>", true)];
        let run = WorkRun { name: "iteration 1".to_owned(), checks, ..WorkRun::default() };
        WorkResult::new("loop", "id", WorkStopReason::MaxIterations, vec![run])
    }

    #[test]
    fn a_table_has_a_line_for_each_run_and_no_markup_of_its_texts() {
        let text = render(ReportFormat::Markdown, &result()).unwrap();
        assert!(text.contains("# agent loop: partial (max_iterations)"), "{text}");
        assert!(text.contains("| 1 of 2 failed: a \\| b |"), "{text}");
        let page = render(ReportFormat::Html, &result()).unwrap();
        assert!(page.contains("<td>1 of 2 failed: a | b</td>"), "{page}");
    }

    #[test]
    fn a18_the_page_has_the_ranking_with_charts_and_no_markup_of_names() {
        let hostile = "<script>alert(1)</script>\"'&";
        let run = RunScore {
            run: "iteration 1".to_owned(),
            passed: true,
            score: 50.0,
            parts: ScoreParts { checks: 40.0, status: 10.0, ..ScoreParts::default() },
            steps: 1,
            cost_usd: None,
            seconds: 1.0,
        };
        let scores = ["b", hostile].map(|name| TaskScore {
            task: hostile.to_owned(),
            name: name.to_owned(),
            runs: vec![run.clone()],
        });
        let result = WorkResult { ranking: rank(&scores), task_scores: scores.to_vec(), ..result() };
        let page = render(ReportFormat::Html, &result).unwrap();
        assert!(
            !page.contains("<script") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
            "{page}"
        );
        let share = "<rect class=\"one\" y=\"10\" height=\"80\" x=\"0\" width=\"400\"/>\
                     <rect class=\"two\" y=\"10\" height=\"80\" x=\"400\" width=\"100\"/>";
        assert!(page.contains(share), "{page}");
        assert_eq!(page.matches("<svg class=\"bar\"").count(), 4);
    }

    #[test]
    fn a_format_about_one_session_is_refused() {
        assert!(render(ReportFormat::Sarif, &result()).is_err());
    }
}
