//! Splits a command into the parts that rules match: every program that it names or may run.

use super::command_class::program::Program;
use super::command_class::walk::{self, Command};
use agent_text::shell::{Direction, Redirection, Word};

/// Number of a wrapper's first words, not counting options, that may be the program it runs: `timeout 5 git`,
/// `flock FILE git`.
const WRAPPER_OPERANDS: usize = 2;

/// One program that a command runs or may run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommandPart<'a> {
    /// All words of a simple command; empty for a program in a wrapper.
    pub(super) words: &'a [Word],
    /// The program, if there is one.
    pub(super) program: Option<&'a Program<'a>>,
    /// Whether it has no assignments, writes no file by redirection, defines no function and is not run by a wrapper.
    pub(super) is_plain: bool,
    /// Whether the text determines which program runs.
    pub(super) is_known: bool,
    /// The placeholder for words inserted into its arguments at run time, if any; words may also be appended.
    pub(super) placeholder: Option<&'a str>,
}

/// Calls `visit` with the parts of `command`, in order.
pub(super) fn visit_parts(command: &str, visit: &mut dyn FnMut(CommandPart<'_>)) {
    walk::walk(command, &mut |found| match found {
        walk::ScriptPart::Script(script) if script.is_list => {}
        walk::ScriptPart::Script(_) => visit(CommandPart { is_known: true, ..CommandPart::default() }),
        walk::ScriptPart::Command(command) => visit_command(command, visit),
        walk::ScriptPart::Unknown | walk::ScriptPart::Unclear(_) => visit(CommandPart::default()),
    });
}

/// Visits a simple command and the programs that its wrappers run.
fn visit_command(command: &Command<'_>, visit: &mut dyn FnMut(CommandPart<'_>)) {
    let simple = command.simple;
    let is_file = |to: &Redirection| to.direction == Direction::Write && to.target.text != "/dev/null";
    let is_plain = !simple.assigns && !simple.redirections.iter().any(is_file) && simple.function.is_none();
    if simple.words.is_empty() && is_plain {
        return;
    }
    let is_known = simple.words.first().is_none_or(|program| program.is_literal);
    visit(CommandPart {
        words: &simple.words,
        program: command.programs.first(),
        is_plain,
        is_known,
        placeholder: None,
    });
    let (mut operands, mut placeholder) = (0, command.programs.first().and_then(Program::placeholder));
    for program in command.programs.iter().skip(1) {
        if program.has_literal_name || program.is_substituted || operands < WRAPPER_OPERANDS {
            // If the word may not be a program at all, its placeholder is not used.
            let placeholder = placeholder.filter(|_| program.has_literal_name);
            visit(CommandPart {
                program: Some(program),
                is_known: true,
                placeholder,
                ..CommandPart::default()
            });
        }
        operands += usize::from(program.has_literal_name && !program.name.starts_with('-'));
        placeholder = placeholder.or_else(|| program.placeholder());
    }
}
