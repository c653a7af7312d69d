//! Approvals that the user has granted for all similar calls, until the run or the conversation ends.

use crate::command_class::CommandClass;
use crate::policy::MODE_RULE_PREFIX;
use crate::rules::PolicyRule;
use agent_core::language::Language;
use agent_fetch::page_url::HostPattern;
use agent_messages as messages;
use agent_tools::Plan;
use agent_tools::toolbox::EDIT_TOOLS;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// Permission for similar calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    tool: String,
    scope: GrantScope,
}

/// Programs whose calls are similar only if they are identical: what they destroy, where they reach or what they run is in their arguments.
/// Programs without subcommands: their first argument does not say what they do.
const PLAIN_PROGRAMS: &[&str] = &[
    "basename", "cat", "cmp", "cut", "date", "diff", "dirname", "du", "echo", "file", "grep", "head", "ls",
    "mkdir", "printf", "realpath", "rg", "seq", "sleep", "sort", "stat", "tail", "touch", "tr", "uniq", "wc",
];

const EXACT_PROGRAMS: &[&str] = &[
    "awk", "bash", "bunx", "busybox", "chgrp", "chmod", "chown", "cp", "curl", "dash", "dd", "deno", "doas",
    "env", "eval", "exec", "find", "install", "kill", "killall", "ln", "lua", "mkfs", "mv", "nice", "node",
    "nohup", "npx", "parallel", "perl", "php", "pipx", "pkill", "python", "python3", "rm", "rmdir", "rsync",
    "ruby", "scp", "sed", "setsid", "sh", "shred", "ssh", "stdbuf", "sudo", "tee", "time", "timeout",
    "truncate", "unlink", "uvx", "watch", "wget", "xargs", "zsh",
];

/// Programs whose subcommand says what they do: without it, their calls are similar only if they are identical.
const SUBCOMMAND_PROGRAMS: [&str; 24] = [
    "apt",
    "apt-get",
    "aws",
    "brew",
    "bun",
    "cargo",
    "conda",
    "docker",
    "gcloud",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// The common property of similar calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum GrantScope {
    Edits,
    /// Commands that begin with the same words and have the same other arguments.
    Prefix {
        prefix: String,
        others: String,
    },
    Files(BTreeSet<String>),
    Host(String),
    /// The same call, with these arguments.
    Call(String),
}

impl Grant {
    /// Creates the grant for calls similar to this one, about which `rule` asks. The plan must contain each file under all of its paths. `class` is the class
    /// of its command: one that cannot be undone or reaches beyond the workspace is similar only to itself.
    pub fn of(tool: &str, args: &Value, plan: &Plan, rule: &str, class: Option<&CommandClass>) -> Self {
        let is_of_mode = rule.starts_with(MODE_RULE_PREFIX);
        let is_confined = matches!(class, Some(CommandClass::Safe | CommandClass::Confine));
        let prefix = plan.command.as_deref().filter(|_| is_of_mode && is_confined).and_then(command_prefix);
        let scope = match (&plan.host, prefix) {
            (None, Some(prefix)) => GrantScope::Prefix { prefix, others: other_arguments(args) },
            (None, _) if is_of_mode && EDIT_TOOLS.contains(&tool) => {
                return Self { tool: String::new(), scope: GrantScope::Edits };
            }
            (Some(host), _) => GrantScope::Host(host.clone()),
            (None, _) if plan.command.is_none() && !plan.touched_files.is_empty() => {
                GrantScope::Files(plan.touched_files.iter().map(|touch| touch.path.clone()).collect())
            }
            (None, _) => GrantScope::Call(args.to_string()),
        };
        Self { tool: tool.to_owned(), scope }
    }

