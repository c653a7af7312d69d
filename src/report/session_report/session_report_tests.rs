//! Tests of session reports, and properties that hold for every text in them.

use super::html_writer::HtmlWriter;
use super::*;
use crate::script;
use agent_core::event::{Event, Record};
use agent_core::run_result::RunResult;
use proptest::prelude::*;

fn report(records: &[Record]) -> SessionReport {
    let mut builder = SessionReportBuilder::default();
    for record in records {
        builder.add(record);
    }
    builder.finish()
}

fn html(report: &SessionReport) -> String {
    ReportFormat::Html.render(report).unwrap()
}

#[test]
fn o19_an_account_tells_what_was_done_by_step_and_call() {
    let report = report(&script::run());
    assert_eq!(report.session_id.as_deref(), Some("20260102-030405-abcdef"));
    assert_eq!((report.task.as_str(), report.output.as_str()), ("fix it", "Done: both files\nare fine."));
    assert_eq!((report.status, report.stop_reason), (Some(Status::Success), Some(StopReason::LlmDone)));
    assert_eq!((report.step_count, report.request_count, report.tool_call_count), (2, 1, 2));
    assert_eq!((report.model_time_ms, report.tool_time_ms), (3_000, 12));
    assert_eq!(report.usage.prompt_tokens(), 3_000);
    let [first, second] = report.steps.as_slice() else { panic!("{:?}", report.steps) };
    assert_eq!(
        (first.number, first.latency_ms, first.finish_reason.clone()),
        (1, 1_500, Some(FinishReason::ToolCalls))
    );
    let outcomes: Vec<CallStatus> = first.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, [CallStatus::Ok, CallStatus::Failed]);
    assert_eq!(first.calls[1].error.as_deref(), Some("No such file: x"));
    assert_eq!(first.hooks.len(), 2);
    assert_eq!(second.text, "Done: both files\nare fine.");
    assert_eq!(report.permission_denials[0].denial.rule, "mode.confirm-sensitive");
    assert_eq!(
        report.errors,
        [ReportedError { step: 1, tool: Some("read_file".into()), message: "No such file: x".into() }]
    );
    let warnings: Vec<&str> = report.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("429 from the server") && warnings[1].contains("E302"), "{warnings:?}");
}

#[test]
fn a_session_without_an_end_has_no_verdict_and_none_of_an_earlier_run() {
    let mut records = script::run();
    records.extend(script::stopped().into_iter().map(|record| Record { run: "r2".into(), ..record }));
    assert_eq!(report(&records).stop_reason, Some(StopReason::MaxSteps));
    records.pop();
    let killed = report(&records);
    assert_eq!((killed.status, killed.stop_reason, killed.runs.len()), (None, None, 2));
    assert_eq!((killed.output.as_str(), killed.runs[0].status), ("", Some(Status::Success)));
    assert!(ReportFormat::Markdown.render(&killed).unwrap().contains("WARN: `no end: "));
    // The steps of the second run are numbered after those of the first.
    assert_eq!(killed.steps.last().unwrap().number, 4);
}

#[test]
fn a_call_that_waited_gets_its_result_where_it_was_made() {
    let mut records = script::run();
    let ends = |record: &Record| matches!(&record.event, Event::ToolCallEnd { result, .. } if result.call_id == "c1");
    let at = records.iter().position(ends).unwrap();
    let waits = Event::ToolCallPending { call_id: "c1".into(), approval: None };
    let end = std::mem::replace(&mut records[at], script::record(1, waits));
    assert_eq!(report(&records).steps[0].calls[0].outcome, CallStatus::Waiting);
    records.push(Record { run: "r2".into(), ..end });
    assert_eq!(report(&records).steps[0].calls[0].outcome, CallStatus::Ok);
}

#[test]
fn long_texts_share_the_room_that_there_is() {
    let mut records = script::run();
    let steps = records.split_off(4);
    let long = "word ".repeat(4_000);
    for number in 0..500 {
        for mut record in steps.clone() {
            record.step += number * 2;
            if let Event::ToolCallEnd { result, .. } = &mut record.event {
                result.text.clone_from(&long);
            }
            if !matches!(record.event, Event::RunEnd { .. }) {
                records.push(record);
            }
        }
    }
    let report = report(&records);
    assert_eq!((report.step_count, report.left_out.steps), (1_000, 0));
    let page = html(&report);
    assert!(page.len() < 12 << 20, "{}", page.len());
    assert!(page.contains("characters omitted"));
    assert!(page.matches("<a href=\"#step-").count() <= 3 * 240);
    let github = ReportFormat::Github.render(&report).unwrap();
    assert!(github.len() < 65_536 && github.contains("Timeline (1,000 steps)"), "{}", github.len());
}

