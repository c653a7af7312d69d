//! Tests of the tools that read files, called through the toolbox.

use super::test_fixture::Fixture;
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
        "Contents of a (lines 10-11 of 5000):\nline 10\nline 11\n[More lines follow. To continue: read_file with start_line 12.]"
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
    fixture.cx.outputs.store("call_9", b"alpha\nbeta\n").unwrap();
    assert!(fixture.ok("read_file", &json!({"path": "output:call_9", "start_line": 2})).contains("\nbeta\n"));
    assert_eq!(fixture.ok("grep", &json!({"path": "output:call_9", "text": "bet"})), "output:call_9:2: beta");
    assert!(fixture.fails("read_file", &json!({"path": "output:../x"})).contains("no stored output"));
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
        assert_eq!(plan.touched_files, [super::TouchedFile { path: "a".to_owned(), write }], "{tool}");
        assert_eq!(plan.summary, summary, "{tool}");
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
    // Root can read every file.
    if std::fs::File::open(fixture.root.join("closed")).is_err() {
        assert!(fixture.fails("read_file", &json!({"path": "closed"})).contains("Permission denied"));
        let text = fixture.ok("grep", &json!({"text": "needle"}));
        assert!(text.starts_with("open:1: needle\n[1 file left out: unreadable"), "{text}");
    }
}
