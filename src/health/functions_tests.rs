use super::*;
use crate::language::{LANGUAGES, language_of};
use proptest::prelude::*;

/// Returns name, lines and complexity of each function.
fn measured(file: &str, source: &str) -> Vec<(String, u32, u32)> {
    let parsed = functions(language_of(file).unwrap(), source.as_bytes(), || false).unwrap();
    assert!(!parsed.has_errors, "{file} does not parse");
    parsed.functions.into_iter().map(|one| (one.name, one.lines, one.complexity)).collect()
}

fn is(file: &str, source: &str, expected: &[(&str, u32, u32)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, lines, complexity)| ((*name).to_owned(), *lines, *complexity)).collect();
    assert_eq!(measured(file, source), expected, "{file}");
}

#[test]
fn python_decision_points_are_counted() {
    let source = "class A:
    @property
    def plain(self):
        return 1

def f(x, y):
    if x and y or not x:
        pass
    elif y:
        pass
    else:
        pass
    for i in x:
        while i:
            break
    try:
        pass
    except ValueError:
        pass
    z = 1 if x else 2
    return [a for a in x if a] + sorted(x, key=lambda a: a or 1)

def g(x):
    def inner():
        return 1 if x else 2
    match x:
        case 1:
            return inner
        case str() if x:
            return 2
        case _:
            return 3

h = lambda x: x and 1
";
    is(
        "a.py",
        source,
        &[("plain", 2, 1), ("f", 16, 12), ("g", 10, 4), ("inner", 2, 2), ("(anonymous)", 1, 2)],
    );
}

#[test]
fn javascript_decision_points_are_counted() {
    let source = "function f(a, b) {
  if (a && b || a) {} else if (b) {}
  for (;;) { break; }
  for (const x of a) { do {} while (x ?? a); }
  while (b) {}
  switch (a) { case 1: break; case 2: break; default: }
  try {} catch (e) {}
  a.map(x => x ? 1 : 2);
  return a ? b : 0;
}
class C { m() { return 1; } p = () => this.q || 1; }
const g = (x) => x && 1, h = function* () {};
module.exports = { k: function () {}, l() {} };
export default () => <p>{1 && 2}</p>;
";
    let expected = [
        ("f", 10, 15),
        ("m", 1, 1),
        ("p", 1, 2),
        ("g", 1, 2),
        ("h", 1, 1),
        ("k", 1, 1),
        ("l", 1, 1),
        ("(anonymous)", 1, 2),
    ];
    is("a.jsx", source, &expected);
}

#[test]
fn typescript_decision_points_are_counted() {
    let source = "interface I { m(): void }
abstract class C<T> {
  private p = (x: T): number => x ? 1 : 2;
  abstract n(): void;
  m(x?: string): asserts x is string { if (!x || x === '') throw 1; }
}
const g = <T,>(x: T | undefined) => x ?? 1;
";
    is("a.ts", source, &[("p", 1, 2), ("m", 1, 3), ("g", 1, 2)]);
    is("a.tsx", "const View = () => <p>{a && b}</p>;\n", &[("View", 1, 2)]);
}

#[test]
fn go_decision_points_are_counted() {
    let source = "package p
func (t *T) f(a, b int) int {
	if a > 0 && b > 0 || a == b { return 1 } else if b > 1 { }
	for i := 0; i < a; i++ { }
	for range b { }
	switch a { case 1, 2: case 3: default: }
	switch v := x.(type) { case int: _ = v }
	select { case <-c: default: }
	go func() { if a > 0 { } }()
	return 0
}
var run = func() { for { } }
";
    is("a.go", source, &[("f", 10, 12), ("(anonymous)", 1, 2)]);
}

#[test]
fn rust_decision_points_are_counted() {
    let source = "impl T {
    fn f(&self, a: bool, b: Option<u8>) -> u8 {
        if a && true || a {}
        if let Some(x) = b && x > 1 {}
        for _ in 0..1 {}
        while a {}
        loop { break; }
        let y = |z: u8| if z > 1 { 1 } else { 2 };
        let Some(q) = b else { return 1 };
        match b {
            Some(1) => 1,
            Some(n) if n > 3 => 2,
            _ => 3,
        }
    }
}
trait U { fn declared(&self); fn g<'a>(x: &&'a u8) -> impl Fn() -> u8 { || 1 } }
fn h(x: u8) -> u8 { match x { 1 => 1, _ if x > 2 => 2, _ => 3 } }
";
    is("a.rs", source, &[("f", 14, 13), ("g", 1, 1), ("h", 1, 3)]);
}

