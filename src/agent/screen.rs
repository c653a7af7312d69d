//! Guardrails on the conversation: what the model is about to read is looked at before it is asked, what it has written
//! before anybody sees it.

use crate::agent::Agent;
use crate::agent::session::Unread;
use crate::agent::surroundings::Surroundings;
use crate::emit::EmitError;
use crate::event::Event;
use crate::guardrail::{Reaction, Side, Triggered};
use crate::message::{Message, Role};
use crate::messages;

impl<S: Surroundings> Agent<S> {
    /// Whether something that the model has not read yet ends the run, which is told then. Results were looked at when they
    /// were made, and what was to be withheld of them is. Without the words that it is told there is nothing to answer.
    pub(super) fn halts(&self) -> Result<bool, EmitError> {
        let Some(triggered) = self.unread_trigger() else { return Ok(false) };
        let triggered = Triggered { action: Reaction::Halt, ..triggered };
        self.emitter.emit(Event::Guardrail { triggered }).map(|_| true)
    }

    fn unread_trigger(&self) -> Option<Triggered> {
        let finds = |text| self.engine.finds(Side::Input, text);
        let session = self.session.borrow();
        let mut unread = session.unread().filter(|_| self.engine.looks_at(Side::Input));
        unread.find_map(|text| match text {
            Unread::Words(text) => finds(text),
            Unread::Result(text) => finds(text).filter(|found| found.action == Reaction::Halt),
        })
    }

    /// Whether answers are looked at before they are shown.
    pub(super) fn screens(&self) -> bool {
        self.engine.looks_at(Side::Output)
    }

    /// An answer, or what stands in its place where a guardrail finds something in it, or in it and its earlier pieces.
    pub(super) fn screened(&self, message: Message) -> Result<Message, EmitError> {
        if !self.screens() {
            return Ok(message);
        }
        let mut text = self.session.borrow().begun().to_owned() + &message.joined_text();
        for call in message.tool_calls() {
            text.extend(["\n", &call.name, " ", &call.arguments]);
        }
        let Some(triggered) = self.engine.finds(Side::Output, &text) else {
            return Ok(message);
        };
        let note = messages::withheld(&triggered.name, &triggered.message);
        self.emitter.emit(Event::Guardrail { triggered })?;
        Ok(Message::text(Role::Assistant, note))
    }
}
