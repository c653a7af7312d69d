//! `agent approvals`: the calls that wait for an answer.

use crate::cli::app::App;
use crate::cli::args::ApprovalsCommand;
use crate::cli::earlier::{store, verified};
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::place::PlaceArgs;
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::journal::approvals::Approvals;
use crate::journal::glance::is_done;
use crate::journal::store::SessionError;
use crate::messages;
use crate::report::waiting::{self, WaitingCall};
use crate::terminal::one_line;
use std::io;
use std::time::Duration;

/// Characters shown of what a call is to do, of why it is asked and of each note.
const LINE_CHARS: usize = 300;

/// Prints what waits in the sessions of the workspace, the newest session first, without the secrets that are known now.
///
/// # Errors
/// When the configuration is wrong, a session cannot be read, or standard output cannot be written.
pub fn approvals(app: &App, command: &ApprovalsCommand, place: &PlaceArgs) -> CliResult<()> {
    let ApprovalsCommand::List { json } = command;
    let settings = app.load_place(place)?.settings;
    let redactor = app.redactor(&settings);
    let mut all = waiting(&settings)?;
    for call in &mut all {
        redactor.approval(&mut call.approval);
    }
    let text = if *json {
        let document = waiting::document(all);
        document.map_err(|error| CliError { kind: ErrorKind::Internal, cause: error.into() })?
    } else {
        list(&all, app.source.wall())
    };
    print(&app.terminal, &text)
}

/// Every call that waits, also one that was answered and has not run yet.
///
/// # Errors
/// When a session cannot be read.
pub fn waiting(settings: &Settings) -> CliResult<Vec<WaitingCall>> {
    let (store, mut all) = (store(settings), Vec::new());
    for id in store.list()? {
        let path = store.journal_path(&id)?;
        let unreadable = |error: io::Error| SessionError::Unreadable(id.clone(), error.to_string());
        if is_done(&path).map_err(unreadable)? {
            continue;
        }
        let approvals = Approvals::read(&path).map_err(unreadable)?;
        let approvals = verified(settings, &id, approvals)?;
        all.extend(approvals.all().iter().map(|waiting| WaitingCall {
            session_id: id.clone(),
            approval: waiting.approval.clone(),
            answer: waiting.said().cloned(),
        }));
    }
    Ok(all)
}

/// The calls as a person reads them, each with what it would do.
fn list(all: &[WaitingCall], now: Duration) -> String {
    if all.is_empty() {
        return messages::NOTHING_WAITS.to_owned();
    }
    let told: String = all.iter().map(|call| described(call, now)).collect();
    format!("{told}{}", messages::HOW_TO_ANSWER)
}

fn described(call: &WaitingCall, now: Duration) -> String {
    let asked = &call.approval;
    let short = |text: &str| one_line(text, LINE_CHARS);
    let ago = messages::ago(now.saturating_sub(Duration::from_millis(asked.asked_ms)));
    let state = call.answer.as_ref().map_or(messages::UNANSWERED, messages::answer_in_words);
    let head = format!("{}  {} {}\n", short(&asked.id), short(&asked.tool), short(&asked.summary));
    let about = messages::asked(&call.session_id, &ago, state, &short(&asked.reason));
    let notes = asked.notes.iter().map(|note| format!("   {}\n", short(note)));
    let preview = asked.preview.iter().flat_map(|preview| preview.lines()).map(|line| format!("   {line}\n"));
    let below: String = notes.chain(preview).collect();
    format!("{head}{about}{below}\n")
}
