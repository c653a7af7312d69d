//! Guardrails on the conversation: what the model is about to read is looked at before it is asked, what it has written
//! before anybody sees it.

use crate::agent::Agent;
use crate::agent::loop_services::LoopServices;
use crate::agent::session::UnreadText;
use crate::core::event::Event;
use crate::core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use crate::core::message::{Message, Role};
use crate::messages;
use crate::runtime::emitter::EmitError;

impl<S: LoopServices> Agent<S> {
    /// Whether something that the model has not read yet ends the run, which is told then. Results were looked at when they
    /// were made, and what was to be withheld of them is. Without the words that it is told there is nothing to answer.
    pub(super) fn halts_on_guardrail(&self) -> Result<bool, EmitError> {
        let Some(triggered) = self.unread_trigger() else { return Ok(false) };
        let triggered = TriggeredGuardrail { action: GuardrailAction::Halt, ..triggered };
        self.emitter.emit(Event::Guardrail { triggered }).map(|_| true)
    }

    fn unread_trigger(&self) -> Option<TriggeredGuardrail> {
        let finds = |text| self.engine.find_trigger(ConversationSide::Input, text);
        let session = self.session.borrow();
        let mut unread = session.unread().filter(|_| self.engine.has_guardrails(ConversationSide::Input));
        unread.find_map(|text| match text {
            UnreadText::Message(text) => finds(text),
            UnreadText::Result(text) => finds(text).filter(|found| found.action == GuardrailAction::Halt),
        })
    }

    /// Whether answers are looked at before they are shown.
    pub(super) fn has_output_guardrails(&self) -> bool {
        self.engine.has_guardrails(ConversationSide::Output)
    }

    /// An answer, or what stands in its place where a guardrail finds something in it, or in it and its earlier pieces.
    pub(super) fn apply_output_guardrails(&self, message: Message) -> Result<Message, EmitError> {
        if !self.has_output_guardrails() {
            return Ok(message);
        }
        let mut text = self.session.borrow().partial_answer().to_owned() + &message.joined_text();
        for call in message.tool_calls() {
            text.extend(["\n", &call.name, " ", &call.arguments]);
        }
        let Some(triggered) = self.engine.find_trigger(ConversationSide::Output, &text) else {
            return Ok(message);
        };
        let note = messages::withheld_text(&triggered.name, &triggered.message);
        self.emitter.emit(Event::Guardrail { triggered })?;
        Ok(Message::text(Role::Assistant, note))
    }
}
