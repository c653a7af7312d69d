//! Clock, random numbers and ids: the only source of them in the program.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Clock, random numbers and ids of one process.
#[derive(Debug)]
pub struct Clock {
    /// Time of creation; `None` for a manual clock.
    started: Option<Instant>,
    stamped: Cell<Duration>,
    state: Cell<u64>,
    /// Wall clock of a simulation at its creation.
    wall: Option<Duration>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// Creates a clock that starts now, with a random seed from the operating system.
    pub fn new() -> Self {
        Self {
            started: Some(Instant::now()),
            stamped: Cell::default(),
            state: Cell::new(RandomState::new().hash_one(std::process::id()) | 1),
            wall: None,
        }
    }

    /// Creates a deterministic clock that follows the clock of the tokio runtime, which tests advance.
    pub fn simulated(seed: u64, wall: Duration) -> Self {
        Self { state: Cell::new(seed | 1), wall: Some(wall), ..Self::new() }
    }

    /// Creates a clock that shows the time last [`set`](Self::set), as when a journal is replayed.
    pub fn manual() -> Self {
        Self { started: None, ..Self::new() }
    }

    /// Returns the time since the clock was created; it never decreases.
    pub fn elapsed(&self) -> Duration {
        self.started.map_or_else(|| self.stamped.get(), |started| started.elapsed())
    }

    /// Returns the time for the next event in whole microseconds, as journals store it, and remembers it.
    pub fn next_event_time(&self) -> Duration {
        let micros = u64::try_from(self.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.set(Duration::from_micros(micros));
        self.last_event_time()
    }

    /// Returns the time of the last event.
    pub fn last_event_time(&self) -> Duration {
        self.stamped.get()
    }

    /// Sets the time of the last event, and of a manual clock.
    pub fn set(&self, at: Duration) {
        self.stamped.set(at);
    }

    /// Returns the wall clock time since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "this module wraps the system clock")]
    pub fn unix_time(&self) -> Duration {
        if let Some(wall) = self.wall {
            return wall.saturating_add(self.elapsed());
        }
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Returns a random number (xorshift64*; for jitter and names, not for secrets).
    pub fn random(&self) -> u64 {
        let mut x = self.state.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.state.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Creates a session id: date and time (UTC), then three hex digits of milliseconds and three random ones, so that ids
    /// sort by age.
    pub fn session_id(&self) -> String {
        let wall = self.unix_time();
        let second = jiff::Timestamp::from_second(i64::try_from(wall.as_secs()).unwrap_or(0))
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .to_zoned(jiff::tz::TimeZone::UTC);
        let random = self.random() >> 52;
        format!("{}-{:03x}{random:03x}", second.strftime("%Y%m%d-%H%M%S"), wall.subsec_millis())
    }

    /// Creates a random UUID (version 4, RFC 9562).
    pub fn uuid(&self) -> String {
        let (high, low) = (self.random(), self.random());
        let (time, node) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | 0b10 << 62);
        uuid_text(time, node)
    }

    /// Creates a UUID whose order is that of creation (version 7, RFC 9562).
    pub fn ordered_uuid(&self) -> String {
        let millis = u64::try_from(self.unix_time().as_millis()).unwrap_or_default();
        let (high, low) = (self.random(), self.random());
        let time = millis << 16 | 0x7000 | high & 0xfff;
        uuid_text(time, low & !(0b11 << 62) | 0b10 << 62)
    }

    /// Creates a short random id for runs and temporary names.
    pub fn short_id(&self) -> String {
        format!("{:012x}", self.random() >> 16)
    }
}

/// Returns the text of a UUID with these halves.
fn uuid_text(time: u64, node: u64) -> String {
    let part = |value: u64, shift: u32, digits: usize| {
        let mask = (1_u64 << (4 * digits)) - 1;
        format!("{:0digits$x}", value >> shift & mask)
    };
    [part(time, 32, 8), part(time, 16, 4), part(time, 0, 4), part(node, 48, 4), part(node, 0, 12)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_form_version_and_variant() {
        let clock = Clock::new();
        let uuid = clock.uuid();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()), "{uuid}");
        assert_eq!(uuid.chars().nth(14), Some('4'), "{uuid}");
        assert!("89ab".contains(uuid.chars().nth(19).unwrap()), "{uuid}");
        assert_ne!(uuid, clock.uuid());
    }

    #[test]
    fn session_ids_sort_by_age_within_a_second() {
        let clock = Clock::new();
        let first = clock.session_id();
        let began = clock.unix_time();
        while clock.unix_time().saturating_sub(began).as_millis() < 2 {}
        let second = clock.session_id();
        assert!(second > first, "{first} {second}");
        assert_eq!(second.len(), "YYYYMMDD-HHMMSS-xxxxxx".len());
    }
}
