//! The `run_command` tool: runs a shell command in the workspace with limits on time and output.

use super::background::RunningCommand;
use super::outputs::{FIRST_PART_NOTE, FULL_NOTE, Outputs, READ_NOTE};
use super::{Access, CommandStatus, Plan, ToolContext, ToolOutput, TypedTool};
use super::{foreground, sandbox_messages};
use agent_messages as messages;
use agent_process::capture::{Captured, StoredOutput};
use agent_process::environment;
use agent_process::launch::{
    CommandOutcome, CommandSpec, ExitReason, Launcher, OutputOptions, ended_by_signal,
};
use agent_process::limits::FILE_BYTES;
use agent_process::recent_output::RecentOutput;
use agent_process::shell;
use agent_text::excerpt::HEAD_LINES;
use agent_text::lines;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum time limit of a command. A larger number in a call is read as milliseconds: models that
/// write 30000 mean 30 seconds.
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// Maximum bytes of a command: one argument of a program may have 128 KiB on Linux, including its terminating NUL.
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// At least so many lines of standard error are shown, even if `max_output_lines` is smaller.
const MIN_STDERR_LINES: usize = 10;

/// Characters of one stream, divided among its lines.
const STREAM_CHARS: usize = 30_000;

/// Minimum characters per line, however many lines share [`STREAM_CHARS`].
const MIN_LINE_CHARS: usize = 500;

/// Characters that a result may have besides the streams: how the command ended, hints, where the full output is.
const FRAME_CHARS: usize = 800;

/// Minimum characters of a stream in a result.
const MIN_STREAM_CHARS: usize = 400;

/// Up to so many lines share the characters that a stream may have; more have at least [`MIN_LINE_CHARS`] each.
const FEW_LINES: usize = 10;

/// Characters of the marker in a line that is cut, and of the line end.
const MARKER_CHARS: usize = 60;

/// The signal sent when a file exceeds the size limit (`SIGXFSZ`).
const FILE_SIZE_SIGNAL: i32 = rustix::process::Signal::XFSZ.as_raw();

/// Number that shells add to a signal to report it as an exit code.
const SIGNAL_EXIT_BASE: i32 = 128;

/// The exit code that a shell reports for a program ended by [`FILE_SIZE_SIGNAL`].
const FILE_SIZE_CODE: i32 = SIGNAL_EXIT_BASE + FILE_SIZE_SIGNAL;

/// Settings of `run_command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCommandOptions {
    /// Time limit of a call without `timeout`.
    pub default_timeout: Duration,
    /// Longest time without output.
    pub idle_timeout: Option<Duration>,
    /// Lines of stdout beyond which the middle is omitted.
    pub max_output_lines: usize,
    /// Characters beyond which a result is cut, 0 for no limit.
    pub max_chars: usize,
}

impl Default for RunCommandOptions {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_mins(2),
            idle_timeout: None,
            max_output_lines: 200,
            max_chars: 0,
        }
    }
}

/// Arguments of `run_command`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommandArgs {
    /// Stdin is empty; must not wait for input.
    pub command: String,
    /// Directory inside the workspace. Default: its root.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Seconds, at most 600. In the background: none unless set.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Extra environment variables.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Return an id at once and leave it running (servers, watchers).
    #[serde(default)]
    pub background: bool,
}

/// The `run_command` tool.
#[derive(Debug)]
pub struct RunCommand {
    options: RunCommandOptions,
}

impl RunCommand {
    /// Creates the tool with these settings.
    pub fn new(options: RunCommandOptions) -> Self {
        Self { options }
    }

    fn timeout(&self, requested: Option<u64>) -> Duration {
        let requested = match requested {
            None | Some(0) => return self.options.default_timeout,
            Some(seconds @ 1..=MAX_TIMEOUT_SECONDS) => Duration::from_secs(seconds),
            Some(milliseconds) => Duration::from_millis(milliseconds),
        };
        requested.min(Duration::from_secs(MAX_TIMEOUT_SECONDS))
    }

