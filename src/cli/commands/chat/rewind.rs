//! `/rewind`: goes back to before a message of the user, with the files, the conversation or both.

use super::conversation::Conversation;
use super::slash_commands::usage;
use agent_journal::prompts::Prompt;
use agent_messages as messages;
use agent_run::error::AppResult;
use agent_terminal::first_line;
use agent_terminal::line_editor::Candidate;

/// Characters shown of a message.
const MESSAGE_CHARS: usize = 60;

/// Returns a message as a value of the command, without what `redact` removes.
pub fn candidate(at: usize, prompt: &Prompt, redact: impl Fn(&str) -> String) -> Candidate {
    let message = first_line(&redact(&prompt.text), MESSAGE_CHARS);
    let about = messages::rewind_point(&message, &prompt.files);
    Candidate { about, ..at.saturating_add(1).to_string().into() }
}

impl Conversation<'_> {
    /// Goes back to before the message whose number `arguments` begins with; without a number, lists the messages.
    pub(super) fn rewind(&mut self, arguments: &str) -> AppResult<()> {
        let Some(id) = self.session.clone() else { return Err(usage(messages::CHAT_NO_SESSION)) };
        let mut prompts = self.sessions()?.prompts(&id)?;
        let (number, what) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        if number.is_empty() {
            self.list_prompts(&prompts);
            return Ok(());
        }
        let (files, conversation) = match what.trim() {
            "" | "both" => (true, true),
            "files" => (true, false),
            "conversation" => (false, true),
            _ => return Err(usage(messages::CHAT_REWIND_USAGE)),
        };
        let at = number.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let Some(at) = at.filter(|at| *at < prompts.len()) else {
            return Err(usage(messages::rewind_no_message(number, prompts.len())));
        };
        let Prompt { text, steps_before, records_before, images, .. } = prompts.swap_remove(at);
        let copy = (conversation && at > 0).then(|| self.app.source.session_id());
        let store = self.sessions()?;
        // What can fail comes first, so that nothing goes back by half.
        if let Some(copy) = &copy {
            store.copy_part(&id, copy, |records| records.get(..records_before).unwrap_or_default())?;
        }
        if files && !self.on_session(&["undo"], &format!("--to-step {steps_before}"))? {
            // The reason is on the screen.
            return copy.map_or(Ok(()), |copy| Ok(store.remove(&copy).map(drop)?));
        }
        if conversation {
            self.change_session(copy)?;
            self.refresh_footer()?;
            self.typed = text;
            self.say(&messages::rewound(number, &id, images));
        }
        Ok(())
    }

    fn list_prompts(&self, prompts: &[Prompt]) {
        for (at, prompt) in prompts.iter().enumerate() {
            let Candidate { text, about, .. } = candidate(at, prompt, |text| self.app.redact(text));
            self.say(&format!("{text:>3}  {about}"));
        }
        self.say(messages::CHAT_REWIND_USAGE);
    }
}
