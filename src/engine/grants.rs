//! What a person has allowed until the run ends: a question about its like is answered already.

use crate::core::language::Language;
use crate::messages;
use crate::tools::Plan;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// Calls of one tool that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    tool: String,
    scope: GrantScope,
}

/// What they have in common. Commands are alike only when they are the same: none of its words can be left to chance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum GrantScope {
    Files(BTreeSet<String>),
    Host(String),
    Call { arguments: String, summary: String },
}

impl Grant {
    /// The calls that are like this one. The plan names each file by every path that it has.
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

    /// Which calls these are, for the person who is to allow them.
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
    /// Allows calls until the run ends.
    pub fn add(&self, grant: Grant) {
        self.0.borrow_mut().insert(grant);
    }

    /// Whether calls are allowed.
    pub fn contains(&self, grant: &Grant) -> bool {
        self.0.borrow().contains(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TouchedFile;

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
            grant.description(Language::En).contains("every page of example.org"),
            "{}",
            grant.description(Language::En)
        );
    }
}