    /// Returns the rule of the policy that allows similar calls for good; `None` if no rule says which they are. A rule for commands leaves alone those
    /// that cannot be undone or reach beyond the workspace or the machine.
    pub fn rule(&self) -> Option<PolicyRule> {
        let allow = PolicyRule::allow(&self.tool);
        match &self.scope {
            GrantScope::Prefix { prefix, .. } => {
                Some(PolicyRule { command: Some(prefix.clone()), confined: Some(true), ..allow })
            }
            // A host that a model names can be a pattern.
            GrantScope::Host(host) if matches!(HostPattern::parse(host), Ok(HostPattern::Exact(_))) => {
                Some(PolicyRule { host: Some(host.clone()), ..allow })
            }
            GrantScope::Host(_) | GrantScope::Edits | GrantScope::Files(_) | GrantScope::Call(_) => None,
        }
    }

    /// Describes the covered calls for the user.
    pub fn description(&self, language: Language) -> String {
        match &self.scope {
            GrantScope::Edits => messages::always_scope_edits(language).to_owned(),
            GrantScope::Prefix { prefix, .. } => messages::always_scope_prefix(prefix, language),
            GrantScope::Files(files) => {
                let files: Vec<&str> =
                    files.iter().map(String::as_str).filter(|file| !file.is_empty()).collect();
                messages::always_scope_files(&self.tool, &files.join(", "), language)
            }
            GrantScope::Host(host) => messages::always_scope_host(&self.tool, host, language),
            GrantScope::Call(_) => messages::always_scope_call(language).to_owned(),
        }
    }
}

/// Returns the first words of a simple command, which say what it does: the program and its subcommand.
fn command_prefix(command: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./:=,+@%".contains(c);
    if !command.chars().all(is_plain) {
        return None;
    }
    let mut words = command.split(' ').filter(|word| !word.is_empty());
    let program = words.next().filter(|program| !program.contains('='))?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if EXACT_PROGRAMS.contains(&name) {
        return None;
    }
    let is_subcommand =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    let subcommand = words.next().filter(is_subcommand).filter(|_| !PLAIN_PROGRAMS.contains(&name));
    if subcommand.is_none() && SUBCOMMAND_PROGRAMS.contains(&name) {
        return None;
    }
    Some(subcommand.map_or_else(|| program.to_owned(), |word| format!("{program} {word}")))
}

/// Returns the arguments of a call besides the command and its time limit, which no grant depends on.
fn other_arguments(args: &Value) -> String {
    let mut args = args.clone();
    if let Some(args) = args.as_object_mut() {
        args.remove("command");
        args.remove("timeout");
    }
    args.to_string()
}

/// The grants of a run or of a conversation.
#[derive(Debug, Default)]
pub struct Grants(RefCell<HashSet<Grant>>);

impl Grants {
    /// Adds a grant.
    pub fn add(&self, grant: Grant) {
        self.0.borrow_mut().insert(grant);
    }

