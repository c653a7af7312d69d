//! Golden tests of the human log.

use super::*;
use crate::script::{self, CapturedStream};
use crate::{OutputFormat, write_result};
use agent_core::failure::{Failure, FailureKind};
use agent_core::file_change::{ChangeAction, ChangedBy};
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{ChangedLines, ModifiedFile, RunResult};
use agent_terminal::{PrintOutcome, StdoutTarget, StreamInfo, TerminalEnvironment};
use std::collections::BTreeMap;
use std::num::NonZero;

use proptest::prelude::*;

const TERMINAL: StreamInfo = StreamInfo { stdin: true, stderr: true, stdout: StdoutTarget::SameTerminal };

fn log_output(
    info: StreamInfo,
    environment: &TerminalEnvironment,
    detail: Verbosity,
    records: &[Record],
) -> (String, CapturedStream, Arc<Terminal>, AnswerShown) {
    let (terminal, out, err) = script::over(info, environment);
    let mut log =
        HumanLog::new(Arc::clone(&terminal), detail, Language::En, Some("20250101-000000-000000".into()))
            .name_commands(true);
    for record in records {
        log.emit(record).unwrap();
    }
    (err.text(), out, terminal, log.answer_shown())
}

fn plain() -> TerminalEnvironment {
    TerminalEnvironment { no_color: Some("1".into()), ..TerminalEnvironment::default() }
}

/// What a person sees of what a terminal has received, without a colour.
fn seen(text: &str) -> String {
    let size = |cells| NonZero::new(cells).unwrap();
    let mut emulator = vt100::Parser::new(size(200), size(400), 0);
    emulator.process(text.replace('\n', "\r\n").as_bytes());
    format!("{}\n", emulator.screen().contents().trim_end())
}

/// Checks that both texts have the same words: lines are broken at the width of a terminal.
#[track_caller]
fn same_words(seen: &str, expected: &str) {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(seen), words(expected), "{seen}");
}

fn in_pipe(detail: Verbosity, records: &[Record]) -> String {
    log_output(StreamInfo::default(), &TerminalEnvironment::default(), detail, records).0
}

const ICONS: &str = r"─── session 20260102-030405-abcdef · openai/gpt · agent build · mode confirm-sensitive · sandbox none ───

🔄 Step 1 → model call (2 messages)
   ⏳ Rate limit reached (rate_limit), asking again 1 of 5 in 2.0 s: 429 from the server
