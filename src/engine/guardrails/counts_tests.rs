//! Tests of the counts with constructed events.

use super::*;
use agent_core::file_change::{ChangeAction, ChangedBy, RestoreDirection};
use agent_core::guardrail::CallCounts;
use agent_core::message::ToolResult;
use agent_text::diff;
use agent_workspace::file::hash;
use proptest::prelude::*;

fn tests() -> TestCommands {
    TestCommands::new(&[])
}

/// Creates the end event of a call with these changes, from one content to another, and these counts.
fn ended(changes: &[(&str, Option<&str>, Option<&str>)], guardrail_counts: CallCounts) -> Event {
    Event::ToolCallEnd {
        name: "tool".to_owned(),
        summary: String::new(),
        result: ToolResult {
            call_id: "c".to_owned(),
            text: String::new(),
            is_error: false,
            images: Vec::new(),
        },
        changed: changes.iter().map(|(path, was, is)| change(path, *was, *is)).collect(),
        seen: Vec::new(),
        denial: None,
        simulated: false,
        guardrail_counts,
        duration_ms: 1,
    }
}

fn change(path: &str, was: Option<&str>, is: Option<&str>) -> Change {
    Change::between(path, ChangedBy::Tool, &state(was), &state(is))
}

fn state(text: Option<&str>) -> FileState {
    text.map_or(FileState::Absent, |text| FileState::Content { hash: hash(text.as_bytes()), mode: None })
}

fn edit(path: &str, old: &str, new: Option<&str>) -> Edit {
    let replaced = diff::changed_lines(old, new.unwrap_or_default());
    Edit { path: path.to_owned(), display_path: path.to_owned(), new: new.map(str::to_owned), replaced }
}

fn limits(files: Option<u64>, lines: Option<u64>, commands: Option<u64>) -> CountLimits {
    CountLimits { files, lines, commands }
}

fn counts(events: &[Event]) -> SessionCounts {
    let mut counts = SessionCounts::default();
    for event in events {
        counts.apply(event);
    }
    counts
}

fn names(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|&path| path.to_owned()).collect()
}

/// Returns the key of the guardrail that refuses; empty when none does.
fn key(checked: Result<(), DenialReason>) -> Option<String> {
    checked.err().map(|refusal| refusal.rule.trim_start_matches("guardrails.").to_owned())
}

#[test]
fn s15_files_count_once_however_often_they_change() {
    let twice = ended(&[("a", None, Some("1")), ("a", Some("1"), None)], CallCounts::default());
    let counts = counts(&[twice.clone(), twice]);
    let check = |most, paths: &[&str]| {
        let edits: Vec<Edit> = paths.iter().map(|path| edit(path, "", Some("x"))).collect();
        key(counts.check_edits(&limits(Some(most), None, None), &edits, Language::En))
    };
    assert_eq!((check(1, &["a"]), check(2, &["a", "b"]), check(0, &["a"])), (None, None, None));
    assert_eq!(check(1, &["b"]).as_deref(), Some("max_files_modified"));
    assert_eq!(check(2, &["b", "c"]).as_deref(), Some("max_files_modified"));
    assert_eq!(check(2, &["b", "b"]), None);
}

#[test]
fn s15_lines_add_up() {
    let counts = counts(&[ended(&[], CallCounts { lines: 7, ..CallCounts::default() })]);
    let check = |most, new| {
        key(counts.check_edits(&limits(None, Some(most), None), &[edit("a", "x\n", new)], Language::En))
    };
    assert_eq!((check(8, None), check(9, Some("y\n"))), (None, None));
    assert_eq!(check(8, Some("y\n")).as_deref(), Some("max_lines_changed"));
    assert_eq!(check(7, Some("x\n")), None, "nothing changes");
    assert_eq!(check(6, Some("x\n")).as_deref(), Some("max_lines_changed"), "there are too many already");
}

#[test]
fn s15_a_command_is_refused_beyond_its_number_or_when_others_went_too_far() {
    let ran = CallCounts { command: true, lines: 3, ..CallCounts::default() };
    let counts = counts(&[ended(&[("a", None, Some("1")), ("b", None, Some("1"))], ran)]);
    let check = |limits: CountLimits, named: &[&str], only_reads| {
        key(counts.check_command(&limits, &names(named), only_reads, Language::En))
    };
    assert_eq!(check(limits(Some(2), Some(3), Some(2)), &["a"], false), None);
    assert_eq!(check(limits(None, None, Some(1)), &[], true).as_deref(), Some("max_commands_executed"));
    assert_eq!(check(limits(Some(2), None, None), &["c"], false).as_deref(), Some("max_files_modified"));
    assert_eq!(
        check(limits(Some(2), None, None), &["$c", "*.d"], false),
        None,
        "nobody knows which they are"
    );
    assert_eq!(check(limits(Some(1), None, None), &[], false).as_deref(), Some("max_files_modified"));
    assert_eq!(check(limits(None, Some(2), None), &[], false).as_deref(), Some("max_lines_changed"));
    assert_eq!(check(limits(Some(1), Some(2), None), &[], true), None);
}

