//! Starts the user's pager on the terminal. It runs as the user, outside of every sandbox tier, as the editor does.

use super::umask::with_user_umask;
use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What `less` does if the user has not set `LESS`: it ends at once with a short text, passes colours on, and leaves the text on the screen.
const LESS: &str = "FRX";

/// Replaces this program with `pager`, a command of the shell such as `less -R`, which has `text` as its standard input, the terminal, and the environment
/// `variables`. There is then no program left that Ctrl+C in the pager would end. Returns only the error.
#[expect(
    clippy::disallowed_methods,
    reason = "the pager needs the terminal, which children of the launcher do not get"
)]
pub fn replace_with_pager(pager: &str, text: &str, variables: &BTreeMap<String, String>) -> io::Error {
    let input = tempfile::tempfile().and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.rewind()?;
        Ok(file)
    });
    let input = match input {
        Ok(input) => input,
        Err(error) => return error,
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", pager]).stdin(input).env_clear().env("LESS", LESS).envs(variables);
    with_user_umask(|| command.exec())
}
