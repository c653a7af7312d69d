//! A simulator that runs the real loop, session, retries, budget and journal in random scenarios, each generated from a seed.
//!
//! Models misbehave, tools fail, processes die, and the clock is simulated. See `tests/README.md` for how to run it.

mod actual_spending;
mod context;
mod counters;
mod coverage;
mod deterministic_model;
mod invariants;
mod memory_journal;
mod model;
mod random;
mod replies;
mod scenario;
mod services;
mod session;
mod wire_formats;
mod workspace;

use agent_core::stop_reason::{ReachedLimit, StopReason};
use context::SampleRates;
use counters::CoverageCounts;
use scenario::{ModelKind, Scenario};
use session::{SessionOutcome, SimulatedSession};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use strum::VariantArray;

/// Default number of steps.
const DEFAULT_STEPS: u64 = 4_000;

/// Number of steps from which lower sampling rates apply.
const LONG_SIMULATION_STEPS: u64 = 500_000;

/// Number of records shown for a failed session.
const SHOWN_RECORDS: usize = 12;

/// Situations that must be reached, in addition to each stop reason and each kind of model.
const REQUIRED_SITUATIONS: [(&str, &[&str]); 8] = [
    (
        "fault",
        &[
            "crash",
            "disk full",
            "interrupt",
            "silent server",
            "slow tool",
            "answer that breaks after text was shown",
        ],
    ),
    (
        "compaction",
        &[
            "started",
            "outputs shortened",
            "summarized by the model",
            "summarized without the model",
            "messages dropped",
        ],
    ),
    ("summary", &["answered", "cut", "failed"]),
    ("closing", &["answered", "failed"]),
    ("gates", &["passed", "failed"]),
    ("evaluation", &["passed", "rejected"]),
    ("review", &["passed", "rejected"]),
    ("message", &["little budget left"]),
];

/// Number of steps in which each of them must be reached once, in a long simulation.
const STEPS_PER_OCCURRENCE: u64 = 1_000;

/// Coverage of the simulated seeds.
#[derive(Default)]
struct Coverage {
    counts: CoverageCounts,
    steps: Vec<u32>,
}

#[expect(clippy::disallowed_methods, reason = "environment variables select the simulation")]
fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Runs `scenario` in its own runtime with a new clock; a failure reports how to repeat it.
fn run_scenario(scenario: Scenario, samples: SampleRates) -> (SessionOutcome, Coverage) {
    let seed = scenario.seed;
    let session = SimulatedSession::new(scenario, samples);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let finished = catch_unwind(AssertUnwindSafe(|| runtime.block_on(session.run_to_end())));
    let end = finished.unwrap_or_else(|panic_payload| {
        let records = &session.disk.borrow().records;
        let last = records.iter().rev().take(SHOWN_RECORDS).rev();
        let last: Vec<_> = last.map(|record| serde_json::to_string(record).unwrap()).collect();
        let message = panic_payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic_payload.downcast_ref::<&str>().copied());
        panic!(
            "seed {seed}: {}\n{}\n{:?}\nrepeat it: AGENT_SIMULATION_SEED={seed} cargo test --lib simulation",
            message.unwrap_or_default(),
            last.join("\n"),
            session.shared.scenario
        );
    });
    (end, Coverage { counts: session.shared.counts.take(), steps: session.steps.take() })
}

/// Runs the scenario of `seed`, and checks that it repeats equally, or ends equally without its crashes.
fn seed(seed: u64, samples: SampleRates) -> Coverage {
    let (end, mut coverage) = run_scenario(Scenario::new(seed), samples);
    if Scenario::new(seed).is_deterministic {
        let (uncrashed, more) = run_scenario(Scenario { faults: Vec::new(), ..Scenario::new(seed) }, samples);
        let crashed = (&end.answer, &end.items);
        assert_eq!(crashed, (&uncrashed.answer, &uncrashed.items), "seed {seed}: a crash changes the result");
        coverage.add(more);
        coverage.counts.add("run", "compared with one without a crash");
    } else if seed.is_multiple_of(64) {
        assert_eq!(end, run_scenario(Scenario::new(seed), samples).0, "seed {seed} does not repeat equally");
    }
    coverage
}