    /// Returns what the model reads of standard output and standard error: so much that the whole result fits and is not cut again.
    fn excerpts(&self, exit: &CommandOutcome) -> (StreamExcerpt, StreamExcerpt) {
        let max_lines = self.options.max_output_lines;
        let room = match self.options.max_chars {
            0 => usize::MAX,
            chars => chars.saturating_sub(FRAME_CHARS),
        };
        let stdout = StreamExcerpt::fit(&exit.stdout, max_lines, room);
        let left = room.saturating_sub(stdout.text.chars().count()).max(room / 3).max(MIN_STREAM_CHARS);
        let stderr = StreamExcerpt::fit(&exit.stderr, (max_lines / 4).max(MIN_STDERR_LINES), left);
        let left = room.saturating_sub(stderr.text.chars().count()).max(MIN_STREAM_CHARS);
        (StreamExcerpt::fit(&exit.stdout, max_lines, left), stderr)
    }

    /// Runs a command until it ends or the user leaves it in the background, where it has no time limit.
    async fn follow(
        &self,
        followed: &foreground::Followed,
        launcher: &Launcher,
        spec: CommandSpec,
        cx: &ToolContext,
    ) -> Result<FollowedEnd, String> {
        let (timeout, recent) = (spec.timeout, followed.command.recent.clone());
        let spec = CommandSpec { timeout: Duration::MAX, ..spec };
        let mut running = RunningCommand::launch(launcher, spec, recent.clone(), cx);
        let mut is_late = std::pin::pin!(tokio::time::sleep(timeout));
        let mut is_idle = std::pin::pin!(idle(&recent, self.options.idle_timeout));
        loop {
            tokio::select! {
                biased;
                exit = running.end() => return Ok(FollowedEnd::Ended(Box::new(exit?))),
                () = cx.cancel.cancelled() => return Ok(FollowedEnd::Ended(Box::new(running.stop().await?))),
                () = &mut is_late => {
                    let exit = CommandOutcome { reason: ExitReason::TimedOut, ..running.stop().await? };
                    return Ok(FollowedEnd::Ended(Box::new(exit)));
                }
                () = &mut is_idle => {
                    let exit = CommandOutcome { reason: ExitReason::Idle, ..running.stop().await? };
                    return Ok(FollowedEnd::Ended(Box::new(exit)));
                }
                () = followed.command.leave.notified() => match cx.background.take_over(running) {
                    Ok(command) => return Ok(FollowedEnd::Left(command.id.clone())),
                    // As many as may run are in the background already.
                    Err(still_here) => running = still_here,
                },
            }
        }
    }

    /// Builds the result of a command that ended.
    fn answer(&self, mut exit: CommandOutcome, timeout: Duration, cx: &ToolContext) -> ToolOutput {
        let (stdout, stderr) = self.excerpts(&exit);
        let is_error = exit.reason != ExitReason::Code(0) || !exit.protected_changes.is_empty();
        let end = sandbox_messages::with_protected_files_text(
            &exit.protected_changes,
            end_text(exit.reason, timeout),
        );
        // A failure is described first because the log shows the first line.
        let mut text = if is_error { format!("{end}\n") } else { String::new() };
        for (name, shown) in [("stdout", &stdout), ("stderr", &stderr)] {
            if !shown.text.is_empty() {
                let line_end = if shown.text.ends_with('\n') { "" } else { "\n" };
                let _infallible = write!(text, "{name}:\n{}{line_end}", shown.text);
            }
        }
        if exit.stored == StoredOutput::NoFile && (stdout.is_cut || stderr.is_cut) {
            exit.stored = store_output(&exit, cx)
                .map_or_else(|error| StoredOutput::Failed(error.to_string()), |()| StoredOutput::Complete);
        }
        text.push_str(&stored_output_note(&exit.stored, &cx.call_id));
        text.push_str(&match exit.left_running {
            0 => String::new(),
            1 => left_running_note("1 process still ran", "was"),
            many => left_running_note(&format!("{many} processes still ran"), "were"),
        });
        if let Some(hint) = sandbox_messages::permission_hint(&exit, &cx.launcher) {
            text.push_str(&hint);
            text.push('\n');
        }
        if is_error {
            text.truncate(text.len().saturating_sub(1));
        } else {
            text.push_str(&end);
        }
        let command_outcome = Some(if is_error { CommandStatus::Failed } else { CommandStatus::Succeeded });
        ToolOutput { text, is_error, command_outcome, ..ToolOutput::default() }
    }
}

