//! Runs git without any program that a repository configures: no hooks, filters or file system monitors.

pub mod bundle;
pub mod clone;
pub mod review_diff;
pub mod task_repository;
pub mod worktree;
pub mod worktree_commit;

use agent_messages as messages;
use agent_process::capture::StoredOutput;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, Launcher, OutputOptions};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time limit of one git call.
const MAX_TIME: Duration = Duration::from_secs(30);

/// The current commit.
pub const HEAD: &str = "HEAD";

/// Options that disable hooks, monitors and network access.
const SAFE_OPTIONS: [&str; 6] =
    ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"];

/// `git diff` without programs and settings of the repository that change its output, below the working directory.
pub const SAFE_DIFF: [&str; 9] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--no-color",
    "--ignore-submodules=all",
    "--relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Runs git in `root` with these arguments, standard input and additional settings, which are passed in the environment
/// because their names may contain any character.
///
/// # Errors
/// When git cannot be started.
pub async fn git(
    launcher: &Launcher,
    root: &Path,
    words: &[&str],
    stdin: Vec<u8>,
    settings: &[(String, &str)],
) -> Result<CommandOutcome, String> {
    // An interrupt does not cancel git, because it takes only a moment.
    let exit = launcher.launch(command(root, words, stdin, settings), &CancellationToken::new()).await;
    exit.map_err(|error| error.to_string())
}

/// Runs git and returns its whole standard output.
///
/// # Errors
/// When git cannot be started or fails, or its output is longer than 64 MiB.
pub async fn whole_output(
    launcher: &Launcher,
    root: &Path,
    words: &[&str],
    stdin: Vec<u8>,
    settings: &[(String, &str)],
) -> Result<Vec<u8>, String> {
    whole_output_of(launcher, command(root, words, stdin, settings), &[0]).await
}

/// Runs `spec` and returns its whole standard output, if it ends with one of these exit codes.
///
/// # Errors
/// As [`whole_output`].
pub async fn whole_output_of(
    launcher: &Launcher,
    spec: CommandSpec,
    codes: &[i32],
) -> Result<Vec<u8>, String> {
    let long_output = SharedBuffer::default();
    let options =
        OutputOptions { open_file: Some(|| Ok(long_output.clone())), idle_timeout: None, recent: None };
    let exit = launcher.launch_with_output(spec, options, &CancellationToken::new()).await;
    let exit = exit.map_err(|error| error.to_string())?;
    match exit.stored {
        _ if !matches!(exit.reason, ExitReason::Code(code) if codes.contains(&code)) => {
            Err(error_text(&exit))
        }
        StoredOutput::NoFile => Ok(exit.stdout.head),
        // Long output contains both streams.
        StoredOutput::Complete if exit.stderr.total == 0 => Ok(long_output.0.take()),
        StoredOutput::Complete => Err(error_text(&exit)),
        StoredOutput::Truncated | StoredOutput::Failed(_) => Err("its output is too long".to_owned()),
    }
}

/// Memory for the output of a command.
#[derive(Clone, Default)]
struct SharedBuffer(Rc<RefCell<Vec<u8>>>);

