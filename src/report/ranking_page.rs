//! The ranking of `agent eval` in the HTML report: a table, charts of what passed and of the scores, and a table of the tasks.

use crate::session_report::html_writer::HtmlWriter;
use agent_core::ranking::{Ranked, ScoreParts, TaskScore};
use agent_messages::{median, passed};
use agent_terminal::one_line;
use std::collections::{BTreeMap, BTreeSet};

/// Characters of a name.
const NAME_CHARS: usize = 120;
/// Maximum number of tasks in the table.
const MAX_TASKS: usize = 1000;
/// Maximum number of models or configurations in the table of tasks.
const MAX_COLUMNS: usize = 20;
/// Width of a bar in units of its drawing, which the page scales.
const WIDTH: f64 = 1000.0;
/// Columns of the table.
const COLUMNS: [&str; 9] =
    ["", "Name", "Score", "Passed", "Interval of 95 %", "Median score", "Steps", "USD", "Seconds"];

/// A part of a score: the start of its shape, its name and its value.
type Part = (&'static str, &'static str, fn(&ScoreParts) -> f64);

const PARTS: [Part; 4] = [
    ("<rect class=\"one\"", "checks", |parts| parts.checks),
    ("<rect class=\"two\"", "status", |parts| parts.status),
    ("<rect class=\"pale\"", "efficiency", |parts| parts.efficiency),
    ("<rect class=\"good\"", "cost", |parts| parts.cost.unwrap_or(0.0)),
];

/// Adds the ranking and the tasks.
pub(super) fn draw(page: &mut HtmlWriter, ranking: &[Ranked], tasks: &[TaskScore]) {
    if ranking.is_empty() {
        return;
    }
    page.markup("<section id=\"ranking\"><h2>Ranking</h2>");
    table(page, ranking);
    page.markup("</section><section id=\"charts\"><h2>Passed</h2><p class=\"meta\">share of runs, with its interval of 95 %</p><table>");
    for one in ranking {
        let share = f64::from(one.passed) / f64::from(one.runs.max(1));
        let [low, high] = one.pass_rate_interval;
        bar(page, &one.name, &passed(one), |page| {
            rectangle(page, "<rect class=\"one\"", 0.0, share);
            page.markup("<rect class=\"ink\" y=\"45\" height=\"10\"");
            extent(page, low, high - low);
        });
    }
    page.markup("</table><h2>Score</h2><p class=\"meta\">");
    for (shape, name, _) in PARTS {
        page.markup("<svg class=\"key\" viewBox=\"0 0 1 1\">").markup(shape);
        page.markup(" width=\"1\" height=\"1\"/></svg>").text(name).markup(" ");
    }
    page.markup("</p><table>");
    for one in ranking {
        bar(page, &one.name, &format!("{:.1}", one.score), |page| {
            let mut left = 0.0;
            for (shape, _, part) in PARTS {
                let share = part(&one.parts) / 100.0;
                rectangle(page, shape, left, share);
                left += share;
            }
        });
    }
    page.markup("</table></section>");
    task_table(page, ranking, tasks);
}

fn table(page: &mut HtmlWriter, ranking: &[Ranked]) {
    page.markup("<table><tr>");
    for column in COLUMNS {
        page.markup("<th>").text(column).markup("</th>");
    }
    page.markup("</tr>");
    for (place, one) in (1_u64..).zip(ranking) {
        let [low, high] = one.pass_rate_interval;
        let cells = [
            place.to_string(),
            one_line(&one.name, NAME_CHARS),
            format!("{:.1}", one.score),
            format!("{}/{}", one.passed, one.runs),
            format!("{:.0}-{:.0} %", low * 100.0, high * 100.0),
            median(one.median_score, 1),
            median(one.median_steps, 1),
            one.median_cost_usd.map_or_else(|| "unknown".to_owned(), |usd| median(usd, 4)),
            median(one.median_seconds, 1),
        ];
        row(page, &cells);
    }
    page.markup("</table>");
}

/// Adds the runs that passed for each task and name.
fn task_table(page: &mut HtmlWriter, ranking: &[Ranked], scores: &[TaskScore]) {
    let by_task: BTreeMap<(&str, &str), &TaskScore> =
        scores.iter().map(|score| ((score.task.as_str(), score.name.as_str()), score)).collect();
    let names: Vec<&str> = ranking.iter().take(MAX_COLUMNS).map(|one| one.name.as_str()).collect();
    let tasks: BTreeSet<&str> = scores.iter().map(|score| score.task.as_str()).collect();
    page.markup("<section id=\"tasks\"><h2>Tasks</h2><table><tr><th>Task</th>");
    for name in &names {
        page.markup("<th>").text(&one_line(name, NAME_CHARS)).markup("</th>");
    }
    page.markup("</tr>");
    for task in tasks.iter().take(MAX_TASKS) {
        let of_name = |name: &&str| {
            let runs = by_task.get(&(*task, *name)).map(|score| score.runs.as_slice()).unwrap_or_default();
            format!("{}/{}", runs.iter().filter(|run| run.passed).count(), runs.len())
        };
        let cells: Vec<String> =
            std::iter::once(one_line(task, NAME_CHARS)).chain(names.iter().map(of_name)).collect();
        row(page, &cells);
    }
    page.markup("</table>");
    for (what, count, most) in [("tasks", tasks.len(), MAX_TASKS), ("models", ranking.len(), MAX_COLUMNS)] {
        if count > most {
            page.markup("<p class=\"meta\">")
                .text(&format!("{} more {what} are not shown.", count - most))
                .markup("</p>");
        }
    }
    page.markup("</section>");
}

/// Adds a row of a table.
pub(super) fn row(page: &mut HtmlWriter, cells: &[String]) {
    page.markup("<tr>");
    for cell in cells {
        page.markup("<td>").text(cell).markup("</td>");
    }
    page.markup("</tr>");
}

/// Adds a row with a name, a bar that `shapes` fills, and a figure.
fn bar(page: &mut HtmlWriter, name: &str, figure: &str, shapes: impl FnOnce(&mut HtmlWriter)) {
    let name = one_line(name, NAME_CHARS);
    page.markup("<tr><td>").text(&name);
    page.markup("</td><td class=\"wide\"><svg class=\"bar\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    page.text(&name)
        .markup(": ")
        .text(figure)
        .markup("\"><rect class=\"hit\" width=\"1000\" height=\"100\"/>");
    shapes(page);
    page.markup("</svg></td><td>").text(figure).markup("</td></tr>");
}

/// Adds a rectangle of the height of a bar; `left` and `width` are shares of the whole bar.
fn rectangle(page: &mut HtmlWriter, shape: &'static str, left: f64, width: f64) {
    page.markup(shape).markup(" y=\"10\" height=\"80\"");
    extent(page, left, width);
}

fn extent(page: &mut HtmlWriter, left: f64, width: f64) {
    let units = |share: f64| (share.clamp(0.0, 1.0) * WIDTH).round().to_string();
    page.markup(" x=\"").text(&units(left)).markup("\" width=\"").text(&units(width)).markup("\"/>");
}