#[test]
fn s17_a_test_frees_and_one_that_fails_does_not() {
    let edited = || ended(&[("a", Some("1"), Some("2"))], CallCounts::default());
    let tested = |passed| {
        let wrote = [("cache", None, Some("x"))];
        ended(&wrote, CallCounts { tests_passed: Some(passed), command: true, ..CallCounts::default() })
    };
    let check = |events: &[Event], path, new| {
        key(counts(events).check_edits_tested(&tests(), &[edit(path, "", new)], Language::En))
    };
    let refused = Some("require_test_after_edit".to_owned());
    assert_eq!(check(&[], "a", Some("3")), None);
    assert_eq!(check(&[edited()], "b", Some("3")), refused);
    assert_eq!(check(&[edited()], "a", Some("3")), refused);
    assert_eq!(check(&[edited()], "a", Some("1")), None, "as it was");
    assert_eq!(check(&[edited(), tested(false)], "b", Some("3")), refused);
    assert_eq!(check(&[edited(), tested(false)], "cache", None), refused, "what tests write is no change");
    assert_eq!(check(&[edited(), tested(true)], "b", Some("3")), None);
    assert_eq!(check(&[ended(&[("n", None, Some("1"))], CallCounts::default())], "n", None), None);
    let put_back = Event::Restored {
        direction: RestoreDirection::Undo,
        to_step: 0,
        changed: vec![change("a", Some("2"), Some("1"))],
    };
    assert_eq!(check(&[edited(), put_back], "b", Some("3")), None);
    let writes = |events: &[Event], named: &[&str]| {
        key(counts(events).check_command_tested(&tests(), &names(named), Language::En))
    };
    assert_eq!(
        (writes(&[edited()], &["x"]), writes(&[edited()], &[]), writes(&[], &["x"])),
        (refused, None, None)
    );
}

#[test]
fn s17_what_nobody_knows_is_not_taken_for_what_it_was() {
    let unknown = Change {
        path: "a".to_owned(),
        action: ChangeAction::Modified,
        by: ChangedBy::Command,
        before: None,
        after: None,
        before_mode: None,
        after_mode: None,
        directories: 0,
    };
    let mut counts = SessionCounts::default();
    let Event::ToolCallEnd { name, summary, result, seen, guardrail_counts, .. } =
        ended(&[], CallCounts::default())
    else {
        return;
    };
    let changed = vec![unknown.clone(), unknown];
    counts.apply(&Event::ToolCallEnd {
        name,
        summary,
        result,
        changed,
        seen,
        denial: None,
        simulated: false,
        guardrail_counts,
        duration_ms: 1,
    });
    assert!(counts.check_edits_tested(&tests(), &[edit("a", "", Some("1"))], Language::En).is_err());
}

proptest! {
    #[test]
    fn s17_changes_are_free_exactly_where_all_files_are_as_they_were_when_tests_passed(
        steps in prop::collection::vec((0usize..3, 0usize..3, 0usize..8), 0..40),
    ) {
        let contents = [None, Some("1"), Some("2")];
        let (mut now, mut tested, mut counts) = ([None; 3], [None; 3], SessionCounts::default());
        for (file, content, test) in steps {
            let path = ["a", "b", "c"][file];
            if now[file] != contents[content] {
                counts.apply(&ended(&[(path, now[file], contents[content])], CallCounts::default()));
                now[file] = contents[content];
            }
            if test == 0 {
                counts.apply(&ended(&[], CallCounts { tests_passed: Some(true), ..CallCounts::default() }));
                tested = now;
            }
            let is_free = counts.check_edits_tested(&tests(), &[edit("d", "", Some("x"))], Language::En).is_ok();
            prop_assert_eq!(is_free, now == tested);
            if !is_free {
                for (at, path) in ["a", "b", "c"].into_iter().enumerate() {
                    let back = counts.check_edits_tested(&tests(), &[edit(path, "", tested[at])], Language::En).is_ok();
                    prop_assert_eq!(back, now[at] != tested[at]);
                }
            }
        }
    }
}
