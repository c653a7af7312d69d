//! The parts of a command that rules are about: every program that it names or may run.

use crate::text::shell::{self, Direction, Redirection, Script, Simple, Word};
use std::rc::Rc;

/// Texts that are looked into, with those inside of others (`sh -c`, `eval`).
const MAX_TEXTS: usize = 32;

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
    words: Rc<[Word]>,
    /// Where in the words its program stands.
    at: usize,
    /// Whether this is all that is to be said: nothing in front of it, no file written, no wrapper around it.
    pub(super) is_plain: bool,
    /// Whether the text tells what runs.
    pub(super) is_told: bool,
}

impl Part {
    /// The program and its arguments.
    pub(super) fn words(&self) -> &[Word] {
        self.words.get(self.at..).unwrap_or_default()
    }
}

/// The parts of `command`, in order.
pub(super) fn parts(command: &str) -> Vec<Part> {
    let mut finder = Finder { found: Vec::new(), texts: MAX_TEXTS };
    finder.text(command);
    finder.found
}

struct Finder {
    found: Vec<Part>,
    /// Texts that may still be looked into.
    texts: usize,
}

impl Finder {
    fn text(&mut self, text: &str) {
        let left = self.texts.checked_sub(1);
        self.texts = left.unwrap_or(0);
        match shell::parse(text) {
            Ok(read) if left.is_some() => self.script(&read),
            _ => self.untold(),
        }
    }

    fn untold(&mut self) {
        self.found.push(Part::default());
    }

    fn script(&mut self, script: &Script) {
        if !script.is_list {
            self.found.push(Part { is_told: true, ..Part::default() });
        }
        for simple in &script.commands {
            simple.nested.iter().for_each(|nested| self.script(nested));
            let is_file =
                |to: &Redirection| to.direction == Direction::Write && to.target.text != "/dev/null";
            let writes = simple.redirections.iter().any(is_file);
            let is_plain = !simple.assigns && !writes && simple.function.is_none();
            if !simple.words.is_empty() || !is_plain {
                self.simple(simple, is_plain);
            }
        }
    }

    /// A command, and what a wrapper or a shell among its words runs in its turn.
    fn simple(&mut self, simple: &Simple, is_plain: bool) {
        let words: Rc<[Word]> = simple.words.as_slice().into();
        let is_told = words.first().is_none_or(|program| program.is_literal);
        self.found.push(Part { words: Rc::clone(&words), at: 0, is_plain, is_told });
        let is_wrapper = words.first().is_some_and(|word| WRAPPERS.contains(&program(&word.text)));
        let last = if is_wrapper { MAX_WRAPPER_WORDS } else { 1 };
        for (at, word) in words.iter().enumerate().take(last) {
            if at > 0 && word.is_literal {
                self.found.push(Part { words: Rc::clone(&words), at, is_plain: false, is_told: true });
            }
            if SHELLS.contains(&program(&word.text)) {
                self.given(simple, &word.text, words.get(at + 1..).unwrap_or_default());
            }
        }
    }

    /// The text that a shell is given: by its words, in a document or through a pipe.
    fn given(&mut self, simple: &Simple, name: &str, args: &[Word]) {
        let is_flag = |word: &&Word| word.text.starts_with('-');
        let is_text = |word: &Word| is_flag(&word) && !word.text.starts_with("--") && word.text.contains('c');
        let texts: Vec<&Word> = match args.iter().position(is_text) {
            _ if program(name) == "eval" => args.iter().collect(),
            Some(at) => args.iter().skip(at + 1).find(|word| !is_flag(word)).into_iter().collect(),
            None if args.iter().any(|word| !is_flag(&word)) => return,
            None if simple.is_piped_into => return self.untold(),
            None => return self.text(&simple.document),
        };
        if texts.iter().all(|word| word.is_literal) {
            let whole: Vec<&str> = texts.iter().map(|word| word.text.as_str()).collect();
            self.text(&whole.join(" "));
        } else {
            self.untold();
        }
    }
}

/// The name of a program without its directory.
pub(super) fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
