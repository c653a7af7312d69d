use super::*;
use agent_core::event::EVENT_SCHEMA_VERSION;
use agent_core::file_change::ChangedBy;
use agent_core::message::ToolResult;
use proptest::prelude::*;

fn content(text: &str) -> FileState {
    if text.is_empty() { FileState::Absent } else { FileState::Content { hash: text.to_owned(), mode: None } }
}

fn change(path: &str, was: &str, became: &str) -> Change {
    Change::between(path, ChangedBy::Tool, &content(was), &content(became))
}

fn record(step: u32, event: Event) -> Record {
    Record { v: EVENT_SCHEMA_VERSION, seq: 0, run: String::new(), step, wall_ms: 7, mono_us: 0, event }
}

fn tool(step: u32, changed: &[Change]) -> Record {
    let event = Event::tool_not_run(
        String::new(),
        String::new(),
        ToolResult { call_id: String::new(), text: String::new(), is_error: false, images: Vec::new() },
        changed.to_vec(),
    );
    record(step, event)
}

fn run_start() -> Record {
    let text = String::new;
    let (tools, max_steps, resumed) = (Vec::new(), 1, false);
    let event = Event::RunStart {
        agent: text(),
        model: text(),
        mode: text(),
        tools,
        mcp_tools: BTreeMap::new(),
        max_steps,
        resumed,
        sandbox: text(),
        bounds: None,
    };
    record(0, event)
}

/// Creates the record of `planned` restorations, carried out completely.
fn done(direction: RestoreDirection, to_step: u32, planned: &[Restoration]) -> Record {
    let changes =
        planned.iter().map(|one| Change::between(&one.path, ChangedBy::Person, &one.left, &one.wanted));
    record(0, Event::Restored { direction, to_step, changed: changes.collect() })
}

fn wanted(planned: &[Restoration]) -> Vec<(&str, FileState)> {
    planned.iter().map(|one| (one.path.as_str(), one.wanted.clone())).collect()
}

#[test]
fn an_undo_goes_to_before_the_first_change_after_a_step() {
    let records = [
        tool(1, &[change("a", "1", "2"), change("b", "", "1")]),
        tool(2, &[change("a", "2", "3")]),
        tool(3, &[change("c", "1", "")]),
    ];
    let history = FileHistory::from_records(&records);
    assert_eq!(
        wanted(&history.undo(0, None)),
        [("a", content("1")), ("b", content("")), ("c", content("1"))]
    );
    assert_eq!(wanted(&history.undo(1, None)), [("a", content("2")), ("c", content("1"))]);
    assert_eq!(wanted(&history.undo(0, Some("b"))), [("b", content(""))]);
    assert!(history.undo(3, None).is_empty() && history.redo(None).is_empty());
}

#[test]
fn steps_are_counted_over_all_runs() {
    let records = [
        run_start(),
        tool(2, &[change("a", "1", "2")]),
        run_start(),
        tool(1, &[change("a", "2", "3"), change("b", "", "1")]),
        tool(1, &[change("b", "1", "2")]),
    ];
    let history = FileHistory::from_records(&records);
    let steps: Vec<_> = history.steps().iter().map(|step| (step.number, step.files.join(" "))).collect();
    assert_eq!(steps, [(2, "a".to_owned()), (3, "a b b".to_owned())]);
    assert_eq!(wanted(&history.undo(2, Some("a"))), [("a", content("2"))]);
}

#[test]
fn what_somebody_else_did_in_between_is_noticed() {
    let history =
        FileHistory::from_records(&[tool(1, &[change("a", "1", "2")]), tool(2, &[change("a", "mine", "3")])]);
    assert!(history.undo(0, None)[0].has_foreign_changes);
    assert!(!history.undo(1, None)[0].has_foreign_changes);
}

#[test]
fn what_an_undo_displaced_comes_back_and_is_still_somebody_elses() {
    let mut records = vec![tool(1, &[change("a", "1", "2")])];
    let undone = Change::between("a", ChangedBy::Person, &content("mine"), &content("1"));
    records.push(record(
        0,
        Event::Restored { direction: RestoreDirection::Undo, to_step: 0, changed: vec![undone] },
    ));
    let redo = FileHistory::from_records(&records).redo(None);
    assert_eq!((&redo[0].left, &redo[0].wanted), (&content("1"), &content("mine")));
    records.push(done(RestoreDirection::Redo, 0, &redo));
    let again = FileHistory::from_records(&records).undo(0, None);
    assert_eq!((&again[0].left, &again[0].wanted), (&content("2"), &content("1")));
}

#[test]
fn a_change_that_was_told_twice_counts_once() {
    let history =
        FileHistory::from_records(&[tool(1, &[change("a", "1", "2")]), tool(1, &[change("a", "1", "2")])]);
    assert!(!history.undo(0, None)[0].has_foreign_changes);
}

#[test]
fn an_undo_of_one_file_is_redone_alone() {
    let mut records = vec![tool(1, &[change("a", "1", "2"), change("b", "1", "2")])];
    records.push(done(RestoreDirection::Undo, 0, &FileHistory::from_records(&records).undo(0, Some("a"))));
    let history = FileHistory::from_records(&records);
    assert_eq!(wanted(&history.undo(0, None)), [("b", content("1"))]);
    assert_eq!(wanted(&history.redo(None)), [("a", content("2"))]);
}

proptest! {
    /// Models files as a map; every undo and redo is carried out as planned.
    #[test]
    fn undo_and_redo_lead_back(
        writes in prop::collection::vec((1u32..5, 0usize..3, 0usize..4), 1..20),
        to_step in 0u32..5,
    ) {
        let names = ["a", "b", "c"];
        let texts = ["", "1", "2", "3"];
        let mut files = [""; 3];
        let mut records = Vec::new();
        let mut at_step = files;
        let mut writes = writes;
        writes.sort_by_key(|write| write.0);
        for (step, file, text) in writes {
            let (was, became) = (files[file], texts[text]);
            if was != became {
                records.push(tool(step, &[change(names[file], was, became)]));
            }
            files[file] = became;
            if step <= to_step {
                at_step = files;
            }
        }
        let apply = |files: &mut [FileState; 3], planned: &[Restoration]| {
            for one in planned {
                let at = names.iter().position(|name| *name == one.path).unwrap();
                assert!(!one.has_foreign_changes);
                assert_eq!(files[at], one.left);
                files[at] = one.wanted.clone();
            }
        };
        let mut now = files.map(content);
        for _ in 0..2 {
            let undo = FileHistory::from_records(&records).undo(to_step, None);
            apply(&mut now, &undo);
            prop_assert_eq!(&now, &at_step.map(content));
            records.push(done(RestoreDirection::Undo, to_step, &undo));
            let rest = FileHistory::from_records(&records).undo(0, None);
            apply(&mut now, &rest);
            prop_assert_eq!(&now, &[""; 3].map(content));
            records.push(done(RestoreDirection::Undo, 0, &rest));
            for _ in 0..2 {
                let redo = FileHistory::from_records(&records).redo(None);
                apply(&mut now, &redo);
                records.push(done(RestoreDirection::Redo, 0, &redo));
            }
            prop_assert_eq!(&now, &files.map(content));
        }
        prop_assert!(FileHistory::from_records(&records).redo(None).is_empty());
    }
}
