//! `agent stats`: prints requests, tokens and costs by session, model or day, or writes a page with charts.

use crate::commands::common_args::CommonArgs;
use agent_core::event::{Event, Record};
use agent_core::failure::FailureKind;
use agent_journal::scan::scan;
use agent_journal::session_store::SessionError;
use agent_messages::{count, day, thousands};
use agent_redactor::Redactor;
use agent_report::json;
use agent_report::stats::{COUNTED_EVENTS, Stats, UsageStats};
use agent_report::stats_page;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::report_file::ReportFile;
use agent_run::session::session_store;
use agent_terminal::{one_line, truncate_end};
use clap::{Args, ValueEnum};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum length of a displayed model name in characters.
const NAME_CHARS: usize = 40;
/// Fewest characters of a name, on a terminal that is too narrow.
const MIN_NAME_CHARS: usize = 12;
/// Blanks before a figure.
const GAP: usize = 2;
/// The headings of the figures.
const HEADINGS: [&str; 7] = ["ANSWERS", "PROMPT", "CACHED", "OUTPUT", "COST", "CALLS", "FAILED"];

/// Arguments of `agent stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Grouping of the figures
    #[arg(long, value_name = "session|model|day", default_value = "model", hide_possible_values = true)]
    pub by: StatsBy,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page with charts by day to FILE, which is replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "by"])]
    pub html: Option<PathBuf>,
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Values of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum StatsBy {
    /// Each session.
    Session,
    /// Each model.
    Model,
    /// Each day, UTC.
    Day,
}

agent_core::impl_name!(StatsBy);

/// The figures collected so far.
struct StatsCollector {
    by: StatsBy,
    stats: Stats,
    /// The number of the last counted record of each run; a fork repeats records of the original, which must count once.
    counted: HashMap<String, u64>,
}

/// Prints or writes the figures of all sessions of this workspace.
///
/// # Errors
/// Fails for an unreadable session, and when standard output or the file cannot be written.
pub fn stats(app: &App, args: &StatsArgs) -> AppResult<()> {
    let settings = app.load_and_notify(&args.common.overrides())?.settings;
    let store = session_store(&settings);
    let redactor = app.redactor(&settings);
    let mut ids: Vec<String> = store.list()?.collect();
    let by = if args.html.is_some() { StatsBy::Day } else { args.by };
    let mut count = StatsCollector { by, stats: Stats::new(by.name()), counted: HashMap::new() };
    // Oldest first: a fork is newer than the session from which its first records come.
    ids.reverse();
    for id in &ids {
        let path = store.journal_path(id)?;
        count.session(id, &path, &redactor).map_err(|error| {
            AppError::new(FailureKind::Session, format!("cannot read {}: {error}", path.display()))
        })?;
    }
    if let Some(path) = &args.html {
        let workspace = redactor.text(&settings.workspace.to_string_lossy()).into_owned();
        let page = stats_page::render(&workspace, &count.stats);
        return ReportFile::at(path.clone()).replace(&page).map_err(|error| {
            AppError::new(FailureKind::Session, format!("cannot write {}: {error}", path.display()))
        });
    }
    let text = if args.json {
        json::line(&count.stats)
            .map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?
    } else if ids.is_empty() {
        format!("{}\n", SessionError::NoSessions)
    } else {
        let width = app.terminal.output_size().map_or(usize::MAX, |size| size.width);
        table(args.by, &count.stats, width)
    };
    print(&app.terminal, &text)
}

impl StatsCollector {
    /// Adds the figures of session `id` with the journal at `path`.
    fn session(&mut self, id: &str, path: &Path, redactor: &Redactor) -> std::io::Result<()> {
        let (mut model, mut requested) = (String::new(), false);
        scan(path, &COUNTED_EVENTS, |record| {
            let Some(record) = record else {
                self.stats.damaged_lines = self.stats.damaged_lines.saturating_add(1);
                return;
            };
            match &record.event {
                Event::RunStart { model: name, .. } | Event::ModelSwitched { to: name, .. } => {
                    model = redactor.text(name).into_owned();
                }
                _ => {}
            }
            let figures = UsageStats::from_event(&record.event, requested);
            requested = matches!(record.event, Event::RequestSent { .. });
            if figures != UsageStats::default() && self.is_new(&record) {
                match self.by {
                    StatsBy::Session => self.stats.add(id, figures),
                    StatsBy::Model => self.stats.add(&model, figures),
                    StatsBy::Day => self.stats.add(&day(record.wall_ms), figures),
                }
            }
        })
    }

    /// Checks whether this record has not been counted in another session that this one copies.
    fn is_new(&mut self, record: &Record) -> bool {
        if self.counted.get(&record.run).is_some_and(|last| record.seq <= *last) {
            return false;
        }
        self.counted.insert(record.run.clone(), record.seq);
        true
    }
}

/// Returns the figures as a table of at most `width` columns, where the names can be cut so far.
fn table(by: StatsBy, stats: &Stats, width: usize) -> String {
    let head = match by {
        StatsBy::Session => "SESSION",
        StatsBy::Model => "MODEL",
        StatsBy::Day => "DAY (UTC)",
    };
    let total = &stats.total;
    let mut rows = vec![(head, HEADINGS.map(str::to_owned))];
    rows.extend(stats.groups.iter().map(|(name, figures)| (name.as_str(), cells(figures))));
    rows.push(("all", cells(total)));
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|at| {
        rows.iter().filter_map(|(_, cells)| cells.get(at)).map(String::len).max().unwrap_or_default()
    });
    let figures: usize = widths.iter().map(|width| width + GAP).sum();
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let room = width.saturating_sub(figures).clamp(MIN_NAME_CHARS, NAME_CHARS).min(longest);
    let mut text = String::new();
    for (name, cells) in &rows {
        let (name, _) = truncate_end(&one_line(name, NAME_CHARS), room);
        let _infallible = write!(text, "{name:<room$}");
        for (cell, width) in cells.iter().zip(widths) {
            let _infallible = write!(text, "{cell:>0$}", width + GAP);
        }
        text.push('\n');
    }
    let notes = [
        (
            total.unknown_costs,
            format!("+?: without the cost of {}, which is not known", count(total.unknown_costs, "request")),
        ),
        (
            total.cached_answers,
            format!(
                "{} from the answer cache, at no cost (llm.cache)",
                count(total.cached_answers, "answer")
            ),
        ),
        (
            stats.damaged_lines,
            format!("{} of journals damaged and left out", count(stats.damaged_lines, "line")),
        ),
    ];
    for (_, note) in notes.iter().filter(|(number, _)| *number > 0) {
        let _infallible = writeln!(text, "{note}");
    }
    text
}

/// Returns the cells of a row of the table.
fn cells(figures: &UsageStats) -> [String; HEADINGS.len()] {
    let prompt = figures.usage.prompt_tokens();
    let cached = figures.usage.cached_read.saturating_mul(100).checked_div(prompt).unwrap_or(0);
    let unknown = if figures.unknown_costs > 0 { "+?" } else { "" };
    [
        thousands(figures.answers),
        thousands(prompt),
        format!("{cached} %"),
        thousands(figures.usage.output),
        format!("{}{unknown}", figures.cost_usd),
        thousands(figures.tool_calls),
        thousands(figures.tool_errors),
    ]
}