    /// Checks whether a grant exists.
    pub fn contains(&self, grant: &Grant) -> bool {
        self.0.borrow().contains(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_class::{CommandOptions, classify};
    use agent_tools::TouchedFile;

    const OF_MODE: &str = "mode.confirm-all";

    fn edit(path: &str, args: &str, rule: &str) -> Grant {
        let touched_files = vec![TouchedFile { path: path.into(), write: true }];
        let plan = Plan { touched_files, ..Plan::default() };
        Grant::of("edit_file", &serde_json::from_str(args).unwrap(), &plan, rule, None)
    }

    #[test]
    fn u09_always_is_for_all_edits_unless_a_rule_asks_about_the_file() {
        let grants = Grants::default();
        grants.add(edit("a", "{}", "protected"));
        assert!(grants.contains(&edit("a", r#"{"old_str": "y"}"#, "protected")));
        assert!(!grants.contains(&edit("b", "{}", "protected")));
        assert!(!grants.contains(&edit("a", "{}", OF_MODE)));
        grants.add(edit("a", "{}", OF_MODE));
        assert!(grants.contains(&edit("b", "{}", OF_MODE)));
        assert!(!grants.contains(&edit("b", "{}", "protected")));
    }

    fn command(command: &str, rule: &str) -> Grant {
        let plan = Plan { command: Some(command.into()), summary: command.into(), ..Plan::default() };
        let class = classify(command, &CommandOptions::default()).class;
        Grant::of("run_command", &serde_json::json!({ "command": command }), &plan, rule, Some(&class))
    }

    #[test]
    fn u09_always_is_for_a_prefix_of_a_simple_command_and_otherwise_for_the_same_command() {
        let grants = Grants::default();
        grants.add(command("npm test --watch", OF_MODE));
        grants.add(command("pytest -q tests/a.py", OF_MODE));
        for covered in ["npm test", "npm test a b", "pytest", "pytest -x tests/b.py"] {
            assert!(grants.contains(&command(covered, OF_MODE)), "{covered}");
        }
        for other in [
            "npm install x",
            "pytest; touch x",
            "pytest $(touch x)",
            "pytest > a",
            "pytest\ntouch x",
            "X=1 pytest",
            "pytest2",
        ] {
            assert!(!grants.contains(&command(other, OF_MODE)), "{other}");
        }
        assert!(!grants.contains(&command("pytest", "rules.3")));
        // What cannot be undone or reaches beyond the workspace is never covered by the first words of another command.
        grants.add(command("git checkout -b x", OF_MODE));
        for asked in ["git reset --hard", "git checkout -- a", "git push --force", "timeout 5 rm -r b"] {
            assert!(!grants.contains(&command(asked, OF_MODE)), "{asked}");
        }
        for exact in [
            "rm -r build",
            "sh x.sh",
            "/bin/rm a",
            "make && touch x",
            "git -C a push",
            "curl x.org",
            "timeout 5 touch a",
            "python3 a.py",
            "git push",
        ] {
            grants.add(command(exact, OF_MODE));
            assert!(grants.contains(&command(exact, OF_MODE)), "{exact}");
            assert!(!grants.contains(&command(&format!("{exact} more"), OF_MODE)), "{exact}");
        }
    }

    #[test]
    fn u09_only_the_first_words_of_a_harmless_command_and_a_host_become_a_rule() {
        let rule = |call: &str| command(call, OF_MODE).rule().map(|rule| serde_json::to_value(rule).unwrap());
        assert_eq!(
            rule("npm test --watch").map(|rule| (
                rule["action"].clone(),
                rule["tool"].clone(),
                rule["command"].clone()
            )),
            Some(("allow".into(), "run_command".into(), "npm test".into()))
        );
        for call in ["git add -A", "make", "git stash"] {
            assert_eq!(rule(call).unwrap()["confined"], Value::Bool(true), "{call}");
        }
        for call in ["rm a", "git push", "make && make test", "npm test > a"] {
            assert_eq!(rule(call), None, "{call}");
        }
        assert_eq!(command("npm test", "policy.rules[0]").rule(), None);
        assert_eq!(edit("a", "{}", OF_MODE).rule(), None);
        assert_eq!(edit("a", "{}", "protected").rule(), None);
        let fetch = |host: &str| {
            let plan = Plan { host: Some(host.into()), ..Plan::default() };
            Grant::of("web_fetch", &Value::Null, &plan, OF_MODE, None).rule()
        };
        assert_eq!(fetch("example.org").unwrap().host.as_deref(), Some("example.org"));
        // Each is a host for a URL, and more than one for a rule.
        for host in ["a b", "*", "*.com"] {
            assert_eq!(fetch(host), None, "{host}");
        }
    }

    #[test]
    fn pages_of_one_host_are_alike() {
        let fetch = |host: &str, url: &str| {
            let plan = Plan { host: Some(host.into()), summary: url.into(), ..Plan::default() };
            Grant::of("web_fetch", &Value::from(url), &plan, OF_MODE, None)
        };
        let grant = fetch("example.org", "http://example.org/a");
        assert_eq!(grant, fetch("example.org", "http://example.org/b"));
        assert!(
            grant.description(Language::En).contains("every request to example.org"),
            "{}",
            grant.description(Language::En)
        );
    }
}
