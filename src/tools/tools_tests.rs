//! Tests of the file tools, as the engine calls them.

use super::testing::Fixture;
use crate::change::ChangeAction;
use serde_json::json;

const LINES: &str = "one\ntwo\nthree\n";

#[test]
fn t01_reading_shows_a_header_and_the_text_or_says_what_is_wrong() {
    let fixture = Fixture::new();
    fixture.write("src/a.txt", LINES);
    fixture.write("bin", b"\xff\xfe\x01");
    fixture.write("nul", b"a\0b");
    fixture.write("empty", "");
    assert_eq!(
        fixture.ok("read_file", &json!({"path": "src/a.txt"})),
        format!("Contents of src/a.txt (lines 1-3 of 3):\n{LINES}")
    );
    assert_eq!(fixture.ok("read_file", &json!({"path": "empty"})), "Contents of empty (empty file)");
    assert!(fixture.fails("read_file", &json!({"path": "src/b.txt"})).ends_with("Did you mean src/a.txt?"));
    assert!(
        fixture.fails("read_file", &json!({"path": "src"})).starts_with("Path is not a regular file: src")
    );
    assert!(fixture.fails("read_file", &json!({"path": "bin"})).contains("is not a valid text file (UTF-8)"));
    assert!(fixture.fails("read_file", &json!({"path": "nul"})).contains("binary"));
}

#[test]
fn t02_a_range_of_lines_is_read_and_how_to_go_on_is_said() {
    let fixture = Fixture::new();
    let text = (1..=5000).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
    fixture.write("a", &text);
    let page = fixture.ok("read_file", &json!({"path": "a", "start_line": 10, "limit": 2}));
    assert_eq!(
        page,
        "Contents of a (lines 10-11 of 5000):\nline 10\nline 11\n[More lines follow. To go on: read_file with start_line 12.]"
    );
    let first = fixture.ok("read_file", &json!({"path": "a"}));
    assert!(first.starts_with("Contents of a (lines 1-2000 of 5000):") && first.contains("start_line 2001."));
    let asked = fixture.ok("read_file", &json!({"path": "a", "start_line": 1}));
    assert!(asked.chars().count() <= 32_000, "a page that was asked for fits into a result");
    assert!(fixture.fails("read_file", &json!({"path": "a", "start_line": 6000})).contains("has 5000 lines"));
}

#[test]
fn t02_kept_outputs_are_read_and_searched_by_name() {
    let fixture = Fixture::new();
    fixture.cx.outputs.keep("call_9", b"alpha\nbeta\n").unwrap();
    assert!(fixture.ok("read_file", &json!({"path": "output:call_9", "start_line": 2})).contains("\nbeta\n"));
    assert_eq!(fixture.ok("grep", &json!({"path": "output:call_9", "text": "bet"})), "output:call_9:2: beta");
    assert!(fixture.fails("read_file", &json!({"path": "output:../x"})).contains("no kept output"));
}

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

/// A patch in an envelope.
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
    let touched: Vec<_> = plan.touches.iter().map(|touch| (touch.path.as_str(), touch.write)).collect();
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
    assert!(text.starts_with("edit 2 of 2, and so none of them, can be made: old_str not found"), "{text}");
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
fn t09_directories_are_listed() {
    let fixture = Fixture::new();
    fixture.write("b.rs", "");
    fixture.write("src/a.rs", "");
    std::fs::create_dir(fixture.root.join("none")).unwrap();
    assert_eq!(fixture.ok("list_files", &json!({})), "📄 b.rs\n📁 none\n📁 src\nTotal: 3 items");
    assert_eq!(fixture.ok("list_files", &json!({"path": "none"})), "(empty directory)\nTotal: 0 items");
    let all = fixture.ok("list_files", &json!({"recursive": true, "pattern": "*.rs"}));
    assert_eq!(all, "📄 b.rs\n📄 src/a.rs\nTotal: 2 items");
    assert!(fixture.fails("list_files", &json!({"path": "b.rs"})).contains("not a directory"));
    assert!(fixture.fails("list_files", &json!({"path": "zzz"})).contains("does not exist"));
}

#[test]
fn t10_regular_expressions_are_searched_with_context() {
    let fixture = Fixture::new();
    fixture.write("src/a.rs", "a\nb\nfn main() {}\nc\nd\ne\n");
    fixture.write("b.txt", "fn other() {}\n");
    let text = fixture
        .ok("search_code", &json!({"pattern": r"fn \w+\(", "file_pattern": "*.rs", "context_lines": 1}));
    assert_eq!(text, "📄 src/a.rs:3\n  2 | b\n> 3 | fn main() {}\n  4 | c");
    assert!(
        fixture.ok("search_code", &json!({"pattern": "OTHER", "case_sensitive": false})).contains("b.txt:1")
    );
    assert!(fixture.ok("search_code", &json!({"pattern": "main", "path": "src/a.rs"})).contains("> 3"));
    assert_eq!(fixture.ok("search_code", &json!({"pattern": "zzz"})), "No results for 'zzz'");
    assert!(fixture.fails("search_code", &json!({"pattern": "a("})).starts_with("Invalid regex pattern: "));
    assert!(fixture.ok("search_code", &json!({"pattern": ".", "max_results": 1})).contains("there are more"));
}

