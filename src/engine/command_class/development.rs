//! Known commands that build, lint and test the project, and commands that read but may run what the project configures, as git does.

/// Commands that build and test, each as a prefix of words.
const DEVELOPMENT_COMMANDS: &[&str] = &[
    "black --check",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo fmt",
    "cargo test",
    "coverage",
    "eslint",
    "go build",
    "go fmt",
    "go test",
    "go vet",
    "golangci-lint",
    "gradle build",
    "gradle test",
    "make",
    "mvn compile",
    "mvn package",
    "mvn test",
    "mypy",
    "npm audit",
    "npm ci",
    "npm install",
    "npm run",
    "npm test",
    "pip install",
    "prettier --check",
    "pytest",
    "python -m black",
    "python -m coverage",
    "python -m mypy",
    "python -m pytest",
    "python -m ruff",
    "python -m unittest",
    "python3 -m black",
    "python3 -m coverage",
    "python3 -m mypy",
    "python3 -m pytest",
    "python3 -m ruff",
    "python3 -m unittest",
    "ruff",
    "tsc",
    "yarn install",
    "yarn run",
    "yarn test",
];

/// Checks whether `words` start with one of [`DEVELOPMENT_COMMANDS`] or are a query.
pub(super) fn is_known(words: &[String]) -> bool {
    is_query(words) || is_development(words)
}

fn is_development(words: &[String]) -> bool {
    DEVELOPMENT_COMMANDS.iter().any(|prefix| {
        let mut words = words.iter();
        prefix.split(' ').all(|wanted| words.next().is_some_and(|word| word == wanted))
    })
}

/// Queries that are known exactly as written.
const QUERIES: &[&str] = &[
    "cargo --version",
    "cargo -V",
    "docker --version",
    "env",
    "git --version",
    "git ls-files",
    "git rev-parse --abbrev-ref HEAD",
    "git rev-parse --show-toplevel",
    "git rev-parse HEAD",
    "git stash list",
    "go version",
    "mvn --version",
    "npm --version",
    "npm -v",
    "pip --version",
    "pip3 --version",
    "rustc --version",
    "rustc -V",
];

/// A command of git that only shows something with these options.
struct GitQuery {
    name: &'static str,
    /// One-letter options without a value, which may be grouped.
    flags: &'static str,
    /// One-letter options with an attached value, or with one in the next word.
    valued: &'static str,
    /// Other options, with or without `=VALUE`. git accepts abbreviations, so others may stand for any option.
    long: &'static [&'static str],
    /// Options that allow other words; with `None` all do.
    operands_with: Option<&'static [&'static str]>,
}

/// Options of `git diff`, `log` and `show`, without those that write files (`--output`), run programs (`--ext-diff`, `--textconv`,
/// `--show-signature`) or read files outside of the repository (`--no-index`).
const SHOW_OPTIONS: &[&str] = &[
    "--abbrev",
    "--abbrev-commit",
    "--after",
    "--all",
    "--author",
    "--before",
    "--branches",
    "--cached",
    "--check",
    "--color",
    "--committer",
    "--date",
    "--decorate",
    "--diff-filter",
    "--exit-code",
    "--find-renames",
    "--first-parent",
    "--follow",
    "--format",
    "--graph",
    "--grep",
    "--histogram",
    "--ignore-all-space",
    "--ignore-space-change",
    "--max-count",
    "--merge-base",
    "--merges",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-patch",
    "--no-renames",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--patch",
    "--pretty",
    "--quiet",
    "--raw",
    "--remotes",
    "--reverse",
    "--shortstat",
    "--since",
    "--skip",
    "--staged",
    "--stat",
    "--summary",
    "--tags",
    "--unified",
    "--until",
    "--word-diff",
];

const GIT_QUERIES: &[GitQuery] = &[
    GitQuery {
        name: "branch",
        flags: "arv",
        valued: "",
        long: &[
            "--all",
            "--contains",
            "--list",
            "--merged",
            "--no-contains",
            "--no-merged",
            "--points-at",
            "--remotes",
            "--show-current",
            "--sort",
            "--verbose",
        ],
        operands_with: Some(&[
            "--contains",
            "--list",
            "--merged",
            "--no-contains",
            "--no-merged",
            "--points-at",
        ]),
    },
    GitQuery { name: "diff", flags: "bpuqswzR", valued: "UMCSG", long: SHOW_OPTIONS, operands_with: None },
    GitQuery {
        name: "log",
        flags: "bpuqswzi0123456789",
        valued: "UMCSGnL",
        long: SHOW_OPTIONS,
        operands_with: None,
    },
    GitQuery { name: "remote", flags: "v", valued: "", long: &["--verbose"], operands_with: Some(&[]) },
    GitQuery { name: "show", flags: "bpuqswz", valued: "UMC", long: SHOW_OPTIONS, operands_with: None },
    GitQuery {
        name: "status",
        flags: "sbz",
        valued: "",
        long: &[
            "--branch",
            "--ignored",
            "--long",
            "--no-renames",
            "--porcelain",
            "--short",
            "--show-stash",
            "--untracked-files",
            "-u",
            "-uall",
            "-uno",
            "-unormal",
        ],
        operands_with: None,
    },
];