impl TypedTool for RunCommand {
    const NAME: &'static str = "run_command";
    const ACCESS: Access = Access::Execute;
    const DESCRIPTION: &'static str = "Run a shell command; returns stdout, stderr and exit code. All its \
    processes are killed when it ends or times out: start servers with `background`. Prefer the file tools for \
    reading, searching and editing.";
    type Args = RunCommandArgs;

    fn plan(&self, args: &RunCommandArgs) -> Plan {
        Plan {
            summary: summary(args),
            touched_files: Vec::new(),
            command: Some(as_typed(args)),
            directory: args.cwd.clone(),
            ..Plan::default()
        }
    }

    fn preview(&self, args: &RunCommandArgs, _cx: &ToolContext) -> Result<Option<String>, String> {
        let location = args.cwd.as_ref().map_or_else(String::new, |cwd| format!("\n(in {cwd:?})"));
        Ok(Some(format!("{}{location}", as_typed(args))))
    }

    async fn run(&self, args: RunCommandArgs, cx: &ToolContext) -> Result<ToolOutput, String> {
        if args.command.trim().is_empty() {
            return Err("The command is empty. Give a shell command such as `ls -la`.".to_owned());
        }
        if args.command.len() > MAX_COMMAND_BYTES {
            return Err("The command is longer than 128 KiB. Write it to a file and run that.".to_owned());
        }
        if args.command.contains('\0') {
            return Err("The command contains a NUL byte, which cannot be passed to a program.".to_owned());
        }
        let env = args.env.unwrap_or_default();
        if let Some(name) = env.keys().find(|name| !environment::is_name(name)) {
            return Err(format!(
                "'{}' is not a valid name of an environment variable.",
                name.escape_default()
            ));
        }
        let limit = args.timeout.filter(|timeout| *timeout > 0).map(|timeout| self.timeout(Some(timeout)));
        let timeout =
            if args.background { limit.unwrap_or(Duration::MAX) } else { self.timeout(args.timeout) };
        let spec = CommandSpec {
            argv: shell::argv(&args.command),
            cwd: working_directory(cx, args.cwd.as_deref())?,
            env,
            stdin: Vec::new(),
            timeout,
        };
        let launcher = cx.launcher.for_model();
        if args.background {
            let command = cx.background.start(&launcher, spec, limit, cx)?;
            return Ok(ToolOutput {
                command_outcome: Some(CommandStatus::Running),
                ..ToolOutput::ok(background_started_text(&command.id))
            });
        }
        let exit = match cx.foreground.add() {
            None => {
                let open_file = Some(|| cx.outputs.writer(&cx.call_id));
                let idle_timeout = self.options.idle_timeout;
                let output_options = OutputOptions { open_file, idle_timeout, recent: None };
                let exit = launcher.launch_with_output(spec, output_options, &cx.cancel).await;
                exit.map_err(|error| format!("{error}."))?
            }
            Some(followed) => match self.follow(&followed, &launcher, spec, cx).await? {
                FollowedEnd::Ended(exit) => *exit,
                FollowedEnd::Left(id) => {
                    return Ok(ToolOutput {
                        command_outcome: Some(CommandStatus::Running),
                        ..ToolOutput::ok(left_in_background_text(&id))
                    });
                }
            },
        };
        let warning = sandbox_messages::protected_files_line(&exit.protected_changes).map(|what| {
            messages::command_damage(&lines::one_line(&first_line(&args.command), lines::QUOTE_CHARS), &what)
        });
        Ok(ToolOutput { warning, ..self.answer(exit, timeout, cx) })
    }
}

/// How a call ended that a user has followed.
enum FollowedEnd {
    /// The command has ended.
    Ended(Box<CommandOutcome>),
    /// The user has left it in the background, under this id.
    Left(String),
}

/// Waits until a command has written nothing for `time`; forever without a limit.
async fn idle(recent: &RecentOutput, time: Option<Duration>) {
    let Some(time) = time else { return std::future::pending().await };
    while tokio::time::timeout(time, recent.wait_for_more(recent.total())).await.is_ok() {
        // The end of the output is that of the command, which is waited for elsewhere.
        tokio::task::yield_now().await;
    }
}

/// Returns the command with its variables in front, as typed into a shell: `PATH=. ls` may run another program than `ls`.
fn as_typed(args: &RunCommandArgs) -> String {
    let variables =
        args.env.iter().flatten().map(|(name, value)| format!("{name}={} ", shell::quoted(value)));
    variables.chain([args.command.clone()]).collect()
}

