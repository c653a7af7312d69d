//! Starts the user's text editor on the terminal. It runs as the user, outside of every sandbox tier, because the user types
//! in it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs `editor`, a command of the shell such as `code -w`, on `file` with the terminal of this process and the environment
/// `variables`, and waits for its end.
///
/// # Errors
/// When the shell cannot be started.
#[expect(
    clippy::disallowed_methods,
    reason = "the editor needs the terminal, which children of the launcher do not get"
)]
pub fn run_editor(editor: &str, file: &Path, variables: &BTreeMap<String, String>) -> io::Result<ExitStatus> {
    Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "editor"])
        .arg(file)
        .env_clear()
        .envs(variables)
        .status()
}
