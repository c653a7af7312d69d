//! The programs of a command: the one that it names, and those that this one may run.

use crate::text::shell::{Word, is_assignment};

/// Words of a wrapper among which the program it runs is looked for: its own options and their values are fewer by far,
/// and looking at each of thousands of words takes long.
const MAX_WRAPPER_WORDS: usize = 256;

/// Programs looked at in one command.
const MAX_PROGRAMS: usize = 512;

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "strace", "sudo", "time", "timeout", "toybox", "watch", "xargs",
];

/// What stands for words from elsewhere where nobody says otherwise.
const DEFAULT_PLACEHOLDER: &str = "{}";

/// Programs that run the text they are given.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// A program with its arguments.
#[derive(Debug)]
pub(in crate::engine) struct Program<'a> {
    /// In lower case, without its directory.
    pub(in crate::engine) name: String,
    /// Whether it is called what it is written.
    pub(in crate::engine) has_literal_name: bool,
    /// Whether words from elsewhere are put in where it is called: `xargs -I X X push`.
    pub(in crate::engine) is_substituted: bool,
    pub(in crate::engine) args: &'a [Word],
}

impl<'a> Program<'a> {
    /// The program that `words` begin with, behind assignments.
    pub(super) fn new(words: &'a [Word]) -> Option<Self> {
        let assignments = words.iter().take_while(|word| is_assignment(&word.text)).count();
        let (first, args) = words.get(assignments..)?.split_first()?;
        Some(Self {
            name: name(&first.text),
            has_literal_name: first.is_literal,
            is_substituted: false,
            args,
        })
    }

    /// The same where `placeholder` stands for words from elsewhere.
    fn with_placeholder(self, placeholder: &str) -> Self {
        let is_substituted =
            !self.name.starts_with('-') && self.name.contains(&placeholder.to_ascii_lowercase());
        Self { has_literal_name: self.has_literal_name && !is_substituted, is_substituted, ..self }
    }

    /// What stands for words from elsewhere among the arguments of what it runs, where it puts some there.
    pub(in crate::engine) fn placeholder(&self) -> Option<&'a str> {
        match self.name.as_str() {
            "find" => return Some(DEFAULT_PLACEHOLDER),
            "parallel" | "xargs" => {}
            _ => return None,
        }
        let mut args = self.args.iter().map(|arg| arg.text.as_str());
        let own = match args.find_map(own_placeholder) {
            Some("") => args.next(),
            own => own,
        };
        own.or(Some(DEFAULT_PLACEHOLDER))
    }

    /// Whether it is an option of a wrapper, or a number that one has as its value.
    pub(super) fn is_option(&self) -> bool {
        self.name.starts_with('-')
            || (self.has_literal_name && self.name.starts_with(|char: char| char.is_ascii_digit()))
    }

    /// Whether it runs the program named after it.
    fn is_wrapper(&self) -> bool {
        WRAPPERS.contains(&self.name.as_str())
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

/// What a program is called, wherever it is.
pub(in crate::engine) fn name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// A program where one may begin.
struct ProgramStart<'a> {
    program: Program<'a>,
    /// What stands for words from elsewhere among its arguments.
    placeholder: Option<&'a str>,
    /// Whether one certainly begins there.
    is_certain: bool,
}

/// The program of `words`, and those that it may run where it is one that runs others.
pub(super) fn programs(words: &[Word]) -> Vec<Program<'_>> {
    let mut all = Vec::new();
    let mut from: Vec<ProgramStart<'_>> = ProgramStart::new(words, None, true).into_iter().collect();
    while let Some(ProgramStart { program, placeholder, is_certain }) =
        from.pop().filter(|_| all.len() < MAX_PROGRAMS)
    {
        if program.name == "find" {
            from.extend(
                find_exec_commands(program.args)
                    .filter_map(|words| ProgramStart::new(words, placeholder, true)),
            );
        } else if program.is_wrapper() && is_certain {
            from.extend(starts(program.args, placeholder).into_iter().rev());
        }
        all.push(program);
    }
    all
}

impl<'a> ProgramStart<'a> {
    /// The program of `words`, where `placeholder` stands for words from elsewhere.
    fn new(words: &'a [Word], placeholder: Option<&'a str>, is_certain: bool) -> Option<Self> {
        let program = Program::new(words)?;
        let program = match placeholder {
            Some(placeholder) => program.with_placeholder(placeholder),
            None => program,
        };
        let placeholder = placeholder.or_else(|| program.placeholder());
        Some(Self { program, placeholder, is_certain })
    }
}

/// Where the program that a wrapper runs may begin among its arguments: which of them it is depends on the options, so any of
/// them may be. Before an assignment stands the same program as behind it, and what is said to be a placeholder is none.
fn starts<'a>(args: &'a [Word], mut placeholder: Option<&'a str>) -> Vec<ProgramStart<'a>> {
    let is_mark = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        before.is_some_and(|option| own_placeholder(&option.text) == Some(""))
    };
    let is_start = |at: &usize| !is_mark(*at) && args.get(*at).is_some_and(|word| !is_assignment(&word.text));
    let places = (0..args.len().min(MAX_WRAPPER_WORDS)).filter(is_start).filter_map(|at| args.get(at..));
    let mut start = |words| {
        let start = ProgramStart::new(words, placeholder, false)?;
        // Behind the program that is run stand its arguments, whatever is put into them.
        let goes_on = start.program.is_wrapper() || start.program.is_option();
        placeholder = start.placeholder.filter(|_| goes_on);
        Some(start)
    };
    places.filter_map(&mut start).collect()
}

/// What an option says to stand for words from elsewhere; nothing where the next word says it.
fn own_placeholder(option: &str) -> Option<&str> {
    if let Some(placeholder) = option.strip_prefix("--replace") {
        return placeholder.strip_prefix('=').or(Some(DEFAULT_PLACEHOLDER));
    }
    let letters = option.strip_prefix('-')?.trim_start_matches(['0', 'o', 'p', 'r', 't', 'x']);
    match letters.strip_prefix('i') {
        Some("") => Some(DEFAULT_PLACEHOLDER),
        Some(placeholder) => Some(placeholder),
        None => letters.strip_prefix('I'),
    }
}

/// What `find` runs, each up to its end.
pub(super) fn find_exec_commands(args: &[Word]) -> impl Iterator<Item = &[Word]> {
    let executes = |arg: &Word| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let is_end = |arg: &Word| matches!(arg.text.as_str(), ";" | "+");
    args.iter().enumerate().filter(move |(_, arg)| executes(arg)).filter_map(move |(at, _)| {
        let words = args.get(at + 1..)?;
        words.get(..words.iter().position(is_end).unwrap_or(words.len()))
    })
}
