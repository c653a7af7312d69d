//! Everything that a text may run: looked for through wrappers, substitutions and texts for other shells.

use super::given::{Given, pieces, says, text_of};
use super::program::{Program, programs};
use crate::text::shell::{self, Script, Simple, Unclear};

/// How deep texts inside of texts (`sh -c`, `eval`, what is piped into a shell) are looked into.
const MAX_TEXTS: usize = 12;

/// Texts inside of one.
const MAX_INNER_TEXTS: usize = 256;

/// Places in which a command may run because of those before it.
const MAX_PLACES: usize = 8;

/// A command in its place.
#[derive(Debug)]
pub(in crate::engine) struct Command<'a> {
    pub(in crate::engine) simple: &'a Simple,
    /// The program that it names, and those that this one may run.
    pub(in crate::engine) programs: &'a [Program<'a>],
    /// Where it may run besides the directory in which all begins; `None` is a place that the text does not tell.
    pub(in crate::engine) places: &'a [Option<String>],
    /// How many texts it is in.
    pub(in crate::engine) depth: usize,
}

/// What is found in a text.
#[derive(Debug)]
pub(in crate::engine) enum Part<'a> {
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
pub(in crate::engine) fn look(text: &str, visit: &mut dyn FnMut(Part<'_>)) {
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
