//! `guardrails.blocked_commands`: regular expressions of commands that never run, matched against the text and each program.

use crate::command_parts::{CommandPart, visit_parts};
use agent_text::pattern;
use agent_text::shell::Word;
use regex::Regex;

/// The compiled patterns.
#[derive(Debug, Clone)]
pub struct BlockedCommands(Vec<Regex>);

impl BlockedCommands {
    /// Compiles `patterns`, which are case-insensitive.
    ///
    /// # Errors
    /// When a pattern is not a valid regular expression.
    pub fn new(patterns: &[String]) -> Result<Self, regex::Error> {
        patterns.iter().map(|text| pattern::case_insensitive(text)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the first pattern that matches `command` or a part of it.
    pub fn find(&self, command: &str) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let mut found = self.first_match(command);
        visit_parts(command, &mut |part| found = found.or_else(|| self.find_in(&part)));
        found
    }

    fn find_in(&self, part: &CommandPart<'_>) -> Option<&str> {
        let program = part.program.map(|program| joined(&program.name, program.args));
        let words = part.words.split_first().map(|(first, rest)| joined(&first.text, rest));
        words.into_iter().chain(program).find_map(|text| self.first_match(&text))
    }

    fn first_match(&self, text: &str) -> Option<&str> {
        self.0.iter().find(|pattern| pattern.is_match(text)).map(Regex::as_str)
    }
}

/// Joins a program and its arguments with single spaces, without quotes.
fn joined(program: &str, args: &[Word]) -> String {
    std::iter::once(program).chain(args.iter().map(|arg| arg.text.as_str())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(patterns: &[&str], command: &str) -> bool {
        let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
        BlockedCommands::new(&patterns).unwrap().find(command).is_some()
    }

    #[test]
    fn s14_a_pattern_holds_for_every_program_of_a_command_however_it_is_wrapped() {
        for command in [
            "git push origin main",
            "GIT PUSH",
            "true; git push",
            "ls && (cd x; git push)",
            "env A=1 git push",
            "A=1 git push",
            "timeout 5 git push",
            "nice -n 3 git  push",
            "/usr/bin/git push",
            "g'i't pu\"sh\"",
            "sh -c 'git push'",
            "echo 'git push' | sh",
            "bash <<E\ngit push\nE",
            "eval git push",
            "find . -name x -exec git push ';'",
            "x=$(git push)",
            "if true; then git push; fi",
            "f() { git push; }; f",
            "git push > log 2>&1",
        ] {
            assert!(found(&["^git push"], command), "{command}");
        }
        for command in
            ["git status", "echo git push", "ls 'git push'", "grep 'git push' log", "git stash push"]
        {
            assert!(!found(&["^git push"], command), "{command}");
        }
    }

    #[test]
    fn s14_a_pattern_is_looked_for_in_the_whole_text_too() {
        assert!(found(&["prod-db"], "psql --host prod-db.example"));
        assert!(found(&["curl .*\\| *jq"], "curl x.org | jq ."), "over a pipe");
        assert!(found(&["docker"], "ls; (docker"), "of a text that is not understood");
        assert!(found(&["^docker$"], "ls\n'docker'"));
        assert!(!found(&[], "docker"));
        assert!(BlockedCommands::new(&["(".to_owned()]).is_err());
    }

    proptest! {
        #[test]
        fn s14_what_stands_around_a_blocked_program_does_not_free_it(
            before in "(true; |ls && |\\( ){0,3}(env A=1 |timeout 5 ){0,2}(sh -c '(true; |\\( ){0,2}(env A=1 )?)?",
            after in "( ?; ls| > x| --force)?",
        ) {
            let closing: String = before.matches(['(', '\'']).rev().map(|open| if open == "(" { " )" } else { "'" }).collect();
            let command = format!("{before}git push{after}{closing}");
            prop_assert!(found(&["^git push"], &command), "{}", command);
        }

        #[test]
        fn any_text_is_looked_through(text in "(git |push|sh -c |env |[a'\"|;<>&$(){}` \n-]){0,60}") {
            found(&["^git push"], &text);
        }
    }
}
