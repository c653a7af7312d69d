//! Approvals that the user has granted for all similar calls until the run ends.

use agent_core::language::Language;
use agent_messages as messages;
use agent_tools::Plan;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// Permission for similar calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    tool: String,
    scope: GrantScope,
}

/// The common property of similar calls. Commands are similar only if they are identical.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum GrantScope {
    Files(BTreeSet<String>),
    Host(String),
    Call { arguments: String, summary: String },
}

impl Grant {
    /// Creates the grant for calls similar to this one. The plan must contain each file under all of its paths.
    pub fn of(tool: &str, args: &Value, plan: &Plan) -> Self {
        let scope = match &plan.host {
            Some(host) => GrantScope::Host(host.clone()),
            None if plan.command.is_none() && !plan.touched_files.is_empty() => {
                GrantScope::Files(plan.touched_files.iter().map(|touch| touch.path.clone()).collect())
            }
            None => GrantScope::Call { arguments: args.to_string(), summary: plan.summary.clone() },
        };
        Self { tool: tool.to_owned(), scope }
    }

    /// Describes the covered calls for the user.
    pub fn description(&self, language: Language) -> String {
        match &self.scope {
            GrantScope::Files(files) => {
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                messages::always_scope_files(&self.tool, &files.join(", "), language)
            }
            GrantScope::Host(host) => messages::always_scope_host(&self.tool, host, language),
            GrantScope::Call { summary, .. } => messages::always_scope_call(&self.tool, summary, language),
        }
    }
}

/// The grants of a run.
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
    use agent_tools::TouchedFile;

    fn edit(path: &str, args: &str) -> Grant {
        let touched_files = vec![TouchedFile { path: path.into(), write: true }];
        let plan = Plan { touched_files, ..Plan::default() };
        Grant::of("edit_file", &serde_json::from_str(args).unwrap(), &plan)
    }

    #[test]
    fn a_file_is_granted_to_a_tool_and_a_command_only_as_it_is() {
        let grants = Grants::default();
        grants.add(edit("a", r#"{"old_str": "x"}"#));
        assert!(grants.contains(&edit("a", r#"{"old_str": "y"}"#)));
        assert!(!grants.contains(&edit("b", r#"{"old_str": "x"}"#)));
        let command = |args: &str| {
            let plan = Plan { command: Some("make".into()), ..Plan::default() };
            Grant::of("run_command", &serde_json::from_str(args).unwrap(), &plan)
        };
        grants.add(command(r#"{"command": "make"}"#));
        assert!(grants.contains(&command(r#"{"command": "make"}"#)));
        assert!(!grants.contains(&command(r#"{"command": "make", "cwd": "x"}"#)));
    }

    #[test]
    fn pages_of_one_host_are_alike() {
        let fetch = |host: &str, url: &str| {
            let plan = Plan { host: Some(host.into()), summary: url.into(), ..Plan::default() };
            Grant::of("web_fetch", &Value::from(url), &plan)
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
