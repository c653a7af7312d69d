//! Git, called so that nothing runs that a repository names: no hook, no filter, no monitor.

use crate::process::launch::{Ended, Exit, Launcher, Spec};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time for one call.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Options that let it run nothing and ask nobody.
const HARMLESS: [&str; 6] =
    ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"];

/// Calls git in `root` with these words and this standard input.
///
/// # Errors
/// When it cannot be started.
pub(super) async fn git(
    launcher: &Launcher,
    root: &Path,
    words: &[&str],
    stdin: Vec<u8>,
) -> Result<Exit, String> {
    let argv = std::iter::once("git").chain(HARMLESS).chain(words.iter().copied());
    let env = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0")];
    let spec = Spec {
        argv: argv.map(str::to_owned).collect(),
        cwd: root.to_owned(),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        stdin,
        timeout: MAX_TIME,
    };
    // It takes a moment, and an interrupt is no reason to lose it.
    launcher.launch(spec, &CancellationToken::new()).await.map_err(|error| error.to_string())
}

/// Removes the references of checkpoints from the repository of `root`: all of them or none. One that has gone is no error.
///
/// # Errors
/// When git cannot be started, or says no.
pub async fn forget(launcher: &Launcher, root: &Path, references: &[String]) -> Result<(), String> {
    if references.is_empty() {
        return Ok(());
    }
    let orders: String = references.iter().flat_map(|name| ["delete ", name.as_str(), "\n"]).collect();
    let exit = git(launcher, root, &["update-ref", "--stdin"], orders.into_bytes()).await?;
    if exit.ended == Ended::Code(0) { Ok(()) } else { Err(said(&exit)) }
}

/// What git said, or how it ended.
pub(super) fn said(exit: &Exit) -> String {
    let text = String::from_utf8_lossy(&exit.stderr.head);
    let line = text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
    line.unwrap_or_else(|| format!("git: {:?}", exit.ended))
}
