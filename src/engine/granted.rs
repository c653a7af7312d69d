//! What a person has allowed until the run ends: a question about its like is answered already.

use crate::language::Language;
use crate::messages;
use crate::tools::Plan;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// Calls of one tool that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    tool: String,
    about: About,
}

/// What they have in common. Commands are alike only when they are the same: none of its words can be left to chance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum About {
    Files(BTreeSet<String>),
    Host(String),
    Call { arguments: String, summary: String },
}

impl Grant {
    /// The calls that are like this one. The plan names each file by every path that it has.
    pub fn of(tool: &str, args: &Value, plan: &Plan) -> Self {
        let about = match &plan.host {
            Some(host) => About::Host(host.clone()),
            None if plan.command.is_none() && !plan.touches.is_empty() => {
                About::Files(plan.touches.iter().map(|touch| touch.path.clone()).collect())
            }
            None => About::Call { arguments: args.to_string(), summary: plan.summary.clone() },
        };
        Self { tool: tool.to_owned(), about }
    }

    /// Which calls these are, for the person who is to allow them.
    pub fn in_words(&self, language: Language) -> String {
        match &self.about {
            About::Files(files) => {
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                messages::lasting_files(&self.tool, &files.join(", "), language)
            }
            About::Host(host) => messages::lasting_host(&self.tool, host, language),
            About::Call { summary, .. } => messages::lasting_call(&self.tool, summary, language),
        }
    }
}

/// The grants of a run.
#[derive(Debug, Default)]
pub struct Granted(RefCell<HashSet<Grant>>);

impl Granted {
    /// Allows calls until the run ends.
    pub fn add(&self, grant: Grant) {
        self.0.borrow_mut().insert(grant);
    }

    /// Whether calls are allowed.
    pub fn holds(&self, grant: &Grant) -> bool {
        self.0.borrow().contains(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Touch;

    fn edit(path: &str, args: &str) -> Grant {
        let touches = vec![Touch { path: path.into(), write: true }];
        let plan = Plan { touches, ..Plan::default() };
        Grant::of("edit_file", &serde_json::from_str(args).unwrap(), &plan)
    }

    #[test]
    fn a_file_is_granted_to_a_tool_and_a_command_only_as_it_is() {
        let granted = Granted::default();
        granted.add(edit("a", r#"{"old_str": "x"}"#));
        assert!(granted.holds(&edit("a", r#"{"old_str": "y"}"#)));
        assert!(!granted.holds(&edit("b", r#"{"old_str": "x"}"#)));
        let command = |args: &str| {
            let plan = Plan { command: Some("make".into()), ..Plan::default() };
            Grant::of("run_command", &serde_json::from_str(args).unwrap(), &plan)
        };
        granted.add(command(r#"{"command": "make"}"#));
        assert!(granted.holds(&command(r#"{"command": "make"}"#)));
        assert!(!granted.holds(&command(r#"{"command": "make", "cwd": "x"}"#)));
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
            grant.in_words(Language::En).contains("every page of example.org"),
            "{}",
            grant.in_words(Language::En)
        );
    }
}
