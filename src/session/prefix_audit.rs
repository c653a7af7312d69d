//! Reports changes of the request prefix and cache losses, because a changed prefix invalidates the provider's cache.

use crate::Agent;
use agent_core::event::{Event, NoticeLevel};
use agent_core::usage::Usage;
use agent_llm::Request;
use agent_llm::prompt_prefix::PrefixChange;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;

impl<S> Agent<S> {
    /// Emits the prefix of `request`, a step, when it is the first one of this process or when the prefix has changed.
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

    /// Emits a notice when the provider's cache was lost although the prefix is unchanged.
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
