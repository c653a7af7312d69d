//! Recognizes test commands, whose success means that the tests passed.

use crate::command_class::program;
use agent_text::lines::list_first;
use agent_text::shell::{self, SimpleCommand};

/// First words of the built-in test commands.
const TESTS: &[&str] = &[
    "bazel test",
    "bun test",
    "bundle exec rspec",
    "cargo nextest run",
    "cargo test",
    "ctest",
    "deno test",
    "dotnet test",
    "go test",
    "gradle check",
    "gradle test",
    "gradlew check",
    "gradlew test",
    "jest",
    "make check",
    "make test",
    "meson test",
    "mix test",
    "mvn test",
    "mvn verify",
    "mvnw test",
    "mvnw verify",
    "node --test",
    "nox",
    "npm run test",
    "npm test",
    "npx jest",
    "npx vitest run",
    "phpunit",
    "pnpm test",
    "poetry run pytest",
    "pytest",
    "python -m pytest",
    "python -m unittest",
    "python3 -m pytest",
    "python3 -m unittest",
    "rake test",
    "rspec",
    "swift test",
    "tox",
    "uv run pytest",
    "vitest run",
    "yarn test",
];

/// Arguments with which a test command does not run tests.
const NON_TEST_FLAGS: &[&str] = &[
    "--co",
    "--collect-only",
    "--dry-run",
    "--help",
    "--list",
    "--list-tests",
    "--no-run",
    "--version",
    "-h",
];

/// Number of example commands in a message to the model.
const EXAMPLES: usize = 5;

/// First words of all test commands.
#[derive(Debug, Clone)]
pub struct TestCommands(Vec<Vec<String>>);

impl TestCommands {
    /// Creates the list of the built-in commands and `more`, given by their first words.
    pub fn new(more: &[String]) -> Self {
        let all = more.iter().map(String::as_str).chain(TESTS.iter().copied());
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Self(all.map(words).filter(|words| !words.is_empty()).collect())
    }

    /// Lists some of the commands for the model, configured ones first.
    pub fn examples(&self) -> String {
        let all = self.0.iter().map(|words| format!("`{}`", words.join(" ")));
        list_first(all, EXAMPLES, ", ").unwrap_or_default()
    }

    /// Checks whether `command` succeeds only if tests pass: it is a test command, alone or joined with others by `&&`. In a
    /// pipe or before `;`, the exit code of the test is lost.
    pub fn is_test(&self, command: &str) -> bool {
        let alone: Option<Vec<SimpleCommand>> = command.trim().split("&&").map(single_command).collect();
        // An `&&` in a comment or in quotes does not separate commands.
        let are_all = |commands: &Vec<SimpleCommand>| {
            shell::parse(command).is_ok_and(|script| script.commands.len() == commands.len())
        };
        alone.filter(are_all).is_some_and(|commands| commands.iter().any(|simple| self.tests(simple)))
    }

    fn tests(&self, simple: &SimpleCommand) -> bool {
        let begins = |wanted: &Vec<String>| {
            simple.words.len() >= wanted.len()
                && simple.words.iter().zip(wanted).enumerate().all(|(at, (word, wanted))| {
                    let is_named = at == 0 && program::name(&word.text) == program::name(wanted);
                    word.is_literal && (is_named || word.text == *wanted)
                })
        };
        let is_idle = simple.words.iter().any(|word| NON_TEST_FLAGS.contains(&word.text.as_str()));
        !is_idle && self.0.iter().any(begins)
    }
}

/// Parses `text` as a single command whose exit code is that of the text.
fn single_command(text: &str) -> Option<SimpleCommand> {
    let is_negated = text.split_whitespace().next() == Some("!");
    let mut script = shell::parse(text).ok().filter(|script| script.is_list && !is_negated)?;
    let simple = script.commands.pop().filter(|simple| !simple.is_background)?;
    script.commands.is_empty().then_some(simple)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_test(command: &str) -> bool {
        TestCommands::new(&["./check  all".to_owned()]).is_test(command)
    }

    #[test]
    fn s17_a_test_counts_where_the_command_ends_as_it_does() {
        for command in [
            "pytest",
            "pytest -x tests",
            " cargo test --lib a\n",
            "cd sub && pytest",
            "cargo build && cargo test && echo ok",
            "A=1 pytest",
            "A=\'1\' /usr/bin/pytest",
            "./gradlew test --info",
            "npm test > log 2>&1",
            "{ pytest; }",
            "time go test ./...",
            "./check all --fast",
        ] {
            assert!(is_test(command), "{command}");
        }
        for command in [
            "",
            "echo pytest",
            "pytest | tail",
            "pytest; true",
            "pytest\ntrue",
            "pytest || true",
            "true || pytest",
            "! pytest",
            "pytest &",
            "cd sub && pytest | cat",
            "if pytest; then true; fi",
            "f() { pytest; }",
            "echo \"a && pytest\"",
            "true # && pytest",
            "$pytest",
            "pytest --version",
            "cargo test --no-run",
            "cargo testing",
            "./check",
        ] {
            assert!(!is_test(command), "{command}");
        }
    }

    proptest! {
        #[test]
        fn s17_any_text_is_judged_and_what_hides_the_end_of_a_test_is_none(
            before in "[a-z \"'&;|(){}!\n]{0,20}", after in "[a-z \"'&;|(){}!\n]{0,20}",
        ) {
            is_test(&format!("{before}pytest{after}"));
            let hidden = format!("{before}pytest || true");
            prop_assert!(!is_test(&hidden), "{}", hidden);
        }
    }
}