impl io::Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the call of git with these arguments, standard input and additional settings.
pub fn command(root: &Path, words: &[&str], stdin: Vec<u8>, settings: &[(String, &str)]) -> CommandSpec {
    let argv = std::iter::once("git").chain(SAFE_OPTIONS).chain(words.iter().copied());
    let env = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
    let numbered = settings.iter().enumerate().flat_map(|(at, (name, value))| {
        let (key, set) = (format!("GIT_CONFIG_KEY_{at}"), format!("GIT_CONFIG_VALUE_{at}"));
        [(key, name.clone()), (set, (*value).to_owned())]
    });
    let count = [("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    CommandSpec {
        argv: argv.map(str::to_owned).collect(),
        cwd: root.to_owned(),
        env: env.chain(count).chain(numbered).collect(),
        stdin,
        timeout: MAX_TIME,
    }
}

/// Deletes checkpoint references from the repository of `root`, all or none. A missing reference is not an error.
///
/// # Errors
/// When git cannot be started or fails.
pub async fn delete_references(
    launcher: &Launcher,
    root: &Path,
    references: &[String],
) -> Result<(), String> {
    if references.is_empty() {
        return Ok(());
    }
    let commands: String = references.iter().flat_map(|name| ["delete ", name.as_str(), "\n"]).collect();
    let exit = git(launcher, root, &["update-ref", "--stdin"], commands.into_bytes(), &[]).await?;
    if exit.reason == ExitReason::Code(0) { Ok(()) } else { Err(error_text(&exit)) }
}

/// Maximum characters of a diff.
const MAX_CHANGES_CHARS: usize = 50_000;

/// Returns the diffstat and diff between the commit `reference` and the working tree, without `hidden` files, or `None` if
/// nothing differs.
///
/// # Errors
/// The error message of git.
pub async fn changes_since(
    launcher: &Launcher,
    root: &Path,
    reference: &str,
    hidden: impl Fn(&str) -> bool,
) -> Result<Option<String>, String> {
    let commit = commit_or_empty_tree(launcher, root, reference).await?;
    let settings = without_filters(launcher, root).await?;
    let run = async |form: &[&str], paths: &[String]| {
        let form = SAFE_DIFF.iter().chain(form).copied().chain([commit.as_str(), "--", "."]);
        let all = form.chain(paths.iter().map(String::as_str));
        git(launcher, root, &all.collect::<Vec<_>>(), Vec::new(), &settings).await
    };
    // An incomplete list is an error because an unlisted hidden file would be shown.
    let names = listed_paths(&run(&["--name-only", "-z"], &[]).await?)?;
    let hidden = names.iter().filter(|name| hidden(name));
    let left_out: Vec<String> = hidden.map(|name| format!(":(exclude,literal){name}")).collect();
    let text = stdout_text(&run(&["--patch-with-stat"], &left_out).await?)?;
    let text = text.trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(match text.char_indices().nth(MAX_CHANGES_CHARS) {
        Some((end, _)) => {
            format!("{}\n[... the rest of the diff is omitted ...]", text.get(..end).unwrap_or(text))
        }
        None => text.to_owned(),
    }))
}

/// Returns the id of the commit `reference`, which may be any text.
///
/// # Errors
/// The error message of git.
pub async fn commit_id(launcher: &Launcher, root: &Path, reference: &str) -> Result<String, String> {
    let wanted = format!("{reference}^{{commit}}");
    let words = ["rev-parse", "--verify", "--end-of-options", wanted.as_str()];
    let exit = git(launcher, root, &words, Vec::new(), &[]).await?;
    match stdout_text(&exit) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(_) if reference == HEAD && has_no_commit(launcher, root).await? => {
            Err(messages::NO_COMMIT_YET.to_owned())
        }
        Err(why) => Err(why),
    }
}

/// Checks whether the current branch has no commit yet.
///
/// # Errors
/// When git cannot be started.
pub async fn has_no_commit(launcher: &Launcher, root: &Path) -> Result<bool, String> {
    let branch = git(launcher, root, &["symbolic-ref", "--quiet", HEAD], Vec::new(), &[]).await?;
    let head = git(launcher, root, &["rev-parse", "--quiet", "--verify", HEAD], Vec::new(), &[]).await?;
    Ok(branch.reason == ExitReason::Code(0) && head.reason != ExitReason::Code(0))
}

/// Returns the id of the commit `reference`; of the empty tree for `HEAD` of a branch without a commit.
///
/// # Errors
/// The error message of git.
pub async fn commit_or_empty_tree(
    launcher: &Launcher,
    root: &Path,
    reference: &str,
) -> Result<String, String> {
    match commit_id(launcher, root, reference).await {
        Err(_) if reference == HEAD && has_no_commit(launcher, root).await? => {
            let words = ["hash-object", "-t", "tree", "--stdin"];
            Ok(stdout_text(&git(launcher, root, &words, Vec::new(), &[]).await?)?.trim().to_owned())
        }
        known => known,
    }
}

