//! Finds script texts that a command runs: in arguments (`sh -c`), through a pipe or from a here-document.

use super::program::Program;
use agent_text::shell::{SimpleCommand, Word, is_assignment};

/// The script text that a program runs.
pub(super) enum InnerText {
    /// The program runs no text.
    Nothing,
    /// The program runs this text.
    Text(String),
    /// The program runs its standard input.
    Stdin,
    /// The program runs a text that its words do not contain.
    Unknown,
}

/// Returns the script text that `program`, part of the command `simple`, runs.
pub(super) fn inner_text(program: &Program<'_>, simple: &SimpleCommand) -> InnerText {
    let known = |word: Option<&Word>| match word {
        Some(word) if word.is_literal => InnerText::Text(word.text.clone()),
        Some(_) => InnerText::Unknown,
        None => InnerText::Nothing,
    };
    let args = program.args;
    match program.name.as_str() {
        "eval" | "watch" => join_words("", args),
        "trap" => known(args.first()),
        "env" => env_split_string(args),
        "." | "source" if !simple.nested.is_empty() => InnerText::Unknown,
        _ if program.is_shell() => {
            let is_flag = |arg: &&Word| arg.text.starts_with('-');
            let is_text = |arg: &Word| !arg.text.starts_with("--") && is_flag(&arg) && arg.text.contains('c');
            match args.iter().position(is_text) {
                Some(at) => {
                    let mut rest = args.iter().skip(at).skip_while(|arg| is_flag(arg) && arg.text != "--");
                    known(rest.find(|arg| arg.text != "--"))
                }
                None if args.iter().any(|arg| arg.text.contains("<()")) => InnerText::Unknown,
                None if args.iter().all(|arg| is_flag(&arg)) || args.iter().any(|arg| arg.text == "-s") => {
                    InnerText::Stdin
                }
                None => InnerText::Nothing,
            }
        }
        _ => InnerText::Nothing,
    }
}

/// Joins `first` and `words` with spaces.
fn join_words(first: &str, words: &[Word]) -> InnerText {
    if !words.iter().all(|word| word.is_literal) {
        return InnerText::Unknown;
    }
    let words = words.iter().map(|word| word.text.as_str());
    InnerText::Text(std::iter::once(first).chain(words).collect::<Vec<_>>().join(" "))
}

/// Returns the text that `env` splits into words, joined with the words after it: `-S TEXT`, `-STEXT` or
/// `--split-string=TEXT`, also after letters of other options. The search ends where the program that `env` runs starts.
fn env_split_string(args: &[Word]) -> InnerText {
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
            Some("") => return join_words("", args.as_slice()),
            Some(text) if arg.is_literal => return join_words(text, args.as_slice()),
            Some(_) => return InnerText::Unknown,
            None if matches!(option, "-u" | "-C" | "-a" | "--unset" | "--chdir" | "--argv0") => {
                args.next();
            }
            None if option.starts_with('-') || is_assignment(option) => {}
            None => return InnerText::Nothing,
        }
    }
    InnerText::Nothing
}

/// Returns the output of a program if its words determine it (`echo`, `printf`, `cat` of a here-document).
pub(super) fn known_output(program: &Program<'_>, simple: &SimpleCommand) -> Option<String> {
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

/// Splits an unparsable text at separators into approximate commands, without quotes.
pub(super) fn split_commands(text: &str) -> Vec<SimpleCommand> {
    let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
    let word = |raw: &str| Word { text: bare(raw), raw: raw.to_owned(), is_literal: false };
    let separated = text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
    let simple = |piece: &str| SimpleCommand {
        words: piece.split_whitespace().filter(|word| *word != "!").map(word).collect(),
        ..SimpleCommand::default()
    };
    separated.map(simple).filter(|simple| !simple.words.is_empty()).collect()
}