/// Beginnings of the results of commands that go on.
const STARTED: &str = "Started in the background: ";
const LEFT: &str = "The user has left the command in the background: ";

/// Reads the id of a command that goes on in the background from its result.
pub fn background_id_in(result: &str) -> Option<&str> {
    let first = result.lines().next()?;
    first.strip_prefix(STARTED).or_else(|| first.strip_prefix(LEFT))
}

/// Returns the result for a command started in the background.
fn background_started_text(id: &str) -> String {
    format!(
        "{STARTED}{id}\nIt runs until it exits, stop_command stops it, or the run ends. Read its \
        output: command_output with id \"{id}\"."
    )
}

/// Returns the result for a command that the user has left in the background.
fn left_in_background_text(id: &str) -> String {
    format!(
        "{LEFT}{id}\nIt goes on without a time limit until it exits, stop_command stops it, or the run ends. \
         Read its output: command_output with id \"{id}\"."
    )
}

/// The end of the summary of a command that is started in the background.
pub const IN_BACKGROUND: &str = " (in the background)";

fn summary(args: &RunCommandArgs) -> String {
    let line = first_line(&args.command);
    if args.background { line + IN_BACKGROUND } else { line }
}

fn first_line(command: &str) -> String {
    let mut lines = command.trim().lines();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}

/// Resolves `cwd` to an absolute directory inside the workspace.
fn working_directory(cx: &ToolContext, cwd: Option<&str>) -> Result<PathBuf, String> {
    let root = cx.workspace.root();
    let Some(cwd) = cwd else { return Ok(root.to_owned()) };
    let path = cx.workspace.path(cwd).map_err(|error| error.to_string())?;
    let path = cx.workspace.resolve(&path).map_err(|error| error.to_string())?;
    let directory = root.join(path.as_str());
    if directory.is_dir() {
        Ok(directory)
    } else {
        Err(format!("cwd '{cwd}' is not a directory of the workspace."))
    }
}

/// Stores an output that fitted into memory but not into the result.
fn store_output(exit: &CommandOutcome, cx: &ToolContext) -> io::Result<()> {
    let mut file = cx.outputs.writer(&cx.call_id)?;
    for captured in [&exit.stdout, &exit.stderr] {
        let (first, second) = captured.tail.as_slices();
        for bytes in [captured.head.as_slice(), first, second] {
            file.write_all(bytes)?;
        }
    }
    file.flush()
}

/// Returns the note on where the full output is stored.
fn stored_output_note(stored: &StoredOutput, call_id: &str) -> String {
    let name = Outputs::name(call_id);
    match stored {
        StoredOutput::NoFile => String::new(),
        StoredOutput::Complete => format!("{FULL_NOTE}{READ_NOTE}{name}\"]\n"),
        StoredOutput::Truncated => {
            format!("{FIRST_PART_NOTE}{READ_NOTE}{name}\"]\n")
        }
        StoredOutput::Failed(reason) => {
            format!("[The rest of the output is lost because it could not be stored: {reason}]\n")
        }
    }
}

/// Returns the note about processes that were still running when the command ended.
fn left_running_note(which: &str, were: &str) -> String {
    format!("[{which} when the command ended, and {were} ended with it. Start servers with `background`.]\n")
}

/// Describes how the command ended. It becomes the first line of a failed result and the last line of a successful one.
pub fn end_text(ended: ExitReason, timeout: Duration) -> String {
    match ended {
        ExitReason::Code(0) => "exit_code: 0".to_owned(),
        ExitReason::Signal(FILE_SIZE_SIGNAL) | ExitReason::Code(FILE_SIZE_CODE) => format!(
            "Command failed: a file grew beyond {} GiB, the largest that a command may write.\nWrite less, or several \
             files.",
            FILE_BYTES >> 30
        ),
        ExitReason::Code(code) => format!("Command failed with exit_code: {code}"),
        ExitReason::Signal(signal) => {
            let code = SIGNAL_EXIT_BASE.saturating_add(signal);
            format!("Command failed with exit_code: {code} ({})", ended_by_signal(signal))
        }
        ExitReason::TimedOut => format!(
            "Command timed out after {} s and was ended with everything it started.\nGive a larger `timeout` (at most \
             {MAX_TIMEOUT_SECONDS} s), split the work into smaller commands, and do not start servers or commands \
             that wait for input.",
            timeout.as_secs_f64()
        ),
        ExitReason::Idle => "Command ended with everything it started: it wrote nothing for longer than `commands.idle_timeout` \
                        allows.\nUse flags that show progress, and no command that waits for input."
            .to_owned(),
        ExitReason::Exceeded(excess) => format!("Command ended with everything it started: {}.", excess.advice()),
        ExitReason::Cancelled => "Command interrupted and ended with everything it started.".to_owned(),
    }
}

