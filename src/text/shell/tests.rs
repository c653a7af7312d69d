//! Tests of the shell parser.

use super::*;
use proptest::prelude::*;
use rable::NodeKind;

fn understood(text: &str) -> Script {
    parse(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
}

fn texts(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// Returns the words of every command that has some, except those in substitutions.
fn read(text: &str) -> Vec<Vec<String>> {
    let commands = understood(text).commands;
    commands.iter().map(|command| texts(&command.words)).filter(|words| !words.is_empty()).collect()
}

/// Returns the programs of all commands, each after the programs in its substitutions.
fn programs(script: &Script) -> Vec<String> {
    let program = |simple: &SimpleCommand| {
        let inner = simple.nested.iter().flat_map(programs);
        inner.chain(simple.words.first().map(|word| word.text.clone())).collect::<Vec<_>>()
    };
    script.commands.iter().flat_map(program).collect()
}

#[test]
fn separators_quotes_escapes_and_comments() {
    assert_eq!(
        read("a 'b c' \"d\\\"e\"; f|g&&h||i&j\nk # l; m\n\\\nn \\\n o"),
        [
            vec!["a", "b c", "d\"e"],
            vec!["f"],
            vec!["g"],
            vec!["h"],
            vec!["i"],
            vec!["j"],
            vec!["k"],
            vec!["n", "o"]
        ]
    );
    assert_eq!(
        read("\\rm r\"\"m a\\\nb x#y '' \"a\\b\" $'\\x72\\155\\n' ''"),
        [["rm", "rm", "ab", "x#y", "", "a\\b", "rm\n", ""]]
    );
}

#[test]
fn word_is_literal_only_without_expansions() {
    let script = understood("a b\\ c 'd*' [ {} $x \"$x\" * ~ a~ {a,b} $(c) `d` <(e) \"~\" x=~ $ $\"f\"");
    let words = &script.commands[0].words;
    let literal: Vec<&str> =
        words.iter().filter(|word| word.is_literal).map(|word| word.text.as_str()).collect();
    assert_eq!(literal, ["a", "b c", "d*", "[", "{}", "a~", "~", "$"]);
    assert_eq!(script.commands[0].nested.len(), 3);
}

#[test]
fn redirections_are_no_arguments() {
    let script =
        understood("a 2>err >>out <in b &>all >| clobber 2>&1 >& both >&one <<<text <&0 {fd}>var >&-");
    let [command] = script.commands.as_slice() else { panic!("{script:?}") };
    assert_eq!(texts(&command.words), ["a", "b"]);
    let written = command.redirections.iter().filter(|one| one.direction == Direction::Write);
    let written: Vec<&str> = written.map(|one| one.target.text.as_str()).collect();
    assert_eq!(written, ["err", "out", "all", "clobber", "both", "one", "var"]);
    assert_eq!((command.redirections.len(), command.document.as_str()), (8, "text\n"));
    assert_eq!(read("a <&-if 2>&-b >&3-"), [["a", "if", "b"]]);
}

#[test]
fn substitutions_are_scripts_of_their_own_wherever_they_stand() {
    for text in [
        "x $(a)",
        "x `a`",
        "x \"$(a)\"",
        "x <(a)",
        "x y>(a)",
        "x ${y:-$(a)}",
        "x \"${y:-`a`}\"",
        "x $((1 + z[$(a)]))",
        "v=$(a) x",
        "v=(1 $(a)) x",
        "v[$(a)]=1 x",
        "x > $(a)",
        "x <<< $(a)",
        "x <<E\n$(a)\nE",
        "x <<E\n$((`a`))\nE",
        "[[ -n $(a) ]]; x",
        "[[ a =~ ^($(a)|c)$ && ! -e d ]]; x",
        "((z[$(a)]++)); x",
        "for i in $(a); do x; done",
        "for ((i=$(a); i<3; i++)); do x; done",
        "case $(a) in esac; x",
        "case b in $(a)|c) ;; esac; x",
    ] {
        assert_eq!(programs(&understood(text)), ["a", "x"], "{text}");
    }
    assert_eq!(programs(&understood("x '$(a)' \\$b \\`c; y \"\\$(d)\" # $(e)")), ["x", "y"]);
}

#[test]
fn commands_inside_compound_commands_are_found() {
    for (text, expected) in [
        ("(a; b) && { c | d; } &", "abcd"),
        ("if a; then b; elif c; then d; else e; fi > f; g", "abcdeg"),
        ("while a; do b; done; until c\ndo d\ndone", "abcd"),
        ("for i in 1 2; do a; done; for i; do b; done; select i in x\ndo c; done", "abc"),
        ("case x in (y|z) a; b;; 'q') c ;& *) d\nesac; e", "abcde"),
        ("f() { a; b; }; function g { c; }; function h() (d); e", "abcde"),
        ("! time -p a | b; { { c; }; (d) }", "abcd"),
        ("if (a) then { b; } fi", "ab"),
    ] {
        assert_eq!(programs(&understood(text)).concat(), expected, "{text}");
    }
    assert!(understood("(a; b) | { c; } && d &").is_list);
    for text in ["if a; then b; fi", "f() { a; }", "[[ a ]]", "((1))", "for i in a; do b; done"] {
        assert!(!understood(text).is_list, "{text}");
    }
}

#[test]
fn properties_of_a_group_apply_to_its_commands() {
    let script = understood("a | { b; (c); }; f() { d & }; e");
    let all = |holds: fn(&SimpleCommand) -> bool| {
        let held = script.commands.iter().filter(|simple| holds(simple));
        held.map(|simple| simple.words[0].text.as_str()).collect::<String>()
    };
    assert_eq!(all(|simple| simple.is_piped_into), "bc");
    assert_eq!(all(|simple| simple.is_background), "d");
    assert_eq!(all(|simple| simple.function.as_deref() == Some("f")), "d");
}

#[test]
fn a_here_document_belongs_to_its_command() {
    let script = understood("cat <<'A' > f; b <<-B\n$(x) A\nA\n\t\ty\n\tB\nls");
    let documents: Vec<&str> = script.commands.iter().map(|command| command.document.as_str()).collect();
    assert_eq!(documents, ["$(x) A\n", "y\n", ""]);
    assert!(script.commands[0].nested.is_empty());
    let loops = understood("while a; do b; done <<E\nc\nE");
    assert_eq!(loops.commands.last().unwrap().document, "c\n");
    assert_eq!(programs(&understood("x \"$(cat <<E\n)\nE\n)\"")), ["cat", "x"]);
}

#[test]
fn invalid_rare_or_ambiguous_syntax_is_an_error() {
    for text in [
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "a ${b",
        "a )",
        "(a",
        "{ a",
        "{ a; }; }",
        "if a; then b",
        "fi",
        "a && ",
        "| a",
        "a | | b",
        ";; a",
        "()",
        "f() a",
        "a (b)",
        "a <<E",
        "a <<E\nb",
        "a >",
        "((a) (b))",
        "$((a) (b))",
        "echo $[1]",
        "coproc a",
        "a $\\\n(b)",
        "a <\\\n(b)",
        "a <\\\n<E",
        "a <<E $(b\n)\nE\n",
        "a \"${b:-'c'}\"",
        "a $'\\xff'",
        "a $'\\0'",
        "a <<E\nb\\\nE\nE",
        "case a in b) c",
        "for in do; done",
        "[[ a",
        "[[ a; ]]",
        "<<E\nE\n}",
        "a=(b",
        "a & & b",
        "a > #b",
        "1\\\n2>a b",
        "a \\",
        "!\\\n a",
        "i\\\nf a",
    ] {
        assert_eq!(parse(text), Err(ShellParseError::Syntax), "{text}");
    }
}

#[test]
fn length_depth_and_number_are_bounded() {
    for (open, close) in [
        ("( ", ")"),
        ("x $(", ")"),
        ("{ ", "; }"),
        ("if ", "; then x; fi"),
        ("x \"$(", ")\""),
        ("x <(", ")"),
        ("x ${a:-", "}"),
        ("f() { ", "; }"),
        ("case x in x) ", " ;; esac"),
        ("x $(( ", " ))"),
        ("a=(", ")"),
        ("x \"${a:-\"", "\"}\""),
        ("while ", "; do x; done"),
    ] {
        let nested = |levels: usize| parse(&format!("{}x{}", open.repeat(levels), close.repeat(levels)));
        assert!(nested(10).is_ok(), "{open}: {:?}", nested(10));
        assert_eq!(nested(300).unwrap_err(), ShellParseError::TooDeep, "{open}");
    }
    assert!(parse(&"a;".repeat(256)).is_ok());
    assert_eq!(parse(&"a;".repeat(257)), Err(ShellParseError::TooMany));
    assert_eq!(parse(&"`a`".repeat(300)), Err(ShellParseError::TooMany));
    assert_eq!(parse(&" ".repeat(10_001)), Err(ShellParseError::TooLong));
}

/// Returns the raw words of the commands found by another parser, except those in substitutions.
fn seen_by_another(text: &str) -> Option<Vec<Vec<String>>> {
    fn all<'a>(nodes: impl IntoIterator<Item = &'a rable::Node>, found: &mut Vec<Vec<String>>) {
        nodes.into_iter().for_each(|node| collect(&node.kind, found));
    }
    fn collect(kind: &NodeKind, found: &mut Vec<Vec<String>>) {
        match kind {
            NodeKind::Command { words, .. } => {
                let raw = |node: &rable::Node| match &node.kind {
                    NodeKind::Word { value, .. } => value.clone(),
                    other => panic!("{other:?}"),
                };
                found.push(words.iter().map(raw).collect());
            }
            NodeKind::Pipeline { commands, .. } => all(commands, found),
            NodeKind::List { items } => items.iter().for_each(|item| collect(&item.command.kind, found)),
            NodeKind::If { condition, then_body, else_body, .. } => {
                all([&**condition, &**then_body].into_iter().chain(else_body.as_deref()), found);
            }
            NodeKind::While { condition, body, .. } | NodeKind::Until { condition, body, .. } => {
                all([&**condition, &**body], found);
            }
            NodeKind::For { body, .. }
            | NodeKind::ForArith { body, .. }
            | NodeKind::Select { body, .. }
            | NodeKind::Function { body, .. }
            | NodeKind::Subshell { body, .. }
            | NodeKind::BraceGroup { body, .. } => collect(&body.kind, found),
            NodeKind::Case { patterns, .. } => {
                all(patterns.iter().filter_map(|case| case.body.as_ref()), found);
            }
            NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => {
                collect(&pipeline.kind, found);
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    all(&rable::parse(text, false).ok()?, &mut found);
    found.retain(|words| !words.is_empty());
    Some(found)
}

fn raw(script: &Script) -> Vec<Vec<String>> {
    let words = |simple: &SimpleCommand| simple.words.iter().map(|word| word.raw.clone()).collect::<Vec<_>>();
    script.commands.iter().map(words).filter(|words| !words.is_empty()).collect()
}

/// Generates raw words, without forms that the other parser prints differently.
const WORDS: &str = r#"([a-c/.=-]|'[a-c $|;]{0,3}'|"[a-c' ;#]{0,3}"|\\[a-c $]|\$[a-c]|"\$\(a b\)"|`b`|\$\(c 'd'\)|\$\{a:-b\}|\{\}|\*){1,4}"#;

/// Generates a text and the raw words of its commands, in order.
fn scripts() -> impl Strategy<Value = (String, Vec<Vec<String>>)> {
    let word = WORDS.prop_filter("a word", |word| !is_assignment(word));
    let simple = prop::collection::vec(word, 1..4).prop_map(|words| {
        let first = format!("x{}", words[0]);
        let words: Vec<String> = std::iter::once(first).chain(words.into_iter().skip(1)).collect();
        (words.join(" "), vec![words])
    });
    let simple = simple
        .prop_filter("no assignment", |(text, _)| !is_assignment(text.split(' ').next().unwrap_or_default()));
    simple.prop_recursive(4, 24, 3, |inner| {
        let joined =
            (inner.clone(), "( ; |;| && |\\|\\|| & | \\| |\n| # c 'x\n| >o;| <<<b 2>&1;)", inner.clone());
        let joined = joined.prop_map(|((left, mut first), between, (right, second))| {
            first.extend(second);
            let between = between.trim_matches(['(', ')']).to_owned();
            (format!("{left}{between}{right}"), first)
        });
        let wrapped = (inner, 0..9_usize).prop_map(|((text, words), form)| {
            let text = match form {
                0 => format!("( {text})"),
                1 => format!("{{ {text}; }}"),
                2 => format!("if {text}; then y; fi"),
                3 => format!("while {text}\ndo y; done"),
                4 => format!("for i in a $b; do {text}; done > o"),
                5 => format!("f() {{ {text}; }}"),
                6 => format!("case $a in b|c) {text};; esac"),
                7 => format!("y <<'E'\n; a $(b) '\nE\n{text}"),
                _ => format!("{{ ! {text}; }}"),
            };
            let y = vec!["y".to_owned()];
            let words = match form {
                2 | 3 => words.into_iter().chain([y]).collect(),
                7 => std::iter::once(y).chain(words).collect(),
                _ => words,
            };
            (text, words)
        });
        prop_oneof![joined, wrapped]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Parsing a generated text returns its words in order, and another parser returns the same.
    #[test]
    fn a_round_trip_loses_nothing((text, expected) in scripts()) {
        let read = parse(&text).map(|script| raw(&script));
        prop_assert_eq!(read, Ok(expected.clone()), "{}", text);
        prop_assert_eq!(seen_by_another(&text), Some(expected), "{}", text);
    }

    #[test]
    fn parsers_agree_on_texts_that_both_accept(
        text in "([ab=/-]| |;|\n|'[ab ]*'|\"[ab $]*\"|\\\\.|\\$[ab(]|\\)|\\(|\\{ |; \\}|\\||&|<|>|<<a\n|#|`|if |then |fi|do |done){0,16}"
    ) {
        if let (Ok(script), Some(other)) = (parse(&text), seen_by_another(&text)) {
            prop_assert_eq!(raw(&script), other, "{:?}", text);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "([a-c{}()$`'\"\\\\|&;<>#\n =~*\\[\\]-]|\\PC|\\$\\(|<<A|\\$'|case |in |esac|if ){0,60}") {
        let _: Result<Script, ShellParseError> = parse(&text);
    }
}
