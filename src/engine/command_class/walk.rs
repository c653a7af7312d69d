//! Everything that a text may run: looked for through wrappers, substitutions and texts for other shells.

use super::inner_text::{InnerText, inner_text, known_output, split_commands};
use super::program::{Program, programs};
use crate::text::shell::{self, Script, ShellParseError, SimpleCommand};

/// How deep texts inside of texts (`sh -c`, `eval`, what is piped into a shell) are looked into.
const MAX_TEXT_DEPTH: usize = 12;

/// Texts inside of one.
const MAX_INNER_TEXTS: usize = 256;

/// Places in which a command may run because of those before it.
const MAX_DIRECTORIES: usize = 8;

/// A command in its place.
#[derive(Debug)]
pub(in crate::engine) struct Command<'a> {
    pub(in crate::engine) simple: &'a SimpleCommand,
    /// The program that it names, and those that this one may run.
    pub(in crate::engine) programs: &'a [Program<'a>],
    /// Where it may run besides the directory in which all begins; `None` is a place that the text does not tell.
    pub(in crate::engine) directories: &'a [Option<String>],
    /// How many texts it is in.
    pub(in crate::engine) depth: usize,
}

/// What is found in a text.
#[derive(Debug)]
pub(in crate::engine) enum ScriptPart<'a> {
    /// A script, before its commands.
    Script(&'a Script),
    /// A command.
    Command(&'a Command<'a>),
    /// Something that runs and is not told by the text.
    Unknown,
    /// A text that was not taken apart. Its pieces follow as commands if it may run all the same.
    Unclear(ShellParseError),
}

/// Shows every part of `text` to `visit`.
pub(in crate::engine) fn walk(text: &str, visit: &mut dyn FnMut(ScriptPart<'_>)) {
    Walker { directories: Vec::new(), left: MAX_INNER_TEXTS, visit }.text(text, 0);
}

struct Walker<'v> {
    directories: Vec<Option<String>>,
    /// Texts that may still be looked into; none after a limit was met.
    left: usize,
    visit: &'v mut dyn FnMut(ScriptPart<'_>),
}

impl Walker<'_> {
    fn text(&mut self, text: &str, depth: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let read = match shell::parse(text) {
            _ if depth > MAX_TEXT_DEPTH => Err(ShellParseError::TooDeep),
            _ if self.left == 0 => Err(ShellParseError::TooMany),
            read => read,
        };
        match read {
            Ok(script) => self.script(&script, depth),
            Err(ShellParseError::Syntax) => {
                (self.visit)(ScriptPart::Unclear(ShellParseError::Syntax));
                // A shell runs what it understands up to the first thing that it does not.
                self.commands(&split_commands(text), depth);
            }
            Err(limit) => {
                (self.visit)(ScriptPart::Unclear(limit));
                self.left = 0;
            }
        }
    }

    fn script(&mut self, script: &Script, depth: usize) {
        (self.visit)(ScriptPart::Script(script));
        self.commands(&script.commands, depth);
    }

    fn commands(&mut self, commands: &[SimpleCommand], depth: usize) {
        let mut piped_text = Some(String::new());
        for simple in commands {
            for nested in &simple.nested {
                self.script(nested, depth);
            }
            let programs = programs(&simple.words);
            let command = Command { simple, programs: &programs, directories: &self.directories, depth };
            (self.visit)(ScriptPart::Command(&command));
            if !simple.is_piped_into {
                piped_text = Some(String::new());
            }
            for program in &programs {
                self.visit_inner_text(program, simple, piped_text.as_deref(), depth);
            }
            let Some(program) = programs.first() else { continue };
            piped_text = piped_text.and_then(|piped_text| Some(piped_text + &known_output(program, simple)?));
            self.track_directory(program);
        }
    }

    /// Looks into the text that a program runs.
    fn visit_inner_text(
        &mut self,
        program: &Program<'_>,
        simple: &SimpleCommand,
        piped_text: Option<&str>,
        depth: usize,
    ) {
        match inner_text(program, simple) {
            InnerText::Nothing => {}
            InnerText::Text(text) => self.text(&text, depth + 1),
            InnerText::Unknown => (self.visit)(ScriptPart::Unknown),
            InnerText::Stdin => {
                if !simple.document.is_empty() {
                    self.text(&simple.document, depth + 1);
                }
                match piped_text.filter(|_| simple.is_piped_into) {
                    Some(piped_text) => self.text(piped_text, depth + 1),
                    None if simple.is_piped_into => (self.visit)(ScriptPart::Unknown),
                    None => {}
                }
            }
        }
    }

    /// Takes note of where the commands behind this one run.
    fn track_directory(&mut self, program: &Program<'_>) {
        if !matches!(program.name.as_str(), "cd" | "popd" | "pushd") {
            return;
        }
        let target = program.args.iter().find(|arg| !arg.text.starts_with('-')).filter(|arg| arg.is_literal);
        let Some(target) = target.map(|target| target.text.as_str()) else {
            return self.directories.push(None);
        };
        let below: Vec<String> = self.directories.iter().flatten().map(|place| join(place, target)).collect();
        let below = below.into_iter().filter(|place| place != target);
        self.directories.extend(std::iter::once(target.to_owned()).chain(below).map(Some));
        if self.directories.len() > MAX_DIRECTORIES {
            self.directories.truncate(MAX_DIRECTORIES);
            self.directories.push(None);
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
