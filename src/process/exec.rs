//! Chooses the executable of a command line: the program itself if bash would only exec it, else the shell.
//!
//! Skipping bash saves about 1 ms, most of it for loading its locale.

use super::launch_protocol::LaunchRequest;
use super::shell::BASH;
use super::umask;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words that bash does not look up in the search path: its keywords and builtins (`compgen -bk` of bash 5.2). `true` and
/// `false` are missing because the programs behave like the builtins except for long options. Builtins that differ from the
/// program, like `echo`, are run by bash.
const SHELL_WORDS: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
];

/// Characters besides letters and digits that bash does not interpret in a program's name.
const PLAIN_IN_NAMES: &str = "_-./+";

/// Characters besides letters and digits that bash does not interpret in an argument.
const PLAIN_IN_ARGUMENTS: &str = "_-./+:,@%=";

/// Variables that bash changes for its programs, or that change how bash runs a command.
const BASH_VARIABLES: &[&str] =
    &["EXECIGNORE", "OLDPWD", "POSIXLY_CORRECT", "PWD", "SHELLOPTS", "SHLVL", "_"];

/// Starts the program of `request` with the standard input `stdin` and the user's umask. `start` either spawns it or replaces
/// this process. This process must not create files afterwards.
///
/// # Errors
/// Fails if `start` fails for the program and for the shell.
pub(super) fn start<T>(
    request: &LaunchRequest,
    stdin: &OwnedFd,
    mut start: impl FnMut(&mut Command) -> io::Result<T>,
) -> io::Result<T> {
    umask::set(request.umask);
    let mut with_input = |mut command: Command| start(command.stdin(stdin.try_clone()?));
    // Bash runs or reports whatever cannot be executed directly, such as a script without an interpreter line.
    direct_command(&request.argv, &request.env)
        .map(&mut with_input)
        .filter(Result::is_ok)
        .unwrap_or_else(|| with_input(argv_command(&request.argv, &request.env)))
}

/// Builds the command for `argv` as it is.
#[expect(clippy::disallowed_methods, reason = "this is where commands are started")]
fn argv_command(argv: &[String], env: &BTreeMap<String, String>) -> Command {
    let (program, args) =
        argv.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env);
    command
}

/// Builds the command that bash would exec for `argv`, with the environment that bash would pass. `None` if bash is needed.
#[expect(clippy::disallowed_methods, reason = "this is where commands are started")]
fn direct_command(argv: &[String], env: &BTreeMap<String, String>) -> Option<Command> {
    let [shell, "-c", "--", line] = argv.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return None;
    };
    let words = simple_words(line).filter(|_| shell == BASH)?;
    let (name, args) = words.split_first()?;
    let means_more = |name: &String| name.starts_with("BASH") || BASH_VARIABLES.contains(&name.as_str());
    let file = find_in_path(name, env.get("PATH")?).filter(|_| !env.keys().any(means_more))?;
    let mut command = Command::new(&file);
    command.arg0(name).args(args).env_clear().envs(env);
    command.env("PWD", std::env::current_dir().ok()?).env("SHLVL", "0").env("_", &file);
    Some(command)
}

/// Splits `line` into words if it is one simple command that bash would pass on unchanged.
fn simple_words(line: &str) -> Option<Vec<&str>> {
    let is_plain = |word: &str, plain: &str| {
        word.chars().all(|character| character.is_ascii_alphanumeric() || plain.contains(character))
    };
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let (name, args) = words.split_first()?;
    let explains_itself = matches!(*name, "true" | "false") && args.iter().any(|arg| arg.starts_with("--"));
    let is_of_the_shell = SHELL_WORDS.contains(name) || explains_itself;
    let all_plain =
        is_plain(name, PLAIN_IN_NAMES) && args.iter().all(|word| is_plain(word, PLAIN_IN_ARGUMENTS));
    (all_plain && !is_of_the_shell).then_some(words)
}

