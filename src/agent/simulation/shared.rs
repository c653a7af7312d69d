//! What the models, the surroundings and the checks of a world share, over all of its runs.

use super::count::Counts;
use super::place::Place;
use super::truth::Truth;
use super::world::World;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Of how many one is looked at that is looked at for itself alone.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    /// Records that are read back.
    pub read_back: u32,
    /// Requests that are written in every wire format.
    pub wire: u64,
    /// Sessions that are done again by a replay.
    pub replays: u64,
}

impl Samples {
    /// Those of a simulation of a usual length.
    pub const USUAL: Self = Self { read_back: 1, wire: 50, replays: 6 };
    /// Those of a long one, in which more of each are looked at all the same.
    pub const OF_MANY: Self = Self { read_back: 4, wire: 150, replays: 10 };
}

/// What all parts of a world know.
#[derive(Debug)]
pub struct Shared {
    /// The world.
    pub world: Rc<World>,
    /// What is looked at of it.
    pub samples: Samples,
    /// The workspace.
    pub place: Place,
    /// What requests have cost in the run at work.
    pub truth: Truth,
    /// Requests of the run at work.
    pub requests: Cell<u64>,
    /// Time that the run at work may take beyond its limit: hooks of its end.
    pub grace: Cell<Duration>,
    /// What was reached.
    pub counts: RefCell<Counts>,
}

impl Shared {
    /// What is shared in `world`.
    pub fn new(world: Rc<World>, samples: Samples) -> Rc<Self> {
        Rc::new(Self {
            world,
            samples,
            place: Place::default(),
            truth: Truth::default(),
            requests: Cell::default(),
            grace: Cell::default(),
            counts: RefCell::default(),
        })
    }

    /// A run begins.
    pub fn begin(&self) {
        self.truth.begin();
        self.requests.set(0);
        self.grace.set(Duration::ZERO);
    }

    /// Counts `name` of `group` once more.
    pub fn count(&self, group: &'static str, name: &str) {
        self.counts.borrow_mut().add(group, name);
    }
}
