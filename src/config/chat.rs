//! The section `chat` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `agent chat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatSettings {
    /// Whether a line that you type while the agent works is sent with its next step; otherwise after the end of its work, as with Alt+Enter.
    pub queue: bool,
    /// The keys with which a message is edited.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub editing: Editing,
    /// How you are called when a message has ended or a question waits and you have not typed for a while.
    pub notify: ChatNotification,
    /// Program with arguments that is started too when you are called, without a shell; the text is its last argument.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub notify_command: Vec<String>,
    /// Time without a key after which you are called.
    #[schemars(range(min = 0, max = 86_400), extend("x-unit" = "seconds"))]
    pub notify_after: u64,
}

/// The keys with which a message is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Editing {
    /// Those of Emacs and readline.
    Emacs,
    /// Those of vi: Esc leaves the insert mode, in which each message begins.
    Vi,
}

/// How the user of a conversation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChatNotification {
    /// By the bell of the terminal.
    Bell,
    /// By a notification of the desktop: the sequence OSC 9, which iTerm2, `WezTerm`, Ghostty, kitty and Windows Terminal show.
    Osc9,
    /// By a notification of the desktop: the sequence OSC 777 of urxvt, which foot, Konsole and VTE show.
    Osc777,
    /// Not at all.
    None,
}
