//! What a program that performs runs does first.

use crate::app::App;
use crate::error::AppResult;
use crate::panic_hook;
use agent_config::environment::Environment;
use agent_process as process;
use std::process::ExitCode;

/// Runs `work` as the whole of a program, and returns its exit code. An error is reported on standard error, and has an exit code of its own.
///
/// Commands of the model are started by this program as their launcher, in a process of its own: then `work` is not called. Nothing should
/// come before in `main`.
pub fn main(work: impl FnOnce(&App) -> AppResult<ExitCode>) -> ExitCode {
    process::launch::launcher_main(std::env::args_os()).unwrap_or_else(|| {
        let app = start();
        work(&app).unwrap_or_else(|error| {
            app.report_error(&error);
            error.exit_code().code().into()
        })
    })
}

/// Prepares this process for work and returns its context. Must be called before any child process starts.
pub fn start() -> App {
    process::disable_dumping();
    process::umask::save_user_umask();
    process::allocator::configure_allocator();
    let app = App::new(Environment::read());
    panic_hook::install(&app);
    app
}
