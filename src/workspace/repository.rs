//! Checks whether a file configures a git repository, whatever its directory is called, judging by the files around it.

use crate::Workspace;
use crate::path::RelPath;
use crate::path_variants;
use agent_process::sandbox::repositories::{GIT, is_bare, is_protected_from_tools, protected_paths};

impl Workspace {
    /// Checks whether a change of `real` could make git run programs or use other locations, or turn a directory into a
    /// repository.
    pub(super) fn changes_repository(&self, real: &RelPath) -> bool {
        if self.is_named_by_repository(real) {
            return true;
        }
        let parts: Vec<&str> = real.parts().collect();
        (0..parts.len()).any(|depth| {
            let (directory, below) = parts.split_at(depth);
            let directory = RelPath::from_parts(directory);
            let has = |name: &str| self.root_dir().exists(&directory.join(name));
            let path_variants = path_variants::path_variants(&below.join("/"));
            if is_bare(has) || self.was_repository(&directory) {
                return path_variants.iter().any(|below| is_protected_from_tools(below));
            }
            let makes = |name: &str| {
                path_variants
                    .iter()
                    .any(|below| below.first().is_some_and(|first| first.eq_ignore_ascii_case(name)))
            };
            is_bare(|name| makes(name) || has(name))
        })
    }

    /// Checks whether a directory below the root that contains `path` is itself a repository.
    pub fn is_in_repository_below(&self, path: &RelPath) -> bool {
        let parts: Vec<&str> = path.parts().collect();
        (1..parts.len()).any(|depth| {
            let directory = RelPath::from_parts(parts.get(..depth).unwrap_or_default());
            self.root_dir().exists(&directory.join(GIT))
        })
    }

    /// Checks whether the workspace's repository takes configuration or hooks from `real`.
    fn is_named_by_repository(&self, real: &RelPath) -> bool {
        let held = protected_paths(&self.root().join(GIT), self.root());
        let names = held.iter().filter_map(|path| path.strip_prefix(self.root()).ok()?.to_str());
        let path_variants = path_variants::path_variants(real.as_str());
        names
            .flat_map(path_variants::path_variants)
            .any(|held| path_variants.iter().any(|path| path.starts_with(&held)))
    }

    fn was_repository(&self, directory: &RelPath) -> bool {
        let was_one = self.0.repositories.get();
        was_one.is_some_and(|was_one| was_one(&self.root().join(directory.as_str())))
    }
}
