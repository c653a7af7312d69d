//! Recognizes plain commands without expansions, and among them those that only read.

use agent_text::shell::{SimpleCommand, Word};

/// A read-only program and the arguments with which it only reads.
struct ReadOnlyProgram {
    name: &'static str,
    /// One-letter flags without a value; they may be grouped.
    flags: &'static str,
    /// One-letter flags with a value, attached or in the next word.
    valued: &'static str,
    /// Long flags, with or without `=VALUE`.
    long: &'static [&'static str],
    /// The allowed other words.
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files inside the workspace, judging by their names.
    Paths,
    /// At most one such file, because a second one would be written.
    OnePath,
    /// Exactly one such directory, because the default is the home directory.
    Directory,
    /// A `sed` script that prints lines, then such files.
    LinePrinter,
    /// `+FORMAT` only: anything else sets the clock.
    Format,
    /// None.
    Nothing,
}

const PATHS: Operands = Operands::Paths;

/// The read-only programs. `git`, `env` and `history` are excluded: they run configured programs or show secrets.
const PROGRAMS: &[ReadOnlyProgram] = &[
    ReadOnlyProgram { name: "cat", flags: "AbeEnstTv", valued: "", long: &["--number"], operands: PATHS },
    ReadOnlyProgram { name: "cd", flags: "", valued: "", long: &[], operands: Operands::Directory },
    ReadOnlyProgram {
        name: "cmp",
        flags: "bls",
        valued: "in",
        long: &["--silent", "--quiet"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "cut",
        flags: "sz",
        valued: "bcdf",
        long: &["--delimiter", "--fields"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "date",
        flags: "uIR",
        valued: "d",
        long: &["--utc", "--iso-8601"],
        operands: Operands::Format,
    },
    ReadOnlyProgram {
        name: "diff",
        flags: "abBcdeEinNpqrstTuwy",
        valued: "U",
        long: &["--brief", "--unified"],
        operands: PATHS,
    },
    ReadOnlyProgram { name: "du", flags: "abchkmsx", valued: "d", long: &["--max-depth"], operands: PATHS },
    ReadOnlyProgram { name: "false", flags: "", valued: "", long: &[], operands: Operands::Nothing },
    ReadOnlyProgram {
        name: "file",
        flags: "bhi",
        valued: "",
        long: &["--brief", "--mime", "--mime-type"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "grep",
        flags: "aEFGhHiIlLnoPqrsTUvwxcz",
        valued: "ABCem",
        long: &[
            "--after-context",
            "--before-context",
            "--color",
            "--context",
            "--count",
            "--exclude",
            "--exclude-dir",
            "--extended-regexp",
            "--files-with-matches",
            "--fixed-strings",
            "--ignore-case",
            "--include",
            "--invert-match",
            "--line-number",
            "--max-count",
            "--only-matching",
            "--perl-regexp",
            "--recursive",
            "--regexp",
            "--word-regexp",
        ],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "head",
        flags: "qv0123456789",
        valued: "cn",
        long: &["--bytes", "--lines"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "ls",
        flags: "aAbBcCdfFgGhiklmnopqQrRsStuUvxX1Z",
        valued: "",
        long: &["--all", "--almost-all", "--color", "--full-time", "--human-readable", "--recursive"],
        operands: PATHS,
    },
    ReadOnlyProgram { name: "nl", flags: "", valued: "bnw", long: &[], operands: PATHS },
    ReadOnlyProgram { name: "pwd", flags: "LP", valued: "", long: &[], operands: Operands::Nothing },
    ReadOnlyProgram {
        name: "rg",
        flags: "cFHhiIlnNopPsSuUvwx0",
        valued: "ABCegmtT",
        long: &[
            "--after-context",
            "--before-context",
            "--case-sensitive",
            "--color",
            "--context",
            "--count",
            "--files",
            "--files-with-matches",
            "--fixed-strings",
            "--glob",
            "--heading",
            "--hidden",
            "--ignore-case",
            "--json",
            "--line-number",
            "--max-count",
            "--multiline",
            "--no-heading",
            "--no-ignore",
            "--only-matching",
            "--regexp",
            "--sort",
            "--stats",
            "--type",
            "--type-not",
            "--word-regexp",
        ],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "sed",
        flags: "nEr",
        valued: "",
        long: &["--quiet"],
        operands: Operands::LinePrinter,
    },
    ReadOnlyProgram {
        name: "sort",
        flags: "bcCdfghiMnrRsuVz",
        valued: "kt",
        long: &["--key", "--numeric-sort", "--reverse", "--unique"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "stat",
        flags: "fLt",
        valued: "c",
        long: &["--format", "--printf", "--terse"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "tail",
        flags: "qv0123456789",
        valued: "cn",
        long: &["--bytes", "--lines"],
        operands: PATHS,
    },
    ReadOnlyProgram {
        name: "tree",
        flags: "aACdDfFghinpqsu",
        valued: "ILP",
        long: &["--dirsfirst", "--noreport"],
        operands: PATHS,
    },
    ReadOnlyProgram { name: "true", flags: "", valued: "", long: &[], operands: Operands::Nothing },
    ReadOnlyProgram {
        name: "uname",
        flags: "aimnoprsv",
        valued: "",
        long: &["--all"],
        operands: Operands::Nothing,
    },
    ReadOnlyProgram {
        name: "uniq",
        flags: "cdDiuz",
        valued: "fsw",
        long: &["--count", "--repeated"],
        operands: Operands::OnePath,
    },
    ReadOnlyProgram {
        name: "wc",
        flags: "clLmw",
        valued: "",
        long: &["--bytes", "--lines", "--words"],
        operands: PATHS,
    },
    ReadOnlyProgram { name: "which", flags: "a", valued: "", long: &[], operands: PATHS },
    ReadOnlyProgram { name: "whoami", flags: "", valued: "", long: &[], operands: Operands::Nothing },
];

/// Allowed tests and actions of `find`; without `-exec`, `-ok`, `-delete`, `-fprint` and similar actions.
const FIND_TESTS: &[&str] = &[
    "-a",
    "-and",
    "-depth",
    "-empty",
    "-iname",
    "-ipath",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-not",
    "-o",
    "-or",
    "-path",
    "-print",
    "-print0",
    "-prune",
    "-size",
    "-type",
];

/// Programs that only print their arguments.
const PRINTERS: &[&str] = &["basename", "dirname", "echo"];

/// Commands that are safe exactly as written. Version queries of tools that read project files first are excluded.
const WHOLE_COMMANDS: &[&str] = &[
    "java -version",
    "node --version",
    "node -v",
    "python --version",
    "python -V",
    "python3 --version",
    "python3 -V",
];

/// Returns the words of a command if all are literal and it has no assignments, substitutions, here-documents or
/// redirections other than to `/dev/null`; else `None`.
pub(super) fn plain_words(simple: &SimpleCommand) -> Option<Vec<String>> {
    let discards = simple.redirections.iter().all(|redirection| redirection.target.raw == "/dev/null");
    let is_bare = !simple.assigns && !simple.is_background && simple.nested.is_empty();
    let is_bare = is_bare && simple.document.is_empty() && discards && !simple.words.is_empty();
    let is_plain = is_bare && simple.words.iter().all(is_plain);
    is_plain.then(|| simple.words.iter().map(|word| word.text.clone()).collect())
}

/// Checks that a word has no variables, globs, escapes or invisible characters.
fn is_plain(word: &Word) -> bool {
    let (mut quote, mut before) = (None, ' ');
    let all = word.raw.chars().all(|char| match (quote, std::mem::replace(&mut before, char)) {
        (None, _) if matches!(char, '\'' | '"') => {
            quote = Some(char);
            true
        }
        // A tilde is a home directory at the beginning of a word and after a colon or an equals sign only: not in `HEAD~1`.
        (None, before) => is_bare(char) || char == '~' && before.is_ascii_alphanumeric(),
        (Some(open), _) if open == char => {
            quote = None;
            true
        }
        (Some('"'), _) if matches!(char, '$' | '`' | '\\' | '!') => false,
        (Some(_), _) => is_visible(char),
    });
    all && word.is_literal
}

/// Checks whether `words` are a read-only program with arguments that only read.
pub(super) fn is_read_only(words: &[String]) -> bool {
    let Some((name, args)) = words.split_first() else { return false };
    if PRINTERS.contains(&name.as_str()) || WHOLE_COMMANDS.iter().any(|whole| whole.split(' ').eq(words)) {
        return true;
    }
    if name == "find" {
        return args.iter().all(|arg| {
            if arg.starts_with('-') { FIND_TESTS.contains(&arg.as_str()) } else { is_inside(arg) }
        });
    }
    PROGRAMS.iter().find(|program| program.name == name).is_some_and(|program| program.accepts(args))
}

/// Checks whether the arguments of `grep` make it search directories.
pub(super) fn is_recursive(args: &[String]) -> bool {
    let joined = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('r');
    args.iter().any(|arg| arg == "--recursive" || joined(arg))
}

impl ReadOnlyProgram {
    fn accepts(&self, args: &[String]) -> bool {
        let mut operands = Vec::new();
        let mut only_operands = false;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if only_operands || arg == "-" || !arg.starts_with('-') {
                operands.push(arg.as_str());
            } else if arg == "--" {
                only_operands = true;
            } else if arg.starts_with("--") {
                let (flag, value) = arg.split_once('=').unwrap_or((arg, ""));
                if !self.long.contains(&flag) || !is_inside(value) {
                    return false;
                }
            } else {
                match self.short(arg) {
                    ShortFlag::Unknown => return false,
                    ShortFlag::Complete => {}
                    // Without its value, the program fails and does nothing.
                    ShortFlag::NeedsValue => {
                        args.next();
                    }
                }
            }
        }
        self.accepts_operands(&operands)
    }

    fn short(&self, arg: &str) -> ShortFlag {
        for (at, flag) in arg.char_indices().skip(1) {
            if self.valued.contains(flag) {
                return if at + flag.len_utf8() == arg.len() {
                    ShortFlag::NeedsValue
                } else {
                    ShortFlag::Complete
                };
            }
            if !self.flags.contains(flag) {
                return ShortFlag::Unknown;
            }
        }
        ShortFlag::Complete
    }

    fn accepts_operands(&self, operands: &[&str]) -> bool {
        let inside = |paths: &[&str]| paths.iter().all(|path| is_inside(path));
        match self.operands {
            Operands::Paths => inside(operands),
            Operands::OnePath => operands.len() <= 1 && inside(operands),
            Operands::Directory => operands.len() == 1 && inside(operands) && operands != ["-"],
            Operands::LinePrinter => {
                operands.split_first().is_some_and(|(script, files)| prints_lines(script) && inside(files))
            }
            Operands::Format => operands.iter().all(|operand| operand.starts_with('+')),
            Operands::Nothing => operands.is_empty(),
        }
    }
}

enum ShortFlag {
    Complete,
    NeedsValue,
    Unknown,
}

/// Checks whether a `sed` script has the form `5p`, `1,5p` or `1,$p`.
fn prints_lines(script: &str) -> bool {
    let is_line =
        |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    script
        .strip_suffix('p')
        .is_some_and(|range| range.split(',').count() <= 2 && range.split(',').all(is_line))
}

/// Checks whether `path` stays below the working directory, judging by its text.
pub(super) fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && path.split('/').all(|part| part != "..")
}

/// Checks whether a character has no special meaning to a shell outside quotes.
fn is_bare(char: char) -> bool {
    char.is_alphanumeric() || "-_./,:=+@%^".contains(char)
}

/// Checks whether a character is visible and unambiguous: no control characters, direction marks or unusual spaces.
fn is_visible(char: char) -> bool {
    char.is_ascii_graphic() || char == ' ' || char.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_text::shell::parse;
    use proptest::prelude::*;

    fn plain(text: &str) -> Option<Vec<String>> {
        let script = parse(text).ok()?;
        script.commands.first().filter(|_| script.commands.len() == 1).and_then(plain_words)
    }

    #[test]
    fn words_are_plain_or_none() {
        assert_eq!(plain("grep -n 'a $b' \"c d\" x.txt").unwrap(), ["grep", "-n", "a $b", "c d", "x.txt"]);
        assert_eq!(plain("ls 2>&1 >/dev/null </dev/null # b").unwrap(), ["ls"]);
        assert_eq!(plain("git diff HEAD~1 a~").unwrap(), ["git", "diff", "HEAD~1", "a~"]);
        let odd = [
            "a $b",
            "a *",
            "a ~",
            "a ~b",
            "a b=~",
            "a b:~/c",
            "a 'b'~",
            "a \\b",
            "a 'b'\\c",
            "a \"$b\"",
            "A=1 b",
            "A=1",
            "a {b,c}",
            "a \"b!c\"",
            "ls \u{202e}x",
            "a 'b\u{202e}'",
            "a \u{a0}b",
            "a <b",
            "a >b",
            "a <<<b",
            "a <<'E'\nE\nE",
            "a&",
            "a [b]",
            "a 'b\nc'",
            "> a",
            "a\r",
        ];
        for text in odd {
            assert_eq!(plain(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_hold_nothing_of_the_shell_outside_quotes(text in "[a-c '\"$;|&<>`\\\\*~#\n(){}=/.-]{0,40}") {
            if let Some(words) = plain(&text) {
                prop_assert!(!words.is_empty());
                let unquoted: String = text.split('\'').step_by(2).collect();
                let unquoted = ["a~", "b~", "c~"].iter().fold(unquoted, |text, revision| text.replace(revision, ""));
                prop_assert!(text.contains(['"', '#', '>', '<']) || !unquoted.contains(['$', '|', '&', '`', '*', '~']));
            }
        }
    }
}