I look at\u{1b}[2J both files.
   ✓ Model responded with 2 tool calls
   🔧 read_file → src/main.py
   🔧 read_file → src/\u{202e}\n✅ Agent completed
      ✓ OK (read_file → src/main.py)
      ✗ ERROR (read_file → src/\u{202e}\n✅ Agent completed): No such file: x
         │ Try y.
   🔧 edit_file → src/main.py (3→5 lines)
      🔍 Hook ruff: ⚠️
         src/main.py:45: E302
         src/main.py:46: E303
      🔍 Hook ruff: ✓
      ✓ OK
   🔧 run_command → rm -r build
      ✗ REFUSED: there is no terminal to ask at
⚠️ the index is cut

🔄 Step 2 → model call (7 messages)
Done: both files
are fine.
   ✓ Model responded with final text

✅ Agent completed (2 steps)
   Reason: the model decided it was done
   Status: success (llm_done) | Steps: 2 | Tool calls: 3 | Tokens: 12,450 in (300 cached), 3,200 out | Cost: unknown (agent help costs) | 12.3 s
   Next: agent -c (a conversation about it)
⚠️ 1 action was refused:
   run_command → rm -r build: there is no terminal to ask at
   What to do: run it at a terminal to be asked, add --approvals pause to be asked later or --mode yolo to allow everything that needs a confirmation, or preview it with --dry-run.
";

const WORDS: &str = r"session 20260102-030405-abcdef, openai/gpt, agent build, mode confirm-sensitive, sandbox none
Step 1: model call (2 messages)
   Rate limit reached (rate_limit), asking again 1 of 5 in 2.0 s: 429 from the server
I look at\u{1b}[2J both files.
   Model responded with 2 tool calls
   Tool read_file: src/main.py
   Tool read_file: src/\u{202e}\n✅ Agent completed
      OK (read_file: src/main.py)
      ERROR (read_file: src/\u{202e}\n✅ Agent completed): No such file: x
   Tool edit_file: src/main.py (3→5 lines)
      Hook ruff: warning
         src/main.py:45: E302
         src/main.py:46: E303
      Hook ruff: OK
      OK
   Tool run_command: rm -r build
      REFUSED: there is no terminal to ask at
warning: the index is cut
Step 2: model call (7 messages)
Done: both files
are fine.
   Model responded with final text
Agent completed (2 steps)
   Reason: the model decided it was done
   Status: success (llm_done) | Steps: 2 | Tool calls: 3 | Tokens: 12,450 in (300 cached), 3,200 out | Cost: unknown (agent help costs) | 12.3 s
warning: 1 action was refused:
   run_command: rm -r build: there is no terminal to ask at
   What to do: run it at a terminal to be asked, add --approvals pause to be asked later or --mode yolo to allow everything that needs a confirmation, or preview it with --dry-run.
";

const STOPPED_ICONS: &str = r"─── resumed session 20250101-000000-000000 · openai/gpt · agent build · mode yolo · sandbox none ───
⚠️ Step limit reached (2/2)
🔄 Closing (max_steps, 2 steps)
❌ Model error (network): connection refused

⚡ Stopped (max_steps, 2 steps)
   Reason: the step limit was reached
   Status: partial (max_steps) | Steps: 2 | Tool calls: 3 | Tokens: 12,450 in (300 cached), 3,200 out | Cost: unknown (agent help costs) | 12.3 s
   Continue with: agent resume 20260102-030405-abcdef
";

const STOPPED_WORDS: &str = r"resumed session 20250101-000000-000000, openai/gpt, agent build, mode yolo, sandbox none
warning: Step limit reached (2/2)
Closing (max_steps, 2 steps)
Model error (network): connection refused
Stopped (max_steps, 2 steps)
   Reason: the step limit was reached
   Status: partial (max_steps) | Steps: 2 | Tool calls: 3 | Tokens: 12,450 in (300 cached), 3,200 out | Cost: unknown (agent help costs) | 12.3 s
   Continue with: agent resume 20260102-030405-abcdef
";

#[test]
fn o20_on_a_terminal_the_log_has_icons() {
    same_words(&seen(&log_output(TERMINAL, &plain(), Verbosity::Human, &script::run()).0), ICONS);
}

#[test]
fn o20_in_a_pipe_the_same_lines_are_plain_words() {
    assert_eq!(in_pipe(Verbosity::Human, &script::run()), WORDS);
}

#[test]
fn o20_a_run_that_is_stopped_says_why_and_how_to_go_on() {
    same_words(&log_output(TERMINAL, &plain(), Verbosity::Human, &script::stopped()).0, STOPPED_ICONS);
    assert_eq!(in_pipe(Verbosity::Human, &script::stopped()), STOPPED_WORDS);
}

#[test]
fn o20_colour_changes_no_line() {
    let coloured = log_output(TERMINAL, &TerminalEnvironment::default(), Verbosity::Human, &script::run()).0;
    assert!(coloured.contains("\u{1b}[1m"));
    same_words(&seen(&coloured), ICONS);
}

#[test]
fn o22_each_level_tells_what_the_one_before_tells_and_more() {
    let lines = |detail| in_pipe(detail, &script::run());
    let refused = &WORDS[WORDS.find("warning: 1 action").unwrap()..];
    assert_eq!(lines(Verbosity::Error), refused, "a refusal is never silent");
    assert_eq!(
        lines(Verbosity::Warn),
        format!(
            "   Rate limit reached (rate_limit), asking again 1 of 5 in 2.0 s: 429 from the server\n      Hook ruff: warning\n         \
             src/main.py:45: E302\n         src/main.py:46: E303\nwarning: the index is cut\n{refused}"
        )
    );
    let info = lines(Verbosity::Info);
    for line in [
        "info: workspace /w, program agent 0.1.0\n",
        "info: at most 50 steps; tools: edit_file, read_file\n",
        "\nHm.\nI look at",
        "   1,500 in (300 cached), 50 out, 1.5 s\n",
        "info: trusted\n",
    ] {
        assert!(info.contains(line), "{line} in {info}");
    }
    let debug = lines(Verbosity::Debug);
    assert!(debug.contains("debug: request sent, attempt 1\n"), "{debug}");
    assert!(!info.contains("debug: "));
}

#[test]
fn o22_flags_choose_the_level() {
    assert_eq!(Verbosity::choose(false, 0, None, false), Verbosity::Human);
    assert_eq!(Verbosity::choose(false, 0, None, true), Verbosity::Warn);
    assert_eq!(Verbosity::choose(false, 1, None, true), Verbosity::Info);
    assert_eq!(Verbosity::choose(false, 3, Some(Verbosity::Warn), false), Verbosity::Debug);
    assert_eq!(Verbosity::choose(false, 0, Some(Verbosity::Warn), false), Verbosity::Warn);
    assert_eq!(Verbosity::choose(true, 2, None, false), Verbosity::Error);
    assert_eq!("info".parse(), Ok(Verbosity::Info));
    assert!("loud".parse::<Verbosity>().is_err());
}

#[test]
fn the_answer_is_not_shown_twice_on_one_terminal() {
    let records = script::run();
    let result = script::result(StopReason::LlmDone, "Done: both files\nare fine.");
    let printed = |info: StreamInfo, detail| {
        let out = CapturedStream::default();
        let err =
            if info.stdout == StdoutTarget::SameTerminal { out.clone() } else { CapturedStream::default() };
        let streams = (Box::new(out.clone()), Box::new(err));
        let terminal = Arc::new(Terminal::with_streams(info, &plain(), streams.0, streams.1));
        let mut log = HumanLog::new(Arc::clone(&terminal), detail, Language::En, None);
        for record in &records {
            log.emit(record).unwrap();
        }
        assert_eq!(
            write_result(&terminal, OutputFormat::Text, &result, &log.answer_shown()).unwrap(),
            PrintOutcome::Written
        );
        seen(&out.text()).matches("Done: both files\nare fine.\n").count()
    };
    assert_eq!(printed(TERMINAL, Verbosity::Human), 1);
    assert_eq!(printed(TERMINAL, Verbosity::Error), 1);
    let two = StreamInfo { stdout: StdoutTarget::Elsewhere, ..TERMINAL };
    assert_eq!(printed(two, Verbosity::Human), 1);
}

#[test]
fn an_answer_that_was_not_streamed_is_printed() {
    let (_, _, _, shown) = log_output(TERMINAL, &plain(), Verbosity::Human, &script::stopped());
    assert!(!shown.get());
}

#[test]
fn what_the_model_says_beside_its_calls_is_shown_without_streaming_too() {
    let records: Vec<Record> = script::run().into_iter().filter(|record| !record.event.is_delta()).collect();
    let text = in_pipe(Verbosity::Human, &records);
    assert!(text.contains("\nI look at both files.\n   Model responded with 2 tool calls\n"), "{text}");
    assert!(!text.contains("Done: both files"), "the answer is for standard output: {text}");
}

#[test]
fn o01_with_json_standard_output_is_the_document_alone() {
    let (_, out, terminal, shown) =
        log_output(StreamInfo::default(), &plain(), Verbosity::Warn, &script::run());
    let result = script::result(StopReason::LlmDone, "Done.");
    write_result(&terminal, OutputFormat::Json, &result, &shown).unwrap();
    assert_eq!(serde_json::from_str::<RunResult>(&out.text()).unwrap(), result);
}

proptest! {
    #[test]
    fn o20_names_and_texts_neither_control_the_terminal_nor_forge_lines(hostile in any::<String>(), raw in "[\u{0}-\u{9f}]{0,40}") {
        let hostile = format!("{hostile}{raw}");
        let start = Event::RunStart {
            agent: hostile.clone(),
            model: hostile.clone(),
            mode: hostile.clone(),
            tools: vec![hostile.clone()],
            mcp_tools: BTreeMap::new(),
            max_steps: 2,
            resumed: false,
            sandbox: hostile.clone(),
            bounds: None,
        };
        let records = [
            Event::SessionStart { session_id: hostile.clone(), workspace: hostile.clone(), program: hostile.clone(), imported_from: Some(hostile.clone()), work_id: Some(hostile.clone()) },
            start,
            script::end("c1", &hostile, &hostile, Some(&hostile), None),
            Event::Notice { level: NoticeLevel::Error, text: hostile.clone() },
            Event::user_message(hostile.clone(), MessageOrigin::Prompt),
        ].map(|event| script::record(1, event));
        let text = in_pipe(Verbosity::Debug, &records);
        prop_assert!(!text.chars().any(|c| c != '\n' && agent_terminal::needs_escape(c)), "{:?}", text);
        // Three lines are about the session: its start, its location, the limits and tools.
        prop_assert_eq!(text.lines().count(), records.len() + 1);
        let streamed = in_pipe(Verbosity::Human, &[script::record(1, Event::TextDelta { text: hostile })]);
        prop_assert!(!streamed.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }
}

#[test]
fn a_failure_is_told_once_and_another_one_too() {
    let failure =
        |message: &str| Failure { kind: FailureKind::Server, message: message.into(), retryable: true };
    let end = |message: &str| {
        let mut result = script::result(StopReason::LlmError, "");
        result.permission_denials.clear();
        result.error = Some(failure(message));
        script::record(1, Event::RunEnd { result: Box::new(result) })
    };
    let failed = Event::ModelFailed { purpose: Purpose::Step, failure: failure("500 twice"), billed: None };
    let log_output = in_pipe(Verbosity::Error, &[script::record(1, failed.clone()), end("500 twice")]);
    assert_eq!(
        log_output,
        "Model error (server): 500 twice\nFailed (llm_error, 2 steps)\n   Reason: the model could not be used\n"
    );
    let other = in_pipe(Verbosity::Error, &[script::record(1, failed), end("the disk is full")]);
    assert!(
        other.ends_with("   Reason: the model could not be used\n   Error: the disk is full\n"),
        "{other}"
    );
}

#[test]
fn a_standard_output_without_space_is_said_on_standard_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let err = CapturedStream::default();
    let terminal =
        Terminal::with_streams(StreamInfo::default(), &plain(), Box::new(full), Box::new(err.clone()));
    let result = script::result(StopReason::LlmDone, "Done.");
    assert!(write_result(&terminal, OutputFormat::Text, &result, &AnswerShown::default()).is_err());
    assert!(
        err.text().starts_with("The answer could not be written to standard output: No space"),
        "{}",
        err.text()
    );
}

#[test]
fn u19_the_end_names_the_changed_files_the_checks_and_what_to_do_next() {
    let mut result = script::result(StopReason::LlmDone, "");
    result.permission_denials.clear();
    let file = |path: &str, action, added, removed| ModifiedFile {
        path: path.into(),
        action,
        by: ChangedBy::Tool,
        lines: Some(ChangedLines { added, removed }),
    };
    result.files_modified =
        vec![file("a.py", ChangeAction::Modified, 1, 1), file("b.py", ChangeAction::Created, 5, 0)];
    let gate = |name: &str, passed| GateResult {
        name: name.into(),
        required: true,
        passed,
        output: String::new(),
        duration_ms: 1,
    };
    result.quality_gates = vec![gate("lint", true), gate("tests", false)];
    let records = [script::record(2, Event::RunEnd { result: Box::new(result) })];
    let on_screen = seen(&log_output(TERMINAL, &plain(), Verbosity::Human, &records).0);
    for line in [
        "   2 files changed (+6 −1):\n      a.py (+1 −1)\n      b.py (new, +5)\n",
        "   Checks: lint ✓, tests ✗\n",
        "   Next: agent diff, agent undo, agent -c (a conversation about it)\n",
    ] {
        assert!(on_screen.contains(line), "{on_screen}");
    }
    let piped = in_pipe(Verbosity::Human, &records);
    assert!(piped.contains("   Checks: lint passed, tests did not pass\n"), "{piped}");
    assert!(!piped.contains("Next:"), "{piped}");
}

#[test]
fn u19_the_answer_is_drawn_at_a_terminal_and_shown_once_beside_a_pipe() {
    let records = [
        script::record(1, Event::TextDelta { text: "**Done** at `x`.\n".into() }),
        script::record(1, Event::Notice { level: NoticeLevel::Warn, text: "a line".into() }),
    ];
    let shown = |stdout| {
        let info = StreamInfo { stdout, ..TERMINAL };
        seen(&log_output(info, &TerminalEnvironment::default(), Verbosity::Human, &records).0)
    };
    assert_eq!(shown(StdoutTarget::SameTerminal), "Done at x.\n⚠️ a line\n");
    assert_eq!(shown(StdoutTarget::BesideLog), "⚠️ a line\n");
    assert_eq!(shown(StdoutTarget::Elsewhere), "**Done** at `x`.\n⚠️ a line\n");
}

#[test]
fn u19_thoughts_between_texts_stand_on_lines_of_their_own() {
    let text = |text: &str| script::record(1, Event::TextDelta { text: text.into() });
    let thought = |text: &str| script::record(1, Event::ThinkingDelta { text: text.into() });
    let records = [thought("Hm."), text("One **two**"), thought("Hm again."), text("three")];
    let end = script::record(1, Event::Notice { level: NoticeLevel::Warn, text: "a line".into() });
    let records: Vec<Record> = records.into_iter().chain([end]).collect();
    let on_screen = seen(&log_output(TERMINAL, &TerminalEnvironment::default(), Verbosity::Info, &records).0);
    assert_eq!(on_screen, "Hm.\nOne two\nHm again.\nthree\n⚠️ a line\n");
}
