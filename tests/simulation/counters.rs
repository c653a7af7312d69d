//! Coverage counts of a simulation, by group and name.

use std::collections::BTreeMap;
use std::fmt;

/// How often each name of each group was reached.
#[derive(Debug, Default)]
pub struct CoverageCounts(BTreeMap<&'static str, BTreeMap<String, u64>>);

impl CoverageCounts {
    /// Counts `name` in `group`.
    pub fn add(&mut self, group: &'static str, name: &str) {
        let group = self.0.entry(group).or_default();
        match group.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(group.insert(name.to_owned(), 1)),
        }
    }

    /// Adds the counts of another simulation.
    pub fn merge(&mut self, other: Self) {
        for (group, names) in other.0 {
            let group = self.0.entry(group).or_default();
            for (name, count) in names {
                *group.entry(name).or_default() += count;
            }
        }
    }

    /// Returns how often `name` of `group` was reached.
    pub fn of(&self, group: &str, name: &str) -> u64 {
        self.0.get(group).and_then(|names| names.get(name)).copied().unwrap_or_default()
    }
}

impl fmt::Display for CoverageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(group, names)| {
            let names: Vec<_> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(f, "{group}: {}", names.join(", "))
        })
    }
}
