//! Tests of the tools that change files, called through the toolbox.

use super::test_fixture::Fixture;
use agent_core::file_change::ChangeAction;
use serde_json::json;

const LINES: &str = "one\ntwo\nthree\n";

#[test]
fn t03_writing_makes_directories_and_appends() {
    let fixture = Fixture::new();
    let output = fixture.call("write_file", &json!({"path": "a/b/c.txt", "content": "héllo\n"}));
    assert_eq!(output.text, "File a/b/c.txt created successfully (6 characters)");
    assert_eq!(output.changed[0].action, ChangeAction::Created);
    fixture.ok("write_file", &json!({"path": "a/b/c.txt", "content": "more\n", "mode": "append"}));
    assert_eq!(fixture.text("a/b/c.txt"), "héllo\nmore\n");
    let text = fixture.ok("write_file", &json!({"path": "a/b/c.txt", "content": "new"}));
    assert_eq!(text, "File a/b/c.txt overwritten successfully (3 characters)");
}

#[test]
fn t03_a_file_that_was_never_read_is_not_overwritten_but_appended_to() {
    let fixture = Fixture::new();
    fixture.write("a", "old\r\n");
    assert!(
        fixture.fails("write_file", &json!({"path": "a", "content": "x"})).contains("you have not read it")
    );
    fixture.ok("write_file", &json!({"path": "a", "content": "new\n", "mode": "append"}));
    assert_eq!(fixture.text("a"), "old\r\nnew\r\n");
    assert!(
        fixture.fails("write_file", &json!({"path": "a", "content": "x"})).contains("you have not read it")
    );
    fixture.ok("read_file", &json!({"path": "a"}));
    fixture.ok("write_file", &json!({"path": "a", "content": "x\ny\n"}));
    assert_eq!(fixture.text("a"), "x\r\ny\r\n");
}

#[test]
fn t04_t05_an_edit_replaces_one_passage_and_returns_the_diff() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    let text = fixture.ok("edit_file", &json!({"path": "a", "old_str": "two", "new_str": "2"}));
    assert!(text.contains("@@") && text.contains("-two\n+2\n"), "{text}");
    assert_eq!(fixture.text("a"), "one\n2\nthree\n");
    for (old, part) in [("zzz", "not found in a"), ("e", "appears 3 times"), ("", "old_str is empty")] {
        assert!(
            fixture.fails("edit_file", &json!({"path": "a", "old_str": old, "new_str": "x"})).contains(part)
        );
    }
    assert_eq!(fixture.text("a"), "one\n2\nthree\n");
}

#[test]
fn every_change_is_refused_when_the_file_changed_since_it_was_read() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    fixture.ok("read_file", &json!({"path": "a"}));
    fixture.write("a", "one\ntwo\nthree\nfour\n");
    for (tool, args) in [
        ("edit_file", json!({"path": "a", "old_str": "two", "new_str": "2"})),
        ("write_file", json!({"path": "a", "content": "x"})),
        ("apply_patch", json!({"path": "a", "patch": "@@ -1 +1 @@\n-one\n+1\n"})),
        ("delete_file", json!({"path": "a"})),
    ] {
        assert!(fixture.fails(tool, &args).contains("changed since it was read"), "{tool}");
    }
    assert_eq!(fixture.text("a"), "one\ntwo\nthree\nfour\n");
    fixture.ok("read_file", &json!({"path": "a"}));
    fixture.ok("edit_file", &json!({"path": "a", "old_str": "two", "new_str": "2"}));
    fixture.ok("edit_file", &json!({"path": "a", "old_str": "four", "new_str": "4"}));
}

#[test]
fn t06_a_patch_applies_whole_or_not_at_all() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n@@ -3 +3 @@\n-three\n+3\n";
    assert_eq!(
        fixture.ok("apply_patch", &json!({"path": "a", "patch": patch})),
        "Patch applied to a. 2 hunk(s), 4 lines changed.\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n-three\n+3"
    );
    assert_eq!(fixture.text("a"), "1\ntwo\n3\n");
    let text = fixture.fails("apply_patch", &json!({"path": "a", "patch": patch}));
    assert!(text.contains("untouched") && text.contains("hunk 1"), "{text}");
}

/// Wraps `sections` in a patch envelope.
fn envelope(sections: &str) -> serde_json::Value {
    json!({"patch": format!("*** Begin Patch\n{sections}*** End Patch\n")})
}

