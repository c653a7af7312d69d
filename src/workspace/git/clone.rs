//! Clones a repository to read its files: without hooks, filters, submodules, templates and the user's configuration.

use crate::git::error_text;
use agent_process::launch::{CommandSpec, ExitReason, Launcher};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time limit of a clone.
const MAX_TIME: Duration = Duration::from_mins(2);

/// Options of every call. Only these protocols are allowed; `ext` would run a program.
const OPTIONS: [&str; 12] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "protocol.ssh.allow=always",
    "-c",
    "protocol.file.allow=always",
];

/// Clones the newest commit of `reference` (a branch or tag; the default branch without one) of the repository at `address`
/// into the directory `name` of `parent`, and returns the commit.
///
/// # Errors
/// When git cannot be started or fails, with its message.
pub async fn clone(
    launcher: &Launcher,
    parent: &Path,
    address: &str,
    reference: Option<&str>,
    name: &str,
) -> Result<String, String> {
    let mut words = vec!["clone", "--quiet", "--depth=1", "--no-tags", "--single-branch", "--template="];
    words.extend(["--no-recurse-submodules", "--no-hardlinks"]);
    let branch = reference.map(|reference| format!("--branch={reference}"));
    words.extend(branch.as_deref());
    words.extend(["--", address, name]);
    git(launcher, parent, &words).await?;
    let commit = git(launcher, &parent.join(name), &["rev-parse", "HEAD"]).await?;
    Ok(commit.trim().to_owned())
}

async fn git(launcher: &Launcher, directory: &Path, words: &[&str]) -> Result<String, String> {
    let argv = std::iter::once("git").chain(OPTIONS).chain(words.iter().copied());
    let env = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    let spec = CommandSpec {
        argv: argv.map(str::to_owned).collect(),
        cwd: directory.to_owned(),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect(),
        stdin: Vec::new(),
        timeout: MAX_TIME,
    };
    let exit = launcher.launch(spec, &CancellationToken::new()).await.map_err(|error| error.to_string())?;
    match exit.reason {
        ExitReason::Code(0) => Ok(String::from_utf8_lossy(&exit.stdout.head).into_owned()),
        ExitReason::TimedOut => Err(format!("git did not end within {} s", MAX_TIME.as_secs())),
        _ => Err(error_text(&exit)),
    }
}