#[test]
fn java_decision_points_are_counted() {
    let source = "class A {
  A(int a) { if (a > 0 && a < 3 || a == 7) {} }
  abstract void declared();
  int f(int a, Object o) {
    for (;;) { break; }
    for (int x : xs) { while (x > 0) {} }
    do {} while (a > 0);
    switch (a) { case 1: case 2: break; default: }
    int r = switch (o) { case String s when s.isEmpty() -> 1; default -> 2; };
    try {} catch (Exception e) {}
    list.map(x -> x > 0 ? 1 : 2);
    return a > 0 ? 1 : 2;
  }
}
";
    is("A.java", source, &[("A", 1, 4), ("f", 10, 12)]);
}

#[test]
fn c_decision_points_are_counted() {
    let source = "int declared(void);
static char *const *f(int a) {
  if (a && a > 1 || a) {} else if (a) {}
  for (;;) { while (a) {} }
  do {} while (a);
  switch (a) { case 1: case 2: break; default: ; }
  return a ? \"\" : 0;
}
int main(void) { return 0; }
";
    is("a.c", source, &[("f", 7, 11), ("main", 1, 1)]);
}

#[test]
fn a_file_with_errors_is_measured_and_marked() {
    let python = language_of("x.PY").unwrap();
    let parsed = functions(python, b"def f(:\n  if x:\n    )\ndef g(): return 1\n", || false).unwrap();
    assert!(parsed.has_errors);
    assert!(language_of("Makefile").is_none() && language_of("a.txt").is_none());
}

#[test]
fn a_parse_that_is_stopped_has_no_result() {
    let source = "f(x);\n".repeat(100_000);
    assert_eq!(functions(language_of("a.c").unwrap(), source.as_bytes(), || true), None);
}

#[test]
fn every_kind_of_the_tables_is_in_its_grammar() {
    for language in &LANGUAGES {
        let mut parser = Parser::new();
        parser.set_language(&language.grammar.into()).unwrap();
        let grammar = parser.language().unwrap();
        let known = |kind: &str| {
            grammar.id_for_node_kind(kind, true) > 0 || grammar.id_for_node_kind(kind, false) > 0
        };
        for kinds in [language.functions, language.anonymous, language.decisions, language.arms] {
            for kind in kinds {
                assert!(known(kind), "{}: {kind}", language.name);
            }
        }
    }
}

#[test]
fn deep_nesting_neither_overflows_the_stack_nor_panics() {
    for language in &LANGUAGES {
        for piece in ["(", "[", "{", "f(){", "if x:\n ", "a?", "!", "||", "((a)=>", "case 1:"] {
            let mut polls = 0_u32;
            let source = piece.repeat(1_000);
            let stop = || {
                polls += 1;
                polls > 2_000
            };
            let _measured_or_stopped = functions(language, source.as_bytes(), stop);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_measured_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for language in &LANGUAGES {
            prop_assert!(functions(language, &bytes, || false).is_some());
        }
    }

    #[test]
    fn any_mixture_of_tokens_is_measured_within_its_lines(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "def f():", "function f(", ") {", "}", "fn g() {", "if", "match x {", "_ =>", "case", "default:", "lambda x:",
                "=>", "||", "&&", "(", ")", "\n", "\n    ", ":", ";", "for", "while", "class A", "é\u{0}", "'", "\"", "/*",
            ]),
            0..80,
        ),
    ) {
        let source = words.join(" ");
        let rows = u32::try_from(source.split('\n').count()).unwrap();
        for language in &LANGUAGES {
            for function in functions(language, source.as_bytes(), || false).unwrap().functions {
                prop_assert!(function.complexity >= 1 && function.lines >= 1);
                prop_assert!(function.line + function.lines - 1 <= rows);
            }
        }
    }
}
