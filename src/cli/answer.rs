//! `agent approve` and `agent deny`: the person's answer to a call that waits, written into its session's journal.

use crate::approval::Answer;
use crate::cli::app::App;
use crate::cli::approvals::waiting;
use crate::cli::earlier::seal;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::past::{Past, unwritten};
use crate::cli::place::PlaceArgs;
use crate::event::Event;
use crate::failure::ErrorKind;
use crate::messages;
use crate::terminal::one_line;

/// Characters of a reason that the model reads.
const REASON_CHARS: usize = 1000;
/// Characters shown of an id that a person gave, and of a call.
const SHOWN_CHARS: usize = 300;

/// `agent deny`: the model reads the reason.
///
/// # Errors
/// As [`answer`].
pub fn deny(app: &App, id: &str, reason: Option<String>, place: &PlaceArgs) -> CliResult<()> {
    let reason = reason.map(|reason| one_line(reason.trim(), REASON_CHARS));
    let reason = reason.filter(|reason| !reason.is_empty());
    answer(app, id, &Answer::Deny { reason }, place)
}

/// Answers the question `id`; until the call runs, the last answer counts.
///
/// # Errors
/// When the configuration is wrong, nothing waits under this id, another process works on its session, or its journal
/// cannot be written.
pub fn answer(app: &App, id: &str, answer: &Answer, place: &PlaceArgs) -> CliResult<()> {
    let none =
        || CliError::new(ErrorKind::Session, messages::nothing_waits_under(&one_line(id, SHOWN_CHARS)));
    let settings = app.load_place(place)?.settings;
    let found = waiting(&settings)?.into_iter().find(|call| call.approval.id == id);
    let session = found.ok_or_else(none)?.session_id;
    // What waits is looked at again once nobody else can write to the session.
    let mut past = Past::hold(app, place, Some(&session))?;
    let asked = past.approvals.all().iter().find(|waiting| waiting.approval.id == id).ok_or_else(none)?;
    let asked = asked.approval.clone();
    let seal = seal(&settings, &session)?.on(&asked, answer);
    let event = Event::ApprovalAnswered { id: id.to_owned(), answer: answer.clone(), seal };
    past.approvals.note(&event);
    past.emitter.emit(event).and_then(|_| past.emitter.sync()).map_err(unwritten)?;
    let call = one_line(&format!("{} {}", asked.tool, asked.summary), SHOWN_CHARS);
    let then = messages::then_resume(&session, past.approvals.open().count());
    let said = format!("{}: {call}\n{then}\n", messages::answer_in_words(answer));
    print(&app.terminal, &past.clean(&said))
}
