//! Watches what requests begin with: a beginning that changes costs the provider's cache, and somebody should know.

use crate::agent::Agent;
use crate::core::event::{Event, NoticeLevel};
use crate::core::usage::Usage;
use crate::llm::Request;
use crate::llm::prompt_prefix::PrefixChange;
use crate::messages;
use crate::runtime::emitter::EmitError;

impl<S> Agent<S> {
    /// Tells what `request`, a step, begins with when it is the first of this process or began otherwise before.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn report_prefix_change(&self, request: &Request<'_>) -> Result<(), EmitError> {
        let finding = self.prefix.borrow_mut().compare(request, self.llm());
        if let Some(PrefixChange { hashes, changed }) = finding {
            self.emitter.emit(Event::RequestPrefix { hashes, changed })?;
        }
        Ok(())
    }

    /// Tells when the provider has lost what it kept although nothing changed.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn report_cache_loss(&self, usage: Usage) -> Result<(), EmitError> {
        let lost = self.prefix.borrow_mut().record_usage(usage);
        if let Some(tokens) = lost {
            let text = messages::cache_miss(tokens);
            self.emitter.emit(Event::Notice { level: NoticeLevel::Info, text })?;
        }
        Ok(())
    }
}