/// Finds the file that bash would execute for `name` with the search path `path`. `None` if that depends on anything else.
pub fn find_in_path(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(name.into());
    }
    let entries: Vec<&Path> = path.split(':').map(Path::new).collect();
    let mut files = entries.iter().map(|entry| entry.join(name));
    let all_absolute = entries.iter().all(|entry| entry.is_absolute());
    files.find(|file| is_executable(file)).filter(|_| all_absolute)
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what is under test starts programs")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn argv(line: &str) -> Vec<String> {
        [BASH, "-c", "--", line].map(str::to_owned).to_vec()
    }

    fn environment(more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let usual = [("PATH", "/nowhere:/usr/bin:/bin"), ("HOME", "/h"), ("LC_ALL", "C")];
        usual.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Runs `command` and returns its exit code and both streams.
    fn run(mut command: Command) -> (Option<i32>, String) {
        let output = command.output().unwrap();
        let mut lines: Vec<_> = [output.stdout, output.stderr]
            .iter()
            .flat_map(|bytes| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        lines.sort();
        (output.status.code(), lines.join("\n"))
    }

    #[test]
    fn a_program_alone_does_and_finds_what_it_does_and_finds_below_bash() {
        for line in [
            "true",
            "false",
            "  env  ",
            "printenv PWD SHLVL _ OLDPWD PATH BASHPID",
            "/usr/bin/env",
            "ls -d /nowhere/a /etc",
            "cat a=b %1 x@y,z +1 -- /etc/hostname",
            "basename a/b.c .c",
            "readlink /proc/self/exe",
        ] {
            let (env, argv) = (environment(&[("A-B", "c")]), argv(line));
            assert_eq!(
                run(direct_command(&argv, &env).expect(line)),
                run(argv_command(&argv, &env)),
                "{line}"
            );
        }
    }

    #[test]
    fn whatever_bash_would_do_itself_it_does() {
        for line in [
            "",
            " ",
            "echo a",
            "cd /",
            "[ a ]",
            "time true",
            "true;",
            "true --version",
            "true &",
            "A=b env",
            "ls *",
            "ls ~",
            "ls {a,b}",
            "ls $HOME",
            "ls 'a'",
            "true\nfalse",
            "true #",
            "ls >a",
            "! true",
            "nothing-of-this-name",
            ".",
            "%1",
            "ls\ttrue",
            "exit",
            "ulimit -n",
        ] {
            assert!(direct_command(&argv(line), &environment(&[])).is_none(), "{line}");
        }
        let elsewhere = ["/bin/sh", "-c", "--", "true"].map(str::to_owned);
        assert!(direct_command(&elsewhere, &environment(&[])).is_none());
        for (name, value) in [
            ("BASH_ENV", "a"),
            ("BASH_FUNC_true%%", "() { echo a; }"),
            ("PWD", "/"),
            ("SHLVL", "3"),
            ("EXECIGNORE", "*"),
            ("PATH", "/usr/bin:."),
            ("PATH", ":/usr/bin"),
            ("PATH", ""),
        ] {
            assert!(
                direct_command(&argv("true"), &environment(&[(name, value)])).is_none(),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn words_of_the_shell_are_those_of_the_bash_that_is_here() {
        let listed = run(argv_command(&argv("compgen -bk"), &environment(&[]))).1;
        let missing: Vec<&str> = listed
            .lines()
            .filter(|word| {
                word.starts_with(|first: char| {
                    first.is_ascii_alphanumeric() || PLAIN_IN_NAMES.contains(first)
                })
            })
            .filter(|word| !SHELL_WORDS.contains(word))
            .collect();
        assert_eq!(missing, ["false", "true"]);
    }

    #[test]
    fn what_cannot_be_executed_is_left_to_bash() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("script");
        fs::write(&file, "echo run by ${BASH##*/}\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let line = file.to_str().unwrap().to_owned();
        let env = environment(&[]);
        assert!(direct_command(&argv(&line), &env).is_some());
        let request = LaunchRequest {
            argv: argv(&line),
            env,
            ..LaunchRequest::without_command(crate::tier::Tier::Group)
        };
        let null = fs::File::open("/dev/null").unwrap().into();
        let output = start(&request, &null, Command::output).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "run by bash\n");
    }
}
