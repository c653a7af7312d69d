//! The parts of a command that rules are about: every program that it names or may run.

use crate::text::shell::{self, Direction, Script, Simple, Word};

/// How deep texts inside of texts (`sh -c`, `eval`) are looked into.
const MAX_TEXTS: usize = 12;

/// Words of a wrapper behind each of which the program that it runs is looked for.
const MAX_WRAPPER_WORDS: usize = 64;

/// Programs that run the program named after them.
const WRAPPERS: [&str; 20] = [
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "find", "flock", "ionice", "nice",
    "nohup", "parallel", "setsid", "stdbuf", "sudo", "time", "timeout", "watch", "xargs",
];

/// Programs that run the text they are given.
const SHELLS: [&str; 7] = ["ash", "bash", "dash", "eval", "ksh", "sh", "zsh"];

/// One thing that a command runs or may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The program and its arguments.
    pub(super) words: Vec<Word>,
    /// Whether this is all that is to be said: nothing in front of it, no file written, no wrapper around it.
    pub(super) is_plain: bool,
    /// Whether the text tells what runs.
    pub(super) is_told: bool,
}

/// The parts of `command`, in order.
pub(super) fn parts(command: &str) -> Vec<Part> {
    let mut found = Vec::new();
    text(command, 0, &mut found);
    found
}

fn text(text: &str, depth: usize, found: &mut Vec<Part>) {
    match shell::parse(text) {
        Ok(read) if depth < MAX_TEXTS => script(&read, depth, found),
        _ => found.push(Part::default()),
    }
}

fn script(script: &Script, depth: usize, found: &mut Vec<Part>) {
    if !script.is_list {
        found.push(Part { is_told: true, ..Part::default() });
    }
    for simple in &script.commands {
        simple.nested.iter().for_each(|nested| self::script(nested, depth, found));
        let writes = simple
            .redirections
            .iter()
            .any(|to| to.direction == Direction::Write && to.target.text != "/dev/null");
        let is_plain = !simple.assigns && !writes && simple.function.is_none();
        if simple.words.is_empty() && is_plain {
            continue;
        }
        found.push(part(&simple.words, is_plain));
        inner(simple, depth, found);
    }
}

fn part(words: &[Word], is_plain: bool) -> Part {
    let is_told = words.first().is_none_or(|program| program.is_literal);
    Part { words: words.to_vec(), is_plain, is_told }
}

/// What a wrapper or a shell among the words runs in its turn.
fn inner(simple: &Simple, depth: usize, found: &mut Vec<Part>) {
    let words = &simple.words;
    let is_wrapper = words.first().is_some_and(|word| WRAPPERS.contains(&program(&word.text)));
    let last = if is_wrapper { words.len().min(MAX_WRAPPER_WORDS) } else { words.len().min(1) };
    for start in (0..last).filter_map(|at| words.get(at..)) {
        let Some((name, args)) = start.split_first() else { continue };
        if start.len() < words.len() && name.is_literal {
            found.push(part(start, false));
        }
        if SHELLS.contains(&program(&name.text)) {
            given(simple, &name.text, args, depth, found);
        }
    }
}

/// The text that a shell is given: by its words, in a document or through a pipe.
fn given(simple: &Simple, name: &str, args: &[Word], depth: usize, found: &mut Vec<Part>) {
    let is_flag = |word: &&Word| word.text.starts_with('-');
    let is_text = |word: &Word| is_flag(&word) && !word.text.starts_with("--") && word.text.contains('c');
    let texts: Vec<&Word> = match args.iter().position(is_text) {
        _ if program(name) == "eval" => args.iter().collect(),
        Some(at) => args.iter().skip(at + 1).find(|word| !is_flag(word)).into_iter().collect(),
        None if args.iter().any(|word| !is_flag(&word)) => return,
        None if simple.is_piped_into => return found.push(Part::default()),
        None => return text(&simple.document, depth + 1, found),
    };
    if texts.iter().all(|word| word.is_literal) {
        let whole: Vec<&str> = texts.iter().map(|word| word.text.as_str()).collect();
        text(&whole.join(" "), depth + 1, found);
    } else {
        found.push(Part::default());
    }
}

/// The name of a program without its directory.
pub(super) fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
