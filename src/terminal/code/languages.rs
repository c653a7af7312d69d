//! The table of the languages whose code has colours.

use super::{Kind, Language, Span, Start};

const PLAIN: Language = Language {
    names: &[],
    spans: &[],
    keywords: "",
    word_marks: "",
    sigils: "",
    key_end: None,
    kind: Kind::Usual,
};

const fn comment(begin: &'static str, end: &'static str, start: Start) -> Span {
    Span { begin, end, is_comment: true, start, has_escapes: false, spans_lines: !end.is_empty() }
}

/// A string of one line, with escapes.
const fn text(begin: &'static str, end: &'static str) -> Span {
    Span { begin, end, is_comment: false, start: Start::Anywhere, has_escapes: true, spans_lines: false }
}

/// A string of several lines, with escapes.
const fn long_text(begin: &'static str, end: &'static str) -> Span {
    Span { spans_lines: true, ..text(begin, end) }
}

/// A string of several lines, without escapes.
const fn raw_text(begin: &'static str, end: &'static str) -> Span {
    Span { has_escapes: false, ..long_text(begin, end) }
}

const LINE: Span = comment("//", "", Start::Anywhere);
const BLOCK: Span = comment("/*", "*/", Start::Anywhere);
const HASH: Span = comment("#", "", Start::Anywhere);
const HASH_AFTER_SPACE: Span = comment("#", "", Start::AfterSpace);
const DASHES: Span = comment("--", "", Start::Anywhere);
const DOUBLE: Span = text("\"", "\"");
const SINGLE: Span = text("'", "'");