/// Checks whether `words` only query the repository or installed programs. What a repository configures for that, such as a file
/// system monitor of git, may run, so that the sandbox must hold it.
fn is_query(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["git", "--no-pager", name, args @ ..] | ["git", name, args @ ..] => {
            GIT_QUERIES.iter().any(|query| query.name == *name && query.accepts(args))
                || is_exact_query(&words)
        }
        ["pip" | "pip3", "list" | "freeze"] => true,
        ["pip" | "pip3", "show", names @ ..] => names.iter().all(|name| !name.starts_with('-')),
        words => is_exact_query(words),
    }
}

/// Checks whether `words` are a query of git that shows contents of files.
pub(super) fn shows_contents(words: &[String]) -> bool {
    let is_patch = |arg: &String| {
        let name = arg.split('=').next().unwrap_or_default();
        let short = arg.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        ["--patch", "--unified", "--word-diff"].contains(&name)
            || short.is_some_and(|letters| letters.contains(['p', 'u', 'U', 'S', 'G', 'L']))
    };
    is_query(words)
        && match words.iter().map(String::as_str).find(|word| matches!(*word, "diff" | "log" | "show")) {
            Some("log") => words.iter().skip(2).any(is_patch),
            found => found.is_some(),
        }
}

fn is_exact_query(words: &[&str]) -> bool {
    QUERIES.iter().any(|query| query.split(' ').eq(words.iter().copied()))
}

impl GitQuery {
    fn accepts(&self, args: &[&str]) -> bool {
        let (mut has_operands, mut only_operands) = (false, false);
        for arg in args {
            if only_operands || !arg.starts_with('-') || *arg == "-" {
                has_operands = true;
                if !super::read_only::is_inside(arg) {
                    return false;
                }
            } else if *arg == "--" {
                only_operands = true;
            } else if !self.has_option(arg) {
                return false;
            }
        }
        let allows = |names: &[&str]| {
            args.iter().any(|arg| names.iter().any(|name| arg.split('=').next() == Some(*name)))
        };
        !has_operands || self.operands_with.is_none_or(allows)
    }

    fn has_option(&self, arg: &str) -> bool {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        if self.long.contains(&name) {
            // `%G` checks signatures with a configured program.
            return !value.contains("%G");
        }
        let letters = arg.trim_start_matches('-');
        let is_short = !arg.starts_with("--") && !letters.is_empty();
        is_short
            && (letters.starts_with(|first| self.valued.contains(first))
                || letters.chars().all(|flag| self.flags.contains(flag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault B14: reading git and version commands needed approval, while `make` ran in the sandbox.
    #[test]
    #[expect(clippy::too_many_lines, reason = "two lists of commands")]
    fn a_query_is_one_only_in_forms_that_change_nothing() {
        let known = |text: &str| is_query(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for text in [
            "git status",
            "git status -sb --porcelain=v2 -uno src",
            "git --no-pager log --oneline -20 main..dev -- src/a.rs",
            "git log -n 5 --format=%h",
            "git diff",
            "git diff --cached --stat HEAD~1",
            "git show HEAD:src/a.rs",
            "git branch",
            "git branch -vv",
            "git branch --show-current",
            "git branch --list feature",
            "git branch --contains HEAD",
            "git remote",
            "git remote -v",
            "git --version",
            "git ls-files",
            "git rev-parse HEAD",
            "git stash list",
            "cargo --version",
            "rustc --version",
            "npm --version",
            "go version",
            "mvn --version",
            "docker --version",
            "pip list",
            "pip freeze",
            "pip show requests",
            "env",
        ] {
            assert!(known(text), "{text}");
        }
        for text in [
            "git",
            "git -c core.fsmonitor=x status",
            "git -C .. status",
            "git --paginate log",
            "git log --output=x",
            "git log --outp=x",
            "git log --show-signature",
            "git log --format=%G?",
            "git diff --ext-diff",
            "git diff --textconv",
            "git diff --no-index a /etc/passwd",
            "git diff /etc/passwd",
            "git diff -pOx",
            "git diff ../x",
            "git show -O/x",
            "git branch new",
            "git branch -v new",
            "git branch -vD old",
            "git branch --list -D old",
            "git branch -D old",
            "git branch -m new",
            "git branch -l new",
            "git branch --edit-description",
            "git remote add x y",
            "git remote show origin",
            "git remote -v update",
            "git fetch",
            "git statu",
            "env A=1 sh",
            "env -i",
            "pip list --log x",
            "pip show --log=x",
            "pip install x",
            "cargo --version --config x",
            "go version -m x",
        ] {
            assert!(!known(text), "{text}");
        }
    }
}
