//! Tests of patches.

use super::apply::Patched;
use super::file_patch::Action;
use super::*;
use crate::diff;
use crate::match_level::MatchLevel;
use proptest::prelude::*;
use std::time::Duration;

/// Returns the processor time of this thread, which other load does not affect.
fn thread_cpu_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Applies a patch of one file to `text`.
fn apply(text: &str, patch: &str) -> Result<Patched, PatchError> {
    let sections = parse(patch, Some("f"))?;
    apply::apply(text, sections[0].hunks())
}

fn patched(text: &str, patch: &str) -> String {
    apply(text, patch).unwrap().text
}

fn refused(text: &str, patch: &str) -> String {
    apply(text, patch).unwrap_err().to_string()
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn lines_before_a_removed_end_keep_their_bytes() {
    assert_eq!(patched("a\nb", "@@ -2 +1,0 @@\n-b\n"), "a\n");
    assert_eq!(apply("a\nb\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n-c\n+d\n").unwrap().changed_lines, 3);
}

#[test]
fn a_byte_order_mark_stays_in_front_and_is_in_no_patch() {
    let patched = apply("\u{feff}one\ntwo\n", "@@ -1 +1 @@\n-one\n+1\n").unwrap();
    assert_eq!(patched.text, "\u{feff}1\ntwo\n");
    let patched = apply("\u{feff}one\n", "@@ -0,0 +1 @@\n+zero\n").unwrap();
    assert_eq!(patched.text, "\u{feff}zero\none\n");
}

#[test]
fn diff_with_a_byte_order_mark_may_keep_add_or_remove_it() {
    let with = "\u{feff}one\ntwo\n";
    assert_eq!(patched(with, "@@ -1,2 +1,2 @@\n \u{feff}one\n-two\n+2\n"), "\u{feff}one\n2\n");
    assert_eq!(patched(with, "@@ -1 +1 @@\n-\u{feff}one\n+one\n"), "one\ntwo\n");
    assert_eq!(patched("one\ntwo\n", "@@ -1 +1 @@\n-one\n+\u{feff}one\n"), with);
}

#[test]
fn t06_two_hunks_apply_and_the_changes_are_counted() {
    let result = apply(
        TEN,
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n@@ -9,2 +9,3 @@\n 9\n+nine and a half\n 10\n",
    )
    .unwrap();
    assert_eq!(result.text, "1\ntwo\n3\n4\n5\n6\n7\n8\n9\nnine and a half\n10\n");
    assert_eq!((result.match_levels.len(), result.changed_lines), (2, 3));
}

#[test]
fn t06_one_bad_hunk_refuses_all_and_is_named_with_its_first_wrong_line() {
    let message = refused(TEN, "@@ -1,1 +1,1 @@\n-1\n+one\n@@ -4,2 +4,2 @@\n 4\n-five\n+FIVE\n");
    assert!(message.starts_with("hunk 2 does not fit at line 5"), "{message}");
    assert!(message.contains("expected \"five\", found \"5\""), "{message}");
}

#[test]
fn mismatch_names_the_line_of_the_likeliest_position() {
    assert!(refused("a\n", "@@ -1,2 +1 @@\n a\n-b\n").contains("does not fit at line 2"));
    let text = "k\nfn a() {\nb\n}\nfn a() {\nc\n}\n";
    let message = refused(text, "@@\n fn a() {\n c\n-x\n");
    assert!(message.contains("does not fit at line 7"), "{message}");
    let message = refused("\nfn\nq\n", "@@ -1 +1,2 @@\n \n+k\n@@\n\n fn\n-x\n");
    assert!(message.contains("hunk 2 does not fit at line 2"), "behind the hunk before it: {message}");
    let message = refused("q\n\nfn\nz\n", "@@\n \n fn\n-x\n");
    assert!(message.contains("line 4: expected \"x\", found \"z\""), "behind its empty lines: {message}");
    assert!(refused("a\nb\n", "@@ -2,2 +2 @@\n b\n-c\n").contains("line 3"), "behind the end of the file");
}

#[test]
fn t07_headers_are_optional_and_insertions_have_no_context() {
    assert_eq!(patched("a\nb\n", "@@ -0,0 +1,1 @@\n+first\n"), "first\na\nb\n");
    assert_eq!(patched("a\nb\n", "@@ -1,0 +2,1 @@\n+middle\n"), "a\nmiddle\nb\n");
    assert_eq!(patched("a\nb\n", "@@ -2,0 +3 @@\n+last\n"), "a\nb\nlast\n");
    assert_eq!(patched("", "@@ -0,0 +1 @@\n+only\n"), "only\n");
    assert!(refused("a\n", "@@ -9,0 +10 @@\n+x\n").contains("hunk 1"));
}

#[test]
fn a_wrong_line_number_is_repaired_only_when_the_place_is_unique() {
    assert_eq!(patched(TEN, "@@ -1,1 +1,1 @@\n-7\n+seven\n"), TEN.replace('7', "seven"));
    assert!(refused("x\ny\nx\ny\nx\n", "@@ -2,1 +2,1 @@\n-x\n+z\n").contains("fits at lines 1, 3, 5"));
    assert_eq!(patched("a\nb\n", "@@\n-b\n+c\n"), "a\nc\n");
}

#[test]
fn the_offset_of_a_hunk_moves_the_next() {
    let text = format!("new\n{}", "x\n".repeat(6));
    assert!(apply(&text, "@@ -1,1 +1,1 @@\n-x\n+y\n").is_err(), "six places fit");
    let text = "extra\nhead\nsame\nmid\nsame\n";
    assert_eq!(
        patched(text, "@@ -1,1 +1,1 @@\n-head\n+HEAD\n@@ -4,1 +4,1 @@\n-same\n+last\n"),
        "extra\nHEAD\nsame\nmid\nlast\n"
    );
}

#[test]
fn crlf_and_a_missing_final_newline_are_kept() {
    assert_eq!(patched("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n+new\n b\n"), "a\r\nnew\r\nb\r\n");
    assert_eq!(patched("a\nb", "@@ -2 +2 @@\n-b\n+c\n"), "a\nc");
    assert_eq!(patched("a\nb", "@@ -2 +2,2 @@\n b\n+c\n"), "a\nb\nc");
    assert_eq!(patched("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n"), "a\nb\n");
    assert_eq!(patched("a\nb\n", "@@ -2 +2 @@\n-b\n+b2\n\\ No newline at end of file\n"), "a\nb2");
}

#[test]
fn lines_that_look_like_headers_are_content_inside_a_hunk() {
    assert_eq!(patched("-- sql\nx\n", "@@ -1,2 +1,2 @@\n--- sql\n+++ more\n x\n"), "++ more\nx\n");
    assert_eq!(patched("-- a\nb\nc\n", "@@\n--- a\n b\n@@\n-c\n"), "b\n");
    assert_eq!(patched("x\n-- sql\n", "@@\n x\n--- sql\n+++ more\n"), "x\n++ more\n");
    let counted = "@@ -1,2 +1,2 @@\n x\n--- sql\n+++ more\n@@ -4 +4,0 @@\n-z\n";
    assert_eq!(patched("x\n-- sql\ny\nz\n", counted), "x\n++ more\ny\n");
}

#[test]
fn a_patch_that_cannot_be_read_says_why() {
    assert_eq!(refused("a\n", " \n"), "the patch is empty");
    assert!(refused("a\n", "--- a\n+++ b\n").contains("no hunks"));
    assert!(refused("a\n", "@@ -1 +1 @@\n a\n").contains("hunk 1 has no added or removed"));
    assert!(refused("a\n", "@@ -x +1 @@\n-a\n").contains("hunk 1: the header"));
    assert!(refused("a\n", "@@ -1 +1 @@\nb\n").contains("leading space"));
    assert!(
        refused("a\n", "@@ -1 +1 @@\n-a\n+b\n--- a/other\n+++ b/other\n@@ -1 +1 @@\n-c\n+d\n")
            .contains("more than one")
    );
    assert!(refused("a\n", "@@ -99999999999999999999 +1 @@\n-a\n").contains("header"));
}

#[test]
fn header_numbers_above_the_limit_are_refused() {
    let read = |start: u64, count: u64| hunk::Hunk::header(&format!("@@ -{start},{count} +1 @@"), 1);
    let most = u64::from(u32::MAX);
    let hunk = read(most, most).unwrap();
    assert_eq!((hunk.start, hunk.old_count), (Some(4_294_967_295), Some(4_294_967_295)));
    for (start, count) in [(most + 1, 1), (1, most + 1), (most + 9, 1), (1, most + 9)] {
        assert!(read(start, count).unwrap_err().to_string().contains("header"), "{start},{count}");
    }
}

#[test]
fn header_with_wrong_counts_still_gives_the_position() {
    assert_eq!(patched("a\n", "@@ -1 +1,2 @@\n+x\n"), "x\na\n");
    assert_eq!(patched("x\ny\nx\n", "@@ -1,0 +1 @@\n-x\n"), "y\nx\n");
}

#[test]
fn blank_lines_after_a_hunk_belong_to_it_up_to_the_header_count() {
    assert_eq!(patched("a\n", "@@ -1 +1 @@\n-a\n+b\n\n"), "b\n");
    assert_eq!(patched("a\n", "@@\n-a\n+b\n\n\n"), "b\n");
    assert_eq!(patched("a\n\n", "@@ -1,2 +1,2 @@\n-a\n+b\n\n\n"), "b\n\n");
    assert!(refused("a\nc\n", "@@ -1,2 +1,2 @@\n-a\n+b\n\n").contains("does not fit"));
}

#[test]
fn long_hunks_in_long_repetitive_files_are_placed_in_a_moment() {
    let begun = thread_cpu_time();
    let (file, hunk) = ("a\n".repeat(1_000_000), " a\n".repeat(100_000));
    assert!(refused(&file, &format!("@@ -1 +1 @@\n{hunk}-b\n")).contains("does not fit"));
    assert!(refused(&file, &format!("@@\n{hunk}-a\n")).contains("fits at lines 1, 2, 3, 4, 5"));
    let numbered = (0..200_000).map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
    let hunks = (0..50_000).map(|line| format!("@@\n-{line}\n+x\n")).collect::<Vec<_>>().concat();
    assert!(refused(&numbered, &hunks).contains("line number"));
    let took = thread_cpu_time().checked_sub(begun).unwrap();
    assert!(took.as_secs() < 20, "{took:?}");
}

/// Applies a patch in an envelope, which updates one file `f`, to `text`.
fn enveloped(text: &str, hunks: &str) -> Result<Patched, PatchError> {
    let sections = parse(&format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n"), None)?;
    apply::apply(text, sections[0].hunks())
}

fn updated(text: &str, hunks: &str) -> String {
    enveloped(text, hunks).unwrap().text
}

fn not_updated(text: &str, hunks: &str) -> String {
    enveloped(text, hunks).unwrap_err().to_string()
}

/// Returns a summary of the changes of a patch.
fn summary(patch: &str) -> Vec<String> {
    let sections = parse(patch, None).unwrap();
    let line = |section: &FilePatch| match &section.action {
        Action::Add(text) => format!("add {} {text:?}", section.path),
        Action::Delete(hunks) => format!("delete {} {}", section.path, hunks.len()),
        Action::Update { to, hunks } => format!("update {} {to:?} {}", section.path, hunks.len()),
    };
    sections.iter().map(line).collect()
}

const ENVELOPE: &str = "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n+two\n*** Delete File: old.txt\n\
                        *** Update File: a.txt\n*** Move to: b/a.txt\n@@\n-x\n+y\n*** Update File: c.txt\n x\n-y\n@@ z\n-w\n*** End Patch";

#[test]
fn t06_an_envelope_adds_deletes_updates_and_moves_files() {
    let expected = [
        "add new.txt \"one\\n\\ntwo\\n\"",
        "delete old.txt 0",
        "update a.txt Some(\"b/a.txt\") 1",
        "update c.txt None 2",
    ];
    assert_eq!(summary(ENVELOPE), expected);
    assert_eq!(summary(&format!("\n{}\n\n", ENVELOPE.replace('\n', "\r\n"))), expected);
    for (before, after) in [
        ("apply_patch <<'EOF'\n", "\nEOF\n"),
        ("apply_patch <<\"PATCH\"\n", "\nPATCH"),
        ("<<EOF\n", "\nEOF"),
        ("```\napply_patch << 'EOF'\n", "\nEOF\n```\n"),
        ("```diff\n", "\n```"),
    ] {
        assert_eq!(summary(&format!("{before}{ENVELOPE}{after}")), expected, "{before}");
    }
    assert_eq!(
        summary("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"),
        ["update a Some(\"b\") 0"]
    );
}

#[test]
fn wrapping_is_removed_only_with_both_ends() {
    for patch in ["```\na\nb\n", "```\na\n``", "<<EOF\na\nEND\n", "<<\na\n\n", "cat <<EOF\na\nEOF"] {
        assert_eq!(envelope::strip_wrapping(patch), patch);
    }
}

#[test]
fn line_counts_include_added_and_removed_lines() {
    let extents: Vec<_> = parse(ENVELOPE, None).unwrap().iter().map(FilePatch::line_counts).collect();
    assert_eq!(extents, [(3, 0), (0, 0), (1, 1), (0, 2)]);
}

#[test]
fn an_envelope_that_is_not_understood_or_cut_off_is_refused() {
    let refused = |patch: &str| parse(patch, None).unwrap_err().to_string();
    for end in ENVELOPE.match_indices('\n').map(|(at, _)| at) {
        let text = refused(&ENVELOPE[..end]);
        assert!(text.contains("cut off") || text.contains("no hunks"), "{text}");
    }
    let within = |lines: &str| refused(&format!("*** Begin Patch\n{lines}\n*** End Patch"));
    assert_eq!(within(""), "the patch is empty");
    assert!(
        within("*** Add File: a\nx").contains("line 3 of the patch, \"x\""),
        "{}",
        within("*** Add File: a\nx")
    );
    assert!(within("*** Add File:").contains("line 2"));
    assert!(within("*** Rename File: a").contains("line 2"));
    assert!(within("*** Delete File: a\n-x").contains("line 3"));
    assert!(within("*** Update File: a").contains("a: the patch has no hunks"));
    assert!(within("*** Update File: a\n@@\n x").contains("a: hunk 1 has no added or removed line"));
    assert!(within("*** Update File: a\n@@\n-x\n*** Move to: b").contains("line 5"));
    assert!(refused(&format!("{ENVELOPE}\nmore")).contains("\"more\""));
}

#[test]
fn hunk_without_line_numbers_is_applied_at_the_only_match() {
    assert_eq!(updated(TEN, "@@\n 3\n-4\n+four\n"), TEN.replace('4', "four"));
    assert_eq!(updated(TEN, " 3\n-4\n+four\n@@\n-6\n"), TEN.replace('4', "four").replace("6\n", ""));
    assert!(not_updated("x\ny\nx\n", "@@\n-x\n+z\n").contains("fits at lines 1, 3"));
    assert_eq!(updated("x\ny\nx\n", "@@\n x\n-y\n@@\n-x\n+z\n"), "x\nz\n", "after the hunk before it");
    let text = not_updated("fn a() {\n    b();\n}\n", "@@\n fn a() {\n-    c();\n");
    assert!(text.contains("does not fit at line 2") && text.contains("found \"    b();\""), "{text}");
}

#[test]
fn blank_lines_belong_to_the_file_inside_a_hunk_but_not_before_it() {
    assert_eq!(updated("x\ny\n", "\n\n x\n-y\n"), "x\n");
    assert_eq!(updated("x\n\ny\n", "@@\n x\n\n-y\n"), "x\n\n");
    assert!(not_updated("x\ny\n", "@@\n x\n\n-y\n").contains("does not fit"));
}

#[test]
fn line_numbers_in_envelope_headers_locate_a_hunk() {
    assert_eq!(updated("x\ny\nx\n", "@@ -3 +3 @@\n-x\n+z\n"), "x\ny\nz\n");
    assert!(not_updated("x\ny\n", "@@\n-x\n@@ -2x @@\n-y\n").contains("hunk 2: the header"));
    assert_eq!(updated("- a\nx\n- b\nx\n", "@@ - b\n-x\n+z\n"), "- a\nx\n- b\nz\n");
    assert_eq!(updated("-a\nx\n-b\nx\n", "@@ -b\n-x\n+z\n"), "-a\nx\n-b\nz\n");
}

const CLASSES: &str =
    "class A:\n    def f():\n        x\n    def g():\n        x\nclass B:\n    def f():\n        x\n";

#[test]
fn scope_headers_locate_a_hunk_after_their_lines() {
    let changed = |line: usize| {
        let lines = CLASSES.lines().enumerate();
        lines
            .map(|(at, text)| if at + 1 == line { "        y\n".to_owned() } else { format!("{text}\n") })
            .collect::<String>()
    };
    let hunk = "-        x\n+        y\n";
    assert_eq!(updated(CLASSES, &format!("@@ class B:\n{hunk}")), changed(8));
    assert_eq!(updated(CLASSES, &format!("@@     def g():\n{hunk}")), changed(5));
    assert_eq!(updated(CLASSES, &format!("@@ class B:\n@@ def f():\n{hunk}")), changed(8));
    assert_eq!(updated(CLASSES, &format!("@@ class A:\n@@     def g():\n{hunk}")), changed(5));
    assert_eq!(
        updated(CLASSES, &format!("@@ def f():\n@@ def f():\n{hunk}")),
        changed(8),
        "each after the one before"
    );
    let text = not_updated(CLASSES, &format!("@@ def f():\n{hunk}"));
    assert!(text.contains("fits at lines 3, 8"), "{text}");
    let text = not_updated(CLASSES, &format!("@@ class C:\n{hunk}"));
    assert!(text.contains("\"class C:\" of its `@@` is not in the file"), "{text}");
    let twice = format!("@@ class B:\n{hunk}@@ class B:\n         x\n+        z\n");
    assert!(enveloped(CLASSES, &twice).is_err(), "nothing is left of it after the first hunk");
}

#[test]
fn a_hunk_can_stand_at_the_end_of_the_file() {
    assert_eq!(updated("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n"), "x\ny\nz\n");
    assert!(not_updated("x\ny\n", "@@\n-x\n+z\n*** End of File\n").contains("not at the end"));
    assert!(not_updated("x\ny\n", "@@\n-q\n+z\n*** End of File\n").contains("does not fit"));
    assert_eq!(updated("x\ny", "@@\n+z\n"), "x\ny\nz", "lines after nothing come last");
    assert_eq!(updated("x\n", "@@\n+z\n*** End of File\n\n"), "x\nz\n");
    assert!(not_updated("x\ny\n", "@@ x\n+z\n").contains("has no position for its lines"));
}

#[test]
fn hunks_match_on_later_levels_and_context_keeps_its_bytes() {
    let found = |text: &str, hunks: &str| {
        let patched = enveloped(text, hunks).unwrap();
        (patched.text, patched.match_levels)
    };
    let (text, match_levels) = found("a \t\nb\n", "@@\n a\n-b\n+c\n");
    assert_eq!((text.as_str(), match_levels), ("a \t\nc\n", vec![MatchLevel::TrailingSpace]));
    let (text, match_levels) = found("\u{201c}a\u{201d}\nb\n", "@@\n \"a\"\n-b\n+c\n");
    assert_eq!((text.as_str(), match_levels), ("\u{201c}a\u{201d}\nc\n", vec![MatchLevel::Punctuation]));
    let (text, match_levels) = found("  if a:\n    b\n", "@@\n if a:\n-  b\n+  c\n");
    assert_eq!((text.as_str(), match_levels), ("  if a:\n    c\n", vec![MatchLevel::Indentation]));
    assert!(not_updated("a \nb\na\t\nb\n", "@@\n a\n-b\n").contains("fits at lines 1, 3"));
    assert_eq!(patched("a \nb\na \nb\n", "@@ -3,2 +3 @@\n a\n-b\n"), "a \nb\na \n");
    assert!(enveloped("a\n  b\n", "@@\n a\n-b\n").is_err(), "lines shifted by different amounts");
}

#[test]
fn already_applied_patch_and_placeholder_are_reported() {
    assert!(
        not_updated("a\nc\n", "@@\n a\n-b\n+c\n")
            .contains("its new lines are at line 1: it seems to be already applied")
    );
    let text = not_updated("a\nb\n", "@@\n a\n-b\n+# ... existing code ...\n");
    assert!(text.contains("# ... existing code ..."), "{text}");
}

#[test]
fn a_diff_of_several_files_names_them_in_its_headers() {
    let diff = "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n\
                diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n\
                diff --git a/c b/c\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                diff --git a/d b/e\nsimilarity index 50%\nrename from d\nrename to e\n--- a/d\n+++ b/e\n@@ -1 +1 @@\n-x\n+y\n";
    let expected = ["update a None 1", "add b \"one\\ntwo\"", "delete c 1", "update d Some(\"e\") 1"];
    assert_eq!(summary(diff), expected);
    assert_eq!(
        summary("--- x.orig\t2026-01-01\n+++ x\t2026-01-02\n@@ -1 +1 @@\n-x\n+y\n"),
        ["update x None 1"]
    );
    assert_eq!(summary("--- x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"), ["update b/x None 1"]);
    let refused = |patch: &str| parse(patch, None).unwrap_err().to_string();
    assert!(refused("@@ -1 +1 @@\n-x\n+y\n").contains("does not name its file"));
    assert!(
        refused(&format!("diff --git a/s b/s\nold mode 100644\nnew mode 100755\n{diff}")).contains("modes")
    );
    assert!(refused("--- /dev/null\n+++ b/b\n@@ -1 +1 @@\n x\n+y\n").contains("added lines only"));
    assert!(parse(ENVELOPE, Some("a.txt")).unwrap_err().to_string().contains("not for a.txt"));
    let own = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    assert_eq!(parse(own, Some("a.txt")), parse(own, None));
}

proptest! {
    #[test]
    fn a_diff_of_two_texts_turns_the_first_into_the_second(
        old in prop::collection::vec("[ab-]{0,2}", 0..30),
        new in prop::collection::vec("[ab+]{0,2}", 0..30),
        crlf: bool
    ) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}{ending}")).collect::<Vec<_>>().concat();
        let (old, new) = (text(&old), text(&new));
        let patch = diff::unified("f", &old, &new);
        if patch.is_empty() {
            prop_assert_eq!(old, new);
        } else {
            prop_assert_eq!(patched(&old, &patch), if old.is_empty() { new.replace("\r\n", "\n") } else { new });
        }
    }

    #[test]
    fn diff_and_reverse_diff_restore_every_byte(
        bom in "\u{feff}?", crlf: bool, ends: bool, lines in prop::collection::vec("[ab-]{1,2}", 2..20),
        others in prop::collection::vec("[ab+]{1,2}", 2..20)
    ) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| format!("{bom}{}{}", lines.join(ending), if ends { ending } else { "" });
        let (old, new) = (text(&lines), text(&others));
        prop_assume!(old != new);
        prop_assert_eq!(patched(&old, &diff::unified("f", &old, &new)), new.clone());
        prop_assert_eq!(patched(&new, &diff::unified("f", &new, &old)), old);
    }

    #[test]
    fn a_diff_of_another_text_fails_whole(
        lines in prop::collection::btree_set("[a-d]{1,2}", 2..12), at in any::<prop::sample::Index>()
    ) {
        let lines: Vec<String> = lines.into_iter().collect();
        let text = |lines: &[String]| lines.join("\n") + "\n";
        let mut new = lines.clone();
        new[0].push('x');
        new[lines.len() - 1].push('x');
        let patch = diff::unified("f", &text(&lines), &text(&new));
        let mut alien = lines.clone();
        let first_or_last = if at.index(2) == 0 { 0 } else { lines.len() - 1 };
        alien[first_or_last] = "not it".to_owned();
        prop_assert!(apply(&text(&alien), &patch).is_err());
    }

    #[test]
    fn a_hunk_that_fits_in_two_places_is_an_error(
        before in "([a-c]{0,2}\n){0,4}", between in "([a-c]{0,2}\n){0,4}", one in "[ \t]{1,2}", two in "[ \t]{1,2}"
    ) {
        for (one, two) in [("", ""), (one.as_str(), two.as_str())] {
            let text = format!("{before}KEY{one}\nOLD\n{between}KEY{two}\nOLD\n");
            let hunk = "@@\n KEY\n-OLD\n+NEW\n";
            prop_assert!(enveloped(&text, hunk).is_err(), "{text:?}");
            prop_assert!(apply(&text, hunk).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nothing_panics(text in "(\\PC|[\r\n]){0,40}", patch in "(@@ -[0-9]{1,2},[0-3] [+]1 @@\n|[ +\\-\\\\]|[a\n]){0,30}") {
        let _ = apply(&text, &patch);
    }

    #[test]
    fn an_envelope_made_from_a_diff_does_what_the_diff_does(
        old in prop::collection::btree_set("[a-z]{1,3}", 1..20), dropped in prop::collection::vec(any::<bool>(), 20),
        crlf: bool
    ) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let lines: Vec<String> = old.into_iter().collect();
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}{ending}")).collect::<Vec<_>>().concat();
        let new: Vec<String> = lines.iter().zip(&dropped).map(|(line, drop)| if *drop { line.to_uppercase() } else { line.clone() }).collect();
        prop_assume!(new != lines);
        let body = |from: &[String], to: &[String]| {
            from.iter().zip(to).map(|(a, b)| if a == b { format!(" {a}\n") } else { format!("-{a}\n+{b}\n") }).collect::<String>()
        };
        prop_assert_eq!(updated(&text(&lines), &format!("@@\n{}", body(&lines, &new))), text(&new));
        prop_assert_eq!(updated(&text(&new), &format!("@@\n{}", body(&new, &lines))), text(&lines));
    }

    #[test]
    fn a_patch_of_another_text_fails_whole(text in "([a-d]\n){0,12}", hunks in prop::collection::vec("[a-d]", 1..4)) {
        let hunks: String = hunks.iter().map(|line| format!("@@\n-{line}\n+{line}x\n")).collect::<Vec<_>>().concat();
        let alien = format!("{hunks}@@\n-not there\n+x\n");
        prop_assert!(enveloped(&text, &alien).is_err());
    }

    #[test]
    fn outside_of_its_lines_a_patch_changes_nothing(
        before in "([a-c \t]{0,4}(\r)?\n){0,5}", after in "([a-c \t]{0,4}(\r)?\n){0,5}", blank in "[ \t]{0,2}"
    ) {
        let text = format!("{before}KEY{blank}\nOLD\n{after}");
        let expected = format!("{before}KEY{blank}\nNEW");
        let line = before.lines().count() + 1;
        let unified = format!("@@ -{line},2 +{line},2 @@\n KEY\n-OLD\n+NEW\n");
        for patched in [updated(&text, "@@\n KEY\n-OLD\n+NEW\n"), patched(&text, &unified)] {
            prop_assert!(patched.starts_with(&expected) && patched.ends_with(&format!("\n{after}")), "{patched:?}");
        }
    }

    #[test]
    fn no_envelope_panics(
        text in "(\\PC|[\r\n]){0,40}",
        lines in prop::collection::vec("(\\*\\*\\* (Begin Patch|End Patch|Add File: f|Update File: f|Move to: g|Delete File: f|End of File))|@@( [a-c-])?|[ +-]?[a-c]{0,2}", 0..12)
    ) {
        let patch = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
        for section in parse(&patch, None).unwrap_or_default() {
            let _ = apply::apply(&text, section.hunks());
        }
    }
}
