//! Terminal access: kind of the standard streams, all output to them, prompts, and sanitized text.

mod code;
mod hyperlink;
mod input_line;
mod keys;
pub mod line_editor;
mod live;
pub mod markdown;
mod notify;
mod page;
pub mod preview;
mod prompt;
mod reader_gone;
mod sanitize;
mod spinner;
mod streams;
mod vi;

pub use agent_text::{invisible::needs_escape, lines::one_line};
pub use hyperlink::Link;
pub use keys::SavedModes;
pub use live::InputView;
pub use notify::{Calls, Notification};
pub use page::TerminalSize;
pub use prompt::{PromptAnswer, PromptQuestion, diff_style};
pub use reader_gone::when_reader_is_gone;
pub use sanitize::{
    first_line, row_count, sanitize, sanitize_prose, truncate_end, truncate_middle, wrap_words,
};
pub use streams::{PrintOutcome, StdoutTarget, StreamInfo, Style, Terminal, TerminalEnvironment};