#[test]
fn t11_plain_text_is_searched_literally() {
    let fixture = Fixture::new();
    fixture.write("a", "a.b(\naxb(\na.b(\n");
    assert_eq!(fixture.ok("grep", &json!({"text": "a.b("})), "a:1: a.b(\na:3: a.b(");
    let limited = fixture.ok("grep", &json!({"text": "a.b(", "max_results": 1}));
    assert!(limited.starts_with("a:1: a.b(\n[Limit: the first 1 "), "{limited}");
    assert!(!fixture.ok("grep", &json!({"text": "axb", "max_results": 1})).contains("Limit"));
}

#[test]
fn t12_files_are_found_by_name() {
    let fixture = Fixture::new();
    for path in ["z.rs", "src/a.rs", "src/b.txt"] {
        fixture.write(path, "");
    }
    assert_eq!(
        fixture.ok("find_files", &json!({"pattern": "*.rs"})),
        "Found 2 files matching '*.rs':\nsrc/a.rs\nz.rs"
    );
    assert_eq!(
        fixture.ok("find_files", &json!({"pattern": "src/**/*.txt"})),
        "Found 1 file matching 'src/**/*.txt':\nsrc/b.txt"
    );
    assert_eq!(fixture.ok("find_files", &json!({"pattern": "*.py"})), "No files found matching '*.py'");
}

#[test]
fn t13_ignored_hidden_and_cache_directories_are_skipped() {
    let fixture = Fixture::new();
    for path in
        [".git/x", "node_modules/x", ".github/x", "sub/__pycache__/x", "target/x", ".hidden-file", "seen"]
    {
        fixture.write(path, "needle\n");
    }
    fixture.write(".gitignore", "target/\n");
    assert_eq!(fixture.ok("grep", &json!({"text": "needle"})), ".hidden-file:1: needle\nseen:1: needle");
    assert!(fixture.ok("grep", &json!({"text": "needle", "path": ".github"})).contains(".github/x:1"));
    assert_eq!(fixture.ok("grep", &json!({"text": "needle", "path": ".git"})), "No results for 'needle'");
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
fn s01_every_tool_refuses_a_path_that_leads_out() {
    let fixture = Fixture::new();
    fixture.write("../secret/key", "SECRET");
    std::os::unix::fs::symlink("../secret", fixture.root.join("out")).unwrap();
    for path in ["../secret/key", "out/key", "/etc/passwd", "../ws-evil/x"] {
        for (tool, args) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x", "mode": "append"})),
            ("edit_file", json!({"path": path, "old_str": "SECRET", "new_str": "x"})),
            ("apply_patch", json!({"path": path, "patch": "@@ -1 +1 @@\n-SECRET\n+x\n"})),
            ("delete_file", json!({"path": path})),
            ("grep", json!({"text": "SECRET", "path": path})),
            ("search_code", json!({"pattern": "SECRET", "path": path})),
            ("find_files", json!({"pattern": "*", "path": path})),
            ("list_files", json!({"path": path})),
        ] {
            let text = fixture.fails(tool, &args);
            assert!(text.starts_with("Security error: "), "{tool} {path}: {text}");
        }
    }
    assert_eq!(fixture.text("../secret/key"), "SECRET");
}

