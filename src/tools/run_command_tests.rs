use super::*;
use crate::observed_files::ObservedFiles;
use agent_process::launch::Launcher;
use agent_workspace::Workspace;
use std::path::Path;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

fn context(dir: &Path) -> ToolContext {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let outputs = dir.join("outputs");
    std::fs::create_dir_all(&outputs).unwrap();
    ToolContext {
        workspace: Rc::new(Workspace::open(dir).unwrap()),
        launcher: Rc::new(Launcher::new(env, Vec::new())),
        observed_files: Rc::new(ObservedFiles::default()),
        background: Rc::default(),
        foreground: foreground::ForegroundCommands::default(),
        outputs: Rc::new(Outputs {
            dir: outputs,
            parent: None,
            kept: None,
            redactor: std::sync::Arc::default(),
        }),
        images: None,
        hidden: std::sync::Arc::new(|_| false),
        cancel: CancellationToken::new(),
        call_id: "c1".to_owned(),
        announce: Box::new(|_| Ok(())),
    }
}

fn run_in(dir: &Path, args: serde_json::Value) -> ToolOutput {
    let tool = RunCommand::new(RunCommandOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(tool.run(serde_json::from_value(args).unwrap(), &context(dir)));
    outcome.unwrap_or_else(ToolOutput::error)
}

fn run(args: serde_json::Value) -> ToolOutput {
    run_in(tempfile::tempdir().unwrap().path(), args)
}

#[expect(clippy::disallowed_methods, reason = "the test looks at the file itself")]
fn kept_output(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("outputs/c1.txt")).unwrap()
}

#[test]
fn t14_a_failure_keeps_stdout_stderr_and_the_exit_code() {
    let output = run(serde_json::json!({"command": "sh -c 'echo o; echo e>&2; exit 3'"}));
    assert_eq!(
        (output.text.as_str(), output.is_error),
        ("Command failed with exit_code: 3\nstdout:\no\nstderr:\ne", true)
    );
    let output = run(serde_json::json!({"command": "printf x"}));
    assert_eq!((output.text.as_str(), output.is_error), ("stdout:\nx\nexit_code: 0", false));
    let output = run(serde_json::json!({"command": "kill -9 $$"}));
    assert_eq!(
        output.text,
        "Command failed with exit_code: 137 (ended by signal 9, which the system sends when memory runs out)"
    );
}

#[test]
fn t15_a_timeout_says_what_to_do() {
    let output = run(serde_json::json!({"command": "echo begun; sleep 60 & sleep 60", "timeout": 1}));
    assert!(
        output.is_error
            && output.text.starts_with("Command timed out after 1 s")
            && output.text.ends_with("\nstdout:\nbegun"),
        "{}",
        output.text
    );
}

#[test]
fn t16_a_number_above_the_cap_is_milliseconds() {
    let tool = RunCommand::new(RunCommandOptions::default());
    let cases =
        [(None, 120), (Some(0), 120), (Some(30), 30), (Some(600), 600), (Some(30_000), 30), (Some(2000), 2)];
    for (asked, seconds) in cases {
        assert_eq!(tool.timeout(asked), Duration::from_secs(seconds), "{asked:?}");
    }
    assert_eq!(tool.timeout(Some(u64::MAX)), Duration::from_mins(10));
}

#[test]
fn t18_a_long_output_is_cut_by_lines_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let output = run_in(dir.path(), serde_json::json!({"command": "seq 1000; seq 100 >&2"}));
    let cut = "\n99\n100\n[... 850 lines omitted ...]\n951\n952\n";
    assert!(output.text.contains(cut), "{}", output.text);
    assert!(
        output.text.contains("stderr:\n1\n")
            && output.text.contains("\n25\n[... 63 lines omitted ...]\n89\n")
    );
    assert!(output.text.contains("[Full output: read_file or grep with path \"output:c1\"]\nexit_code: 0"));
    let kept = kept_output(dir.path());
    assert_eq!(kept.lines().count(), 1100);
}

#[test]
fn t18_a_flood_is_cut_the_same_way_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let output = run_in(dir.path(), serde_json::json!({"command": "seq 100000"}));
    assert!(output.text.contains("\n100\n[... 99850 lines omitted ...]\n99951\n"), "{}", output.text);
    assert_eq!(kept_output(dir.path()).lines().count(), 100_000);
}

