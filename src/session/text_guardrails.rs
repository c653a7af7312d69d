//! Applies text guardrails to the conversation: to new input before each request, and to each answer before it is shown.

use crate::Agent;
use crate::loop_services::LoopServices;
use crate::session::UnreadText;
use agent_core::event::Event;
use agent_core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use agent_core::message::{Message, Role};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;

impl<S: LoopServices> Agent<S> {
    /// Checks the texts that the model has not read yet. Returns whether the run ends, and emits the guardrail then. Results were already checked
    /// when they were created, and blocked ones withheld; a blocked message ends the run, because nothing would be left to answer.
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

    /// Whether answers are checked before they are shown.
    pub(super) fn has_output_guardrails(&self) -> bool {
        self.engine.has_guardrails(ConversationSide::Output)
    }

    /// Returns the answer; if a guardrail triggers on it (including its earlier pieces), returns a notice instead.
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