#[test]
fn t06_a_patch_of_several_files_says_what_became_of_each() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    fixture.write("b", LINES);
    fixture.write("c", LINES);
    let call = envelope(
        "*** Add File: d/new\n+x\n*** Update File: a\n@@\n-two\n+2\n*** Update File: b\n*** Move to: d/b\n@@\n-one\n+1\n*** Delete File: c\n",
    );
    let output = fixture.call("apply_patch", &call);
    let expected = "Patch applied to 4 files: +3 -2.\nFile d/new created (1 line).\n\
                    Patch applied to a. 1 hunk(s), 2 lines changed.\nFile b moved to d/b. 1 hunk(s), 2 lines changed.\n\
                    File c deleted.\n--- a/a\n+++ b/a\n";
    assert!(output.text.starts_with(expected), "{}", output.text);
    let actions: Vec<_> = output.changed.iter().map(|change| (change.path.as_str(), change.action)).collect();
    let (created, modified, deleted) = (ChangeAction::Created, ChangeAction::Modified, ChangeAction::Deleted);
    let changed = [("d/new", created), ("a", modified), ("d/b", created), ("b", deleted), ("c", deleted)];
    assert_eq!(actions, changed);
    assert_eq!(
        (fixture.text("a"), fixture.text("d/b")),
        (LINES.replace("two", "2"), LINES.replace("one", "1"))
    );
    let plan = fixture.toolbox.get("apply_patch").unwrap().plan(&call).unwrap();
    let touched: Vec<_> = plan.touched_files.iter().map(|touch| (touch.path.as_str(), touch.write)).collect();
    assert_eq!(touched, [("d/new", true), ("a", true), ("b", true), ("d/b", true), ("c", true)]);
}

#[test]
fn t06_one_part_that_cannot_be_applied_leaves_every_file_as_it_was() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    fixture.write("b", LINES);
    std::os::unix::fs::symlink("a", fixture.root.join("link")).unwrap();
    let good = "*** Update File: a\n@@\n-two\n+2\n";
    for (bad, reason) in [
        ("*** Update File: b\n@@\n-four\n+4\n", "no file is touched: b: hunk 1 does not fit"),
        ("*** Update File: c\n@@\n-two\n+2\n", "File does not exist: c"),
        ("*** Update File: ../b\n@@\n-two\n+2\n", "Security error: "),
        ("*** Update File: .env\n@@\n-two\n+2\n", "Security error: "),
        ("*** Update File: b\n*** Move to: ../b\n", "Security error: "),
        ("*** Update File: b\n*** Move to: a\n", "File a already exists"),
        ("*** Add File: b\n+x\n", "File b already exists"),
        ("*** Update File: link\n@@\n-one\n+1\n", "names a twice"),
        ("*** Update File: b\n@@\n-two\n+two\n", "changes nothing"),
    ] {
        let text = fixture.fails("apply_patch", &envelope(&format!("{good}{bad}")));
        assert!(text.contains(reason), "{text}");
        assert_eq!((fixture.text("a"), fixture.text("b")), (LINES.to_owned(), LINES.to_owned()), "{reason}");
    }
}

#[test]
fn t08_a_patch_deletes_only_where_that_is_allowed() {
    let mut fixture = Fixture::new();
    fixture.write("a", LINES);
    let diff = "--- a/a\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n";
    let part = diff.replace("-three\n", "").replace("1,3", "1,2");
    assert!(fixture.fails("apply_patch", &json!({"patch": part})).contains("removed lines only"));
    let options = super::toolbox::ToolOptions::default();
    let allowed =
        std::mem::replace(&mut fixture.toolbox, super::toolbox::Toolbox::standard(options, Vec::new()));
    for call in [envelope("*** Delete File: a\n"), json!({"patch": diff})] {
        assert!(fixture.fails("apply_patch", &call).starts_with("Delete operations are disabled."));
    }
    fixture.toolbox = allowed;
    fixture.ok("apply_patch", &json!({"patch": diff}));
    assert!(!fixture.root.join("a").exists());
}

#[test]
fn a_file_that_is_moved_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    std::fs::set_permissions(fixture.root.join("a"), std::fs::Permissions::from_mode(0o751)).unwrap();
    fixture.ok("apply_patch", &envelope("*** Update File: a\n*** Move to: b\n"));
    assert_eq!(fixture.root.join("b").metadata().unwrap().permissions().mode() & 0o777, 0o751);
}

#[test]
fn t04_an_edit_takes_one_replacement_or_several_and_says_how_they_were_found() {
    let fixture = Fixture::new();
    fixture.write("a", "one \ntwo\nthree\n");
    let edit = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(old, new)| json!({"old_str": old, "new_str": new})).collect();
        json!({"path": "a", "edits": pairs})
    };
    let text = fixture.fails("edit_file", &edit(&[("two", "2"), ("four", "4")]));
    assert!(text.starts_with("edit 2 of 2 failed, so none was made: old_str not found"), "{text}");
    let text = fixture.ok("edit_file", &edit(&[("three", "two"), ("one\ntwo", "one\nthree")]));
    assert!(
        text.starts_with("File a edited (edit 2 matched apart from white space at the ends of lines):\n---"),
        "{text}"
    );
    assert_eq!(fixture.text("a"), "one \nthree\ntwo\n");
    for args in [
        json!({"path": "a"}),
        json!({"path": "a", "old_str": "one"}),
        json!({"path": "a", "edits": []}),
        json!({"path": "a", "old_str": "one", "new_str": "1", "edits": [{"old_str": "one", "new_str": "1"}]}),
    ] {
        assert!(
            fixture.fails("edit_file", &args).starts_with("Invalid arguments: give old_str and new_str"),
            "{args}"
        );
    }
    let many: Vec<_> = (0..101).map(|_| ("one", "1")).collect();
    assert!(fixture.fails("edit_file", &edit(&many)).contains("at most 100 edits"));
}

