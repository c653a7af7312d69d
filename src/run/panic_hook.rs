//! Reports panics, which are bugs, as one sanitized line without secrets.

use crate::app::App;
use crate::exit_code::ExitCode;
use agent_messages as messages;
use agent_terminal::{Style, Terminal, one_line};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::sync::Arc;

/// Maximum length of a panic message in characters, because messages of the standard library quote values.
const MESSAGE_CHARS: usize = 1_000;

/// Prefixes of the panic messages of the standard library and tokio when the system cannot start a thread or map its
/// stack.
const NO_THREAD: [&str; 4] = [
    "failed to spawn thread",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack guard page",
    "OS can't spawn worker thread",
];

/// Installs the panic hook. It prints a backtrace if `RUST_BACKTRACE` is set. A thread that cannot be
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
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = clean(panic.payload_as_str().unwrap_or_default());
        print_panic(&terminal, &location, &message);
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            drop(terminal.try_eprintln(Style::Dim, &clean(&trace.to_string())));
        }
    }));
}

fn print_panic(terminal: &Terminal, location: &str, message: &str) {
    let text = messages::panicked(location, &one_line(message, MESSAGE_CHARS));
    drop(terminal.try_eprintln(Style::Error, &text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_terminal::{StreamInfo, TerminalEnvironment};
    use std::io::Read;

    #[test]
    fn what_a_panic_quotes_neither_controls_the_terminal_nor_forges_a_line() {
        let (mut reader, err) = std::io::pipe().unwrap();
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
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(
            text,
            "error: agent panicked at src/text/edit.rs:1:2, which is a bug: it is inside of 'é' of \
             `\\u{1b}]52;c;aGk=\\u{7}\\n✅ done\\u{202e}`\n"
        );
    }
}
