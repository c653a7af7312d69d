//! Texts that programs are given to run: by their words, through a pipe, in a document.

use super::program::Program;
use crate::text::shell::{Simple, Word, is_assignment};

/// What a program runs as text.
pub(super) enum Given {
    /// It runs none.
    Nothing,
    /// This one.
    Text(String),
    /// What it reads from its standard input.
    Input,
    /// Something that the words do not tell.
    Hidden,
}

/// What `program` runs as text, when it is that of `simple`.
pub(super) fn text_of(program: &Program<'_>, simple: &Simple) -> Given {
    let known = |word: Option<&Word>| match word {
        Some(word) if word.is_literal => Given::Text(word.text.clone()),
        Some(_) => Given::Hidden,
        None => Given::Nothing,
    };
    let args = program.args;
    match program.name.as_str() {
        "eval" | "watch" => joined_with("", args),
        "trap" => known(args.first()),
        "env" => taken_apart(args),
        "." | "source" if !simple.nested.is_empty() => Given::Hidden,
        _ if program.is_shell() => {
            let is_flag = |arg: &&Word| arg.text.starts_with('-');
            let is_text = |arg: &Word| !arg.text.starts_with("--") && is_flag(&arg) && arg.text.contains('c');
            match args.iter().position(is_text) {
                Some(at) => {
                    let mut rest = args.iter().skip(at).skip_while(|arg| is_flag(arg) && arg.text != "--");
                    known(rest.find(|arg| arg.text != "--"))
                }
                None if args.iter().any(|arg| arg.text.contains("<()")) => Given::Hidden,
                None if args.iter().all(|arg| is_flag(&arg)) || args.iter().any(|arg| arg.text == "-s") => {
                    Given::Input
                }
                None => Given::Nothing,
            }
        }
        _ => Given::Nothing,
    }
}

/// The text that begins with `first` and goes on with `words`.
fn joined_with(first: &str, words: &[Word]) -> Given {
    if !words.iter().all(|word| word.is_literal) {
        return Given::Hidden;
    }
    let words = words.iter().map(|word| word.text.as_str());
    Given::Text(std::iter::once(first).chain(words).collect::<Vec<_>>().join(" "))
}

/// What `env` takes apart into words, with those behind it: `-S TEXT`, `-STEXT` or `--split-string=TEXT`, also behind letters of
/// other options. Behind its own options begins another program's.
fn taken_apart(args: &[Word]) -> Given {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let option = arg.text.as_str();
        let joined = match option.strip_prefix("--split-string") {
            Some(text) => Some(text.strip_prefix('=').unwrap_or(text)),
            None => option
                .strip_prefix('-')
                .and_then(|it| it.trim_start_matches(['0', 'i', 'v']).strip_prefix('S')),
        };
        match joined {
            Some("") => return joined_with("", args.as_slice()),
            Some(text) if arg.is_literal => return joined_with(text, args.as_slice()),
            Some(_) => return Given::Hidden,
            None if matches!(option, "-u" | "-C" | "-a" | "--unset" | "--chdir" | "--argv0") => {
                args.next();
            }
            None if option.starts_with('-') || is_assignment(option) => {}
            None => return Given::Nothing,
        }
    }
    Given::Nothing
}

/// What a program writes for the next one, where its words tell: `None` where they do not.
pub(super) fn says(program: &Program<'_>, simple: &Simple) -> Option<String> {
    let is_known = program.args.iter().all(|arg| arg.is_literal) && simple.nested.is_empty();
    match program.name.as_str() {
        _ if !is_known || !simple.redirections.is_empty() => None,
        "echo" | "printf" => {
            Some(program.args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "))
        }
        "cat" if program.args.is_empty() => Some(simple.document.clone()),
        "true" | ":" => Some(String::new()),
        _ => None,
    }
}

/// The commands that a text has at a glance, where it is not understood: what stands between separators, without quotes.
pub(super) fn pieces(text: &str) -> Vec<Simple> {
    let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
    let word = |raw: &str| Word { text: bare(raw), raw: raw.to_owned(), is_literal: false };
    let separated = text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
    let simple = |piece: &str| Simple {
        words: piece.split_whitespace().filter(|word| *word != "!").map(word).collect(),
        ..Simple::default()
    };
    separated.map(simple).filter(|simple| !simple.words.is_empty()).collect()
}