#[test]
fn s11_sensitive_files_are_neither_read_nor_searched_nor_changed() {
    let fixture = Fixture::new();
    fixture.write(".env", "KEY=1\n");
    fixture.write("other", "KEY=2\n");
    std::os::unix::fs::symlink(".env", fixture.root.join("plain")).unwrap();
    for path in [".env", "plain"] {
        assert!(fixture.fails("read_file", &json!({"path": path})).contains("sensitive"), "{path}");
        assert!(!fixture.ok("grep", &json!({"text": "KEY", "path": path})).contains("KEY=1"));
    }
    let found = fixture.ok("grep", &json!({"text": "KEY"}));
    assert_eq!(found, "other:1: KEY=2\n[1 file left out: sensitive]");
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
fn every_tool_says_in_a_line_what_it_will_do_and_names_the_files_it_touches() {
    let fixture = Fixture::new();
    let patch = "--- a\n+++ a\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n";
    for (tool, args, write, summary) in [
        ("read_file", json!({"path": "a"}), false, "a"),
        ("write_file", json!({"path": "a", "content": "x"}), true, "a (1 line)"),
        ("write_file", json!({"path": "a", "content": "x\ny\n", "mode": "append"}), true, "a (+2 lines)"),
        ("edit_file", json!({"path": "a", "old_str": "x\ny", "new_str": "z"}), true, "a (2→1 line)"),
        (
            "edit_file",
            json!({"path": "a", "edits": [{"old_str": "x", "new_str": "z\ny"}]}),
            true,
            "a (1→2 lines)",
        ),
        ("apply_patch", json!({"path": "a", "patch": patch}), true, "a (+2 -1)"),
        ("apply_patch", json!({"patch": patch}), true, "a (+2 -1)"),
        ("delete_file", json!({"path": "a"}), true, "a"),
        ("list_files", json!({"path": "a"}), false, "a"),
        ("find_files", json!({"pattern": "*", "path": "a"}), false, "\"*\" in a"),
        ("search_code", json!({"pattern": "x\ny", "path": "a"}), false, "\"x\\ny\" in a"),
        ("grep", json!({"text": "x", "path": "a"}), false, "\"x\" in a"),
    ] {
        let plan = fixture.toolbox.get(tool).unwrap().plan(&args).unwrap();
        assert_eq!(plan.touches, [super::Touch { path: "a".to_owned(), write }], "{tool}");
        assert_eq!(plan.summary, summary, "{tool}");
    }
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
fn t33_a_tagged_result_names_tool_and_outcome() {
    assert_eq!(super::ToolOutput::ok("x").tagged("grep"), "[grep] Success:\nx");
    assert_eq!(super::ToolOutput::error("x").tagged("grep"), "[grep] Error: x");
}

#[test]
fn an_ignore_file_that_never_ends_does_not_hold_a_search() {
    let fixture = Fixture::new();
    fixture.write("seen", "needle\n");
    fixture.write("trap/hidden", "needle\n");
    std::os::unix::fs::symlink("/dev/zero", fixture.root.join("trap/.gitignore")).unwrap();
    let text = fixture.ok("grep", &json!({"text": "needle"}));
    assert!(text.starts_with("seen:1: needle\n[1 file left out: unreadable"), "{text}");
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.root.join(".ignore"), rustix::fs::Mode::RWXU).unwrap();
    assert!(fixture.ok("find_files", &json!({"pattern": "seen"})).contains("\nseen"));
}

#[test]
fn the_repositorys_own_exclude_file_is_honoured() {
    let fixture = Fixture::new();
    fixture.write(".git/info/exclude", "private/\n");
    fixture.write("private/x", "needle\n");
    fixture.write("src/y", "needle\n");
    assert_eq!(fixture.ok("grep", &json!({"text": "needle"})), "src/y:1: needle");
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

#[test]
fn a_search_ends_when_it_is_cancelled() {
    let fixture = Fixture::new();
    fixture.write("a", "needle\n");
    fixture.cx.cancel.cancel();
    let _ = fixture.ok("grep", &json!({"text": "needle"}));
}

#[test]
fn results_are_the_first_by_path_whatever_the_threads_do() {
    let fixture = Fixture::new();
    for file in 0..60 {
        fixture.write(&format!("d{}/f{file:02}", file % 7), "x\nx\nx\n");
    }
    let all = fixture.ok("grep", &json!({"text": "x", "max_results": 500}));
    let some = fixture.ok("grep", &json!({"text": "x", "max_results": 10}));
    assert_eq!(some.lines().take(10).collect::<Vec<_>>(), all.lines().take(10).collect::<Vec<_>>());
    assert_eq!(all.lines().count(), 180);
}

#[test]
fn a_file_of_two_gigabytes_is_refused_by_name_of_its_fault() {
    let fixture = Fixture::new();
    let text = "a line of text\n".repeat(100_000);
    fixture.write("big", &text);
    let page = fixture.ok("read_file", &json!({"path": "big", "start_line": 99_999}));
    assert!(page.contains("(lines 99999-100000 of 100000)"), "{page}");
    std::fs::File::options().write(true).open(fixture.root.join("big")).unwrap().set_len(2 << 30).unwrap();
    assert!(fixture.fails("read_file", &json!({"path": "big"})).contains("binary"));
    let edit = json!({"path": "big", "old_str": "a", "new_str": "b"});
    assert!(fixture.fails("edit_file", &edit).contains("too large"));
    assert!(fixture.ok("grep", &json!({"text": "line"})).contains("1 file left out: too large"));
}

#[test]
fn an_unreadable_file_is_reported_and_does_not_stop_a_search() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.write("closed", "needle\n");
    fixture.write("open", "needle\n");
    std::fs::set_permissions(fixture.root.join("closed"), PermissionsExt::from_mode(0o000)).unwrap();
    // Root reads everything.
    if std::fs::File::open(fixture.root.join("closed")).is_err() {
        assert!(fixture.fails("read_file", &json!({"path": "closed"})).contains("Permission denied"));
        let text = fixture.ok("grep", &json!({"text": "needle"}));
        assert!(text.starts_with("open:1: needle\n[1 file left out: unreadable"), "{text}");
    }
}
