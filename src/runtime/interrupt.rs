//! SIGINT, SIGTERM and SIGHUP as a cancellation token: the first signal ends the run in order, the second exits at once.

use std::io;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of an interrupted run, for any of the signals: 128 + SIGINT, as shells report it.
const EXIT_CODE: i32 = 130;

/// Callbacks for signals, in addition to cancellation and exit.
pub struct SignalHandlers {
    /// Runs on the runtime after the token is cancelled; reports that the run is ending.
    pub on_first_signal: Box<dyn FnOnce() + Send>,
    /// Runs on the thread that received the second signal, before the process exits at once; ends every child. It must not
    /// wait for anything the runtime may hold.
    pub on_second_signal: Box<dyn Fn() + Send + Sync>,
}

/// Cancellation of the run by a signal.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    token: CancellationToken,
}

impl Interrupt {
    /// Installs the signal handlers. Call once per process, inside a tokio runtime.
    ///
    /// # Errors
    /// When a handler cannot be installed, or one was installed before.
    pub fn install(handlers: SignalHandlers) -> io::Result<Self> {
        let interrupt = Self::default();
        let SignalHandlers { on_first_signal: first, on_second_signal: second } = handlers;
        let second: Arc<dyn Fn() + Send + Sync> = second.into();
        let press = {
            let token = interrupt.token.clone();
            move || if token.is_cancelled() { exit_now(&*second) } else { token.cancel() }
        };
        let token = interrupt.token.clone();
        tokio::spawn(async move {
            token.cancelled().await;
            first();
        });
        on_signal(SignalKind::terminate(), press.clone())?;
        if !ignores_hangup() {
            // A closing terminal sends SIGHUP more than once, so it never counts as a second signal.
            let token = interrupt.token.clone();
            on_signal(SignalKind::hangup(), move || token.cancel())?;
        }
        ctrlc::set_handler(press).map_err(io::Error::other)?;
        Ok(interrupt)
    }

    /// Returns the token that the first signal cancels.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

fn on_signal(kind: SignalKind, mut react: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut stream = signal(kind)?;
    tokio::spawn(async move {
        while stream.recv().await.is_some() {
            react();
        }
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a second signal must end the process without delay")]
fn exit_now(end_children: &dyn Fn()) {
    end_children();
    std::process::exit(EXIT_CODE);
}

/// Checks whether SIGHUP was ignored when the process started, as with `nohup`; then it stays ignored. Works on Linux only:
/// reads the `SigIgn` mask of `/proc/self/status`, where bit 0 is signal 1.
#[expect(
    clippy::disallowed_methods,
    reason = "the signal mask of this process is only available in this file"
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
        let (sender, listener) = mpsc::channel();
        let interrupt = Interrupt::install(SignalHandlers {
            on_first_signal: Box::new(move || sender.send(()).unwrap()),
            on_second_signal: Box::new(|| panic!("there was one signal only")),
        })
        .unwrap();
        assert!(!interrupt.token().is_cancelled());
        kill_process(getpid(), Signal::TERM).unwrap();
        interrupt.token().cancelled().await;
        listener.recv().unwrap();
    }
}
