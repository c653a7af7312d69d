//! SIGINT, SIGTERM and SIGHUP as a cancellation that the run shares: the first asks the run to end, the second ends it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of an interrupted run, whichever signal it was: 128 + SIGINT, as shells count.
const EXIT_CODE: i32 = 130;

/// What a signal does, besides cancelling and exiting.
pub struct Reactions {
    /// Told at the first signal, on the thread that received it: says that the run is ending.
    pub first: Box<dyn Fn() + Send + Sync>,
    /// Told at the second, before the process exits at once: ends every child.
    pub second: Box<dyn Fn() + Send + Sync>,
}

/// The wish of the person or the system that the run ends.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    token: CancellationToken,
}

impl Interrupt {
    /// Listens to the signals from now on. Once per process, inside a tokio runtime.
    ///
    /// # Errors
    /// When the system does not let us listen, or it was done before.
    pub fn install(reactions: Reactions) -> io::Result<Self> {
        let interrupt = Self::default();
        let presses =
            Arc::new(Presses { token: interrupt.token.clone(), count: AtomicU32::new(0), reactions });
        for kind in [SignalKind::terminate(), SignalKind::hangup()] {
            if kind == SignalKind::hangup() && ignores_hangup() {
                continue;
            }
            let (mut stream, presses) = (signal(kind)?, Arc::clone(&presses));
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    presses.press();
                }
            });
        }
        ctrlc::set_handler(move || presses.press()).map_err(io::Error::other)?;
        Ok(interrupt)
    }

    /// Fires at the first signal.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Asks the run to end as a signal would: for `a` at a prompt.
    pub fn trigger(&self) {
        self.token.cancel();
    }
}

/// Counts the signals and reacts to each.
struct Presses {
    token: CancellationToken,
    count: AtomicU32,
    reactions: Reactions,
}

impl Presses {
    fn press(&self) {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.token.cancel();
            (self.reactions.first)();
        } else {
            (self.reactions.second)();
            exit_now();
        }
    }
}

#[expect(clippy::exit, reason = "the person asked twice: nothing may delay the end")]
fn exit_now() {
    std::process::exit(EXIT_CODE);
}

/// Whether SIGHUP was ignored before we began, as `nohup` does: then it stays ignored. Known on Linux only, from the
/// `SigIgn` mask of `/proc/self/status`, where bit 0 is signal 1.
#[expect(
    clippy::disallowed_methods,
    reason = "a fact about this process, which only the kernel's file tells"
)]
fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored_signals(&status) & 1 == 1)
}

fn ignored_signals(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::mpsc;

    #[test]
    fn the_mask_of_ignored_signals_is_read_as_the_kernel_writes_it() {
        assert_eq!(ignored_signals("Name:\tagent\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), 0x1001);
        assert_eq!(ignored_signals("Name:\tagent\n"), 0);
    }

    #[tokio::test]
    async fn l33_the_first_signal_cancels_and_tells_the_listener() {
        let (told, listener) = mpsc::channel();
        let interrupt = Interrupt::install(Reactions {
            first: Box::new(move || told.send(()).unwrap()),
            second: Box::new(|| panic!("there was one signal only")),
        })
        .unwrap();
        assert!(!interrupt.token().is_cancelled());
        kill_process(getpid(), Signal::TERM).unwrap();
        interrupt.token().cancelled().await;
        listener.recv().unwrap();
    }
}
