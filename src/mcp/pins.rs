//! The tools of a server as the user has accepted them.
//!
//! At the first contact the listed tools are stored in the state directory of the workspace. From then on, a tool whose name, description or schema differs is withheld
//! until the user accepts the new list with `agent mcp pin SERVER`: servers have changed descriptions after they were approved.

use super::ServerSpec;
use super::definition::{ListedTool, hash_of_all};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The accepted tools of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// Hash of the configuration for which they were accepted.
    pub fingerprint: String,
    /// Protocol version that the server spoke.
    pub protocol: String,
    /// The accepted tools.
    pub tools: Vec<ListedTool>,
    /// Names of the accepted tools that differed at the last contact.
    pub withheld: BTreeSet<String>,
}

/// Difference between the accepted tools and those that the server lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinChanges {
    /// Accepted tools that are listed differently.
    pub changed: Vec<String>,
    /// Listed tools that were not accepted.
    pub added: Vec<String>,
    /// Accepted tools that are not listed.
    pub removed: Vec<String>,
}

impl PinChanges {
    /// Checks whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }
}

impl Pins {
    /// Creates the list of accepted tools from what a server lists.
    pub fn accept(spec: &ServerSpec, protocol: &str, tools: &[ListedTool]) -> Self {
        Self {
            fingerprint: spec.fingerprint.clone(),
            protocol: protocol.to_owned(),
            tools: tools.to_vec(),
            withheld: BTreeSet::new(),
        }
    }

    /// Returns the accepted tools that did not differ at the last contact.
    pub fn offered(&self) -> impl Iterator<Item = &ListedTool> {
        self.tools.iter().filter(|tool| !self.withheld.contains(&tool.name))
    }

    /// Returns the hash of the accepted tools.
    pub fn hash(&self) -> String {
        hash_of_all(&self.tools)
    }

    /// Compares with the tools that the server lists.
    pub fn changes(&self, listed: &[ListedTool]) -> PinChanges {
        let find = |tools: &'_ [ListedTool], name: &str| {
            tools.iter().find(|tool| tool.name == name).map(ListedTool::hash)
        };
        let mut changes = PinChanges::default();
        for tool in listed {
            match find(&self.tools, &tool.name) {
                None => changes.added.push(tool.name.clone()),
                Some(hash) if hash != tool.hash() => changes.changed.push(tool.name.clone()),
                Some(_) => {}
            }
        }
        let gone = self.tools.iter().filter(|tool| find(listed, &tool.name).is_none());
        changes.removed = gone.map(|tool| tool.name.clone()).collect();
        changes
    }
}
