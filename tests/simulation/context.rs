//! State shared by the models, the services and the checks of a scenario, over all of its runs.

use super::actual_spending::ActualSpending;
use super::counters::CoverageCounts;
use super::scenario::Scenario;
use super::workspace::SimulatedWorkspace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Sampling rates of expensive checks: one in how many is checked.
#[derive(Debug, Clone, Copy)]
pub struct SampleRates {
    /// Records that are parsed again.
    pub read_back: u32,
    /// Requests that are encoded in every wire format.
    pub wire: u64,
    /// Sessions that are replayed.
    pub replays: u64,
}

impl SampleRates {
    /// Rates for a simulation of the usual length.
    pub const USUAL: Self = Self { read_back: 1, wire: 50, replays: 6 };
    /// Rates for a long simulation, which still checks more in total.
    pub const LONG: Self = Self { read_back: 4, wire: 150, replays: 10 };
}

/// State shared by all parts of a scenario.
#[derive(Debug)]
pub struct SimulationContext {
    /// The scenario.
    pub scenario: Rc<Scenario>,
    /// The sampling rates.
    pub samples: SampleRates,
    /// The workspace.
    pub workspace: SimulatedWorkspace,
    /// Actual costs of the requests of the current run.
    pub actual_spending: ActualSpending,
    /// Requests of the current run.
    pub requests: Cell<u64>,
    /// Time that the current run may exceed its limit by: the hooks at its end.
    pub grace: Cell<Duration>,
    /// Coverage counts.
    pub counts: RefCell<CoverageCounts>,
}

impl SimulationContext {
    /// Creates the shared state of `scenario`.
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

    /// Resets the state of the run.
    pub fn start_run(&self) {
        self.actual_spending.start_run();
        self.requests.set(0);
        self.grace.set(Duration::ZERO);
    }

    /// Counts `name` in `group`.
    pub fn count(&self, group: &'static str, name: &str) {
        self.counts.borrow_mut().add(group, name);
    }
}
