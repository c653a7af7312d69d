//! `agent stats`: what models were asked, by session, model or day, and what it cost.

use crate::cli::app::App;
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::place::PlaceArgs;
use crate::event::{Billed, Event, Record};
use crate::failure::ErrorKind;
use crate::journal::read;
use crate::messages::{day, thousands};
use crate::price::Usd;
use crate::report::json;
use crate::terminal::one_line;
use crate::usage::Usage;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::AddAssign;

/// Characters shown of a model's name.
const NAME_CHARS: usize = 40;

/// `agent stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// What the figures are for
    #[arg(long, value_name = "session|model|day", default_value = "model", hide_possible_values = true)]
    pub by: StatsBy,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsBy {
    /// Each session.
    Session,
    /// Each model.
    Model,
    /// Each day, UTC.
    Day,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Figures {
    /// Answers of models.
    answers: u64,
    usage: Usage,
    /// What is known of the cost.
    cost_usd: Usd,
    /// Requests whose cost is not known: no price, or nothing reported.
    unknown_costs: u64,
    tool_calls: u64,
    tool_errors: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.usage += other.usage;
        self.cost_usd = self.cost_usd + other.cost_usd;
        self.unknown_costs = self.unknown_costs.saturating_add(other.unknown_costs);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.tool_errors = self.tool_errors.saturating_add(other.tool_errors);
    }
}

impl Figures {
    /// What one event adds.
    fn of(event: &Event) -> Self {
        match event {
            Event::ModelResponse { usage, cost_usd, .. } => {
                Self { answers: 1, ..Self::spent(usage.unwrap_or_default(), *cost_usd) }
            }
            Event::Retry { billed: Some(Billed { usage, cost_usd }), .. }
            | Event::ModelFailed { billed: Some(Billed { usage, cost_usd }), .. } => {
                Self::spent(*usage, *cost_usd)
            }
            Event::ModelAbandoned { .. } => Self::spent(Usage::default(), None),
            Event::ToolEnd { result, .. } => {
                Self { tool_calls: 1, tool_errors: u64::from(result.is_error), ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    fn spent(usage: Usage, cost: Option<Usd>) -> Self {
        let unknown_costs = u64::from(cost.is_none());
        Self { usage, cost_usd: cost.unwrap_or_default(), unknown_costs, ..Self::default() }
    }

    /// The columns of a table.
    fn row(&self, name: &str) -> String {
        let prompt = self.usage.prompt();
        let cached = self.usage.cached_read.saturating_mul(100).checked_div(prompt).unwrap_or(0);
        let unknown = if self.unknown_costs > 0 { "+?" } else { "" };
        format!(
            "{name:<40} {:>8} {:>13} {:>6} % {:>11} {:>12} {:>7} {:>7}",
            thousands(self.answers),
            thousands(prompt),
            cached,
            thousands(self.usage.output),
            format!("{}{unknown}", self.cost_usd),
            thousands(self.tool_calls),
            thousands(self.tool_errors),
        )
    }
}

/// Prints the figures of all sessions of this workspace.
///
/// # Errors
/// When a session cannot be read, or standard output cannot be written.
pub fn stats(app: &App, args: &StatsArgs) -> CliResult<()> {
    let settings = app.load_place(&args.place)?.settings;
    let store = store(&settings);
    let redactor = app.redactor(&settings);
    let (mut groups, mut total) = (BTreeMap::<String, Figures>::new(), Figures::default());
    for id in store.list()? {
        let path = store.journal_path(&id)?;
        let mut model = String::new();
        let visited = read::visit(&path, |_, record| {
            if let Some(record) = record {
                model_of(&record.event, &mut model);
                let figures = Figures::of(&record.event);
                if figures != Figures::default() {
                    *groups.entry(key(args.by, &id, &model, &record)).or_default() += figures;
                    total += figures;
                }
            }
            true
        });
        visited.map_err(|error| {
            CliError::new(ErrorKind::Session, format!("cannot read {}: {error}", path.display()))
        })?;
    }
    let groups: BTreeMap<String, Figures> =
        groups.into_iter().map(|(key, figures)| (redactor.text(&key).into_owned(), figures)).collect();
    if args.json {
        let line = json::line(&groups);
        return print(
            &app.terminal,
            &line.map_err(|error| CliError { kind: ErrorKind::Internal, cause: error.into() })?,
        );
    }
    print(&app.terminal, &table(args.by, &groups, &total))
}

/// The model that answers from here on.
fn model_of(event: &Event, model: &mut String) {
    match event {
        Event::RunStart { model: name, .. } | Event::ModelSwitched { to: name, .. } => name.clone_into(model),
        _ => {}
    }
}

fn key(by: StatsBy, id: &str, model: &str, record: &Record) -> String {
    match by {
        StatsBy::Session => id.to_owned(),
        StatsBy::Model => model.to_owned(),
        StatsBy::Day => day(record.wall_ms),
    }
}

fn table(by: StatsBy, groups: &BTreeMap<String, Figures>, total: &Figures) -> String {
    let head = match by {
        StatsBy::Session => "SESSION",
        StatsBy::Model => "MODEL",
        StatsBy::Day => "DAY (UTC)",
    };
    let mut text = format!(
        "{head:<40} {:>8} {:>13} {:>8} {:>11} {:>12} {:>7} {:>7}\n",
        "ANSWERS", "PROMPT", "CACHED", "OUTPUT", "COST", "CALLS", "FAILED"
    );
    for (key, figures) in groups {
        let _infallible = writeln!(text, "{}", figures.row(&one_line(key, NAME_CHARS - 1)));
    }
    let _infallible = writeln!(text, "{}", total.row("all"));
    if total.unknown_costs > 0 {
        let count = thousands(total.unknown_costs);
        let noun = if total.unknown_costs == 1 { "request" } else { "requests" };
        let _infallible = writeln!(text, "+?: what {count} {noun} cost is not known and not in it");
    }
    text
}
