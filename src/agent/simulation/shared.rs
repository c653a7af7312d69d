//! What the models, the surroundings and the checks of a world share, over all of its runs.

use super::count::Counts;
use super::place::Place;
use super::truth::Truth;
use super::world::World;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What all parts of a world know.
#[derive(Debug)]
pub struct Shared {
    /// The world.
    pub world: Rc<World>,
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
    pub fn new(world: Rc<World>) -> Rc<Self> {
        Rc::new(Self {
            world,
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
