//! Finds the programs of a command: the program it names and those that this program may run (`env`, `xargs`, `find`).

use agent_text::shell::{Word, is_assignment};

/// Maximum number of a wrapper's words in which the program it runs is searched. Its own options are far fewer, and
/// checking thousands of words is slow.
const MAX_WRAPPER_WORDS: usize = 256;

/// Maximum number of programs checked in one command.
const MAX_PROGRAMS: usize = 512;

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "strace", "sudo", "time", "timeout", "toybox", "watch", "xargs",
];

/// The default placeholder of `find`, `xargs` and `parallel` for words inserted at run time.
const DEFAULT_PLACEHOLDER: &str = "{}";

/// Programs that run script texts.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// A program with its arguments.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// The name in lower case, without its directory.
    pub(crate) name: String,
    /// Whether the name is literal, without expansions.
    pub(crate) has_literal_name: bool,
    /// Whether the name contains a placeholder that is replaced at run time: `xargs -I X X push`.
    pub(crate) is_substituted: bool,
    pub(crate) args: &'a [Word],
}

impl<'a> Program<'a> {
    /// Returns the program at the start of `words`, after assignments.
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

    /// Marks the name as substituted if it contains `placeholder`.
    fn with_placeholder(self, placeholder: &str) -> Self {
        let is_substituted =
            !self.name.starts_with('-') && self.name.contains(&placeholder.to_ascii_lowercase());
        Self { has_literal_name: self.has_literal_name && !is_substituted, is_substituted, ..self }
    }

    /// Returns the placeholder for inserted words in the arguments of the program that this one runs, if it inserts words.
    pub(crate) fn placeholder(&self) -> Option<&'a str> {
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

    /// Checks whether this is an option of a wrapper or a numeric value of one.
    pub(super) fn is_option(&self) -> bool {
        self.name.starts_with('-')
            || (self.has_literal_name && self.name.starts_with(|char: char| char.is_ascii_digit()))
    }

    /// Checks whether it runs the program named in its arguments.
    fn is_wrapper(&self) -> bool {
        WRAPPERS.contains(&self.name.as_str())
    }

    /// Checks whether a flag is present, alone, grouped with other letters or with a value.
    pub(super) fn has_flag(&self, short: char, long: &str) -> bool {
        self.args.iter().any(|arg| match arg.text.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => letters.contains(short),
            _ => arg.text == long || arg.text.strip_prefix(long).is_some_and(|rest| rest.starts_with('=')),
        })
    }

    /// Returns the arguments that are not flags.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> {
        self.args.iter().map(|arg| arg.text.as_str()).filter(|arg| !arg.starts_with('-'))
    }

    /// Checks whether it is a shell.
    pub(super) fn is_shell(&self) -> bool {
        SHELLS.contains(&self.name.as_str())
    }
}

/// Returns the name of a program in lower case, without its directory.
pub(crate) fn name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// A position in the words at which a program may start.
struct ProgramStart<'a> {
    program: Program<'a>,
    /// The placeholder for inserted words in its arguments.
    placeholder: Option<&'a str>,
    /// Whether a program certainly starts there.
    is_certain: bool,
}

/// Returns the program of `words` and the programs that it may run.
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
    /// Returns the program at the start of `words`, in which `placeholder` marks inserted words.
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

/// Returns the positions in a wrapper's arguments at which the program that it runs may start. The exact position depends
/// on the wrapper's options, so every word counts except assignments and the declaration of a placeholder.
fn starts<'a>(args: &'a [Word], mut placeholder: Option<&'a str>) -> Vec<ProgramStart<'a>> {
    let is_placeholder = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        before.is_some_and(|option| own_placeholder(&option.text) == Some(""))
    };
    let is_start =
        |at: &usize| !is_placeholder(*at) && args.get(*at).is_some_and(|word| !is_assignment(&word.text));
    let tails = (0..args.len().min(MAX_WRAPPER_WORDS)).filter(is_start).filter_map(|at| args.get(at..));
    let mut start = |words| {
        let start = ProgramStart::new(words, placeholder, false)?;
        // The words after the program that is run are its arguments.
        let more_follow = start.program.is_wrapper() || start.program.is_option();
        placeholder = start.placeholder.filter(|_| more_follow);
        Some(start)
    };
    tails.filter_map(&mut start).collect()
}

/// Returns the placeholder that an option declares; an empty one when the next word is the placeholder.
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

/// Returns the words of each command that `find` runs.
pub(super) fn find_exec_commands(args: &[Word]) -> impl Iterator<Item = &[Word]> {
    let executes = |arg: &Word| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let is_end = |arg: &Word| matches!(arg.text.as_str(), ";" | "+");
    args.iter().enumerate().filter(move |(_, arg)| executes(arg)).filter_map(move |(at, _)| {
        let words = args.get(at + 1..)?;
        words.get(..words.iter().position(is_end).unwrap_or(words.len()))
    })
}
