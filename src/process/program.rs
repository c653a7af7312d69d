//! Programs that belong to this one: each stands beside it, or on the search path.

use super::umask::with_user_umask;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// Finds the program `name`: beside this one, else in the directories of `search_path`, the value of `PATH`. Relative directories and
/// those in `workspace` decide no program, because a project could put one there.
pub fn find(name: &str, search_path: Option<&str>, workspace: &Path) -> Option<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    let listed = search_path.into_iter().flat_map(std::env::split_paths);
    let listed = listed.filter(|directory| directory.is_absolute() && !is_in(directory, workspace));
    own.into_iter().chain(listed.map(|directory| directory.join(name))).find(|path| path.is_file())
}

fn is_in(directory: &Path, workspace: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(directory).starts_with(real(workspace))
}

/// Replaces this program with `program`, which gets its streams, its environment and the umask of the user. Returns only the error.
#[expect(
    clippy::disallowed_methods,
    reason = "the other program is a part of this one, not a command of the model"
)]
pub fn replace_with(program: &Path, arguments: &[OsString]) -> io::Error {
    with_user_umask(|| Command::new(program).args(arguments).exec())
}

/// Runs `program` with the environment `variables` to its end, and returns what it printed. The variables of this process itself may have been
/// scrubbed.
///
/// # Errors
/// When it cannot be started.
#[expect(
    clippy::disallowed_methods,
    reason = "the other program is a part of this one, not a command of the model"
)]
pub fn output_of(
    program: &Path,
    arguments: &[OsString],
    variables: &BTreeMap<String, String>,
) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(variables).stdin(Stdio::null()).stderr(Stdio::inherit());
    with_user_umask(|| command.output())
}

/// A program that answers each line on its standard input with a line on its standard output. It ends when this is dropped.
pub struct Conversation {
    _child: tokio::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    /// Starts `program` with the environment `variables`, in a process group of its own: signals of the terminal do not reach it.
    ///
    /// # Errors
    /// When it cannot be started.
    #[expect(
        clippy::disallowed_methods,
        reason = "the other program is a part of this one, not a command of the model"
    )]
    pub fn start(
        program: &Path,
        arguments: &[OsString],
        variables: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).env_clear().envs(variables).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = with_user_umask(|| command.spawn())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { _child: child, input, output: BufReader::new(output) })
    }

    /// Sends `line` and returns the answer; an empty one means that the program has ended.
    ///
    /// # Errors
    /// When the program cannot be reached.
    pub async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).await?;
        Ok(answer)
    }
}

/// Ends this process with the one that started it.
pub fn end_with_parent() {
    // Where the system refuses, the end of standard input ends it.
    let _refused = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_is_found_on_the_search_path_but_never_in_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let [outside, workspace] = ["bin", "project"].map(|name| dir.path().join(name));
        for directory in [&outside, &workspace] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("agent-sample"), "").unwrap();
        }
        let found = |path: &str| find("agent-sample", Some(path), &workspace);
        let (outside, inside) = (outside.display().to_string(), workspace.display().to_string());
        assert_eq!(found(&inside), None);
        assert_eq!(found("."), None);
        assert_eq!(found(&format!("{inside}:{outside}")), Some(PathBuf::from(outside).join("agent-sample")));
    }
}
