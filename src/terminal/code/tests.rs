//! Tests of the colours of code.

use super::*;
use proptest::prelude::*;

/// The lines with the first letter of its style before each piece that has one.
fn marked(language: &str, code: &str) -> Vec<String> {
    let mut highlighter = Highlighter::new(language).unwrap();
    let piece = |(style, text): (Style, String)| match style {
        Style::Plain => text,
        Style::Dim => format!("«c:{text}»"),
        Style::Keyword => format!("«k:{text}»"),
        Style::Literal => format!("«s:{text}»"),
        Style::Constant => format!("«n:{text}»"),
        Style::Success => format!("«+:{text}»"),
        Style::Error => format!("«-:{text}»"),
        other => panic!("{other:?}"),
    };
    code.lines().map(|line| highlighter.line(line).into_iter().map(piece).collect()).collect()
}

#[test]
fn u04_code_has_the_colours_of_its_language() {
    for (language, code, lines) in [
        (
            "rust",
            "fn f<'a>(x: &'a str) -> char { // it's\n    let s = \"a \\\"b\\\" //\"; r#\"raw \" x\"#; '\"'; '\\''\n    /* a\n    let */ 0xff_u8 + 1.5e-3..2",
            &[
                "«k:fn» f<'a>(x: &'a str) -> char { «c:// it's»",
                "    «k:let» s = «s:\"a \\\"b\\\" //\"»; «s:r#\"raw \" x\"#»; «s:'\"'»; «s:'\\''»",
                "    «c:/* a»",
                "«c:    let */» «n:0xff_u8» + «n:1.5e-3»..«n:2»",
            ][..],
        ),
        (
            "python",
            "    \"\"\"doc\n    if \"\"\"\n    s = f'it\\'s' + 1  # comment's\n@property\ndef f(): return None",
            &[
                "    «s:\"\"\"doc»",
                "«s:    if \"\"\"»",
                "    s = f«s:'it\\'s'» + «n:1»  «c:# comment's»",
                "«n:@property»",
                "«k:def» f(): «k:return» «k:None»",
            ],
        ),
        (
            "bash",
            "for f in \"$d\"/*; do echo ${#x} $f # it's\ncat <<'EOF'\nit's $x\nEOF\nx=$((1 << 2)) && read <<< 'a'",
            &[
                "«k:for» f «k:in» «s:\"$d\"»/*; «k:do» «k:echo» ${#x} «n:$f» «c:# it's»",
                "cat <<«s:'EOF'»",
                "«s:it's $x»",
                "«k:EOF»",
                "x=$((«n:1» << «n:2»)) && «k:read» <<< «s:'a'»",
            ],
        ),
        (
            "ts",
            "const a = `x ${y}\n it's`; // done\nlet n: number = don't",
            &["«k:const» a = «s:`x ${y}»", "«s: it's`»; «c:// done»", "«k:let» n: «k:number» = don't"],
        ),
        (
            "json",
            "{\"a\":\"it's\", \"b\": [1, true]}",
            &["{«n:\"a\"»:«s:\"it's\"», «n:\"b\"»: [«n:1», «k:true»]}"],
        ),
        (
            "yaml",
            "my-key: value # it's\ntext: don't do http://x.org#a \"b\"",
            &["«n:my-key»: value «c:# it's»", "«n:text»: don't do http://x.org#a «s:\"b\"»"],
        ),
        ("toml", "[a]\nb-c = \"x\" # y", &["[a]", "«n:b-c» = «s:\"x\"» «c:# y»"]),
        ("SQL", "SELECT 'it''s' from t -- x", &["«k:SELECT» «s:'it''s'» «k:from» t «c:-- x»"]),
        (
            "html",
            "<!-- a\n--><a href=\"x\"\n  b>it's 1 if</a>",
            &["«c:<!-- a»", "«c:-->»«k:<a» «n:href»=«s:\"x\"»", "  b«k:>»it's 1 if«k:</a>»"],
        ),
        ("go", "func f() { return `a\nb` }", &["«k:func» f() { «k:return» «s:`a»", "«s:b`» }"]),
        (
            "c",
            "#include <a.h>\nint x = 'c'; /* y */",
            &["«n:#include» <a.h>", "«k:int» x = «s:'c'»; «c:/* y */»"],
        ),
        ("java", "@Override public void f() {}", &["«n:@Override» «k:public» «k:void» f() {}"]),
        ("diff", "-a\n+b\n c", &["«-:-a»", "«+:+b»", " c"]),
    ] {
        assert_eq!(marked(language, code), lines, "{language}");
    }
}

#[test]
fn u04_a_language_is_known_by_the_first_word_after_the_fence() {
    for info in [
        "rust",
        " Rust",
        "rust,ignore",
        "rust:src/main.rs",
        "rust {1,3}",
        "{.rust .numbered}",
        "rs title=\"x\"",
    ] {
        assert!(Highlighter::new(info).is_some(), "{info}");
    }
    for info in ["", " ", "text", "rusty", "\u{1b}[31m", "🦀"] {
        assert!(Highlighter::new(info).is_none(), "{info}");
    }
}

#[test]
fn no_language_has_the_name_of_another() {
    let names: Vec<_> = LANGUAGES.iter().flat_map(|language| language.names).collect();
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), distinct.len());
}

proptest! {
    #[test]
    fn u04_colours_never_change_the_code(at in 0..LANGUAGES.len(), code in "([a-z0-9_]{1,4}|[\"'`#/*<>!=:$@\\\\{}\\[\\]-]{1,3}|[ \t]|\n|é|\u{1b}|<<E|\"\"\"|r#\"){0,60}") {
        let mut highlighter = Highlighter::new(LANGUAGES[at].names[0]).unwrap();
        for line in code.split('\n') {
            let shown: String = highlighter.line(line).into_iter().map(|(_, piece)| piece).collect();
            prop_assert_eq!(shown, line);
        }
    }
}
