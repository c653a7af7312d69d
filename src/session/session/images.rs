//! Removes images from a session when it has more than a request may have.

use super::Session;
use crate::conversation_images::remove_images;
use agent_core::image::excess_images;

impl Session {
    /// Removes the oldest images if the conversation has too many.
    pub(super) fn remove_excess_images(&mut self) {
        let images = self.messages.iter().flat_map(|message| message.images());
        let sizes: Vec<u64> = images.map(|image| image.bytes).collect();
        let new = self.messages.last().map_or(0, |message| message.images().count());
        let excess = excess_images(&sizes, sizes.len().saturating_sub(new));
        if excess > 0 {
            self.change_messages(|session| remove_images(&mut session.messages, excess, &session.delimiter));
        }
    }
}
