//! The one place that time, randomness and ids come from.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Clock, random numbers and ids of one process.
#[derive(Debug)]
pub struct Clock {
    /// When it was made; nothing where the clock stands.
    started: Option<Instant>,
    stamped: Cell<Duration>,
    state: Cell<u64>,
    /// What the wall clock of a simulation showed when it was made.
    #[cfg(test)]
    wall: Option<Duration>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A source that starts now, seeded by the operating system.
    pub fn new() -> Self {
        Self {
            started: Some(Instant::now()),
            stamped: Cell::default(),
            state: Cell::new(RandomState::new().hash_one(std::process::id()) | 1),
            #[cfg(test)]
            wall: None,
        }
    }

    /// A source that is the same each time: it moves with the clock of the runtime, which a test moves.
    #[cfg(test)]
    pub fn simulated(seed: u64, wall: Duration) -> Self {
        Self { state: Cell::new(seed | 1), wall: Some(wall), ..Self::new() }
    }

    /// A source whose clock stands where it was last [`set`](Self::set): the time of a journal.
    pub fn manual() -> Self {
        Self { started: None, ..Self::new() }
    }

    /// Time since this source was made; never goes back.
    pub fn elapsed(&self) -> Duration {
        self.started.map_or_else(|| self.stamped.get(), |started| started.elapsed())
    }

    /// The time of a fact that is told now, in whole microseconds as journals hold it, and remembered.
    pub fn next_event_time(&self) -> Duration {
        let micros = u64::try_from(self.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.set(Duration::from_micros(micros));
        self.last_event_time()
    }

    /// The time of the last fact.
    pub fn last_event_time(&self) -> Duration {
        self.stamped.get()
    }

    /// Sets the time of the last fact, and a clock that stands.
    pub fn set(&self, at: Duration) {
        self.stamped.set(at);
    }

    /// Wall clock since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "this is the address of the clock")]
    pub fn unix_time(&self) -> Duration {
        #[cfg(test)]
        if let Some(wall) = self.wall {
            return wall.saturating_add(self.elapsed());
        }
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// A random number (xorshift64*; for jitter and names, not for secrets).
    pub fn random(&self) -> u64 {
        let mut x = self.state.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.state.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A new session id: date and time (UTC), then three hex digits of milliseconds and three random ones, so that
    /// ids sort by age.
    pub fn session_id(&self) -> String {
        let wall = self.unix_time();
        let second = jiff::Timestamp::from_second(i64::try_from(wall.as_secs()).unwrap_or(0))
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .to_zoned(jiff::tz::TimeZone::UTC);
        let random = self.random() >> 52;
        format!("{}-{:03x}{random:03x}", second.strftime("%Y%m%d-%H%M%S"), wall.subsec_millis())
    }

    /// A short random id for runs and temporary names.
    pub fn short_id(&self) -> String {
        format!("{:012x}", self.random() >> 16)
    }
}

/// The processor time of this thread so far: what a bound on work is tested with, for a busy machine does not change it.
#[cfg(test)]
pub(crate) fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_sort_by_age_within_a_second() {
        let source = Clock::new();
        let first = source.session_id();
        let began = source.unix_time();
        while source.unix_time().saturating_sub(began).as_millis() < 2 {}
        let second = source.session_id();
        assert!(second > first, "{first} {second}");
        assert_eq!(second.len(), "YYYYMMDD-HHMMSS-xxxxxx".len());
    }
}
