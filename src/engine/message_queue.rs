//! Messages that the user types while a run works, for its next step.

use std::cell::RefCell;
use std::rc::Rc;

/// Messages in the order in which they were typed. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MessageQueue(Rc<RefCell<Vec<String>>>);

impl MessageQueue {
    /// Adds a message unless it is blank; returns whether it was added.
    pub fn push(&self, text: &str) -> bool {
        let text = text.trim();
        if !text.is_empty() {
            self.0.borrow_mut().push(text.to_owned());
        }
        !text.is_empty()
    }

    /// Returns the messages that wait.
    pub fn texts(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Takes the last message.
    pub fn take_last(&self) -> Option<String> {
        self.0.borrow_mut().pop()
    }

    /// Takes all messages.
    pub fn take(&self) -> Vec<String> {
        self.0.take()
    }
}
