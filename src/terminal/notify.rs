//! Calls a user who looks elsewhere, and names the window.

use super::streams::Terminal;
use agent_text::invisible::needs_escape;
use agent_text::lines::one_line;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum characters of a title and of a notification.
const MAX_CHARS: usize = 120;
/// Maximum bytes of a copied text: what terminals accept in one sequence is at least 100,000 bytes in base64 (tmux, hterm).
const MAX_COPIED_BYTES: usize = 74_994;
/// Store and restore the title of the window (xterm control sequences, XTWINOPS 22 and 23).
const STORE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

/// How a user is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// By the bell.
    Bell,
    /// By OSC 9 of iTerm2: a text.
    Osc9,
    /// By OSC 777 of urxvt: a title and a text.
    Osc777,
}

impl Notification {
    /// Returns what makes a terminal show `text`.
    fn sequence(self, text: &str) -> String {
        match self {
            Self::Bell => "\x07".to_owned(),
            Self::Osc9 => format!("\x1b]9;{text}\x07"),
            Self::Osc777 => format!("\x1b]777;notify;agent;{text}\x07"),
        }
    }
}

/// When and how the user is called, the name of the window, and why a user who does not type soon is called.
#[derive(Debug, Default)]
pub(super) struct Window(Mutex<Option<Calls>>, Mutex<Option<String>>);

/// Starts the command that notifies, with a text.
type StartCommand = Arc<dyn Fn(&str) + Send + Sync>;

/// When and how the user is called.
#[derive(Clone)]
pub struct Calls {
    /// How the terminal calls.
    pub how: Option<Notification>,
    /// What calls beside the terminal, with a text.
    pub command: Option<StartCommand>,
    /// Time without a key before a call.
    pub after: Duration,
    /// Name of the window.
    pub name: String,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("how", &self.how).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Window {
    fn get(&self) -> Option<Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn why(&self) -> MutexGuard<'_, Option<String>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    /// Names the window and calls the user from now on.
    pub fn begin_calls(&self, calls: Calls) {
        if self.has_icons() {
            *self.window.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(calls);
            self.note_key();
            self.write_sequence(STORE_TITLE);
        }
    }

    /// Gives the window its name back.
    pub fn end_calls(&self) {
        let sequence = self.title_back();
        self.write_sequence(sequence);
    }

    /// Returns what gives the window its name back, once.
    pub(super) fn title_back(&self) -> &'static str {
        let before = self.window.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if before.is_some() { RESTORE_TITLE } else { "" }
    }

    /// Shows `state` in the title of the window.
    pub fn set_title(&self, state: &str) {
        if let Some(Calls { name, .. }) = self.window.get() {
            self.write_sequence(&format!("\x1b]2;{}\x07", one_line(&format!("{state}{name}"), MAX_CHARS)));
        }
    }

    /// Calls the user because of `why`, as soon as nothing was typed for a while.
    pub fn call_user(&self, why: &str) {
        *self.window.why() = Some(why.to_owned());
        if self.time_to_call().is_some_and(|rest| rest.is_zero()) {
            self.call();
        }
    }

    /// Waits until the user is called; for ever if there is no reason to call.
    pub(super) async fn until_call(&self) {
        while let Some(rest) = self.time_to_call() {
            if rest.is_zero() {
                self.call();
                return;
            }
            tokio::time::sleep(rest).await;
        }
        std::future::pending::<()>().await;
    }

    /// Forgets why the user was to be called: the user is there, or something else begins.
    pub fn forget_call(&self) {
        self.window.why().take();
    }

    /// Returns the time that is left without a key until the user is called; `None` without a reason.
    fn time_to_call(&self) -> Option<Duration> {
        let Calls { after, .. } = self.window.get()?;
        self.window.why().as_ref()?;
        Some(after.saturating_sub(self.since_last_key()?))
    }

    fn call(&self) {
        let (Some(Calls { how, command, name, .. }), Some(why)) =
            (self.window.get(), self.window.why().take())
        else {
            return;
        };
        let text = one_line(&format!("{why} · {name}"), MAX_CHARS);
        if let Some(command) = command {
            command(&text);
        }
        if let Some(how) = how {
            self.write_sequence(&how.sequence(&text));
        }
    }

    /// Puts `text` on the clipboard of the terminal, without characters that could act there when it is pasted (OSC 52 of xterm). Returns
    /// false if this terminal shows no sequences or the text is too long for it.
    pub fn copy(&self, text: &str) -> bool {
        let plain: String =
            text.chars().filter(|char| matches!(char, '\n' | '\t') || !needs_escape(*char)).collect();
        let is_possible = self.has_icons() && plain.len() <= MAX_COPIED_BYTES;
        if is_possible {
            self.write_sequence(&format!("\x1b]52;c;{}\x07", STANDARD.encode(plain)));
        }
        is_possible
    }
}