#[test]
fn one_endless_line_is_cut_too() {
    let output = run(serde_json::json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x"}));
    assert!(output.text.len() < 2 * STREAM_CHARS && output.text.contains("omitted"), "{}", output.text.len());
    let output = run(serde_json::json!({"command": "head -c 40000 /dev/zero | tr '\\0' x"}));
    assert!(output.text.contains("[... 10000 characters omitted ...]") && output.text.contains("output:c1"));
}

// Fault B4: an output was cut by lines, then again, and the second marker counted what the first had left.
#[test]
fn a_result_within_the_limit_of_characters_is_cut_once_and_counts_all_that_is_missing() {
    let line = "x".repeat(245);
    let command = format!("seq -f '%04g {line}' 1 2000; seq -f '%04g {line}' 1 50 >&2; exit 1");
    for max_chars in [1_024, 8_000, 32_000] {
        let tool = RunCommand::new(RunCommandOptions { max_chars, ..RunCommandOptions::default() });
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let args = serde_json::from_value(serde_json::json!({ "command": command })).unwrap();
        let text = runtime.block_on(tool.run(args, &context(dir.path()))).unwrap().text;
        assert!(text.chars().count() <= max_chars, "{max_chars}: {text}");
        let (stdout, stderr) = text.split_once("stderr:\n").unwrap();
        for (stream, lines) in [(stdout, 2000), (stderr, 50)] {
            let shown = stream.lines().filter(|line| line.contains(" xxx")).count();
            let marker = format!("[... {} lines omitted ...]", lines - shown);
            assert!(shown > 0 && (shown == lines || stream.contains(&marker)), "{max_chars}: {text}");
        }
    }
}

#[test]
fn t19_the_working_directory_stays_inside() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("/", dir.path().join("out")).unwrap();
    let output = run_in(dir.path(), serde_json::json!({"command": "basename $PWD", "cwd": "sub"}));
    assert_eq!(output.text, "stdout:\nsub\nexit_code: 0");
    for cwd in ["..", "/", "sub/../..", "out"] {
        let output = run_in(dir.path(), serde_json::json!({"command": "pwd", "cwd": cwd}));
        assert!(output.is_error && output.text.starts_with("Security error"), "{cwd}: {}", output.text);
    }
    assert!(run_in(dir.path(), serde_json::json!({"command": "pwd", "cwd": "missing"})).is_error);
}

#[test]
fn t20_variables_are_merged_and_shown_in_the_plan() {
    let output = run(serde_json::json!({"command": "echo $X $PAGER", "env": {"X": "a b"}}));
    assert_eq!(output.text, "stdout:\na b\nexit_code: 0");
    let tool = RunCommand::new(RunCommandOptions::default());
    let args =
        serde_json::from_value(serde_json::json!({"command": "ls\npwd", "env": {"X": "it's"}})).unwrap();
    let plan = tool.plan(&args);
    assert_eq!(
        (plan.summary.as_str(), plan.command.as_deref()),
        (
            "ls …",
            Some(
                r"X='it'\''s' ls
pwd"
            )
        )
    );
    assert!(run(serde_json::json!({"command": "ls", "env": {"A=B": "x"}})).is_error);
}

#[test]
fn bytes_that_are_not_text_are_shown_as_far_as_they_go() {
    assert_eq!(
        run(serde_json::json!({"command": "printf 'a\\377b'"})).text,
        "stdout:\na\u{fffd}b\nexit_code: 0"
    );
    assert!(run(serde_json::json!({"command": "a\u{0}b"})).is_error);
    assert!(run(serde_json::json!({"command": "  "})).is_error);
    assert!(run(serde_json::json!({"command": "x".repeat(128 * 1024)})).text.contains("128 KiB"));
}

#[test]
fn the_exit_code_is_read_back_from_a_result() {
    let end = |reason| end_text(reason, Duration::ZERO);
    let failed = format!("{}\nstdout:\nexit_code: 5", end(ExitReason::Code(3)));
    assert_eq!(exit_code_in(&failed), Some(3));
    assert_eq!(exit_code_in(&format!("stdout:\nx\n{}", end(ExitReason::Code(0)))), Some(0));
    assert_eq!(exit_code_in(&end(ExitReason::Signal(9))), Some(137));
    for without in [end(ExitReason::TimedOut), "Started in the background: c1".to_owned(), String::new()] {
        assert_eq!(exit_code_in(&without), None);
    }
}