pub(super) static LANGUAGES: [Language; 18] = [
    Language {
        names: &["rust", "rs"],
        spans: &[
            LINE,
            BLOCK,
            raw_text("r##\"", "\"##"),
            raw_text("r#\"", "\"#"),
            raw_text("br#\"", "\"#"),
            raw_text("r\"", "\""),
            long_text("\"", "\""),
            Span { start: Start::Character, ..SINGLE },
        ],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while",
        ..PLAIN
    },
    Language {
        names: &["python", "py", "python3", "pyi", "starlark", "bzl"],
        spans: &[HASH, long_text("\"\"\"", "\"\"\""), long_text("'''", "'''"), DOUBLE, SINGLE],
        keywords: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
        sigils: "@",
        ..PLAIN
    },
    Language {
        names: &[
            "javascript",
            "js",
            "jsx",
            "mjs",
            "cjs",
            "typescript",
            "ts",
            "tsx",
            "mts",
            "cts",
            "vue",
            "svelte",
        ],
        spans: &[LINE, BLOCK, long_text("`", "`"), DOUBLE, SINGLE],
        keywords: "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace never new null number of override private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while with yield",
        word_marks: "$",
        sigils: "@",
        ..PLAIN
    },
    Language {
        names: &["go", "golang"],
        spans: &[LINE, BLOCK, raw_text("`", "`"), DOUBLE, SINGLE],
        keywords: "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type var",
        ..PLAIN
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "cxx", "hpp", "objc", "objective-c", "cuda", "arduino"],
        spans: &[LINE, BLOCK, raw_text("R\"(", ")\""), DOUBLE, SINGLE],
        keywords: "alignas alignof auto bool break case catch char class concept const consteval constexpr continue co_await co_return co_yield decltype default delete do double else enum explicit extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr NULL operator override private protected public register requires restrict return short signed sizeof static static_assert static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while",
        sigils: "#",
        ..PLAIN
    },
    Language {
        names: &[
            "java", "kotlin", "kt", "kts", "scala", "groovy", "gradle", "csharp", "cs", "c#", "swift", "dart",
        ],
        spans: &[LINE, BLOCK, long_text("\"\"\"", "\"\"\""), DOUBLE, SINGLE],
        keywords: "abstract as assert async await boolean bool break byte case catch char class const continue data def default defer delegate do double else enum event extends extension false final finally float for foreach fun func get goto guard if implements import in init instanceof int interface internal is lateinit let long match namespace native new nil null object open operator out override package permits private protected protocol public readonly record ref return sealed self set short static string struct super switch synchronized this throw throws trait transient true try typealias typeof using val var virtual void volatile when where while with yield",
        sigils: "@#",
        ..PLAIN
    },
    Language {
        names: &[
            "bash",
            "sh",
            "shell",
            "zsh",
            "fish",
            "console",
            "shell-session",
            "shellsession",
            "terminal",
        ],
        spans: &[HASH_AFTER_SPACE, long_text("\"", "\""), raw_text("'", "'")],
        keywords: "alias break case cd continue declare do done echo elif else esac eval exec exit export false fi for function if in local printf read readonly return select set shift source test then trap true unset until while",
        word_marks: "-.",
        sigils: "$",
        kind: Kind::Shell,
        ..PLAIN
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        spans: &[LINE, BLOCK, DOUBLE],
        keywords: "true false null",
        key_end: Some(':'),
        ..PLAIN
    },
    Language {
        names: &["yaml", "yml"],
        spans: &[
            HASH_AFTER_SPACE,
            Span { start: Start::OutsideWord, ..DOUBLE },
            Span { start: Start::OutsideWord, has_escapes: false, ..SINGLE },
        ],
        keywords: "true false null yes no on off",
        word_marks: "-./",
        key_end: Some(':'),
        ..PLAIN
    },
    Language {
        names: &["toml", "ini", "cfg", "conf", "properties", "env", "dotenv"],
        spans: &[
            HASH_AFTER_SPACE,
            comment(";", "", Start::AfterSpace),
            long_text("\"\"\"", "\"\"\""),
            raw_text("'''", "'''"),
            DOUBLE,
            Span { start: Start::OutsideWord, has_escapes: false, ..SINGLE },
        ],
        keywords: "true false",
        word_marks: "-.",
        key_end: Some('='),
        ..PLAIN
    },
    Language {
        names: &["sql", "postgresql", "postgres", "psql", "mysql", "sqlite", "plsql", "tsql"],
        spans: &[DASHES, BLOCK, Span { has_escapes: false, ..SINGLE }, DOUBLE, text("`", "`")],
        keywords: "add all alter and as asc begin between bigint boolean by case cascade check column commit conflict constraint create cross database default delete desc distinct do drop else end exists explain false foreign from full function grant group having if in index inner insert int integer into is join key left like limit not null offset on or order outer over partition primary references returning revoke right rollback row select set table text then timestamp transaction trigger true truncate union unique update using values varchar view when where window with",
        kind: Kind::AnyCase,
        ..PLAIN
    },
    Language {
        names: &["html", "xml", "svg", "xhtml"],
        spans: &[comment("<!--", "-->", Start::Anywhere), DOUBLE, SINGLE],
        word_marks: "-:",
        key_end: Some('='),
        kind: Kind::Markup,
        ..PLAIN
    },
    Language {
        names: &["css", "scss", "less"],
        spans: &[BLOCK, comment("//", "", Start::AfterSpace), DOUBLE, SINGLE],
        keywords: "and from important not only to",
        word_marks: "-",
        sigils: "@#$",
        key_end: Some(':'),
        ..PLAIN
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex", "exs", "crystal"],
        spans: &[HASH_AFTER_SPACE, DOUBLE, SINGLE],
        keywords: "alias and begin break case class cond def defmodule defp do else elsif end ensure false fn for if import in module next nil not or raise redo require rescue retry return self super then true undef unless until use when while with yield",
        word_marks: "?",
        sigils: "@$",
        ..PLAIN
    },
    Language {
        names: &["php"],
        spans: &[LINE, BLOCK, HASH_AFTER_SPACE, long_text("\"", "\""), long_text("'", "'")],
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif enum extends false final finally fn for foreach function global if implements include instanceof interface match namespace new null or print private protected public readonly require require_once return self static string switch this throw trait true try use var void while yield",
        sigils: "$",
        ..PLAIN
    },
    Language {
        names: &["lua"],
        spans: &[comment("--[[", "]]", Start::Anywhere), DASHES, raw_text("[[", "]]"), DOUBLE, SINGLE],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
        ..PLAIN
    },
    Language {
        names: &[
            "dockerfile",
            "docker",
            "containerfile",
            "makefile",
            "make",
            "cmake",
            "nix",
            "hcl",
            "terraform",
            "tf",
            "r",
            "perl",
            "pl",
        ],
        spans: &[HASH_AFTER_SPACE, DOUBLE, Span { start: Start::OutsideWord, ..SINGLE }],
        keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL USER VOLUME WORKDIR define else elsif endif export for foreach function if ifdef ifeq ifndef in include let library my return sub true false use while with",
        word_marks: "-.",
        sigils: "$@",
        ..PLAIN
    },
    Language { names: &["diff", "patch"], kind: Kind::Diff, ..PLAIN },
];