#[test]
fn a_text_that_leaves_out_what_a_file_has_does_not_overwrite_it() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    fixture.ok("read_file", &json!({"path": "a"}));
    let text =
        fixture.fails("write_file", &json!({"path": "a", "content": "1\n// ... rest of the file ...\n"}));
    assert!(text.contains("// ... rest of the file ..."), "{text}");
    assert_eq!(fixture.text("a"), LINES);
}

#[test]
fn t08_deleting_needs_permission() {
    let mut fixture = Fixture::new();
    fixture.write("a", LINES);
    fixture.write("d/x", "x");
    assert!(fixture.fails("delete_file", &json!({"path": "d"})).contains("directory"));
    let output = fixture.call("delete_file", &json!({"path": "a"}));
    assert_eq!(output.changed[0].action, ChangeAction::Deleted);
    assert!(!fixture.root.join("a").exists());
    fixture.toolbox = super::toolbox::Toolbox::standard(super::toolbox::ToolOptions::default(), Vec::new());
    assert_eq!(
        fixture.fails("delete_file", &json!({"path": "d/x"})),
        "Delete operations are disabled. Set workspace.allow_delete=true to allow them."
    );
}

#[test]
fn t26_appends_one_after_another_all_arrive() {
    let fixture = Fixture::new();
    for line in 1..=4 {
        fixture.ok("write_file", &json!({"path": "a", "content": format!("{line}\n"), "mode": "append"}));
    }
    assert_eq!(fixture.text("a"), "1\n2\n3\n4\n");
}

#[test]
fn repository_data_is_written_by_no_tool() {
    let fixture = Fixture::new();
    fixture.write(".git/config", "x\n");
    std::os::unix::fs::symlink(".git", fixture.root.join("g")).unwrap();
    for path in [".git/config", "g/config", ".GIT/config", ".git/hooks/pre-commit"] {
        let text = fixture.fails("write_file", &json!({"path": path, "content": "y", "mode": "append"}));
        assert!(text.starts_with("Security error: "), "{path}: {text}");
    }
}

#[test]
fn a_preview_shows_the_diff_and_changes_nothing() {
    let fixture = Fixture::new();
    fixture.write("a", LINES);
    let tool = fixture.toolbox.get("edit_file").unwrap();
    let diff =
        tool.preview(&json!({"path": "a", "old_str": "two", "new_str": "2"}), &fixture.cx).unwrap().unwrap();
    assert!(diff.contains("-two\n+2\n"));
    assert_eq!(fixture.text("a"), LINES);
}

#[test]
fn a_change_that_could_only_fail_has_no_preview_but_an_error() {
    let mut fixture = Fixture::new();
    fixture.write("a", LINES);
    let standard = super::toolbox::ToolOptions::default();
    fixture.toolbox = super::toolbox::Toolbox::standard(standard, Vec::new());
    for (tool, args) in [
        ("edit_file", json!({"path": "a", "old_str": "four", "new_str": "4"})),
        ("write_file", json!({"path": "a", "content": "x"})),
        ("apply_patch", json!({"path": "a", "patch": "@@ -1 +1 @@\n-two\n+2\n-x\n"})),
        ("delete_file", json!({"path": "a"})),
    ] {
        let previewed = fixture.toolbox.get(tool).unwrap().preview(&args, &fixture.cx);
        assert_eq!(previewed.unwrap_err(), fixture.fails(tool, &args), "{tool}");
    }
}

#[test]
fn a_byte_order_mark_is_neither_shown_nor_lost() {
    let fixture = Fixture::new();
    fixture.write("a", "\u{feff}one\r\ntwo");
    let text = fixture.ok("read_file", &json!({"path": "a"}));
    assert_eq!(text, "Contents of a (lines 1-2 of 2, CRLF line endings):\none\ntwo");
    fixture.ok("edit_file", &json!({"path": "a", "old_str": "one\ntwo", "new_str": "1\n2"}));
    assert_eq!(fixture.text("a"), "\u{feff}1\r\n2");
    fixture.ok("write_file", &json!({"path": "a", "content": "x\n"}));
    assert_eq!(fixture.text("a"), "\u{feff}x\r\n");
}
