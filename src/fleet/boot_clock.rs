//! Time since the machine booted, which no change of the clock moves, with the id of the boot.

use rustix::time::{ClockId, clock_gettime};
#[cfg(test)]
use std::cell::Cell;
use std::time::Duration;
#[cfg(test)]
use tokio::time::Instant;

/// File with a random id of the boot (proc(5)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(test)]
thread_local! {
    /// When the simulated machine of this thread began to run, and how often it has booted since.
    static SIMULATED: Cell<Option<(Instant, u64)>> = const { Cell::new(None) };
}

/// Lets this thread see the clock of the tokio runtime since `started` as the time since the boot with this number.
#[cfg(test)]
pub fn simulated(started: Instant, boot: u64) {
    SIMULATED.set(Some((started, boot)));
}

/// A time on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// Id of the boot; empty where the system has none.
    pub boot: String,
    /// Milliseconds since then, also those of sleep.
    pub millis: i64,
}

impl BootTime {
    /// Returns the time now.
    #[expect(clippy::disallowed_methods, reason = "a small file of the kernel")]
    pub fn now() -> Self {
        #[cfg(test)]
        if let Some((started, boot)) = SIMULATED.get() {
            let millis = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
            return Self { boot: boot.to_string(), millis };
        }
        #[cfg(target_os = "linux")]
        let clock = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = ClockId::Monotonic;
        let passed = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        Self { boot, millis: i64::try_from(passed.as_millis()).unwrap_or(i64::MAX) }
    }

    /// Returns the time `later`.
    #[must_use]
    pub fn after(&self, later: Duration) -> Self {
        let later = i64::try_from(later.as_millis()).unwrap_or(i64::MAX);
        Self { boot: self.boot.clone(), millis: self.millis.saturating_add(later) }
    }
}
