//! Watches what requests begin with: a beginning that changes costs the provider's cache, and somebody should know.

use crate::agent::Agent;
use crate::emit::EmitError;
use crate::event::{Event, Level};
use crate::llm::Request;
use crate::llm::prefix::Finding;
use crate::messages;
use crate::usage::Usage;

impl<S> Agent<S> {
    /// Tells what `request`, a step, begins with when it is the first of this process or began otherwise before.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn audit(&self, request: &Request<'_>) -> Result<(), EmitError> {
        let finding = self.prefix.borrow_mut().compare(request, self.llm());
        if let Some(Finding { hashes, changed }) = finding {
            self.emitter.emit(Event::RequestPrefix { hashes, changed })?;
        }
        Ok(())
    }

    /// Tells when the provider has lost what it kept although nothing changed.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn audit_usage(&self, usage: Usage) -> Result<(), EmitError> {
        let lost = self.prefix.borrow_mut().counted(usage);
        if let Some(tokens) = lost {
            let text = messages::cache_lost(tokens);
            self.emitter.emit(Event::Notice { level: Level::Info, text })?;
        }
        Ok(())
    }
}
