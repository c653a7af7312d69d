//! `agent replay`: the runs of a session done again from its journal, without model and network and, unless that is asked for,
//! without tools, up to the first place where they go another way.

use crate::agent::replay::{Divergence, Live, Outcome, Replayed, replay as again};
use crate::cli::app::{App, flags_of};
use crate::cli::args::ReplayArgs;
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::exit_code::ExitCode;
use crate::cli::live::Stage;
use crate::cli::output::print;
use crate::config::flags::Flags;
use crate::event::Event;
use crate::failure::ErrorKind;
use crate::journal::read;
use crate::journal::store::SessionError;
use crate::messages;
use crate::stop_reason::StopReason;

/// Replays a session, says what came of it, and what to exit with: 0 when it went as its journal says, 1 when not, 3 when that
/// cannot be known.
pub fn replay(app: &App, args: &ReplayArgs) -> u8 {
    match compare(app, args) {
        Ok(code) => code.code(),
        Err(error) => {
            app.complain(&error);
            error.exit_code().code()
        }
    }
}

fn compare(app: &App, args: &ReplayArgs) -> CliResult<ExitCode> {
    let settings = app.load_and_tell(&Flags { mode: args.mode, ..flags_of(&args.place) })?.settings;
    let store = store(&settings);
    let id = args.session.clone().map_or_else(|| store.last(), Ok)?;
    let reading = read::read(&store.journal_path(&id)?)
        .map_err(|error| SessionError::Unreadable(id.clone(), error.to_string()))?;
    if reading.is_later {
        return Err(CliError::new(ErrorKind::Session, messages::REPLAY_LATER_VERSION));
    }
    if !reading.incomplete.is_empty() {
        let lacks = messages::journal_incomplete(&reading.incomplete);
        return Err(CliError::new(ErrorKind::Session, messages::replayed_unknown(&lacks)));
    }
    let records = &reading.records;
    let (replayed, calls) = app.block_on(async {
        let stage = args.live_tools.then(|| Stage::set(app, &settings, &id, records)).transpose()?;
        let live = stage.as_ref().map(|stage| &stage.live);
        let replayed = again(records, live).await;
        Ok((replayed, live.map_or_else(String::new, told_of_calls)))
    })?;
    let Some(last) = replayed.last() else {
        return Err(CliError::new(ErrorKind::Session, messages::NOTHING_TO_REPLAY));
    };
    print(&app.terminal, &app.redactor(&settings).text(&(told(&replayed) + &calls)))?;
    Ok(match last.outcome {
        Outcome::Same(_) | Outcome::CutOff => ExitCode::Success,
        Outcome::Differs(_) => ExitCode::Failed,
        Outcome::Lacks(_) | Outcome::Unknown(_) => ExitCode::Config,
        Outcome::Interrupted => ExitCode::Interrupted,
    })
}

fn told(replayed: &[Replayed]) -> String {
    let mut text = String::new();
    for (number, run) in (1..).zip(replayed) {
        let how = match &run.outcome {
            Outcome::Same(reason) => messages::replayed_same(reason.map(StopReason::name)),
            Outcome::CutOff => messages::REPLAYED_CUT_OFF.to_owned(),
            Outcome::Lacks(seq) => messages::replayed_lacks(*seq),
            Outcome::Unknown(why) => messages::replayed_unknown(why),
            Outcome::Interrupted => messages::REPLAY_INTERRUPTED.to_owned(),
            Outcome::Differs(at) => messages::replayed_differs(at.recorded.seq, at.recorded.step),
        };
        text += &messages::replayed_run(number, run.from_seq, run.records, &how);
        text.push('\n');
        if let Outcome::Differs(divergence) = &run.outcome {
            text += &differs(divergence);
        }
    }
    let sum = |of: fn(&Replayed) -> usize| replayed.iter().map(of).sum();
    let (records, compared) = (sum(|run| run.records), sum(|run| run.digests));
    text += &messages::replayed(replayed.len(), records, compared, sum(|run| run.requests));
    text.push('\n');
    text
}

/// What became of the calls, and of files between the runs.
fn told_of_calls(live: &Live) -> String {
    let mut text = messages::replayed_calls(live.calls.again.get(), &live.calls.taken.borrow());
    text.push('\n');
    let lost = live.files.lost();
    if !lost.is_empty() {
        text += &messages::replay_lost(&lost);
        text.push('\n');
    }
    text
}

fn differs(divergence: &Divergence) -> String {
    if let (
        Event::ToolEnd { name, summary, result: then, denial: None, .. },
        Event::ToolEnd { result: now, denial, .. },
    ) = (&divergence.recorded.event, &divergence.now)
        && then.text != now.text
    {
        let refused = if denial.is_some() { messages::REPLAY_REFUSED } else { "" };
        return messages::replay_other_result(name, summary, &then.text, &now.text) + refused;
    }
    let at = divergence.difference();
    let kind = serde_json::to_value(&divergence.recorded.event).unwrap_or_default();
    let kind = kind.get("type").and_then(|kind| kind.as_str()).unwrap_or_default();
    let mut text = messages::replay_difference(kind, &at.place, &at.recorded, &at.now);
    if matches!(divergence.recorded.event, Event::StepStart { .. }) && at.place == "digest" {
        text += messages::REPLAY_ASKS_ELSE;
    }
    text
}
