//! The parts of a command that rules are about: every program that it names or may run.

use super::command_class::look::{self, Command};
use super::command_class::program::Program;
use crate::text::shell::{Direction, Redirection, Word};

/// Words of a wrapper, options aside, of which one may be the program that it runs: `timeout 5 git`, `flock FILE git`.
const WRAPPER_OPERANDS: usize = 2;

/// One thing that a command runs or may run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part<'a> {
    /// All words, where a program is named plainly.
    pub(super) words: &'a [Word],
    /// The program, where there is one.
    pub(super) program: Option<&'a Program<'a>>,
    /// Whether this is all that is to be said: nothing in front of it, no file written, no wrapper around it.
    pub(super) is_plain: bool,
    /// Whether the text tells what runs.
    pub(super) is_told: bool,
    /// What stands for words from elsewhere among its arguments, where it gets some; behind them there may be more.
    pub(super) mark: Option<&'a str>,
}

/// Shows the parts of `command` to `visit`, in order.
pub(super) fn parts(command: &str, visit: &mut dyn FnMut(Part<'_>)) {
    look::look(command, &mut |found| match found {
        look::Part::Script(script) if script.is_list => {}
        look::Part::Script(_) => visit(Part { is_told: true, ..Part::default() }),
        look::Part::Command(command) => of(command, visit),
        look::Part::Hidden | look::Part::Unclear(_) => visit(Part::default()),
    });
}

/// A command, and what a wrapper among its words runs in its turn.
fn of(command: &Command<'_>, visit: &mut dyn FnMut(Part<'_>)) {
    let simple = command.simple;
    let is_file = |to: &Redirection| to.direction == Direction::Write && to.target.text != "/dev/null";
    let is_plain = !simple.assigns && !simple.redirections.iter().any(is_file) && simple.function.is_none();
    if simple.words.is_empty() && is_plain {
        return;
    }
    let is_told = simple.words.first().is_none_or(|program| program.is_literal);
    visit(Part { words: &simple.words, program: command.programs.first(), is_plain, is_told, mark: None });
    let (mut operands, mut mark) = (0, command.programs.first().and_then(Program::mark));
    for program in command.programs.iter().skip(1) {
        if program.is_named || program.is_put_in || operands < WRAPPER_OPERANDS {
            // Of words that may not even be a program nothing more is guessed.
            let mark = mark.filter(|_| program.is_named);
            visit(Part { program: Some(program), is_told: true, mark, ..Part::default() });
        }
        operands += usize::from(program.is_named && !program.name.starts_with('-'));
        mark = mark.or_else(|| program.mark());
    }
}
