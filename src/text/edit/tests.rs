//! Tests of edits.

use super::*;
use proptest::prelude::*;

fn edit(text: &str, old: &str, new: &str) -> Result<String, EditError> {
    replace("a.txt", text, &[Replacement { old, new }]).map(|edited| edited.text)
}

#[test]
fn t04_a_unique_passage_is_replaced() {
    assert_eq!(edit("one two three", "two", "2"), Ok("one 2 three".to_owned()));
}

#[test]
fn t04_an_empty_passage_gets_a_hint() {
    let message = edit("x", "", "y").unwrap_err().to_string();
    assert!(message.contains("write_file") && message.contains("apply_patch"), "{message}");
}

#[test]
fn t04_a_missing_passage_names_the_nearest_and_the_first_difference() {
    let message = edit("a\nfn main() {\n\tcall(1);\n}\n", "fn main() {\n    call(1);", "x").unwrap_err();
    let text = message.to_string();
    assert!(text.starts_with("old_str not found in a.txt. Check spaces, indentation, and line breaks."));
    assert!(text.contains("lines 2-3") && text.contains("line 3") && text.contains("\\tcall(1);"), "{text}");
}

#[test]
fn t04_the_nearest_passage_shares_most_lines_and_of_equals_it_is_the_first() {
    let nearest = |text| nearest::nearest(text, "a\nanchor line\nb").unwrap();
    let hint = nearest("x\nanchor line\ny\n\na\nanchor line\nc\n");
    assert!(hint.starts_with("The nearest passage is lines 5-7;"), "{hint}");
    let hint = nearest("p\nanchor line\nq\n\nr\nanchor line\ns\n");
    assert!(hint.starts_with("The nearest passage is lines 1-3;"), "{hint}");
}

#[test]
fn t04_the_nearest_line_is_the_one_most_like_and_of_equals_the_first() {
    let nearest = |text| nearest::nearest(text, "let totals = sum(prices);").unwrap();
    for (text, line) in [
        ("let total = sum(items);\nlet total = sum(prices);\nreturn\n", 2),
        ("return\nlet total = sum(prices);\nlet total = sum(items);\n", 2),
        ("return\nlet total1 = sum(prices);\nlet total2 = sum(prices);\n", 2),
    ] {
        let hint = nearest(text);
        assert!(hint.starts_with(&format!("The nearest passage is line {line};")), "{hint}");
    }
}

#[test]
fn t04_a_blank_that_is_somewhere_does_not_mean_that_the_edit_was_made_before() {
    let text = refused("a b", "x", " ");
    assert!(text.contains("not found") && !text.contains("already"), "{text}");
}

#[test]
fn t04_a_passage_much_longer_than_what_was_looked_for_is_refused() {
    let file = |blanks: usize| format!("a{}\nb", " ".repeat(blanks));
    let longest = "a\nb".len() * MATCH_FACTOR + MATCH_MARGIN - "a\nb".len();
    assert!(edit(&file(longest), "a\nb", "c").is_ok());
    let error = edit(&file(longest + 1), "a\nb", "c").unwrap_err();
    assert!(matches!(error, EditError::MatchTooLong { wanted: 3, line: 1, .. }), "{error}");
}

#[test]
fn t04_a_passage_that_occurs_often_is_counted_with_its_lines() {
    let text = edit("x\ny\nx\n", "x", "z").unwrap_err().to_string();
    assert!(text.starts_with("old_str appears 2 times in a.txt (lines 1, 3)."), "{text}");
    assert!(edit("aaa", "aa", "b").is_err(), "overlapping occurrences are not unique");
}

