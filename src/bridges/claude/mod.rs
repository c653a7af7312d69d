//! The command line and the messages of Claude Code: a run in its place, for programs that drive it.

pub mod args;
mod control;
mod conversation;
mod hooks;
mod input;
mod options;
mod outbox;
mod permissions;
mod questions;
mod servers;
mod session;

use crate::client_input::{Input as Stdin, end_runs};
use crate::client_lines::{Line, LineReader, MAX_LINE_BYTES};
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::stop_reason::Status;
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_report::claude::{ClaudeEvents, informational};
use agent_report::{self as report, OutputFormat};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::prompt::read_prompt;
use agent_runtime::interrupt::SignalHandlers;
use agent_terminal::{Style, when_reader_is_gone};
use args::{ClaudeArgs, ClaudeInput, ClaudeOutput};
use conversation::Conversation;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use input::{Input, Prompt, parse};
use options::setup;
use outbox::Outbox;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Messages of the user that wait for the end of a run.
const MAX_QUEUED: usize = 64;
/// Time to write what was sent last, after a signal or when the client does not read.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Runs the command line and returns the exit code.
pub fn claude(app: &App, args: &ClaudeArgs) -> u8 {
    let done = app.block_on(async {
        let ended = app.interrupt()?.arm(SignalHandlers::silent());
        let when_gone = ended.clone();
        when_reader_is_gone(move || when_gone.cancel());
        let (outbox, writer) = Outbox::start(args.output_format, &app.source, ended.clone());
        let code = match open(app, args, &outbox) {
            Ok((conversation, prompt)) => {
                let reads_lines = args.input_format == ClaudeInput::StreamJson;
                converse(Rc::new(conversation), prompt, reads_lines, &ended).await
            }
            Err(error) => {
                app.report_error(&error);
                let result = app.not_started(&error);
                outbox.message(ClaudeEvents::new(false).result(&result, Language::En));
                error.exit_code().code()
            }
        };
        drop(outbox);
        // A client that reads slowly is waited for unless it has gone.
        tokio::select! {
            _written = writer => {}
            () = async { ended.cancelled().await; tokio::time::sleep(FLUSH_TIME).await } => {}
        }
        Ok(code)
    });
    done.unwrap_or_else(|error: AppError| {
        app.report_error(&error);
        error.exit_code().code()
    })
}

/// Opens the conversation; returns it with the message of the command line, unless messages come from standard input.
fn open(app: &App, args: &ClaudeArgs, outbox: &Rc<Outbox>) -> AppResult<(Conversation, Option<Prompt>)> {
    let usage = |text: &str| AppError::new(FailureKind::Usage, text);
    let is_stream = args.input_format == ClaudeInput::StreamJson;
    if is_stream && args.output_format != ClaudeOutput::StreamJson {
        return Err(usage(messages::CLAUDE_INPUT_FORMAT));
    }
    if !is_stream && !args.print {
        return Err(usage(messages::CLAUDE_NOT_INTERACTIVE));
    }
    let conversation = Conversation::open(setup(app, args)?, args, outbox)?;
    if args.output_format != ClaudeOutput::StreamJson {
        for text in conversation.take_warnings() {
            app.notify(Style::Warning, &text);
        }
    }
    let prompt =
        if is_stream { args.prompt.clone() } else { Some(read_prompt(&app.terminal, args.prompt.clone())?) };
    Ok((conversation, prompt.map(|text| Prompt { text, images: Vec::new() })))
}

/// Runs the messages one after the other until there are no more; returns the exit code of the last one.
async fn converse(
    conversation: Rc<Conversation>,
    prompt: Option<Prompt>,
    reads_lines: bool,
    ended: &CancellationToken,
) -> u8 {
    let mut is_open = reads_lines;
    let stdin = Stdin { stdin: tokio::io::stdin(), ended: CancellationToken::new() };
    let mut lines = LineReader::new(stdin, MAX_LINE_BYTES);
    let mut queue: VecDeque<Prompt> = prompt.into_iter().collect();
    let mut running = FuturesUnordered::new();
    loop {
        if running.is_empty() {
            match queue.pop_front() {
                Some(prompt) => running.push(start(&conversation, prompt, ended).boxed_local()),
                None if !is_open => break,
                None => {}
            }
        }
        tokio::select! {
            biased;
            () = ended.cancelled() => break,
            Some(()) = running.next(), if !running.is_empty() => {}
            line = lines.next(), if is_open => match line {
                Some(Line::Complete(line)) => receive(&conversation, &line, &mut queue),
                Some(Line::TooLong) => {
                    let text = format!("a line has at most {MAX_LINE_BYTES} bytes");
                    conversation.outbox.message(informational(&messages::claude_line_invalid(&text)));
                }
                None => {
                    is_open = false;
                    conversation.outbox.close();
                }
            },
        }
    }
    // Otherwise nothing runs any more, and what was sent has time to be written.
    if ended.is_cancelled() {
        end_runs(running, ended).await;
    }
    show_answer(&conversation);
    conversation.code.get()
}

fn start(
    conversation: &Rc<Conversation>,
    prompt: Prompt,
    ended: &CancellationToken,
) -> impl Future<Output = ()> + 'static {
    let (conversation, ended) = (Rc::clone(conversation), ended.clone());
    async move { conversation.run(prompt, ended).await }
}

/// Handles a line of the client.
fn receive(conversation: &Conversation, line: &[u8], queue: &mut VecDeque<Prompt>) {
    let outbox = &conversation.outbox;
    match parse(line) {
        Ok(Input::User(_)) if queue.len() >= MAX_QUEUED => {
            conversation.refuse(messages::CLAUDE_TOO_MANY_MESSAGES);
        }
        Ok(Input::User(prompt)) => queue.push_back(prompt),
        Ok(Input::InvalidUser(why)) => conversation.refuse(&why),
        Ok(Input::Request(id, mut request)) => outbox.respond(&id, conversation.control(&mut request)),
        Ok(Input::Response(id, answer)) => outbox.resolve(&id, answer),
        Ok(Input::Nothing) => {}
        Err((Some(id), why)) => outbox.respond(&id, Err(why)),
        Err((None, why)) => outbox.message(informational(&messages::claude_line_invalid(&why))),
    }
}

/// Writes the answer as text, if that is the format.
fn show_answer(conversation: &Conversation) {
    let Conversation { setup, last, outbox, .. } = conversation;
    let last = last.borrow();
    let Some(result) = last.as_ref().filter(|_| outbox.is_text()) else { return };
    let terminal = &setup.app.terminal;
    let written = report::write_result(terminal, OutputFormat::Text, result, &AnswerShown::default());
    if written.is_err() && conversation.code.get() == 0 {
        conversation.code.set(agent_run::exit_code::ExitCode::Failed.code());
    }
    if result.status != Status::Success && result.error.is_none() {
        let text = messages::run_not_successful(result, setup.settings.language);
        setup.app.notify(Style::Warning, &setup.app.redact(&text));
    }
}
