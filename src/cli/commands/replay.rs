//! `agent replay`: runs a session again from its journal, without model, network and (by default) tools, up to the first difference.

use crate::args::ReplayArgs;
use crate::commands::live_tools::WorkspaceCopy;
use agent_config::overrides::Overrides;
use agent_core::event::Event;
use agent_core::failure::FailureKind;
use agent_core::stop_reason::StopReason;
use agent_journal::read;
use agent_journal::session_store::SessionError;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_run::session::{session_store, use_state_with};
use agent_session::replay::{Divergence, LiveTools, ReplayOutcome, ReplayedRun, replay as again};

/// Replays a session, prints the result and returns the exit code: 0 if the replay matches the journal, 1 if not, 3 if the
/// comparison is impossible.
pub fn replay(app: &App, args: &ReplayArgs) -> u8 {
    match compare(app, args) {
        Ok(code) => code.code(),
        Err(error) => {
            app.report_error(&error);
            error.exit_code().code()
        }
    }
}

fn compare(app: &App, args: &ReplayArgs) -> AppResult<ExitCode> {
    let mut settings =
        app.load_and_notify(&Overrides { mode: args.mode, ..args.common.overrides() })?.settings;
    use_state_with(&mut settings, args.session.as_deref());
    let store = session_store(&settings);
    let id = store.id_or_last_ended(args.session.as_deref())?;
    let reading = read::read(&store.journal_path(&id)?)
        .map_err(|error| SessionError::Unreadable(id.clone(), error.to_string()))?;
    if reading.is_newer_version {
        return Err(AppError::new(FailureKind::Session, messages::REPLAY_LATER_VERSION));
    }
    if !reading.incomplete.is_empty() {
        let lacks = messages::journal_incomplete(&reading.incomplete);
        return Err(AppError::new(FailureKind::Session, messages::replayed_unknown(&lacks)));
    }
    let records = &reading.records;
    let (replayed, calls) = app.block_on(async {
        let workspace_copy =
            args.live_tools.then(|| WorkspaceCopy::prepare(app, &settings, &id, records)).transpose()?;
        let live = workspace_copy.as_ref().map(|workspace_copy| &workspace_copy.live);
        let replayed = again(records, live).await;
        Ok((replayed, live.map_or_else(String::new, describe_calls)))
    })?;
    let Some(last) = replayed.last() else {
        return Err(AppError::new(FailureKind::Session, messages::NOTHING_TO_REPLAY));
    };
    print(&app.terminal, &app.redactor(&settings).text(&(describe_runs(&replayed) + &calls)))?;
    Ok(match last.outcome {
        ReplayOutcome::Same(_) | ReplayOutcome::Incomplete => ExitCode::Success,
        ReplayOutcome::Differs(_) => ExitCode::Failed,
        ReplayOutcome::MissingRecord(_) | ReplayOutcome::Unknown(_) => ExitCode::Config,
        ReplayOutcome::Interrupted => ExitCode::Interrupted,
    })
}

fn describe_runs(replayed: &[ReplayedRun]) -> String {
    let mut text = String::new();
    for (number, run) in (1..).zip(replayed) {
        let how = match &run.outcome {
            ReplayOutcome::Same(reason) => messages::replayed_same(reason.map(StopReason::name)),
            ReplayOutcome::Incomplete => messages::REPLAYED_UNTIL_KILLED.to_owned(),
            ReplayOutcome::MissingRecord(seq) => messages::replayed_record_missing(*seq),
            ReplayOutcome::Unknown(why) => messages::replayed_unknown(why),
            ReplayOutcome::Interrupted => messages::REPLAY_INTERRUPTED.to_owned(),
            ReplayOutcome::Differs(at) => messages::replayed_differs(at.recorded.seq, at.recorded.step),
        };
        text += &messages::replayed_run(number, run.from_seq, run.records, &how);
        text.push('\n');
        if let ReplayOutcome::Differs(divergence) = &run.outcome {
            text += &describe_divergence(divergence);
        }
    }
    let sum = |of: fn(&ReplayedRun) -> usize| replayed.iter().map(of).sum();
    let (records, compared) = (sum(|run| run.records), sum(|run| run.digests));
    text += &messages::replayed(replayed.len(), records, compared, sum(|run| run.requests));
    text.push('\n');
    text
}

/// Describes which calls were run again, and which files could not be restored.
fn describe_calls(live: &LiveTools) -> String {
    let mut text = messages::replayed_calls(live.calls.rerun.get(), &live.calls.from_journal.borrow());
    text.push('\n');
    let lost = live.files.lost();
    if !lost.is_empty() {
        text += &messages::replay_contents_missing(&lost);
        text.push('\n');
    }
    text
}

fn describe_divergence(divergence: &Divergence) -> String {
    if let (
        Event::ToolCallEnd { name, summary, result: then, denial: None, .. },
        Event::ToolCallEnd { result: now, denial, .. },
    ) = (&divergence.recorded.event, &divergence.actual)
        && then.text != now.text
    {
        let refused = if denial.is_some() { messages::REPLAY_REFUSED } else { "" };
        return messages::replay_other_result(name, summary, &then.text, &now.text) + refused;
    }
    let at = divergence.difference();
    let kind = serde_json::to_value(&divergence.recorded.event).unwrap_or_default();
    let kind = kind.get("type").and_then(|kind| kind.as_str()).unwrap_or_default();
    let mut text = messages::replay_difference(kind, &at.place, &at.recorded, &at.actual);
    if matches!(divergence.recorded.event, Event::StepStart { .. }) && at.place == "digest" {
        text += messages::REPLAY_REQUEST_DIFFERS;
    }
    text
}
