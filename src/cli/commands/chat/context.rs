//! `/context`: what fills the window of the model.

use super::conversation::{Conversation, NAME_CHARS};
use super::slash_commands::usage;
use agent_core::limits::Limits;
use agent_messages as messages;
use agent_messages::ContextRow;
use agent_run::error::AppResult;
use agent_run::session::{LockedSession, use_state_with};
use agent_session::context_window::{PromptPart, composition};
use agent_session::session_state::session_state;
use agent_terminal::one_line;
use std::cmp::Reverse;

impl Conversation<'_> {
    /// Shows what the next prompt consists of, and how much of the window it takes.
    pub(super) fn show_context(&self) -> AppResult<()> {
        let (Some(id), Some(context)) =
            (&self.session, self.result.as_ref().and_then(|result| result.context))
        else {
            return Err(usage(messages::CHAT_NO_SESSION));
        };
        let mut settings = self.app.load(&self.request.effective_overrides())?.settings;
        use_state_with(&mut settings, Some(id));
        let state = session_state(LockedSession::open(&settings, Some(id))?.contents, Limits::default());
        let mut rows: Vec<ContextRow> = composition(state.session.messages())
            .into_iter()
            .map(|(part, tokens)| ContextRow { name: name(&part), tokens })
            .collect();
        rows.push(ContextRow { name: "definitions of tools".to_owned(), tokens: context.tools });
        rows.sort_by_key(|row| Reverse(row.tokens));
        self.say(&messages::context_page(&rows, context.prompt, context.window));
        Ok(())
    }
}

fn name(part: &PromptPart) -> String {
    let name = match part {
        PromptPart::Results(tool) => return format!("results of {}", one_line(tool, NAME_CHARS)),
        PromptPart::Instructions => "instructions",
        PromptPart::Summary => "summary of earlier steps",
        PromptPart::Messages => "your messages",
        PromptPart::Answers => "answers and calls",
        PromptPart::Images => "images",
    };
    name.to_owned()
}
