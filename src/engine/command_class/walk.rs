//! Visits every command that a shell text may run, through wrappers, substitutions and nested scripts.

use super::inner_text::{InnerText, inner_text, known_output, split_commands};
use super::program::{Program, programs};
use agent_text::shell::{self, Script, ShellParseError, SimpleCommand};

/// Maximum nesting depth of scripts in scripts (`sh -c`, `eval`, text piped into a shell).
const MAX_TEXT_DEPTH: usize = 12;

/// Maximum number of nested scripts in one text.
const MAX_INNER_TEXTS: usize = 256;

/// Maximum number of directories in which a command may run after earlier changes of directory.
const MAX_DIRECTORIES: usize = 8;

/// A simple command with its context.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) simple: &'a SimpleCommand,
    /// The program that it names, and those that this program may run.
    pub(crate) programs: &'a [Program<'a>],
    /// Directories in which it may run besides the start directory; `None` is an unknown directory.
    pub(crate) directories: &'a [Option<String>],
    /// Nesting depth of the script it is in.
    pub(crate) depth: usize,
}

/// A part of a text.
#[derive(Debug)]
pub(crate) enum ScriptPart<'a> {
    /// A script; its commands follow.
    Script(&'a Script),
    /// A command.
    Command(&'a Command<'a>),
    /// Code that runs but is not in the text.
    Unknown,
    /// A text that could not be parsed. If a shell may run it anyway, its approximate commands follow.
    Unclear(ShellParseError),
}

/// Calls `visit` with every part of `text`.
pub(crate) fn walk(text: &str, visit: &mut dyn FnMut(ScriptPart<'_>)) {
    Walker { directories: Vec::new(), left: MAX_INNER_TEXTS, visit }.text(text, 0);
}

struct Walker<'v> {
    directories: Vec<Option<String>>,
    /// Number of nested scripts that may still be visited; 0 after a limit was reached.
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
                // A shell runs the commands before a syntax error.
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

    /// Visits the script text that a program runs.
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

    /// Records a change of directory for the following commands.
    fn track_directory(&mut self, program: &Program<'_>) {
        if !matches!(program.name.as_str(), "cd" | "popd" | "pushd") {
            return;
        }
        let target = program.args.iter().find(|arg| !arg.text.starts_with('-')).filter(|arg| arg.is_literal);
        let Some(target) = target.map(|target| target.text.as_str()) else {
            return self.directories.push(None);
        };
        let below: Vec<String> =
            self.directories.iter().flatten().map(|directory| join(directory, target)).collect();
        let below = below.into_iter().filter(|directory| directory != target);
        self.directories.extend(std::iter::once(target.to_owned()).chain(below).map(Some));
        if self.directories.len() > MAX_DIRECTORIES {
            self.directories.truncate(MAX_DIRECTORIES);
            self.directories.push(None);
        }
    }
}

/// Prefixes a relative `path` with the directory `place`.
pub(super) fn join(directory: &str, path: &str) -> String {
    if path.starts_with(['/', '~', '$']) {
        path.to_owned()
    } else {
        format!("{}/{path}", directory.trim_end_matches('/'))
    }
}
