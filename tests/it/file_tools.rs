//! The file tools through the whole binary: what the model reads back, and what is on the disk afterwards.

use crate::support::calls::{call, results, script, told, told_once, told_with};
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Three lines.
const LINES: &str = "one\ntwo\nthree\n";

/// `count` numbered lines.
fn numbered(count: usize) -> String {
    (1..=count).map(|line| format!("this is line number {line}\n")).collect::<Vec<_>>().concat()
}

fn mode(lab: &Lab, path: &str) -> u32 {
    fs::metadata(lab.ws().join(path)).unwrap().permissions().mode() & 0o777
}

/// The names in the workspace, sorted.
fn names(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.ws()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn t01_reading_gives_a_header_and_the_text_or_says_what_is_wrong() {
    let lab = Lab::new()
        .file("src/a.txt", LINES)
        .file("bin", b"\xff\xfe\x01")
        .file("nul", b"a\0b")
        .file("empty", "");
    let read = |path: &str| call("read_file", &json!({"path": path}));
    let said = told(
        &lab,
        vec![read("src/a.txt"), read("src/b.txt"), read("src"), read("bin"), read("nul"), read("empty")],
    );
    assert_eq!(said[0], format!("Contents of src/a.txt (lines 1-3 of 3):\n{LINES}"));
    assert_eq!(said[1], "Error: File does not exist: src/b.txt. Did you mean src/a.txt?");
    assert!(said[2].starts_with("Error: Path is not a regular file: src"), "{}", said[2]);
    assert!(said[3].starts_with("Error: File bin is not a valid text file (UTF-8)"), "{}", said[3]);
    assert!(said[4].starts_with("Error: File nul is not a valid text file (UTF-8)"), "{}", said[4]);
    assert_eq!(said[5], "Contents of empty (empty file)");
}

#[test]
fn t01_a_file_that_may_not_be_read_and_a_pipe_are_errors_and_never_waited_for() {
    let lab = Lab::new().file("mine", "x");
    fs::set_permissions(lab.ws().join("mine"), fs::Permissions::from_mode(0o000)).unwrap();
    let lab = lab.unprivileged();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.ws().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let read = |path: &str| call("read_file", &json!({"path": path}));
    let grep = call("grep", &json!({"text": "x", "path": "pipe"}));
    let said = told(&lab, vec![read("mine"), read("pipe"), grep]);
    assert!(said[0].starts_with("Error: Cannot open mine: Permission denied"), "{}", said[0]);
    for said in &said[1..] {
        assert!(said.starts_with("Error: ") && said.contains("pipe, device or socket"), "{said}");
    }
}

#[test]
fn t02_only_the_lines_asked_for_come_with_how_to_go_on() {
    let lab = Lab::new().file("a.txt", numbered(500));
    let said = told(
        &lab,
        vec![
            call("read_file", &json!({"path": "a.txt", "start_line": 10, "limit": 2})),
            call("read_file", &json!({"path": "a.txt", "start_line": 499, "limit": 10})),
            call("read_file", &json!({"path": "a.txt", "start_line": 501})),
            call("read_file", &json!({"path": "a.txt", "start_line": 0})),
        ],
    );
    assert_eq!(
        said[0],
        "Contents of a.txt (lines 10-11 of 500):\nthis is line number 10\nthis is line number 11\n\
         [More lines follow. To continue: read_file with start_line 12.]"
    );
    assert_eq!(
        said[1],
        "Contents of a.txt (lines 499-500 of 500):\nthis is line number 499\nthis is line number 500\n"
    );
    assert_eq!(said[2], "Error: start_line 501 is past the end: a.txt has 500 lines.");
    assert!(said[3].starts_with("Error: Invalid arguments: start_line"), "{}", said[3]);
}

#[test]
fn t03_a_file_is_made_with_its_directories_overwritten_and_appended_to() {
    let lab = Lab::new();
    let write = |content: &str, mode: &str| {
        call("write_file", &json!({"path": "a/b/c.txt", "content": content, "mode": mode}))
    };
    let said = told(&lab, vec![write("héllo\n", "overwrite"), write("more\n", "append")]);
    assert_eq!(said[0], "File a/b/c.txt created successfully (6 characters)");
    assert_eq!(said[1], "File a/b/c.txt: appended content to it successfully (5 characters)");
    assert_eq!(lab.read("a/b/c.txt"), "héllo\nmore\n");
    let read = call("read_file", &json!({"path": "a/b/c.txt"}));
    let said = told(&lab, vec![read, write("new", "overwrite")]);
    assert_eq!(said[1], "File a/b/c.txt overwritten successfully (3 characters)");
    assert_eq!(lab.read("a/b/c.txt"), "new");
}

#[test]
fn t03_a_file_that_was_never_read_is_not_overwritten() {
    let lab = Lab::new().file("a.txt", LINES);
    let write = |content: &str, mode: &str| {
        call("write_file", &json!({"path": "a.txt", "content": content, "mode": mode}))
    };
    let edit = call("edit_file", &json!({"path": "a.txt", "old_str": "two", "new_str": "2"}));
    let said =
        told(&lab, vec![write("x", "overwrite"), write("four\n", "append"), edit, write("x", "overwrite")]);
    let refusal = "Error: File a.txt exists and you have not read it: read_file it first";
    assert!(said[0].starts_with(refusal), "{}", said[0]);
    assert!(said[3].starts_with(refusal), "neither appending nor editing shows the file: {}", said[3]);
    assert_eq!(lab.read("a.txt"), "one\n2\nthree\nfour\n");
}

#[test]
fn t04_an_edit_replaces_exactly_one_passage_or_nothing() {
    let lab = Lab::new().file("a.txt", LINES);
    let edit = |old: &str| call("edit_file", &json!({"path": "a.txt", "old_str": old, "new_str": "x"}));
    let said = told(&lab, vec![edit("twoo\n"), edit("e"), edit("")]);
    assert!(
        said[0].starts_with("Error: old_str not found in a.txt. Check spaces, indentation, and line breaks."),
        "{}",
        said[0]
    );
    assert!(said[0].contains("line 2") && said[0].contains("\"two\""), "the nearest passage: {}", said[0]);
    assert_eq!(
        said[1],
        "Error: old_str appears 3 times in a.txt (lines 1, 3, 3). Add more context lines to make it unique."
    );
    assert!(
        said[2].contains("write_file with mode append") && said[2].contains("apply_patch"),
        "{}",
        said[2]
    );
    assert_eq!(lab.read("a.txt"), LINES);
    assert_eq!(names(&lab), ["a.txt"]);
}

#[test]
fn t05_an_edit_answers_with_its_diff() {
    let lab = Lab::new().file("a.txt", LINES);
    let said = told_once(&lab, "edit_file", &json!({"path": "a.txt", "old_str": "two", "new_str": "2"}));
    assert_eq!(
        said,
        "File a.txt edited:\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    assert_eq!(lab.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(names(&lab), ["a.txt"]);
}

#[test]
fn t06_two_hunks_apply_and_one_bad_hunk_changes_nothing() {
    let lab = Lab::new().file("a.txt", numbered(20)).file("b.txt", numbered(20));
    let good =
        "@@ -2 +2 @@\n-this is line number 2\n+second\n@@ -19 +19 @@\n-this is line number 19\n+nineteenth\n";
    let bad = "@@ -2 +2 @@\n-this is line number 2\n+second\n@@ -19 +19 @@\n-no such line\n+nineteenth\n";
    let patch = |path: &str, patch: &str| call("apply_patch", &json!({"path": path, "patch": patch}));
    let said = told(
        &lab,
        vec![
            patch("a.txt", good),
            patch("b.txt", bad),
            patch("b.txt", ""),
            patch("b.txt", "no hunk at all\n"),
        ],
    );
    assert!(
        said[0].starts_with("Patch applied to a.txt. 2 hunk(s), 4 lines changed.\n--- a/a.txt\n"),
        "{}",
        said[0]
    );
    assert!(said[0].contains("@@ -16,5 +16,5 @@"), "{}", said[0]);
    assert_eq!(
        lab.read("a.txt"),
        numbered(20)
            .replace("this is line number 2\n", "second\n")
            .replace("this is line number 19", "nineteenth")
    );
    assert!(said[1].contains("untouched") && said[1].contains("hunk 2"), "{}", said[1]);
    assert!(said[1].contains("\"no such line\"") && said[1].contains("line 19"), "{}", said[1]);
    assert!(said[2].contains("the patch is empty"), "{}", said[2]);
    assert!(said[3].contains("no hunks"), "{}", said[3]);
    assert_eq!(lab.read("b.txt"), numbered(20));
    assert_eq!(names(&lab), ["a.txt", "b.txt"]);
}

#[test]
fn t07_a_patch_needs_no_headers_and_can_only_insert() {
    let lab = Lab::new().file("a.txt", LINES).file("b.txt", LINES).file("c.txt", "");
    let patch = |path: &str, patch: &str| call("apply_patch", &json!({"path": path, "patch": patch}));
    told(
        &lab,
        vec![
            patch("a.txt", "@@ -0,0 +1,2 @@\n+first\n+second\n"),
            patch("a.txt", "@@ -5,0 +6 @@\n+last\n"),
            patch("b.txt", "--- a/b.txt\n+++ b/b.txt\n@@ -2 +2 @@\n-two\n+2\n"),
            patch("c.txt", "@@ -0,0 +1 @@\n+new\n"),
        ],
    );
    assert_eq!(lab.read("a.txt"), "first\nsecond\none\ntwo\nthree\nlast\n");
    assert_eq!(lab.read("b.txt"), "one\n2\nthree\n");
    assert_eq!(lab.read("c.txt"), "new\n");
}

#[test]
fn t08_deleting_is_off_until_the_configuration_allows_it() {
    const OFF: &str = "Error: Delete operations are disabled. Set workspace.allow_delete=true to allow them.";
    let delete = |path: &str| vec![call("delete_file", &json!({"path": path}))];
    let lab = Lab::new().file("a.txt", LINES).file("dir/b.txt", LINES);
    assert_eq!(told(&lab, delete("a.txt")), [OFF]);
    assert_eq!(told_with(&lab, &[], delete("a.txt")), [OFF], "nobody has to confirm what cannot be");
    assert!(lab.exists("a.txt"));
    let lab = lab.config("workspace: {allow_delete: true}\n");
    let asked = told_with(&lab, &[], delete("a.txt"));
    assert!(asked[0].contains("confirmation"), "a delete is asked like every change: {}", asked[0]);
    assert!(lab.exists("a.txt"));
    assert!(told(&lab, delete("dir"))[0].contains("it is a directory"));
    assert_eq!(told(&lab, delete("a.txt")), ["File a.txt deleted"]);
    assert_eq!(names(&lab), ["dir"]);
    assert_eq!(lab.read("dir/b.txt"), LINES);
}

#[test]
fn t08_deleting_a_link_leaves_its_target() {
    let lab = Lab::new().file("a.txt", LINES).config("workspace: {allow_delete: true}\n");
    symlink("a.txt", lab.ws().join("link")).unwrap();
    told_once(&lab, "delete_file", &json!({"path": "link"}));
    assert_eq!(names(&lab), ["a.txt"]);
}

#[test]
fn t09_directories_are_listed_sorted_with_their_kind_and_a_total() {
    let lab = Lab::new()
        .file("b.rs", "")
        .file("a.txt", "")
        .file("src/deep/c.rs", "")
        .file("src/node_modules/x.rs", "");
    fs::create_dir(lab.ws().join("empty")).unwrap();
    let list = |arguments: Value| call("list_files", &arguments);
    let said = told(
        &lab,
        vec![
            list(json!({})),
            list(json!({"path": "empty"})),
            list(json!({"pattern": "*.rs"})),
            list(json!({"recursive": true})),
            list(json!({"recursive": true, "pattern": "*.rs", "path": "src"})),
            list(json!({"path": "nowhere"})),
            list(json!({"path": "a.txt"})),
        ],
    );
    assert_eq!(said[0], "📄 a.txt\n📄 b.rs\n📁 empty\n📁 src\nTotal: 4 items");
    assert_eq!(said[1], "(empty directory)\nTotal: 0 items");
    assert_eq!(said[2], "📄 b.rs\nTotal: 1 item");
    assert_eq!(said[3], "📄 a.txt\n📄 b.rs\n📁 empty\n📁 src\n📁 src/deep\n📄 src/deep/c.rs\nTotal: 6 items");
    assert_eq!(said[4], "📄 src/deep/c.rs\nTotal: 1 item");
    assert_eq!(said[5], "Error: Directory does not exist: nowhere");
    assert!(said[6].starts_with("Error: Path is not a directory: a.txt"), "{}", said[6]);
}

#[test]
fn t10_regular_expressions_are_searched_with_context_limits_and_case() {
    let lab = Lab::new()
        .file("a.rs", "fn zero() {}\nfn one() {}\nlet x;\nFN TWO() {}\n")
        .file("b.py", "def fn_one(): ...\n");
    let search = |arguments: Value| call("search_code", &arguments);
    let said = told(
        &lab,
        vec![
            search(json!({"pattern": r"fn\s+one", "context_lines": 1})),
            search(json!({"pattern": "fn", "context_lines": 0, "max_results": 1})),
            search(json!({"pattern": "fn two", "case_sensitive": false, "context_lines": 0})),
            search(json!({"pattern": "one", "file_pattern": "*.py", "context_lines": 0})),
            search(json!({"pattern": "let", "path": "a.rs", "context_lines": 0})),
            search(json!({"pattern": "fn two"})),
            search(json!({"pattern": "(unclosed"})),
            search(json!({"pattern": "x", "path": "nowhere"})),
            search(json!({"pattern": "one", "file_pattern": "./*.py", "context_lines": 0})),
        ],
    );
    assert_eq!(said[0], "📄 a.rs:2\n  1 | fn zero() {}\n> 2 | fn one() {}\n  3 | let x;");
    assert!(said[1].starts_with("📄 a.rs:1\n> 1 | fn zero() {}\n[Limit: the first 1 "), "{}", said[1]);
    assert_eq!(said[2], "📄 a.rs:4\n> 4 | FN TWO() {}");
    assert_eq!(said[3], "📄 b.py:1\n> 1 | def fn_one(): ...");
    assert_eq!(said[4], "📄 a.rs:3\n> 3 | let x;");
    assert_eq!(said[5], "No results for 'fn two'");
    assert!(said[6].starts_with("Error: Invalid regex pattern: "), "{}", said[6]);
    assert!(said[7].starts_with("Error: ") && said[7].contains("nowhere"), "{}", said[7]);
    assert_eq!(said[8], said[3]);
}

#[test]
fn t11_plain_text_is_searched_literally_and_a_limit_is_said() {
    let lab = Lab::new().file("a.txt", "a.b(\naxb(\nA.B(\n").file("d/b.txt", "x a.b( y\n");
    let grep = |arguments: Value| call("grep", &arguments);
    let said = told(
        &lab,
        vec![
            grep(json!({"text": "a.b("})),
            grep(json!({"text": "a.b(", "case_sensitive": false, "file_pattern": "a.*"})),
            grep(json!({"text": "a.b(", "max_results": 1})),
            grep(json!({"text": "a.b(", "path": "d/b.txt"})),
            grep(json!({"text": "no such text"})),
        ],
    );
    assert_eq!(said[0], "a.txt:1: a.b(\nd/b.txt:1: x a.b( y");
    assert_eq!(said[1], "a.txt:1: a.b(\na.txt:3: A.B(");
    assert!(said[2].starts_with("a.txt:1: a.b(\n[Limit: the first 1 "), "{}", said[2]);
    assert_eq!(said[3], "d/b.txt:1: x a.b( y");
    assert_eq!(said[4], "No results for 'no such text'");
}

#[test]
fn t12_files_are_found_by_name_sorted_and_counted() {
    let lab = Lab::new().file("z.rs", "").file("src/a.rs", "").file("src/b.py", "").file("src/deep/a.rs", "");
    let find = |pattern: &str, path: &str| call("find_files", &json!({"pattern": pattern, "path": path}));
    let said = told(
        &lab,
        vec![find("*.rs", "."), find("a.*", "src/deep"), find("src/*.rs", "."), find("*.go", ".")],
    );
    assert_eq!(said[0], "Found 3 files matching '*.rs':\nsrc/a.rs\nsrc/deep/a.rs\nz.rs");
    assert_eq!(said[1], "Found 1 file matching 'a.*':\nsrc/deep/a.rs");
    assert_eq!(said[2], "Found 1 file matching 'src/*.rs':\nsrc/a.rs");
    assert_eq!(said[3], "No files found matching '*.go'");
}

#[test]
fn t13_repository_data_caches_hidden_and_ignored_directories_are_skipped() {
    let skipped = [
        ".git/x",
        "node_modules/x",
        "__pycache__/x",
        ".venv/x",
        "venv/x",
        ".tox/x",
        ".idea/x",
        "build/x",
        "d/.hid/x",
    ];
    let lab = skipped.iter().fold(Lab::new(), |lab, path| lab.file(path, "needle\n"));
    let lab = lab.file(".gitignore", "build/\n*.log\n").file("a.log", "needle\n").file("here/x", "needle\n");
    let said = told(
        &lab,
        vec![
            call("grep", &json!({"text": "needle"})),
            call("search_code", &json!({"pattern": "need.e", "context_lines": 0})),
            call("find_files", &json!({"pattern": "x"})),
            call("list_files", &json!({"recursive": true, "pattern": "x"})),
            call("grep", &json!({"text": "needle", "path": "node_modules"})),
            call("grep", &json!({"text": "needle", "path": ".idea"})),
            call("grep", &json!({"text": "needle", "path": ".git"})),
        ],
    );
    assert_eq!(said[0], "here/x:1: needle");
    assert_eq!(said[1], "📄 here/x:1\n> 1 | needle");
    assert_eq!(said[2], "Found 1 file matching 'x':\nhere/x");
    assert_eq!(said[3], "📄 here/x\nTotal: 1 item");
    assert_eq!(said[4], "node_modules/x:1: needle", "a directory that is named is searched");
    assert_eq!(said[5], ".idea/x:1: needle");
    assert_eq!(said[6], "No results for 'needle'", "a repository's own data never is");
}

// Fault A1: search saw the ignore files of directories above the repository.
#[test]
fn ignore_files_above_the_workspace_or_its_repository_hide_nothing() {
    let lab = Lab::new().file("a.py", "needle\n").file("d/b.py", "needle\n");
    for name in [".gitignore", ".ignore"] {
        fs::write(lab.ws().parent().unwrap().join(name), "*\n").unwrap();
    }
    let calls = || {
        vec![
            call("grep", &json!({"text": "needle"})),
            call("search_code", &json!({"pattern": "need.e", "context_lines": 0})),
            call("find_files", &json!({"pattern": "*.py"})),
            call("list_files", &json!({"recursive": true, "pattern": "*.py"})),
        ]
    };
    let expected = [
        "a.py:1: needle\nd/b.py:1: needle",
        "📄 a.py:1\n> 1 | needle\n📄 d/b.py:1\n> 1 | needle",
        "Found 2 files matching '*.py':\na.py\nd/b.py",
        "📄 a.py\n📄 d/b.py\nTotal: 2 items",
    ];
    let squeezed = |said: Vec<String>| -> Vec<String> {
        said.into_iter().map(|said| said.replace("\n\n", "\n")).collect()
    };
    assert_eq!(squeezed(told(&lab, calls())), expected, "outside a repository");
    lab.git(&["init", "-q"]);
    assert_eq!(squeezed(told(&lab, calls())), expected, "in a repository of its own");
    let health: Value = serde_json::from_str(&lab.agent(&["health", "--json"]).stdout).unwrap();
    assert_eq!(health["after"]["files"], 2, "{health}");
}

// Fault A1
#[test]
fn a_subdirectory_of_a_repository_obeys_the_ignore_files_up_to_its_root() {
    let lab = Lab::new();
    let root = lab.ws().parent().unwrap().to_owned();
    for (path, text) in [
        (".gitignore", "*.log\n!keep.log\n/ws/own/*.txt\n"),
        ("ws/.gitignore", "!b.log\n"),
        ("ws/a.log", "needle"),
        ("ws/b.log", "needle"),
        ("ws/keep.log", "needle"),
        ("ws/own/a.txt", "needle"),
        ("ws/own/b.txt", "needle"),
        ("ws/clone/c.log", "needle"),
        ("ws/clone/c.tmp", "needle"),
        ("ws/c.tmp", "needle"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let git = |directory: &str| {
        let init = ["init", "-q", directory];
        assert!(std::process::Command::new("git").args(init).current_dir(&root).status().unwrap().success());
    };
    git(".");
    fs::write(root.join(".git/info/exclude"), "*.tmp\n").unwrap();
    let files = || told_once(&lab, "find_files", &json!({"pattern": "*.{log,txt,tmp}"}));
    assert_eq!(files(), "Found 2 files matching '*.{log,txt,tmp}':\nb.log\nkeep.log");
    git("ws/clone");
    assert_eq!(
        files(),
        "Found 4 files matching '*.{log,txt,tmp}':\nb.log\nclone/c.log\nclone/c.tmp\nkeep.log",
        "a repository below has its own rules"
    );
    // The repository above, of dotfiles for example, excludes the workspace itself.
    fs::write(root.join(".gitignore"), "*\n").unwrap();
    let all = files();
    assert!(all.starts_with("Found 8 files"), "{all}");
}

// Fault A1
#[test]
fn a_search_without_results_reports_what_it_left_out() {
    let lab = Lab::new().file(".gitignore", "/gen/*\n*.log\n").file("gen/a.py", "needle\n");
    let lab = lab.file("a.log", "needle\n").file("node_modules/a.py", "needle\n");
    let note = |count: &str| {
        format!(
            "\n[{count} left out: named in ignore files, hidden directories, or such as node_modules, dist, build; \
             name one as path to search it]"
        )
    };
    let said = told(
        &lab,
        vec![
            call("grep", &json!({"text": "needle"})),
            call("search_code", &json!({"pattern": "needle"})),
            call("find_files", &json!({"pattern": "*.py"})),
            call("list_files", &json!({"recursive": true, "pattern": "*.py"})),
            call("grep", &json!({"text": "needle", "path": "gen"})),
            call("grep", &json!({"text": "needle", "path": "a.log"})),
        ],
    );
    for (said, start) in said.iter().zip(["No results", "No results", "No files found", "(nothing matches)"])
    {
        assert!(said.starts_with(start) && said.ends_with(&note("3 entries")), "{said}");
    }
    assert!(said[4].ends_with(&note("1 entry")), "{}", said[4]);
    assert_eq!(said[5], "a.log:1: needle");
}

// Fault A1, B27: built files are left out without a `.gitignore`, and found by an explicit path or pattern.
#[test]
fn a_pattern_or_path_that_names_a_skipped_directory_searches_it() {
    let skipped = ["build/x.py", "dist/x.py", "a.egg-info/x.py", "src/build/x.py", ".hid/x.py"];
    let lab = skipped.iter().fold(Lab::new(), |lab, path| lab.file(path, "needle\n"));
    let lab = lab.file("here/x.py", "needle\n");
    let said = told(
        &lab,
        vec![
            call("grep", &json!({"text": "needle"})),
            call("search_code", &json!({"pattern": "needle", "context_lines": 0})),
            call("find_files", &json!({"pattern": "x.py"})),
            call("find_files", &json!({"pattern": "build/*.py"})),
            call("find_files", &json!({"pattern": "build/x.py"})),
            call("find_files", &json!({"pattern": "build/*.py", "path": "src"})),
            call("find_files", &json!({"pattern": ".hid/**/*.py"})),
            call("grep", &json!({"text": "needle", "file_pattern": "dist/*.py"})),
            call("grep", &json!({"text": "needle", "path": "a.egg-info"})),
            call("find_files", &json!({"pattern": "nowhere/*.py"})),
        ],
    );
    let found = |pattern: &str, path: &str| format!("Found 1 file matching '{pattern}':\n{path}");
    assert_eq!(said[0], "here/x.py:1: needle");
    assert_eq!(said[1], "📄 here/x.py:1\n> 1 | needle");
    assert_eq!(said[2], found("x.py", "here/x.py"));
    assert_eq!(said[3], found("build/*.py", "build/x.py"));
    assert_eq!(said[4], found("build/x.py", "build/x.py"));
    assert_eq!(said[5], found("build/*.py", "src/build/x.py"));
    assert_eq!(said[6], found(".hid/**/*.py", ".hid/x.py"));
    assert_eq!(said[7], "dist/x.py:1: needle");
    assert_eq!(said[8], "a.egg-info/x.py:1: needle");
    assert!(
        said[9].starts_with("No files found matching 'nowhere/*.py'\n[5 entries left out"),
        "{}",
        said[9]
    );
}

#[test]
fn t21_an_unknown_tool_is_answered_with_the_names_there_are() {
    let said = told_once(&Lab::new(), "readfile", &json!({"path": "a"}));
    assert!(said.starts_with("Error: Unknown tool 'readfile'. Did you mean read_file?"), "{said}");
    for name in [
        "apply_patch",
        "delete_file",
        "edit_file",
        "find_files",
        "grep",
        "list_files",
        "read_file",
        "run_command",
        "search_code",
        "write_file",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
}

#[test]
fn t22_wrong_arguments_are_named_and_the_tool_does_not_run() {
    let lab = Lab::new();
    let write = |arguments: Value| call("write_file", &arguments);
    let said = told(
        &lab,
        vec![
            write(json!({"path": "a", "content": "x", "contents": "x"})),
            write(json!({"path": "a"})),
            write(json!({"path": "a", "content": 5})),
            write(json!({"path": "a", "content": "x", "mode": "prepend"})),
            write(json!("{\"path\": \"a\", \"content\": \"cut o")),
        ],
    );
    let begins = [
        "unknown argument 'contents' (did you mean 'content'?)",
        "missing argument 'content'",
        "argument 'content' must be of type string, not number",
        "argument 'mode' must be one of \"overwrite\", \"append\"",
        "not valid JSON",
    ];
    for (said, begin) in said.iter().zip(begins) {
        assert!(said.starts_with(&format!("Error: Invalid arguments: {begin}")), "{said}");
    }
    assert!(
        said[0].ends_with("write_file takes: path (string), content (string), mode (string, optional)."),
        "{}",
        said[0]
    );
    assert_eq!(names(&lab), [""; 0]);
}

#[test]
fn t23_an_agent_cannot_use_a_tool_that_it_does_not_have() {
    let lab = Lab::new().file("a.txt", LINES);
    let server = Server::start(&script(&[vec![
        call("write_file", &json!({"path": "new", "content": "x"})),
        call("run_command", &json!({"command": "touch new"})),
        call("read_file", &json!({"path": "a.txt"})),
    ]]));
    let done = lab.run_yolo(&server, &["-a", "plan", "--json"]).exits(0);
    let said = results(&server);
    for (said, tool) in said.iter().zip(["write_file", "run_command"]) {
        assert!(said.starts_with(&format!("Error: The agent `plan` may not use `{tool}`.")), "{said}");
        assert!(said.contains("read_file, list_files, search_code, grep, find_files"), "{said}");
    }
    assert!(said[2].contains("two"), "{}", said[2]);
    assert_eq!(names(&lab), ["a.txt"]);
    let offered = server.requests()[0].body["tools"].as_array().unwrap().len();
    assert_eq!(offered, 5, "what it may not use is not offered either");
    assert_eq!(done.json()["permission_denials"].as_array().unwrap().len(), 2);
}

#[test]
fn t33_tagged_results_name_the_tool_and_the_outcome() {
    let lab = Lab::new().file("a.txt", LINES).config("tools: {result_format: tagged}\n");
    let said = told(
        &lab,
        vec![
            call("read_file", &json!({"path": "a.txt", "start_line": 1, "limit": 3})),
            call("read_file", &json!({"path": "b.txt"})),
            call("nope", &json!({})),
            call("run_command", &json!({"command": "echo out; echo err >&2; exit 3"})),
        ],
    );
    assert_eq!(said[0], format!("[read_file] Success:\nContents of a.txt (lines 1-3 of 3):\n{LINES}"));
    assert!(said[1].starts_with("[read_file] Error: File does not exist: b.txt"), "{}", said[1]);
    assert!(said[2].starts_with("[nope] Error: Unknown tool 'nope'"), "{}", said[2]);
    assert!(said[3].starts_with("[run_command] Error: "), "{}", said[3]);
    assert!(said[3].contains("out") && said[3].contains("err") && said[3].contains('3'), "{}", said[3]);
}

#[test]
fn k01_a_long_file_is_cut_to_head_and_tail_and_how_to_go_on_is_said() {
    let lab = Lab::new().file("a.txt", numbered(500)).config("context: {max_tool_result_tokens: 2000}\n");
    let said = told_once(&lab, "read_file", &json!({"path": "a.txt"}));
    assert!(said.starts_with("Contents of a.txt (lines 1-500 of 500):\nthis is line number 1\n"), "{said}");
    assert!(
        said.contains("this is line number 40\n[... 440 lines omitted ...]\nthis is line number 481\n"),
        "{said}"
    );
    assert!(said.contains("this is line number 500\n"), "{said}");
    assert!(said.contains("read_file with start_line 41"), "{said}");
    assert!(said.chars().count() <= 8000, "{}", said.len());
    assert!(!said.contains("output:"), "the file itself is there to be read: {said}");
    let next = told_once(&lab, "read_file", &json!({"path": "a.txt", "start_line": 41}));
    assert!(next.starts_with("Contents of a.txt (lines 41-"), "{next}");
    assert!(next.contains("this is line number 200\n") && !next.contains("omitted"), "{next}");
    assert!(next.contains("To continue: read_file with start_line "), "{next}");
}

#[test]
fn k01_a_file_longer_than_a_page_names_the_first_line_that_was_left_out() {
    let lab = Lab::new().file("a.txt", numbered(5000)).config("context: {max_tool_result_tokens: 2000}\n");
    let said = told_once(&lab, "read_file", &json!({"path": "a.txt"}));
    assert!(said.contains("this is line number 40\n[... "), "{said}");
    assert!(said.contains(" of 5000)") && said.contains("read_file with start_line 41"), "{said}");
    assert!(!said.contains("start_line 2001"), "one way on, not two: {said}");
}

#[test]
fn k01_few_long_lines_are_cut_by_characters() {
    let lab = Lab::new()
        .file("a.txt", format!("{}\n", "x".repeat(400)).repeat(50))
        .config("context: {max_tool_result_tokens: 2000}\n");
    let said = told_once(&lab, "read_file", &json!({"path": "a.txt"}));
    assert!(said.contains("characters omitted ...]"), "{said}");
    assert!(said.contains("read_file with start_line"), "{said}");
    assert!(said.chars().count() <= 8000, "{}", said.len());
}

#[test]
fn k01_zero_tokens_mean_no_limit() {
    let lab = Lab::new().file("a.txt", numbered(500)).config("context: {max_tool_result_tokens: 0}\n");
    let said = told_once(&lab, "read_file", &json!({"path": "a.txt"}));
    assert_eq!(said, format!("Contents of a.txt (lines 1-500 of 500):\n{}", numbered(500)));
}

#[test]
fn k01_a_long_output_is_kept_and_read_and_searched_by_its_name() {
    let lab = Lab::new();
    let server = Server::start(&script(&[
        vec![
            json!({"name": "run_command", "arguments": {"command": "seq -f 'row %g of many' 3000"}, "id": "call_a"}),
        ],
        vec![
            call("read_file", &json!({"path": "output:call_a", "start_line": 1500, "limit": 3})),
            call("grep", &json!({"path": "output:call_a", "text": "row 2222 "})),
            call("read_file", &json!({"path": "output:call_b"})),
            call("read_file", &json!({"path": "output:../../journal"})),
            call("write_file", &json!({"path": "output:call_a", "content": "a file like any other"})),
        ],
    ]));
    lab.run_yolo(&server, &[]).exits(0);
    let said = results(&server);
    assert!(said[0].contains("lines omitted ...]") && said[0].contains("output:call_a"), "{}", said[0]);
    assert_eq!(
        said[1],
        "Contents of output:call_a (lines 1500-1502 of 3000):\nrow 1500 of many\nrow 1501 of many\nrow 1502 of many\n\
         [More lines follow. To continue: read_file with start_line 1503.]"
    );
    assert_eq!(said[2], "output:call_a:2222: row 2222 of many");
    for missing in &said[3..5] {
        assert!(missing.starts_with("Error: There is no stored output output:"), "{missing}");
    }
    assert_eq!(names(&lab), ["output:call_a"]);
    let kept = lab.journal().parent().unwrap().join("outputs/call_a.txt");
    assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn s01_absolute_paths_and_relative_links_inside_are_followed() {
    let lab = Lab::new().file("dir/a.txt", LINES);
    symlink("dir", lab.ws().join("link")).unwrap();
    symlink("../dir/a.txt", lab.ws().join("dir/again")).unwrap();
    let absolute = lab.ws().join("dir/a.txt").to_str().unwrap().to_owned();
    let said = told(
        &lab,
        [absolute.as_str(), "link/a.txt", "dir/again", "link/../dir/a.txt"]
            .map(|path| call("read_file", &json!({"path": path})))
            .to_vec(),
    );
    for said in said {
        assert!(said.ends_with(LINES), "{said}");
    }
}

#[test]
fn a_change_is_refused_when_the_file_is_not_what_the_model_read() {
    let lab = Lab::new().file("a.txt", LINES).config("workspace: {allow_delete: true}\n");
    let said = told(
        &lab,
        vec![
            call("read_file", &json!({"path": "a.txt"})),
            call("run_command", &json!({"command": "echo four >> a.txt"})),
            call("edit_file", &json!({"path": "a.txt", "old_str": "two", "new_str": "2"})),
            call("write_file", &json!({"path": "a.txt", "content": "x"})),
            call("apply_patch", &json!({"path": "a.txt", "patch": "@@ -1 +1 @@\n-one\n+1\n"})),
            call("delete_file", &json!({"path": "a.txt"})),
            call("edit_file", &json!({"path": "./a.txt", "old_str": "two", "new_str": "2"})),
            call("read_file", &json!({"path": "a.txt"})),
            call("edit_file", &json!({"path": "a.txt", "old_str": "two", "new_str": "2"})),
            call("edit_file", &json!({"path": "a.txt", "old_str": "four", "new_str": "4"})),
        ],
    );
    for said in &said[2..7] {
        assert!(said.starts_with("Error: File a.txt changed since it was read: read it again"), "{said}");
    }
    assert_eq!(lab.read("a.txt"), "one\n2\nthree\n4\n", "{said:?}");
}

#[test]
fn edits_keep_line_endings_byte_order_mark_final_newline_mode_and_link() {
    let text = "\u{feff}one\r\n\ttwo\nthree\r\nfour";
    let lab = Lab::new().file("real.txt", text);
    fs::set_permissions(lab.ws().join("real.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("real.txt", lab.ws().join("link")).unwrap();
    let said = told(
        &lab,
        vec![
            call("read_file", &json!({"path": "link"})),
            call("edit_file", &json!({"path": "link", "old_str": "\ttwo\nthree", "new_str": "\t2\n3"})),
            call("apply_patch", &json!({"path": "link", "patch": "@@ -1 +1,2 @@\n-one\n+1\n+1.5\n"})),
            call("edit_file", &json!({"path": "link", "old_str": "four", "new_str": "4"})),
        ],
    );
    assert!(said[0].contains("CRLF"), "{}", said[0]);
    assert_eq!(lab.read("real.txt"), "\u{feff}1\r\n1.5\r\n\t2\n3\r\n4", "{said:?}");
    assert!(lab.ws().join("link").is_symlink());
    assert_eq!(mode(&lab, "real.txt"), 0o751);
    assert_eq!(names(&lab), ["link", "real.txt"]);
    let whole = vec![
        call("read_file", &json!({"path": "link"})),
        call("write_file", &json!({"path": "link", "content": "x\ny\n"})),
    ];
    told(&lab, whole);
    assert_eq!(lab.read("real.txt"), "\u{feff}x\r\ny\r\n");
    assert_eq!(mode(&lab, "real.txt"), 0o751);
    assert!(lab.ws().join("link").is_symlink());
}

#[test]
fn a_change_that_cannot_be_made_is_told_at_once_where_changes_are_asked_or_simulated() {
    let lab = Lab::new().file("a.txt", LINES);
    let edit = vec![call("edit_file", &json!({"path": "a.txt", "old_str": "four", "new_str": "4"}))];
    let said = told_with(&lab, &[], edit.clone());
    assert!(said[0].starts_with("Error: old_str not found in a.txt."), "nobody is asked: {}", said[0]);
    let said = told_with(&lab, &["--dry-run"], edit);
    assert!(said[0].starts_with("[DRY-RUN] Would execute edit_file: a.txt"), "{}", said[0]);
    assert!(said[0].contains("it would fail: old_str not found in a.txt."), "{}", said[0]);
}

#[test]
fn a_hook_that_changes_a_file_does_not_make_it_read() {
    let config = "hooks: {post_edit: [{command: 'echo formatted >> {file}'}]}\n";
    let lab = Lab::new().file("a.txt", LINES).file("b.txt", LINES).config(config);
    let edit = |path: &str| call("edit_file", &json!({"path": path, "old_str": "two", "new_str": "2"}));
    let write = |path: &str| call("write_file", &json!({"path": path, "content": "x\n"}));
    let read = call("read_file", &json!({"path": "b.txt"}));
    let said = told(&lab, vec![edit("a.txt"), write("a.txt"), read, edit("b.txt"), write("b.txt")]);
    assert!(said[0].contains("A hook changed a.txt:") && said[0].contains("+formatted"), "{}", said[0]);
    assert!(said[1].contains("you have not read it"), "{}", said[1]);
    assert!(said[4].starts_with("File b.txt overwritten successfully"), "{}", said[4]);
    assert_eq!(lab.read("a.txt"), "one\n2\nthree\nformatted\n");
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let lab = Lab::new().file("a.txt", LINES);
    fs::set_permissions(lab.ws().join("a.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    let lab = lab.unprivileged();
    let said = told(
        &lab,
        vec![
            call("edit_file", &json!({"path": "a.txt", "old_str": "two", "new_str": "2"})),
            call("read_file", &json!({"path": "a.txt"})),
            call("write_file", &json!({"path": "a.txt", "content": "x"})),
        ],
    );
    for said in [&said[0], &said[2]] {
        assert!(said.starts_with("Error: Cannot write a.txt: Permission denied"), "{said}");
    }
    assert_eq!(lab.read("a.txt"), LINES);
    assert_eq!(names(&lab), ["a.txt"]);
}

#[test]
fn names_from_the_project_cannot_forge_a_line_of_a_result() {
    let lab = Lab::new().file("a\nb.txt:1: forged", "alpha\n");
    let said = told(
        &lab,
        vec![
            call("list_files", &json!({})),
            call("find_files", &json!({"pattern": "*"})),
            call("grep", &json!({"text": "alpha"})),
            call("search_code", &json!({"pattern": "alpha"})),
        ],
    );
    for said in said {
        assert!(said.contains(r"a\nb.txt:1: forged"), "{said}");
    }
}

#[test]
fn k01_a_hit_far_inside_a_line_is_shown_and_a_line_too_long_to_read_says_what_to_do() {
    let line = format!("{}needle{}", "x".repeat(30_000), "y".repeat(30_000));
    let lab = Lab::new().file("min.js", format!("{line}\nlast\n"));
    let said = told(
        &lab,
        vec![
            call("grep", &json!({"text": "needle"})),
            call("read_file", &json!({"path": "min.js", "start_line": 1})),
            call("read_file", &json!({"path": "min.js"})),
        ],
    );
    assert!(said[0].contains("xneedley") && said[0].len() < 500, "{}", said[0]);
    for said in &said[1..] {
        assert!(said.contains("Line 1 is too long and was cut") && said.contains("grep shows"), "{said}");
        assert!(said.ends_with("To continue: read_file with start_line 2.]"), "{said}");
    }
}

#[test]
fn t03_what_the_session_wrote_itself_is_known_and_every_change_is_in_the_json_document() {
    let lab =
        Lab::new().file("old.txt", LINES).file("gone.txt", LINES).config("workspace: {allow_delete: true}\n");
    let write = |content: &str| call("write_file", &json!({"path": "new.txt", "content": content}));
    let server = Server::start(&script(&[
        vec![
            write("one\n"),
            call("edit_file", &json!({"path": "old.txt", "old_str": "two", "new_str": "2"})),
            call("edit_file", &json!({"path": "old.txt", "old_str": "no such text", "new_str": "2"})),
            call("delete_file", &json!({"path": "gone.txt"})),
        ],
        vec![write("two\n")],
    ]));
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    assert_eq!(lab.read("new.txt"), "two\n", "{:?}", results(&server));
    let mut changed: Vec<String> = json["files_modified"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| ["action", "path", "by"].map(|key| file[key].as_str().unwrap()).join(" "))
        .collect();
    changed.sort();
    assert_eq!(changed, ["created new.txt tool", "deleted gone.txt tool", "modified old.txt tool"]);
    let outcomes: Vec<bool> = json["tools_used"]
        .as_array()
        .unwrap()
        .iter()
        .map(|used| used["success"].as_bool().unwrap())
        .collect();
    assert_eq!(outcomes, [true, true, false, true, true]);
}
