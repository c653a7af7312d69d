//! The simulated workspace: the effects of calls, which survive crashes.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// First item that cannot be written; all items from here on give the same error.
pub const FIRST_UNWRITABLE: u64 = 100_000;

/// The items, and counters of what was done to them.
#[derive(Debug, Default)]
pub struct SimulatedWorkspace {
    items: RefCell<BTreeMap<u64, String>>,
    /// How often each item was tried.
    tries: RefCell<BTreeMap<u64, u32>>,
    /// Calls that have run.
    ran: RefCell<BTreeMap<String, u32>>,
    /// Number of background commands started.
    pub started: RefCell<u32>,
}

impl SimulatedWorkspace {
    /// Counts a run of a call and returns how often it has run.
    pub fn runs(&self, call_id: &str) -> u32 {
        let mut ran = self.ran.borrow_mut();
        let times = ran.entry(call_id.to_owned()).or_default();
        *times += 1;
        *times
    }

    /// Whether a call has run.
    pub fn has_run(&self, call_id: &str) -> bool {
        self.ran.borrow().contains_key(call_id)
    }

    /// Counts an attempt to write `item` and returns the number of attempts.
    pub fn tries(&self, item: u64) -> u32 {
        let mut tries = self.tries.borrow_mut();
        let times = tries.entry(item).or_default();
        *times += 1;
        *times
    }

    /// Writes `item` and returns whether it existed.
    pub fn write(&self, item: u64) -> bool {
        self.items.borrow_mut().insert(item, format!("content of {item}")).is_some()
    }

    /// Reads `item`.
    pub fn read(&self, item: u64) -> Option<String> {
        if item >= FIRST_UNWRITABLE {
            return Some("It is too far away to be read. ".repeat(10));
        }
        self.items.borrow().get(&item).cloned()
    }

    /// Returns all items.
    pub fn all(&self) -> BTreeMap<u64, String> {
        self.items.borrow().clone()
    }
}
