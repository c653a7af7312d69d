//! Everything that a text may run: looked for through wrappers, substitutions and texts for other shells.

use crate::text::shell::{self, Script, Simple, Unclear, Word};

/// How deep texts inside of texts (`sh -c`, `eval`, what is piped into a shell) are looked into.
const MAX_TEXTS: usize = 12;

/// Texts inside of one.
const MAX_INNER_TEXTS: usize = 256;

/// Words of a wrapper among which the program it runs is looked for: its own options and their values are fewer by far,
/// and looking at each of thousands of words takes long.
const MAX_WRAPPER_WORDS: usize = 256;

/// Programs looked at in one command.
const MAX_PROGRAMS: usize = 512;

/// Places in which a command may run because of those before it.
const MAX_PLACES: usize = 8;

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "strace", "sudo", "time", "timeout", "toybox", "watch", "xargs",
];

/// Programs that run the text they are given.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct Program<'a> {
    /// In lower case, without its directory.
    pub(super) name: String,
    /// Whether it is called what it is written.
    pub(super) is_named: bool,
    pub(super) args: &'a [Word],
}

impl<'a> Program<'a> {
    /// The program that `words` begin with, behind assignments.
    pub(super) fn new(words: &'a [Word]) -> Option<Self> {
        let assignments = words.iter().take_while(|word| is_assignment(&word.text)).count();
        let (first, args) = words.get(assignments..)?.split_first()?;
        let name = first.text.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        Some(Self { name, is_named: first.is_literal, args })
    }

    /// Whether a flag is there, alone, among other letters or with a value.
    pub(super) fn has_flag(&self, short: char, long: &str) -> bool {
        self.args.iter().any(|arg| match arg.text.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => letters.contains(short),
            _ => arg.text == long || arg.text.strip_prefix(long).is_some_and(|rest| rest.starts_with('=')),
        })
    }

    /// The arguments that are no flags.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> {
        self.args.iter().map(|arg| arg.text.as_str()).filter(|arg| !arg.starts_with('-'))
    }

    /// Whether it runs text that it is given.
    pub(super) fn is_shell(&self) -> bool {
        SHELLS.contains(&self.name.as_str())
    }
}

/// A command in its place.
#[derive(Debug)]
pub(super) struct Command<'a> {
    pub(super) simple: &'a Simple,
    /// The program that it names, and those that this one may run.
    pub(super) programs: &'a [Program<'a>],
    /// Where it may run besides the directory in which all begins; `None` is a place that the text does not tell.
    pub(super) places: &'a [Option<String>],
    /// How many texts it is in.
    pub(super) depth: usize,
}

/// What is found in a text.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// A script, before its commands.
    Script(&'a Script),
    /// A command.
    Command(&'a Command<'a>),
    /// Something that runs and is not told by the text.
    Hidden,
    /// A text that was not taken apart. Its pieces follow as commands if it may run all the same.
    Unclear(Unclear),
}

/// Shows every part of `text` to `visit`.
pub(super) fn look(text: &str, visit: &mut dyn FnMut(Part<'_>)) {
    Look { places: Vec::new(), left: MAX_INNER_TEXTS, visit }.text(text, 0);
}

struct Look<'v> {
    places: Vec<Option<String>>,
    /// Texts that may still be looked into; none after a limit was met.
    left: usize,
    visit: &'v mut dyn FnMut(Part<'_>),
}

impl Look<'_> {
    fn text(&mut self, text: &str, depth: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let read = match shell::parse(text) {
            _ if depth > MAX_TEXTS => Err(Unclear::TooDeep),
            _ if self.left == 0 => Err(Unclear::TooMany),
            read => read,
        };
        match read {
            Ok(script) => self.script(&script, depth),
            Err(Unclear::Syntax) => {
                (self.visit)(Part::Unclear(Unclear::Syntax));
                // A shell runs what it understands up to the first thing that it does not.
                self.commands(&pieces(text), depth);
            }
            Err(limit) => {
                (self.visit)(Part::Unclear(limit));
                self.left = 0;
            }
        }
    }

    fn script(&mut self, script: &Script, depth: usize) {
        (self.visit)(Part::Script(script));
        self.commands(&script.commands, depth);
    }

    fn commands(&mut self, commands: &[Simple], depth: usize) {
        let mut said = Some(String::new());
        for simple in commands {
            for nested in &simple.nested {
                self.script(nested, depth);
            }
            let programs = programs(&simple.words);
            let command = Command { simple, programs: &programs, places: &self.places, depth };
            (self.visit)(Part::Command(&command));
            if !simple.is_piped_into {
                said = Some(String::new());
            }
            for program in &programs {
                self.given(program, simple, said.as_deref(), depth);
            }
            let Some(program) = programs.first() else { continue };
            said = said.and_then(|said| Some(said + &says(program, simple)?));
            self.moves(program);
        }
    }

    /// Looks into the text that a program runs.
    fn given(&mut self, program: &Program<'_>, simple: &Simple, said: Option<&str>, depth: usize) {
        match text_of(program, simple) {
            Given::Nothing => {}
            Given::Text(text) => self.text(&text, depth + 1),
            Given::Hidden => (self.visit)(Part::Hidden),
            Given::Input => {
                if !simple.document.is_empty() {
                    self.text(&simple.document, depth + 1);
                }
                match said.filter(|_| simple.is_piped_into) {
                    Some(said) => self.text(said, depth + 1),
                    None if simple.is_piped_into => (self.visit)(Part::Hidden),
                    None => {}
                }
            }
        }
    }

    /// Takes note of where the commands behind this one run.
    fn moves(&mut self, program: &Program<'_>) {
        if !matches!(program.name.as_str(), "cd" | "popd" | "pushd") {
            return;
        }
        let target = program.args.iter().find(|arg| !arg.text.starts_with('-')).filter(|arg| arg.is_literal);
        let Some(target) = target.map(|target| target.text.as_str()) else {
            return self.places.push(None);
        };
        let below: Vec<String> = self.places.iter().flatten().map(|place| join(place, target)).collect();
        let below = below.into_iter().filter(|place| place != target);
        self.places.extend(std::iter::once(target.to_owned()).chain(below).map(Some));
        if self.places.len() > MAX_PLACES {
            self.places.truncate(MAX_PLACES);
            self.places.push(None);
        }
    }
}

