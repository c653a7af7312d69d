//! `agent stats --html`: one HTML page with usage by day as charts, without scripts, network access or other files.

use super::session_report::bars::{Bar, MAX_BARS, Row};
use super::session_report::html_page::{HEAD, STYLE};
use super::session_report::html_writer::HtmlWriter;
use super::stats::{Stats, UsageStats};
use agent_core::price::Usd;
use agent_messages::{count, thousands};
use jiff::ToSpan;
use jiff::civil::Date;

/// Maximum number of days in the table, the newest; the charts show all.
const MAX_ROWS: usize = 366;
/// A whole, in the unit of rates: hundredths of a percent.
const WHOLE: u64 = 10_000;

/// The days of a bar, and their figures together.
struct Days {
    first: Date,
    last: Date,
    figures: UsageStats,
}

const ROWS: [Row<UsageStats>; 4] = [
    Row {
        title: "Cost",
        parts: &[("<rect class=\"one\"", "cost")],
        parts_of: |figures| [figures.cost_usd.picodollars(), 0, 0],
        format: |amount| Usd::from_picodollars(amount).to_string(),
        full: None,
    },
    Row {
        title: "Tokens",
        parts: &[
            ("<rect class=\"pale\"", "prompt, cached"),
            ("<rect class=\"one\"", "prompt"),
            ("<rect class=\"two\"", "answer"),
        ],
        parts_of: |figures| {
            let (usage, cached) = (figures.usage, figures.usage.cached_read);
            [cached, usage.prompt_tokens().saturating_sub(cached), usage.output]
        },
        format: thousands,
        full: None,
    },
    Row {
        title: "Prompt tokens from the provider's cache",
        parts: &[("<rect class=\"one\"", "share")],
        parts_of: |figures| [cache_rate(figures).unwrap_or(0), 0, 0],
        format: percent,
        full: Some(WHOLE),
    },
    Row {
        title: "Tool calls that failed or were refused",
        parts: &[("<rect class=\"two\"", "share")],
        parts_of: |figures| [error_rate(figures).unwrap_or(0), 0, 0],
        format: percent,
        full: Some(WHOLE),
    },
];

/// Renders the page from statistics by day; `workspace` is shown in its heading.
pub fn render(workspace: &str, stats: &Stats) -> String {
    let days: Vec<(Date, UsageStats)> =
        stats.groups.iter().filter_map(|(day, figures)| Some((day.parse().ok()?, *figures))).collect();
    let mut page = HtmlWriter::default();
    page.markup(HEAD).text("agent: usage in ").text(workspace).markup("</title>\n<style>").markup(STYLE);
    page.markup("</style>\n</head>\n<body>\n<header class=\"ok\"><h1>Usage in ").text(workspace);
    page.markup("</h1><dl class=\"figures\">");
    for (name, value) in totals(&stats.total) {
        page.markup("<div><dt>").text(name).markup("</dt><dd>").text(&value).markup("</dd></div>");
    }
    page.markup("</dl></header>\n<main>\n");
    if days.is_empty() {
        page.markup("<p>No session of this workspace has used a model yet.</p>\n");
    } else {
        charts(&mut page, &bars(&days));
        table(&mut page, &days);
    }
    page.markup("</main>\n<footer>");
    for note in notes(stats, days.len()) {
        page.markup("<p>").text(&note).markup("</p>");
    }
    page.markup("<p>Days are in UTC. Made by agent ").text(env!("CARGO_PKG_VERSION"));
    page.markup(".</p></footer>\n</body>\n</html>\n");
    page.finish()
}

fn totals(total: &UsageStats) -> [(&'static str, String); 6] {
    let rate = |rate: Option<u64>| rate.map_or_else(|| "–".to_owned(), percent);
    [
        ("Answers", thousands(total.answers)),
        ("Prompt tokens", thousands(total.usage.prompt_tokens())),
        ("Answer tokens", thousands(total.usage.output)),
        ("From the cache", rate(cache_rate(total))),
        ("Cost", cost(total)),
        ("Failed calls", rate(error_rate(total))),
    ]
}

/// Returns what the figures leave out.
fn notes(stats: &Stats, days: usize) -> impl Iterator<Item = String> {
    let unknown = stats.total.unknown_costs;
    let unknown = (unknown > 0)
        .then(|| format!("+?: without the cost of {}, which is not known", count(unknown, "request")));
    let damaged = stats.damaged_lines;
    let damaged =
        (damaged > 0).then(|| format!("{} of journals damaged and left out", count(damaged, "line")));
    let older = days.saturating_sub(MAX_ROWS) as u64;
    let older = (older > 0).then(|| format!("The table leaves out {}, the oldest.", count(older, "day")));
    unknown.into_iter().chain(damaged).chain(older)
}

fn cost(figures: &UsageStats) -> String {
    let unknown = if figures.unknown_costs > 0 { "+?" } else { "" };
    format!("{}{unknown}", figures.cost_usd)
}

/// Returns the share of prompt tokens that were read from the provider's cache; `None` without prompt tokens.
fn cache_rate(figures: &UsageStats) -> Option<u64> {
    share(figures.usage.cached_read, figures.usage.prompt_tokens())
}

/// Returns the share of tool calls that failed or were refused; `None` without calls.
fn error_rate(figures: &UsageStats) -> Option<u64> {
    share(figures.tool_errors, figures.tool_calls)
}

fn share(part: u64, whole: u64) -> Option<u64> {
    part.saturating_mul(WHOLE).checked_div(whole)
}

fn percent(rate: u64) -> String {
    format!("{}.{} %", rate / 100, rate / 10 % 10)
}

/// Returns the bars from the first day to the last, also for days without figures. `days` are in order.
fn bars(days: &[(Date, UsageStats)]) -> Vec<Days> {
    let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) else { return Vec::new() };
    let all: Vec<Date> = first.series(1.day()).take_while(|day| day <= last).collect();
    let mut figures = days.iter().peekable();
    let bar = |days: &[Date]| {
        let [first, ..] = days else { return None };
        let last = days.last().unwrap_or(first);
        let mut sum = UsageStats::default();
        while let Some((_, of_day)) = figures.next_if(|(day, _)| day <= last) {
            sum += *of_day;
        }
        Some(Days { first: *first, last: *last, figures: sum })
    };
    all.chunks(all.len().div_ceil(MAX_BARS)).filter_map(bar).collect()
}