/// Returns the exit code in a result that contains [`end_text`] in its first or its last line.
pub fn exit_code_in(result: &str) -> Option<i32> {
    let code = |line: &str| {
        let line = line.strip_prefix("Command failed with ").unwrap_or(line);
        line.strip_prefix("exit_code: ")?.split(' ').next()?.parse().ok()
    };
    [result.lines().next(), result.lines().next_back()].into_iter().flatten().find_map(code)
}

/// The part of a stream that is sent to the model.
struct StreamExcerpt {
    text: String,
    is_cut: bool,
}

impl StreamExcerpt {
    /// Selects at most `max_lines` lines, and fewer while they have more than `max_chars` characters.
    fn fit(captured: &Captured, max_lines: usize, max_chars: usize) -> Self {
        let mut lines = max_lines;
        loop {
            let shown = Self::of(captured, lines, max_chars);
            if lines < 4 || shown.text.chars().count() <= max_chars {
                return shown;
            }
            lines = (lines / 2).min(2 * HEAD_LINES);
        }
    }

    /// Selects at most `max_lines` lines: up to half of them from the start and a quarter from the end.
    fn of(captured: &Captured, max_lines: usize, max_chars: usize) -> Self {
        let (first, second) = captured.tail.as_slices();
        let tail = [first, second].concat();
        let ends_inside_line = tail.last().or(captured.head.last()).is_some_and(|byte| *byte != b'\n');
        let total = captured.line_ends.saturating_add(u64::from(ends_inside_line));
        if captured.is_truncated() {
            let (head, tail) = (String::from_utf8_lossy(&captured.head), String::from_utf8_lossy(&tail));
            // The last line of the head and the first line of the tail may be incomplete.
            let head: Vec<&str> = head.lines().take(max_lines / 2).collect();
            let tail: Vec<&str> = tail.lines().skip(1).collect();
            let tail = last(&tail, max_lines / 4);
            let omitted = total.saturating_sub((head.len() + tail.len()) as u64);
            return Self::joined(&head, omitted, tail, max_chars);
        }
        let text = [captured.head.as_slice(), &tail].concat();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() <= max_lines {
            return Self::joined(&lines, 0, &[], max_chars);
        }
        let (head, rest) = lines.split_at(max_lines / 2);
        let tail = last(rest, max_lines / 4);
        Self::joined(head, (rest.len() - tail.len()) as u64, tail, max_chars)
    }

    fn joined(head: &[&str], omitted: u64, tail: &[&str], max_chars: usize) -> Self {
        let count = (head.len() + tail.len()).max(1);
        let line_chars = if count <= FEW_LINES && max_chars < STREAM_CHARS {
            (max_chars / count).saturating_sub(MARKER_CHARS).max(MARKER_CHARS)
        } else {
            (STREAM_CHARS / count).max(MIN_LINE_CHARS)
        };
        let mut shown = Self { text: String::new(), is_cut: omitted > 0 };
        shown.lines(head, line_chars);
        if omitted > 0 {
            let _infallible = writeln!(shown.text, "[... {omitted} lines omitted ...]");
        }
        shown.lines(tail, line_chars);
        shown
    }

    fn lines(&mut self, lines: &[&str], line_chars: usize) {
        for line in lines {
            match line.char_indices().nth(line_chars) {
                Some((end, _)) => {
                    let (shown, rest) = line.split_at(end);
                    let _infallible =
                        writeln!(self.text, "{shown}[... {} characters omitted ...]", rest.chars().count());
                    self.is_cut = true;
                }
                None => {
                    let _infallible = writeln!(self.text, "{line}");
                }
            }
        }
    }
}

/// Returns the last `count` of `lines`.
fn last<'a, 'b>(lines: &'a [&'b str], count: usize) -> &'a [&'b str] {
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default()
}

#[cfg(test)]
#[path = "run_command_tests.rs"]
mod tests;
