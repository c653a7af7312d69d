//! Tests of patches.

use super::*;
use crate::source::processor_time;
use crate::text::diff;
use proptest::prelude::*;

fn patched(text: &str, patch: &str) -> String {
    apply(text, patch).unwrap().text
}

fn refused(text: &str, patch: &str) -> String {
    apply(text, patch).unwrap_err().to_string()
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn a_byte_order_mark_stays_in_front_and_is_in_no_patch() {
    let patched = apply("\u{feff}one\ntwo\n", "@@ -1 +1 @@\n-one\n+1\n").unwrap();
    assert_eq!(patched.text, "\u{feff}1\ntwo\n");
    let patched = apply("\u{feff}one\n", "@@ -0,0 +1 @@\n+zero\n").unwrap();
    assert_eq!(patched.text, "\u{feff}zero\none\n");
}

#[test]
fn t06_two_hunks_apply_and_the_changes_are_counted() {
    let result = apply(
        TEN,
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n@@ -9,2 +9,3 @@\n 9\n+nine and a half\n 10\n",
    )
    .unwrap();
    assert_eq!(result.text, "1\ntwo\n3\n4\n5\n6\n7\n8\n9\nnine and a half\n10\n");
    assert_eq!((result.hunks, result.changed_lines), (2, 3));
}

#[test]
fn t06_one_bad_hunk_refuses_all_and_is_named_with_its_first_wrong_line() {
    let message = refused(TEN, "@@ -1,1 +1,1 @@\n-1\n+one\n@@ -4,2 +4,2 @@\n 4\n-five\n+5\n");
    assert!(message.starts_with("hunk 2 does not fit at line 5"), "{message}");
    assert!(message.contains("expected \"five\", found \"5\""), "{message}");
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
}

#[test]
fn a_patch_that_cannot_be_read_says_why() {
    assert_eq!(refused("a\n", " \n"), "the patch is empty");
    assert!(refused("a\n", "--- a\n+++ b\n").contains("no hunks"));
    assert!(refused("a\n", "@@ -1 +1 @@\n a\n").contains("no added or removed"));
    assert!(refused("a\n", "@@ -x +1 @@\n-a\n").contains("header"));
    assert!(refused("a\n", "@@ -1 +1 @@\nb\n").contains("leading space"));
    assert!(
        refused("a\n", "@@ -1 +1 @@\n-a\n+b\n--- a/other\n+++ b/other\n@@ -1 +1 @@\n-c\n+d\n")
            .contains("more than one")
    );
    assert!(refused("a\n", "@@ -99999999999999999999 +1 @@\n-a\n").contains("header"));
}

#[test]
fn long_hunks_in_long_repetitive_files_are_placed_in_a_moment() {
    let begun = processor_time();
    let (file, hunk) = ("a\n".repeat(1_000_000), " a\n".repeat(100_000));
    assert!(refused(&file, &format!("@@ -1 +1 @@\n{hunk}-b\n")).contains("does not fit"));
    assert!(refused(&file, &format!("@@\n{hunk}-a\n")).contains("fits at lines 1, 2, 3, 4, 5"));
    let numbered = (0..200_000).map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
    let hunks = (0..50_000).map(|line| format!("@@\n-{line}\n+x\n")).collect::<Vec<_>>().concat();
    assert!(refused(&numbered, &hunks).contains("line number"));
    let took = processor_time().checked_sub(begun).unwrap();
    assert!(took.as_secs() < 20, "{took:?}");
}

proptest! {
    #[test]
    fn every_place_is_found(old in prop::collection::vec("[ab]", 0..40), want in prop::collection::vec("[ab]", 1..6), from in 0usize..10) {
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        let naive: Vec<usize> = (from..old.len()).filter(|at| old[*at..].starts_with(&want)).take(3).collect();
        prop_assert_eq!(places(&old, &want, from, 3), naive);
    }

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
    fn nothing_panics(text in "(\\PC|[\r\n]){0,40}", patch in "(@@ -[0-9]{1,2},[0-3] [+]1 @@\n|[ +\\-\\\\]|[a\n]){0,30}") {
        let _ = apply(&text, &patch);
    }
}