#[test]
fn lines_of_a_crlf_file_match_a_passage_written_with_lf() {
    assert_eq!(edit("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), Ok("x\r\ny\r\nz\r\nc\r\n".to_owned()));
    assert_eq!(edit("a\r\nb\r\n", "b", "b\nc"), Ok("a\r\nb\r\nc\r\n".to_owned()));
}

#[test]
fn explicit_line_endings_distinguish_passages() {
    assert_eq!(edit("a\r\nb\na\nb\n", "a\r\nb", "x"), Ok("x\na\nb\n".to_owned()));
}

#[test]
fn a_shifted_passage_ends_before_the_ending_of_its_last_line() {
    let edited = edit("  a\r\n  b\r\nc\r\n", "a\nb", "x\ny");
    assert_eq!(edited, Ok("  x\r\n  y\r\nc\r\n".to_owned()));
}

#[test]
fn other_endings_of_a_mixed_file_stay() {
    assert_eq!(edit("a\nb\r\nc\nd\r\n", "b\nc", "b\nX"), Ok("a\nb\r\nX\nd\r\n".to_owned()));
    assert!(edit("a\r\nb\na\nb\n", "a\nb", "x").is_err(), "the model cannot tell the two apart");
}

#[test]
fn bom_and_missing_final_newline_stay() {
    assert_eq!(edit("\u{feff}a\nb", "a", "c"), Ok("\u{feff}c\nb".to_owned()));
}

/// Returns `text` after the edit, and the match level.
fn found(text: &str, old: &str, new: &str) -> (String, MatchLevel) {
    let edited = replace("a.txt", text, &[Replacement { old, new }]).unwrap();
    (edited.text, edited.match_levels[0])
}

fn refused(text: &str, old: &str, new: &str) -> String {
    edit(text, old, new).unwrap_err().to_string()
}

#[test]
fn a_passage_is_found_apart_from_white_space_at_the_ends_of_lines() {
    let (text, level) = found("a  \nb\t\nc\n", "a\nb \nc", "a\nB\nc");
    assert_eq!(
        (text.as_str(), level),
        ("a  \nB\nc\n", MatchLevel::TrailingSpace),
        "the line that stays keeps its bytes"
    );
    assert_eq!(found("a  \nb\n", "a\n", "x\n").0, "x\nb\n");
    assert_eq!(found("a  \nb  \n", "a\nb", "x\ny").0, "x\ny  \n", "what follows the passage stays");
}

#[test]
fn a_passage_is_found_with_other_quotes_dashes_and_spaces() {
    let file = "say \u{201c}hi\u{201d}\u{a0}\u{2013} now\nx = 1\n";
    let (text, level) = found(file, "say \"hi\" - now\nx = 1", "say \"hi\" - now\nx = 2");
    assert_eq!(text, file.replace("x = 1", "x = 2"));
    assert_eq!(level, MatchLevel::Punctuation);
    assert_eq!(found(file, "\"hi\" -", "bye").0, "say bye now\nx = 1\n", "also inside a line");
}

#[test]
fn a_passage_is_found_with_other_line_endings() {
    assert_eq!(found("a\nb\n", "a\r\nb\r\n", "x\r\ny\r\n"), ("x\ny\n".to_owned(), MatchLevel::Endings));
    assert_eq!(
        found("a\r\nb\r\n", "a\nb\n", "x\n"),
        ("x\r\n".to_owned(), MatchLevel::Exact),
        "as it was shown"
    );
}

#[test]
fn a_passage_is_found_with_another_indentation_and_the_new_lines_are_shifted_too() {
    let file = "fn f() {\n    if a {\n        b();\n    }\n}\n";
    let (text, level) = found(file, "if a {\n    b();\n}\n", "if a {\n    c();\n\n    d();\n}\n");
    assert_eq!(text, "fn f() {\n    if a {\n        c();\n\n        d();\n    }\n}\n");
    assert_eq!(level, MatchLevel::Indentation);
    let (text, _) = found(file, "        if a {\n            b();", "        if b {\n            b();");
    assert_eq!(text, file.replace("if a", "if b"));
    let text = refused(file, "if a {\n  b();\n}", "x");
    assert!(text.starts_with("old_str not found"), "lines shifted by different amounts: {text}");
    let text = refused(file, "        if a {\n            b();", "if b {");
    assert!(text.starts_with("old_str not found"), "a new line that cannot be shifted: {text}");
}

#[test]
fn passage_that_is_ambiguous_without_white_space_is_refused() {
    let text = refused("a \nb\na  \nb\n", "a\nb", "x");
    assert!(
        text.contains("apart from white space at the ends of lines it appears 2 times in a.txt (lines 1, 3)"),
        "{text}"
    );
    let text = refused("if x:\n  a()\n    a()\n", "        a()", "        b()");
    assert!(text.contains("apart from indentation") && text.contains("(lines 2, 3)"), "{text}");
}

#[test]
fn an_exact_passage_wins_over_one_that_differs_in_white_space() {
    assert_eq!(found("a \nb\na\nb\n", "a\nb", "x"), ("a \nb\nx\n".to_owned(), MatchLevel::Exact));
}

#[test]
fn passage_that_is_only_similar_is_refused() {
    for old in ["colour = 1\n", "color  = 1", "Color = 1", "color = 11"] {
        assert!(edit("color = 1\nx\n", old, "y").is_err(), "{old}");
    }
}

#[test]
fn already_applied_edit_is_reported() {
    let text = refused("one\n2\nthree\n", "two\n", "2\n");
    assert!(text.contains("new_str is in line 2") && text.contains("already applied"), "{text}");
    let text = refused("let total = 1;\nx\n", "let totals = 1;", "x");
    assert!(text.contains("already applied") && text.contains("The nearest passage is line 1"), "{text}");
    assert!(refused("a\n", "b", "").starts_with("old_str not found"));
    assert_eq!(
        refused("a \nb\n", "a\nb", "a\nb"),
        "old_str and new_str are the same, so nothing would change"
    );
}

#[test]
fn a_passage_much_longer_than_what_was_looked_for_is_not_touched() {
    let text = refused(&format!("a{}\nb\n", " ".repeat(5000)), "a\nb", "x");
    assert!(text.contains("old_str has 3 bytes") && text.contains("has 5003 (line 1)"), "{text}");
}

#[test]
fn a_new_text_that_leaves_code_out_is_refused() {
    let text = refused("a\nb\n", "a\n", "x\n    // ... rest of the code ...\n");
    assert!(text.contains("// ... rest of the code ..."), "{text}");
    assert!(
        edit("// ... rest\n// ... rest of it\nb", "b", "c\n// ... rest of it").is_ok(),
        "the file has it"
    );
}

#[test]
fn several_edits_all_match_the_original_text() {
    let edits =
        [("one", "two"), ("two", "one"), ("\nend", "\nthe end")].map(|(old, new)| Replacement { old, new });
    let edited = replace("a.txt", "one\ntwo\nend\n", &edits).unwrap();
    assert_eq!((edited.text.as_str(), edited.match_levels.len()), ("two\none\nthe end\n", 3));
}

#[test]
fn all_edits_are_refused_if_some_overlap_or_fail() {
    let several = |text: &str, edits: &[(&str, &str)]| {
        let edits: Vec<_> = edits.iter().map(|(old, new)| Replacement { old, new }).collect();
        replace("a.txt", text, &edits).unwrap_err().to_string()
    };
    let text = several("one two three", &[("two three", "x"), ("one two", "y")]);
    assert_eq!(text, "edits 2 and 1 overlap in a.txt: combine them into one edit");
    assert!(several("a b", &[("a", "x"), ("a", "y")]).contains("overlap"));
    let text = several("one two", &[("one", "x"), ("three", "y")]);
    assert!(text.starts_with("edit 2 of 2 failed, so none was made: old_str not found in a.txt."), "{text}");
}

proptest! {
    #[test]
    fn everything_outside_the_passage_keeps_its_bytes(
        before in "[a-c\r\n\t é]{0,40}", after in "[a-c\r\n\t é]{0,40}", new in "[x\n]{0,5}"
    ) {
        let text = format!("{before}ONLY{after}");
        let edited = edit(&text, "ONLY", &new).unwrap();
        prop_assert!(edited.starts_with(&before) && edited.ends_with(&after));
    }

    #[test]
    fn unique_passage_is_replaced_and_ambiguous_one_refused(
        text in "[ab\n]{0,16}", old in "[ab]{1,3}(\n[ab]{1,2})?"
    ) {
        let places = (0..text.len()).filter(|at| text[*at..].starts_with(&old)).count();
        let outcome = edit(&text, &old, "Z");
        match places {
            0 => prop_assert!(matches!(outcome, Err(EditError::NotFound { .. })), "{:?}", outcome),
            1 => prop_assert_eq!(outcome, Ok(text.replacen(&old, "Z", 1))),
            _ => prop_assert!(matches!(outcome, Err(EditError::NotUnique { .. })), "{:?}", outcome),
        }
    }

    #[test]
    fn an_edit_is_undone_by_its_reverse(lines in prop::collection::vec("[a-z]{1,6}", 1..10), crlf: bool) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let text = format!("{}{ending}HERE{ending}THERE{ending}", lines.join(ending));
        let there = edit(&text, "HERE\nTHERE\n", "ONE\nTWO\nTHREE\n").unwrap();
        prop_assert_eq!(edit(&there, "ONE\nTWO\nTHREE\n", "HERE\nTHERE\n").unwrap(), text);
    }

    #[test]
    fn edit_and_reverse_edit_restore_every_byte(
        before in "\u{feff}?([a-c]{0,3}\r?\n){0,4}", after in "(\r?\n[a-c]{0,3}){0,4}", new in "[x-z]{1,4}"
    ) {
        let text = format!("{before}ONLY{after}");
        let there = edit(&text, "ONLY", &new).unwrap();
        prop_assert_eq!(&there, &format!("{before}{new}{after}"));
        prop_assert_eq!(edit(&there, &new, "ONLY").unwrap(), text);
    }

    #[test]
    fn nothing_panics(text in "(\\PC|[\r\n]){0,60}", old in "(\\PC|[\r\n]){0,8}", new in "(\\PC|[\r\n]){0,8}") {
        let _ = edit(&text, &old, &new);
    }

    #[test]
    fn text_outside_the_passage_is_unchanged_on_every_match_level(
        before in "([a-c \t]{0,6}\n){0,4}", after in "(\n[a-c \t]{0,6}){0,4}", blanks in "[ \t]{0,3}", indentation in "[ ]{0,4}"
    ) {
        let passage = format!("{indentation}\u{201c}ONLY\u{201d}{blanks}\n{indentation}  THIS");
        let text = format!("{before}{passage}{after}");
        let edited = edit(&text, "\"ONLY\"\n  THIS", "\"ONLY\"\n  THAT").unwrap();
        prop_assert_eq!(edited, format!("{before}{}{after}", passage.replace("THIS", "THAT")));
    }

    #[test]
    fn passage_that_occurs_twice_on_its_match_level_is_an_error(
        between in "([a-c]{0,3}\n){0,4}", one in "[ \t]{1,3}", two in "[ \t]{1,3}"
    ) {
        let text = format!("KEY{one}\nVALUE\n{between}KEY{two}\nVALUE\n");
        let outcome = edit(&text, "KEY\nVALUE", "x");
        prop_assert!(matches!(outcome, Err(EditError::NotUnique { count: 2, .. })), "{outcome:?}");
    }

    #[test]
    fn several_edits_and_their_reverse_restore_the_bytes(
        lines in prop::collection::btree_set("[a-z]{2,6}", 2..12), blank in "[ \t]{0,2}", crlf: bool
    ) {
        let ending = format!("{blank}{}", if crlf { "\r\n" } else { "\n" });
        let lines: Vec<String> = lines.into_iter().map(|line| format!("<{line}>")).collect();
        let changed: Vec<String> = lines.iter().map(|line| line.to_uppercase()).collect();
        let text = lines.join(&ending);
        let pairs = |from: &'_ [String], to: &'_ [String]| -> Vec<(String, String)> {
            from.iter().cloned().zip(to.iter().cloned()).collect()
        };
        let apply = |text: &str, pairs: &[(String, String)]| {
            let edits: Vec<_> = pairs.iter().map(|(old, new)| Replacement { old, new }).collect();
            replace("a", text, &edits).unwrap().text
        };
        let there = apply(&text, &pairs(&lines, &changed));
        prop_assert_eq!(&there, &changed.join(&ending));
        prop_assert_eq!(apply(&there, &pairs(&changed, &lines)), text);
    }
}
