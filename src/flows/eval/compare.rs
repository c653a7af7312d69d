//! `agent eval compare A B`: whether two measurements differ by more than chance.

use crate::eval::EvalRequest;
use crate::work::record::{RecordedWork, work_store};
use crate::work::request::WorkCommand;
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::comparison::{COMPARISON_SCHEMA_VERSION, Comparison, ComparisonDocument, compare};
use agent_core::failure::FailureKind;
use agent_core::ranking::TaskScore;
use agent_core::work::WorkResult;
use agent_messages as messages;
use agent_report::json;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum bytes of a document.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of tasks of a name: the exact tests take time.
const MAX_TASKS: usize = 1000;
/// Maximum number of runs of a name on a task.
const MAX_RUNS: usize = 20;

/// A measurement: the scores of each model or configuration.
struct Measured {
    /// The names, the best first.
    names: Vec<String>,
    scores: BTreeMap<String, Vec<TaskScore>>,
}

impl Measured {
    fn of(&self, name: &str) -> &[TaskScore] {
        self.scores.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Compares two measurements, or without a second one the best of the first with the others, and prints the result, `as_json` or as text. A
/// measurement is a document of `agent eval` or the id of a record.
///
/// # Errors
/// Fails for a measurement that cannot be read, and for two that have nothing in common.
pub fn compare_measurements(
    app: &App,
    settings: &Settings,
    first: &str,
    second: Option<&str>,
    as_json: bool,
) -> AppResult<()> {
    let first = read(settings, first)?;
    let second = second.map(|second| read(settings, second)).transpose()?;
    let document = match &second {
        Some(second) => between(&first, second),
        None => within(&first),
    };
    if document.comparisons.is_empty() {
        return Err(unreadable(messages::NOTHING_IN_COMMON));
    }
    let text = if as_json {
        let text = json::line(&document);
        text.map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?
    } else {
        messages::comparisons(&document, settings.language)
    };
    print(&app.terminal, &text)
}

/// Compares each name of one measurement with the same name of the other.
fn between(first: &Measured, second: &Measured) -> ComparisonDocument {
    let (ours, theirs): (BTreeSet<&String>, BTreeSet<&String>) =
        (first.names.iter().collect(), second.names.iter().collect());
    let same = |name: &String| compare(first.of(name), second.of(name));
    document(
        first.names.iter().filter(|name| theirs.contains(name)).filter_map(same).collect(),
        ours.symmetric_difference(&theirs).map(|name| (*name).clone()).collect(),
    )
}

/// Compares the best name of a measurement with each other one.
fn within(measured: &Measured) -> ComparisonDocument {
    let Some((best, others)) = measured.names.split_first() else { return document(Vec::new(), Vec::new()) };
    let other = |name: &String| compare(measured.of(best), measured.of(name));
    document(others.iter().filter_map(other).collect(), Vec::new())
}

fn document(comparisons: Vec<Comparison>, left_out: Vec<String>) -> ComparisonDocument {
    ComparisonDocument { schema_version: COMPARISON_SCHEMA_VERSION, comparisons, left_out }
}

/// Reads a measurement from a document, if there is such a file, else from the record with this id.
fn read(settings: &Settings, source: &str) -> AppResult<Measured> {
    let failed = |why: String| unreadable(&messages::no_measurement(source, &why));
    let text = read_text(Path::new(source), MAX_BYTES).map_err(|error| failed(error.to_string()))?;
    let result = if let Some(text) = text {
        serde_json::from_str::<WorkResult>(&text).map_err(|error| failed(error.to_string()))?
    } else {
        let (work, _) = RecordedWork::read(&work_store(settings), source)
            .map_err(|_| failed(messages::NO_FILE_OR_RECORD.to_owned()))?;
        work.result.ok_or_else(|| failed(messages::NOT_ENDED.to_owned()))?
    };
    if result.command != EvalRequest::NAME || result.task_scores.is_empty() {
        return Err(failed(messages::NO_SCORES.to_owned()));
    }
    let missing = result.runs.iter().filter(|run| run.result.session_id.is_none()).count();
    if missing > 0 {
        return Err(failed(messages::runs_missing(missing)));
    }
    let names = result.ranking.into_iter().map(|ranked| ranked.name).collect();
    let mut scores: BTreeMap<String, Vec<TaskScore>> = BTreeMap::new();
    for score in result.task_scores {
        let has_runs = (1..=MAX_RUNS).contains(&score.runs.len());
        let of_name = scores.entry(score.name.clone()).or_default();
        if !has_runs || of_name.len() >= MAX_TASKS || of_name.iter().any(|other| other.task == score.task) {
            return Err(failed(messages::NO_SCORES.to_owned()));
        }
        of_name.push(score);
    }
    Ok(Measured { names, scores })
}

fn unreadable(message: &str) -> AppError {
    AppError::new(FailureKind::Config, message)
}
