//! What the models, the surroundings and the checks of a scenario share, over all of its runs.

use super::actual_spending::ActualSpending;
use super::counters::CoverageCounts;
use super::scenario::Scenario;
use super::workspace::SimulatedWorkspace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Of how many one is looked at that is looked at for itself alone.
#[derive(Debug, Clone, Copy)]
pub struct SampleRates {
    /// Records that are read back.
    pub read_back: u32,
    /// Requests that are written in every wire format.
    pub wire: u64,
    /// Sessions that are done again by a replay.
    pub replays: u64,
}

impl SampleRates {
    /// Those of a simulation of a usual length.
    pub const USUAL: Self = Self { read_back: 1, wire: 50, replays: 6 };
    /// Those of a long one, in which more of each are looked at all the same.
    pub const OF_MANY: Self = Self { read_back: 4, wire: 150, replays: 10 };
}

/// What all parts of a scenario know.
#[derive(Debug)]
pub struct SimulationContext {
    /// The scenario.
    pub scenario: Rc<Scenario>,
    /// What is looked at of it.
    pub samples: SampleRates,
    /// The workspace.
    pub workspace: SimulatedWorkspace,
    /// What requests have cost in the run at work.
    pub actual_spending: ActualSpending,
    /// Requests of the run at work.
    pub requests: Cell<u64>,
    /// Time that the run at work may take beyond its limit: hooks of its end.
    pub grace: Cell<Duration>,
    /// What was reached.
    pub counts: RefCell<CoverageCounts>,
}

impl SimulationContext {
    /// What is shared in `scenario`.
    pub fn new(scenario: Rc<Scenario>, samples: SampleRates) -> Rc<Self> {
        Rc::new(Self {
            scenario,
            samples,
            workspace: SimulatedWorkspace::default(),
            actual_spending: ActualSpending::default(),
            requests: Cell::default(),
            grace: Cell::default(),
            counts: RefCell::default(),
        })
    }

    /// A run begins.
    pub fn start_run(&self) {
        self.actual_spending.start_run();
        self.requests.set(0);
        self.grace.set(Duration::ZERO);
    }

    /// Counts `name` of `group` once more.
    pub fn count(&self, group: &'static str, name: &str) {
        self.counts.borrow_mut().add(group, name);
    }
}