#[test]
fn a_run_that_never_began_has_a_report_too() {
    let failure = Failure {
        kind: agent_core::failure::FailureKind::Config,
        message: "no such key".into(),
        retryable: false,
    };
    let mut report = SessionReport::default();
    report.set_result(&RunResult::not_started(failure, None));
    for form in [ReportFormat::Json, ReportFormat::Markdown, ReportFormat::Github, ReportFormat::Html] {
        let text = form.render(&report).unwrap();
        assert!(text.contains("no such key") && text.contains("failed"), "{text}");
    }
}

#[test]
fn the_policy_of_the_page_holds_the_hash_of_its_style() {
    use base64::Engine as _;
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    let hash = suite.common.hash_provider.hash(include_bytes!("html.css"));
    let hash = base64::engine::general_purpose::STANDARD.encode(hash.as_ref());
    assert!(html(&SessionReport::default()).contains(&format!("style-src 'sha256-{hash}'")), "it is {hash}");
}

#[test]
fn o17_the_ending_of_a_name_says_the_form() {
    for (name, form) in [
        ("r.json", ReportFormat::Json),
        ("r.md", ReportFormat::Markdown),
        ("r.markdown", ReportFormat::Markdown),
        ("r.HTML", ReportFormat::Html),
        ("r.htm", ReportFormat::Html),
        ("r", ReportFormat::Markdown),
    ] {
        assert_eq!(ReportFormat::from_path(Path::new(name)), form, "{name}");
    }
    assert_eq!("github".parse(), Ok(ReportFormat::Github));
    assert!("pdf".parse::<ReportFormat>().is_err());
}

proptest! {
    #[test]
    fn whatever_is_left_of_a_journal_has_a_report(kept in prop::sample::subsequence(script::run(), 0..27).prop_shuffle()) {
        let report = report(&kept);
        let calls: usize = report.steps.iter().map(|step| step.calls.len()).sum();
        prop_assert!(calls as u64 <= u64::from(report.tool_call_count));
        let page = html(&report);
        prop_assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
        prop_assert_eq!(page.matches("<article ").count(), report.steps.len());
        for form in [ReportFormat::Json, ReportFormat::Markdown, ReportFormat::Github] {
            prop_assert!(form.render(&report).unwrap().ends_with('\n'));
        }
    }

    #[test]
    fn no_text_becomes_markup_on_a_page(text in "(?s).{0,40}") {
        let mut page = HtmlWriter::default();
        page.markup("<p>").text(&text).verbatim(&text);
        let page = page.finish();
        prop_assert!(!page["<p>".len()..].contains(['<', '>', '"', '\'']));
        prop_assert!(!page.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn no_line_ends_the_code_or_the_cell_it_stands_in(text in "[ab`|\\\\<&\n ]{0,20}") {
        let code = markdown::code(&text, 100);
        let inner = code.strip_prefix("<code>").and_then(|code| code.strip_suffix("</code>"))
            .or_else(|| code.strip_prefix('`').and_then(|code| code.strip_suffix('`')))
            .unwrap_or_default();
        prop_assert!(!inner.contains(['`', '|', '\n']));
        prop_assert_eq!(inner.is_empty(), text.trim().is_empty());
    }

    // Fault C3: `/report` printed entities and tags to the terminal.
    #[test]
    fn on_a_terminal_a_line_reads_as_it_is(text in "[ab`|\\\\<&#;:.0-9 ]{1,20}") {
        let line = agent_text::lines::one_line(text.trim(), 100);
        let shown = markdown::for_terminal(&format!("| {} |\n", markdown::code(&text, 100)));
        let expected = if line.is_empty() { "|  |\n".to_owned() } else { format!("| `{line}` |\n") };
        prop_assert_eq!(shown, expected);
    }

    #[test]
    fn no_text_closes_its_fence(text in "[a`~\n]{0,40}") {
        let fenced = agent_text::fence::fenced("diff", &text);
        let fence = fenced.split("diff").next().unwrap();
        let closing = fenced.lines().skip(1).filter(|line| line.trim_start().starts_with(fence)).count();
        prop_assert_eq!(closing, 1);
    }
}