fn charts(page: &mut HtmlWriter, days: &[Days]) {
    page.markup("<section id=\"charts\"><h2>Over time</h2>");
    for row in &ROWS {
        let bar = |days: &Days| Bar { name: days.name(), step: None, parts: (row.parts_of)(&days.figures) };
        row.draw(page, "day", &days.iter().map(bar).collect::<Vec<_>>());
    }
    if let (Some(first), Some(last)) = (days.first(), days.last()) {
        page.markup("<p class=\"axis\"><span>").text(&first.first.to_string());
        page.markup("</span><span>").text(&last.last.to_string()).markup("</span></p>");
    }
    page.markup("</section>\n");
}

impl Days {
    fn name(&self) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{} to {}", self.first, self.last)
        }
    }
}

fn table(page: &mut HtmlWriter, days: &[(Date, UsageStats)]) {
    page.markup("<section id=\"days\"><h2>By day</h2><table><thead><tr>");
    for name in ["Day", "Answers", "Prompt", "Cached", "Answer", "Cost", "Calls", "Failed"] {
        page.markup("<th>").text(name).markup("</th>");
    }
    page.markup("</tr></thead><tbody>\n");
    for (day, figures) in days.iter().rev().take(MAX_ROWS) {
        let cells = [
            day.to_string(),
            thousands(figures.answers),
            thousands(figures.usage.prompt_tokens()),
            cache_rate(figures).map(percent).unwrap_or_default(),
            thousands(figures.usage.output),
            cost(figures),
            thousands(figures.tool_calls),
            thousands(figures.tool_errors),
        ];
        page.markup("<tr>");
        for cell in &cells {
            page.markup("<td>").text(cell).markup("</td>");
        }
        page.markup("</tr>\n");
    }
    page.markup("</tbody></table></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::usage::Usage;

    fn stats(days: &[(&str, UsageStats)]) -> Stats {
        let mut stats = Stats::new("day");
        for (day, figures) in days {
            stats.add(day, *figures);
        }
        stats
    }

    fn figures(tokens: u64) -> UsageStats {
        let usage = Usage { input: tokens, cached_read: 3 * tokens, output: 1, ..Usage::default() };
        UsageStats { answers: 1, usage, tool_calls: 8, tool_errors: 1, ..UsageStats::default() }
    }

    #[test]
    fn stats_html_has_a_bar_for_each_day_also_without_figures() {
        let page = render("/w", &stats(&[("2026-02-27", figures(100)), ("2026-03-02", figures(300))]));
        assert_eq!(page.matches("<title>2026-03-01: ").count(), ROWS.len());
        assert!(
            page.contains("<title>2026-03-02: prompt, cached 900, prompt 300, answer 1</title>"),
            "{page}"
        );
        assert!(page.contains("<title>2026-02-27: share 75.0 %</title>"), "{page}");
        assert!(page.contains("<title>2026-02-27: share 12.5 %</title>"), "{page}");
        assert_eq!(page.matches("<tr><td>").count(), 2);
    }

    #[test]
    fn stats_html_sums_days_when_there_are_many_and_loses_none() {
        let days = [("2020-01-01", figures(100)), ("2020-01-02", figures(7)), ("2026-01-01", figures(300))];
        let page = render("/w", &stats(&days));
        assert!(
            page.contains("<title>2020-01-01 to 2020-01-10: prompt, cached 321, prompt 107, answer 2<"),
            "{page}"
        );
        assert!(page.contains(": prompt, cached 900, prompt 300, answer 1<"), "{page}");
        assert!(page.matches("<g>").count() <= ROWS.len() * MAX_BARS);
    }

    #[test]
    fn stats_html_escapes_names_and_has_no_script_and_no_address() {
        for days in [&[][..], &[("2026-02-27", figures(1)), ("<b>", figures(2))]] {
            let page = render("/w/<script>alert(1)</script>\u{1b}", &stats(days));
            assert!(
                !page.contains("<script") && !page.contains("<b>alert") && !page.contains('\u{1b}'),
                "{page}"
            );
            assert!(
                !page.contains("http://") && !page.contains("https://") && !page.contains("href"),
                "{page}"
            );
            assert!(page.contains("default-src 'none'") && page.ends_with("</html>\n"), "{page}");
        }
    }
}