/// Returns the paths that git has listed with `-z`.
///
/// # Errors
/// When git has failed, or the list is longer than its captured start.
pub fn listed_paths(exit: &CommandOutcome) -> Result<Vec<String>, String> {
    let text = stdout_text(exit)?;
    if exit.stdout.total > exit.stdout.head.len() as u64 {
        return Err("more files differ than can be listed".to_owned());
    }
    Ok(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Returns the paths below `root` that git neither tracks nor ignores.
///
/// # Errors
/// The error message of git.
pub async fn untracked_files(launcher: &Launcher, root: &Path) -> Result<Vec<String>, String> {
    let words = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];
    listed_paths(&git(launcher, root, &words, Vec::new(), &[]).await?)
}

/// Returns settings that disable the filter programs in the repository's configuration, and its merge drivers: files that need one of these
/// are in conflict.
///
/// # Errors
/// When git cannot list them.
pub async fn without_filters(
    launcher: &Launcher,
    root: &Path,
) -> Result<Vec<(String, &'static str)>, String> {
    const PROGRAMS: &str = r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$";
    let words = ["config", "--null", "--name-only", "--get-regexp", PROGRAMS];
    let exit = git(launcher, root, &words, Vec::new(), &[]).await?;
    let names = &exit.stdout;
    // Exit code 1 means that there are no filters. An incomplete list is an error because an unlisted filter would run.
    if !matches!(exit.reason, ExitReason::Code(0 | 1)) || names.total > names.head.len() as u64 {
        return Err("the filters that its configuration names cannot be listed".to_owned());
    }
    let names = std::str::from_utf8(&names.head)
        .map_err(|_| "its configuration names a filter that is no text".to_owned())?;
    let off = |name: &str| {
        let is_filter = name.starts_with("filter.") && !name.ends_with(".required");
        let value = if is_filter { "" } else { "false" };
        (name.to_owned(), value)
    };
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(off).collect())
}

/// Arguments of the call that finds the filters of the paths on its standard input, each with a NUL at its end.
pub const FIND_FILTERS: [&str; 4] = ["check-attr", "-z", "--stdin", "filter"];

/// Returns the paths that have a filter, from the output of [`FIND_FILTERS`].
pub fn filtered_paths(output: &str) -> Vec<String> {
    let fields: Vec<&str> = output.split('\0').collect();
    let filtered = fields.chunks_exact(3).filter(|entry| {
        let value = entry.last().copied().unwrap_or_default();
        !["unspecified", "unset", "set"].contains(&value)
    });
    filtered.filter_map(|entry| entry.first()).map(|path| (*path).to_owned()).collect()
}

/// Returns the standard output of git; only its captured start if it is long.
///
/// # Errors
/// What git wrote, when it failed.
pub fn stdout_text(exit: &CommandOutcome) -> Result<String, String> {
    match exit.reason {
        ExitReason::Code(0) => Ok(String::from_utf8_lossy(&exit.stdout.head).into_owned()),
        _ => Err(error_text(exit)),
    }
}

/// Returns the first line of git's error output that states an error, else its first line, or how it ended.
pub fn error_text(exit: &CommandOutcome) -> String {
    let text = String::from_utf8_lossy(&exit.stderr.head);
    let states_error = |line: &&str| ["fatal:", "error:"].iter().any(|start| line.starts_with(start));
    let line = text.lines().find(states_error).or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    match line {
        // Nothing is fetched while git runs without a network.
        Some(line) if line.contains("from promisor remote") => messages::partial_clone(line),
        Some(line) => line.to_owned(),
        None => format!("git: {:?}", exit.reason),
    }
}