/// `path` as it is called from above `place`.
pub(super) fn join(place: &str, path: &str) -> String {
    if path.starts_with(['/', '~', '$']) {
        path.to_owned()
    } else {
        format!("{}/{path}", place.trim_end_matches('/'))
    }
}

/// The program of `words`, and those that it may run where it is one that runs others.
pub(super) fn programs(words: &[Word]) -> Vec<Program<'_>> {
    let mut all = Vec::new();
    let mut from = vec![words];
    while let Some(words) = from.pop().filter(|_| all.len() < MAX_PROGRAMS) {
        let Some(program) = Program::new(words) else { continue };
        let is_wrapper = WRAPPERS.contains(&program.name.as_str());
        if program.name == "find" {
            from.extend(executed(program.args));
        } else if is_wrapper && from.is_empty() && all.is_empty() {
            // Which word of a wrapper's is the program depends on its options, so any of them may be. Before an
            // assignment stands the same program as behind it.
            let args = program.args;
            let starts = (0..args.len().min(MAX_WRAPPER_WORDS)).rev().filter_map(|at| args.get(at..));
            from.extend(starts.filter(|words| !is_assignment(&words[0].text)));
        }
        all.push(program);
    }
    all
}

/// What `find` runs.
pub(super) fn executed(args: &[Word]) -> impl Iterator<Item = &[Word]> {
    let executes = |arg: &Word| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    args.iter().enumerate().filter(move |(_, arg)| executes(arg)).filter_map(|(at, _)| args.get(at + 1..))
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '+')
    })
}

/// What a program runs as text.
enum Given {
    Nothing,
    Text(String),
    /// What it reads from its standard input.
    Input,
    /// Something that the words do not tell.
    Hidden,
}

fn text_of(program: &Program<'_>, simple: &Simple) -> Given {
    let known = |word: Option<&Word>| match word {
        Some(word) if word.is_literal => Given::Text(word.text.clone()),
        Some(_) => Given::Hidden,
        None => Given::Nothing,
    };
    let args = program.args;
    match program.name.as_str() {
        "eval" | "watch" if args.iter().all(|arg| arg.is_literal) => {
            Given::Text(args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "))
        }
        "eval" | "watch" => Given::Hidden,
        "trap" => known(args.first()),
        "env" => known(args.iter().skip_while(|arg| arg.text != "-S").nth(1)),
        "." | "source" if !simple.nested.is_empty() => Given::Hidden,
        _ if program.is_shell() => {
            let is_flag = |arg: &&Word| arg.text.starts_with('-');
            let is_text = |arg: &Word| !arg.text.starts_with("--") && is_flag(&arg) && arg.text.contains('c');
            match args.iter().position(is_text) {
                Some(at) => {
                    let mut rest =
                        args.iter().skip(at + 1).skip_while(|arg| is_flag(arg) && arg.text != "--");
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

/// What a program writes for the next one, where its words tell: `None` where they do not.
fn says(program: &Program<'_>, simple: &Simple) -> Option<String> {
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
fn pieces(text: &str) -> Vec<Simple> {
    let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
    let word = |raw: &str| Word { text: bare(raw), raw: raw.to_owned(), is_literal: false };
    let separated = text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
    let simple = |piece: &str| Simple {
        words: piece.split_whitespace().filter(|word| *word != "!").map(word).collect(),
        ..Simple::default()
    };
    separated.map(simple).filter(|simple| !simple.words.is_empty()).collect()
}
