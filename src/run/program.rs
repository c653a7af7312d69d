//! What the programs of this project do first.

use crate::app::App;
use crate::panic_hook;
use agent_config::environment::Environment;
use agent_process as process;

/// Prepares this process for work and returns its context. Must be called before any child process starts.
pub fn start() -> App {
    process::disable_dumping();
    process::umask::save_user_umask();
    process::allocator::configure_allocator();
    let app = App::new(Environment::read());
    panic_hook::install(&app);
    app
}
