//! Grants of the agents of a Hub (`fleet.grants`): what the definition of an agent asks for, and what the user allows and denies.
//!
//! A grant is `SERVICE:SCOPE`, with more parts where a service has resources, such as `aws:s3:read:reports`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The policy for agents that `fleet.grants` does not name.
const DEFAULT: &str = "default";
/// What agents may do where `fleet.grants` has no policy for them.
const HUB: &str = "hub:*";

/// What an agent may be granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantPolicy {
    /// Grants that the definition of the agent may ask for; `*` is any part, at the end any parts.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub allow: Vec<String>,
    /// Grants that it does not get, whatever `allow` says.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub deny: Vec<String>,
}

/// The grants of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    held: Vec<String>,
    /// Grants that it asked for and did not get.
    pub refused: Vec<String>,
}

impl Grants {
    /// Returns the grants of `agent`, whose definition asks for `asked`. A grant with `*` names nothing exactly, and is refused.
    pub fn of(agent: &str, asked: &[String], policies: &BTreeMap<String, GrantPolicy>) -> Self {
        let built_in = GrantPolicy { allow: vec![HUB.to_owned()], deny: Vec::new() };
        let policy = policies.get(agent).or_else(|| policies.get(DEFAULT)).unwrap_or(&built_in);
        let is_granted = |grant: &&String| {
            let fits = |patterns: &[String]| patterns.iter().any(|pattern| covers(pattern, grant));
            !grant.contains('*') && fits(&policy.allow) && !fits(&policy.deny)
        };
        let (held, refused) = asked.iter().partition::<Vec<&String>, _>(is_granted);
        let owned = |grants: Vec<&String>| grants.into_iter().cloned().collect();
        Self { held: owned(held), refused: owned(refused) }
    }

    /// Checks whether the agent has exactly this grant.
    pub fn has(&self, grant: &str) -> bool {
        self.held.iter().any(|held| held == grant)
    }
}

/// Checks whether `pattern` covers `grant`.
fn covers(pattern: &str, grant: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split(':').peekable(), grant.split(':'));
    while let Some(pattern) = patterns.next() {
        match parts.next() {
            Some(_) if pattern == "*" && patterns.peek().is_none() => return true,
            Some(part) if pattern == "*" || pattern == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn b12_a_grant_is_exact_deny_wins_and_patterns_are_those_of_the_policy() {
        let policy = GrantPolicy {
            allow: texts(&["github:*", "aws:s3:read:*", "postgres:*:read"]),
            deny: texts(&["github:admin"]),
        };
        let policies = BTreeMap::from([("a".to_owned(), policy)]);
        let asked = texts(&[
            "github:read",
            "github:admin",
            "github:*",
            "aws:s3:read:b",
            "aws:s3:write:b",
            "postgres:d:read",
        ]);
        let grants = Grants::of("a", &asked, &policies);
        for (grant, expected) in [
            ("github:read", true),
            ("github:write", false),
            ("github:admin", false),
            ("aws:s3:read:b", true),
            ("aws:s3:read:c", false),
            ("aws:s3:write:b", false),
            ("postgres:d:read", true),
            ("postgres:e:read", false),
        ] {
            assert_eq!(grants.has(grant), expected, "{grant}");
        }
        assert_eq!(grants.refused, ["github:admin", "github:*", "aws:s3:write:b"]);
    }

    #[test]
    fn b12_without_a_policy_an_agent_gets_the_hub_only() {
        let grants = Grants::of("a", &texts(&["hub:read", "github:read"]), &BTreeMap::new());
        assert!(grants.has("hub:read") && !grants.has("github:read") && !grants.has("hub:write"));
        let default = GrantPolicy { allow: texts(&["github:read"]), deny: Vec::new() };
        let policies = BTreeMap::from([("default".to_owned(), default)]);
        assert!(Grants::of("a", &texts(&["github:read"]), &policies).has("github:read"));
    }
}