impl Coverage {
    fn add(&mut self, other: Self) {
        self.counts.merge(other.counts);
        self.steps.extend(other.steps);
    }
}

/// Runs seeds on all processors until this many steps are made.
fn simulate(steps: u64) -> Coverage {
    let (next_seed, steps_made) = (AtomicU64::new(1), AtomicU64::new(0));
    let samples = if steps < LONG_SIMULATION_STEPS { SampleRates::USUAL } else { SampleRates::LONG };
    let work = || {
        let mut coverage = Coverage::default();
        while steps_made.load(Ordering::Relaxed) < steps {
            let seed_coverage = seed(next_seed.fetch_add(1, Ordering::Relaxed), samples);
            steps_made.fetch_add(
                seed_coverage.steps.iter().map(|steps| u64::from(*steps)).sum(),
                Ordering::Relaxed,
            );
            coverage.add(seed_coverage);
        }
        coverage
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let mut all = Coverage::default();
        for thread in threads {
            match thread.join() {
                Ok(coverage) => all.add(coverage),
                Err(panic_payload) => std::panic::resume_unwind(panic_payload),
            }
        }
        all
    })
}

/// Returns the groups and names of all situations that must be reached.
fn wanted_names() -> impl Iterator<Item = (&'static str, String)> {
    let reasons = StopReason::VARIANTS.iter().map(|reason| ("reason", reason.to_string()));
    let kinds = ModelKind::all().into_iter().map(|kind| ("model", format!("{kind:?}")));
    let limits = [
        ReachedLimit::Usd,
        ReachedLimit::Tokens,
        ReachedLimit::ToolCalls,
        ReachedLimit::Steps,
        ReachedLimit::Time,
        ReachedLimit::Window,
    ];
    let limits = limits.into_iter().map(|limit| ("limit", format!("{limit:?}")));
    let others = REQUIRED_SITUATIONS
        .into_iter()
        .flat_map(|(group, names)| names.iter().map(move |name| (group, (*name).to_owned())));
    let breakers = coverage::PATTERNS.into_iter().map(|(name, _)| ("breaker", name.to_owned()));
    reasons.chain(kinds).chain(limits).chain(breakers).chain(others)
}

#[test]
fn runs_hold_the_invariants_in_random_scenarios() {
    if let Some(seed_number) = env_number("AGENT_SIMULATION_SEED") {
        println!("{}", seed(seed_number, SampleRates::USUAL).counts);
        return;
    }
    let wanted = env_number("AGENT_SIMULATION_STEPS").unwrap_or(DEFAULT_STEPS);
    let Coverage { counts, mut steps } = simulate(wanted);
    steps.sort_unstable();
    let median = steps[steps.len() / 2];
    println!("{wanted} steps in {} runs, {median} in the median run\n{counts}", steps.len());
    let enough = if wanted > DEFAULT_STEPS { wanted / STEPS_PER_OCCURRENCE } else { 1 };
    let missing: Vec<String> = wanted_names()
        .filter(|(group, name)| counts.of(group, name) < enough)
        .map(|(group, name)| format!("{group} {name}: {}", counts.of(group, &name)))
        .collect();
    assert!(missing.is_empty(), "reached less often than {enough} times: {missing:?}");
    assert!(median >= 20, "{median}");
}

/// Seeds of fixed bugs: the session received secrets that the journal does not contain, so its costs and state differed from a replay and from a
/// resumed session.
const REGRESSION_SEEDS: [u64; 2] = [3, 5];

#[test]
fn scenarios_of_fixed_bugs_pass() {
    for scenario in REGRESSION_SEEDS {
        let _counts = seed(scenario, SampleRates::USUAL);
    }
}
