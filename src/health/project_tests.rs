use super::*;
use crate::language::language_of;
use std::fmt::Write as _;

/// Measures files that are given by path and content.
fn project(files: &[(&str, &str)]) -> MeasuredProject {
    let file = |(path, source): &(&str, &str)| {
        let measured =
            MeasuredFile::new(language_of(path).unwrap(), String::new(), source.as_bytes(), || false);
        ((*path).to_owned(), Arc::new(measured.unwrap()))
    };
    MeasuredProject {
        files: files.iter().map(file).collect(),
        is_complete: true,
        ..MeasuredProject::default()
    }
}

/// A Python function with `lines` lines and this complexity.
fn function(name: &str, lines: u32, complexity: u32) -> String {
    let mut text = format!("def {name}(x):\n");
    for at in 0..lines - 1 {
        let condition = if at < complexity - 1 { " if x else 0" } else { "" };
        let _infallible = writeln!(text, "    {name}_{at} = {at}{condition}");
    }
    text
}

#[test]
fn the_limits_are_50_lines_and_complexity_10() {
    let source = function("fits", 50, 10) + &function("long", 51, 1) + &function("complex", 20, 11);
    let health = compare(None, &project(&[("a.py", &source)]));
    let names: Vec<_> = health.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["complex", "long"]);
    let figures = &health.after;
    assert_eq!((figures.long_functions, figures.complex_functions, figures.max_complexity), (1, 1, 11));
    assert_eq!((figures.functions, figures.average_complexity, figures.average_lines), (3, 7.33, 40.33));
    assert_eq!((health.before, health.new_functions), (None, None));
}

#[test]
fn a_repeated_passage_counts_once_for_each_repetition() {
    let passage =
        |from: u32| (from..from + 9).map(|at| format!("x{at} = {at}\n")).collect::<Vec<_>>().concat();
    let files =
        [("a.py", passage(0)), ("b.py", format!("\n\n{}", passage(0))), ("c.py", passage(0) + &passage(50))];
    let health = compare(None, &project(&files.each_ref().map(|(path, text)| (*path, text.as_str()))));
    assert_eq!(health.after.repeated_blocks, 2);
    let expected = RepeatedBlock {
        path: "b.py".to_owned(),
        line: 3,
        end_line: 11,
        first_path: "a.py".to_owned(),
        first_line: 1,
    };
    assert_eq!(health.repeated_blocks[0], expected);
    assert_eq!((health.repeated_blocks[1].line, health.repeated_blocks[1].end_line), (1, 9));
}

#[test]
fn a_comparison_lists_only_what_became_worse() {
    let old = function("long", 60, 1) + &function("grows", 60, 2) + &function("removed", 2, 1);
    let new = function("long", 60, 1)
        + &function("grows", 61, 2)
        + &function("added", 12, 12)
        + "def added(): pass\n";
    let copy = function("copy", 8, 1);
    let before = project(&[("a.py", &old), ("b.py", &copy), ("c.py", &copy)]);
    let after =
        project(&[("a.py", &new), ("b.py", &copy), ("c.py", &copy), ("d.py", &function("grows", 70, 1))]);
    let health = compare(Some(&before), &after);
    let names: Vec<_> = health.functions.iter().map(|one| (one.path.as_str(), one.name.as_str())).collect();
    assert_eq!(names, [("a.py", "added"), ("a.py", "grows"), ("d.py", "grows")]);
    assert_eq!((health.new_functions, health.removed_functions), (Some(3), Some(1)));
    let earlier = health.before.unwrap();
    assert_eq!((earlier.repeated_blocks, earlier.functions), (1, 5));
    assert!(health.repeated_blocks.iter().all(|block| block.path == "d.py"), "{:?}", health.repeated_blocks);
}

#[test]
fn long_lists_are_cut_and_the_rest_is_counted() {
    let source: String = (0..60).map(|at| function(&format!("f{at}"), 51, 1)).collect::<Vec<_>>().concat();
    let health = compare(None, &project(&[("a.py", &source)]));
    assert_eq!((health.functions.len(), health.not_listed), (50, 10));
}

#[test]
fn nothing_has_the_figures_0() {
    let health = compare(None, &MeasuredProject::default());
    assert_eq!(health.after, HealthFigures::default());
}
