//! Panics, which are bugs, told like everything else: harmless for a terminal and without secrets.

use crate::cli::compose::app::App;
use crate::cli::exit_code::ExitCode;
use crate::messages;
use crate::terminal::{Style, Terminal, one_line};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::sync::Arc;

/// The longest message that is told, in characters: those of the standard library quote what they are about.
const MESSAGE_CHARS: usize = 1_000;

/// How the messages of panics begin with which the standard library and tokio answer that the system starts no thread or maps no
/// stack for one.
const NO_THREAD: [&str; 4] = [
    "failed to spawn thread",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack guard page",
    "OS can't spawn worker thread",
];

/// Tells panics of this process from now on, with a backtrace where `RUST_BACKTRACE` asks for one. A thread that cannot be
/// started is no bug: it ends the process with a message and exit code 1.
#[expect(
    clippy::exit,
    reason = "a hook cannot return an exit code, and the rest of the program waits for the thread"
)]
pub fn install(app: &App) {
    let (terminal, clean) = (Arc::clone(&app.terminal), app.redact_fn());
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if NO_THREAD.iter().any(|beginning| text.starts_with(beginning)) {
            drop(terminal.try_eprintln(Style::Error, messages::NO_THREAD));
            std::process::exit(ExitCode::Failed.code().into());
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = clean(panic.payload_as_str().unwrap_or_default());
        print_panic(&terminal, &place, &message);
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            drop(terminal.try_eprintln(Style::Dim, &clean(&trace.to_string())));
        }
    }));
}

fn print_panic(terminal: &Terminal, place: &str, message: &str) {
    let text = messages::panicked(place, &one_line(message, MESSAGE_CHARS));
    drop(terminal.try_eprintln(Style::Error, &text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{StreamInfo, TerminalEnvironment};
    use std::io::Read;

    #[test]
    fn what_a_panic_quotes_neither_controls_the_terminal_nor_forges_a_line() {
        let (mut told, err) = std::io::pipe().unwrap();
        let terminal = Terminal::with_streams(
            StreamInfo::default(),
            &TerminalEnvironment::default(),
            Box::new(std::io::sink()),
            Box::new(err),
        );
        print_panic(
            &terminal,
            "src/text/edit.rs:1:2",
            "it is inside of 'é' of `\u{1b}]52;c;aGk=\u{7}\n✅ done\u{202e}`",
        );
        drop(terminal);
        let mut text = String::new();
        told.read_to_string(&mut text).unwrap();
        assert_eq!(
            text,
            "error: agent panicked at src/text/edit.rs:1:2, which is a bug: it is inside of 'é' of \
             `\\u{1b}]52;c;aGk=\\u{7}\\n✅ done\\u{202e}`\n"
        );
    }
}
