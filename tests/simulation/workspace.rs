//! The simulated workspace: what calls have done, which no crash undoes.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// From here on items cannot be written, and all say the same.
pub const OUT_OF_REACH: u64 = 100_000;

/// Items and what was done to them.
#[derive(Debug, Default)]
pub struct SimulatedWorkspace {
    items: RefCell<BTreeMap<u64, String>>,
    /// How often each item was tried.
    tries: RefCell<BTreeMap<u64, u32>>,
    /// Calls that have run.
    ran: RefCell<BTreeMap<String, u32>>,
    /// Background commands that were started.
    pub started: RefCell<u32>,
}

impl SimulatedWorkspace {
    /// A call runs; how often it has.
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

    /// Somebody tries to write `item`; how often that was tried.
    pub fn tries(&self, item: u64) -> u32 {
        let mut tries = self.tries.borrow_mut();
        let times = tries.entry(item).or_default();
        *times += 1;
        *times
    }

    /// Writes `item`; whether it was there.
    pub fn write(&self, item: u64) -> bool {
        self.items.borrow_mut().insert(item, format!("content of {item}")).is_some()
    }

    /// Reads `item`.
    pub fn read(&self, item: u64) -> Option<String> {
        if item >= OUT_OF_REACH {
            return Some("It is too far away to be read. ".repeat(10));
        }
        self.items.borrow().get(&item).cloned()
    }

    /// All that is there.
    pub fn all(&self) -> BTreeMap<u64, String> {
        self.items.borrow().clone()
    }
}
