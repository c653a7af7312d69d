//! SIGINT, SIGTERM and SIGHUP as a cancellation token: the first signal ends the run in order, the second exits at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
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

impl SignalHandlers {
    /// Returns handlers for runs of a client program: nothing is printed, and at a second signal the children end with their launchers.
    pub fn silent() -> Self {
        Self { on_first_signal: Box::new(|| ()), on_second_signal: Box::new(|| ()) }
    }
}

/// The run that the next signal cancels.
struct Armed {
    token: CancellationToken,
    on_first: Option<Box<dyn FnOnce() + Send>>,
    on_second: Arc<dyn Fn() + Send + Sync>,
    /// Whether SIGINT has no effect.
    ignores_interrupt: bool,
    /// Whether no run is under way: the next one takes over the signal.
    is_idle: bool,
}

impl Armed {
    fn idle() -> Self {
        Self {
            token: CancellationToken::new(),
            on_first: None,
            on_second: Arc::new(|| ()),
            ignores_interrupt: false,
            is_idle: true,
        }
    }
}

/// Cancellation of runs by signals. A process has one; each of its runs arms it.
#[derive(Clone)]
pub struct Interrupt {
    armed: Arc<Mutex<Armed>>,
    first: Arc<Notify>,
    ends_process: Arc<AtomicBool>,
    /// Runs before the process exits at once.
    before_exit: Arc<Mutex<Box<dyn Fn() + Send>>>,
}

impl Interrupt {
    /// Returns an interrupt that no signal reaches, for runs inside a program that keeps its signals to itself.
    pub fn without_signals() -> Self {
        let armed = Arc::new(Mutex::new(Armed::idle()));
        let before_exit: Box<dyn Fn() + Send> = Box::new(|| ());
        let before_exit = Arc::new(Mutex::new(before_exit));
        Self { armed, first: Arc::default(), ends_process: Arc::default(), before_exit }
    }

    /// Installs the signal handlers. Call once per process, inside the tokio runtime of its runs.
    ///
    /// # Errors
    /// When a handler cannot be installed, or one was installed before.
    pub fn install() -> io::Result<Self> {
        let interrupt = Self::without_signals();
        let listener = interrupt.clone();
        tokio::spawn(async move {
            loop {
                listener.first.notified().await;
                if let Some(first) = listener.take_first() {
                    first();
                }
            }
        });
        interrupt.end_on(SignalKind::terminate())?;
        if !ignores_hangup() {
            // A closing terminal sends SIGHUP more than once, so it never counts as a second signal.
            let ending = interrupt.clone();
            on_signal(SignalKind::hangup(), move || {
                ending.ends_process.store(true, Ordering::Relaxed);
                ending.cancel();
            })?;
        }
        let pressed = interrupt.clone();
        let press = move || {
            if !pressed.lock().ignores_interrupt {
                pressed.press();
            }
        };
        ctrlc::set_handler(press).map_err(io::Error::other)?;
        Ok(interrupt)
    }

    /// Makes SIGQUIT have the effect of SIGTERM from now on: without a handler it would end the process with the terminal in the modes
    /// of a line that is edited. Must be called inside the tokio runtime of the runs.
    ///
    /// # Errors
    /// When the handler cannot be installed.
    pub fn end_on_quit(&self) -> io::Result<()> {
        self.end_on(SignalKind::quit())
    }

    fn end_on(&self, kind: SignalKind) -> io::Result<()> {
        let ending = self.clone();
        on_signal(kind, move || {
            ending.ends_process.store(true, Ordering::Relaxed);
            ending.press();
        })
    }

    /// Returns the token that the next signal cancels, for a new run with its own `handlers`.
    pub fn arm(&self, handlers: SignalHandlers) -> CancellationToken {
        let SignalHandlers { on_first_signal, on_second_signal } = handlers;
        let token = CancellationToken::new();
        let armed = Armed {
            token: token.clone(),
            on_first: Some(on_first_signal),
            on_second: on_second_signal.into(),
            ignores_interrupt: false,
            is_idle: false,
        };
        let before = std::mem::replace(&mut *self.lock(), armed);
        if before.is_idle && before.token.is_cancelled() {
            self.cancel();
        }
        token
    }

    /// Makes the next signal cancel the next run, and a second one exit at once, while no run is under way.
    pub fn disarm(&self) {
        *self.lock() = Armed::idle();
    }

    /// Sets what happens before the process exits at once. It must not wait for anything that the runtime may hold.
    pub fn before_exit(&self, restore: impl Fn() + Send + 'static) {
        *self.before_exit.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(restore);
    }

    /// Makes the next SIGTERM or SIGHUP exit the process with 130, while the user edits a line. With `ignores_interrupt` SIGINT has no effect
    /// then, as in a shell: the editor reads Ctrl+C as a key.
    pub fn arm_exit(&self, ignores_interrupt: bool) {
        let ending = self.clone();
        let _token = self.arm(SignalHandlers {
            on_first_signal: Box::new(move || ending.exit_now(&|| ())),
            on_second_signal: Box::new(|| ()),
        });
        self.lock().ignores_interrupt = ignores_interrupt;
    }

    /// Checks whether a signal was received since the last run was armed.
    pub fn is_pressed(&self) -> bool {
        self.lock().token.is_cancelled()
    }

    /// Checks whether SIGTERM or SIGHUP was received, which end the process and not only its present run.
    pub fn ends_process(&self) -> bool {
        self.ends_process.load(Ordering::Relaxed)
    }

    /// Has the effect of a signal.
    pub fn press(&self) {
        let second = {
            let armed = self.lock();
            armed.token.is_cancelled().then(|| Arc::clone(&armed.on_second))
        };
        match second {
            Some(second) => self.exit_now(&*second),
            None => self.cancel(),
        }
    }

    fn cancel(&self) {
        self.lock().token.cancel();
        self.first.notify_one();
    }

    /// Returns the handler of the first signal, once it was received; a run that ended in the meantime has none.
    fn take_first(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut armed = self.lock();
        let is_cancelled = armed.token.is_cancelled();
        armed.on_first.take_if(|_| is_cancelled)
    }

    fn exit_now(&self, end_children: &dyn Fn()) {
        end_children();
        if let Ok(restore) = self.before_exit.try_lock() {
            restore();
        }
        std::process::exit(EXIT_CODE);
    }

    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn l33_the_first_signal_cancels_the_armed_run_and_tells_the_listener() {
        let interrupt = Interrupt::install().unwrap();
        for _run in 0..2 {
            let (sender, listener) = mpsc::channel();
            let token = interrupt.arm(SignalHandlers {
                on_first_signal: Box::new(move || sender.send(()).unwrap()),
                on_second_signal: Box::new(|| panic!("there was one signal only")),
            });
            assert!(!token.is_cancelled());
            kill_process(getpid(), Signal::TERM).unwrap();
            token.cancelled().await;
            while listener.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            assert!(interrupt.ends_process());
        }
    }
}
