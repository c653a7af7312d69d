//! File patterns of rules, matched against every spelling of a path that a file system may treat as the same.

use agent_process::sandbox::protected_names::literal_path;
use agent_workspace::path_variants;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// File patterns as in ignore files: without a slash they match a name at any depth, with a slash the path from the
/// root; files below a matching directory match too. A path also matches if one of its [`path_variants`] does, and a
/// name without wildcards also matches its short (8.3) names.
#[derive(Debug, Clone)]
pub(super) struct FilePatterns {
    sources: Vec<String>,
    /// Names without wildcards, long and short, with the index of their pattern. A map avoids compiling regular expressions
    /// at every start.
    names: HashMap<String, usize>,
    /// All other patterns.
    globs: GlobSet,
    /// Index of the pattern of each glob.
    glob_indices: Vec<usize>,
}

impl FilePatterns {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// When a glob is not valid.
    pub(super) fn new(patterns: impl Iterator<Item = String>) -> Result<Self, globset::Error> {
        let (mut sources, mut names, mut glob_indices) = (Vec::new(), HashMap::new(), Vec::new());
        let mut globs = GlobSetBuilder::new();
        for (at, pattern) in patterns.enumerate() {
            let folded = path_variants::folded(&pattern);
            let bare = folded.trim_start_matches("./").trim_end_matches('/');
            if bare.contains(['/', '*', '?', '[', '{', '\\']) {
                let rooted = bare.trim_start_matches('/');
                let anywhere = if bare.contains('/') { rooted.to_owned() } else { format!("**/{rooted}") };
                globs.add(GlobBuilder::new(&anywhere).literal_separator(true).build()?);
                glob_indices.push(at);
            } else {
                for name in path_variants::short_name(bare).into_iter().chain([bare.to_owned()]) {
                    names.entry(name).or_insert(at);
                }
            }
            sources.push(pattern);
        }
        Ok(Self { sources, names, globs: globs.build()?, glob_indices })
    }

    /// Checks whether there are no patterns.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the patterns without wildcards as paths relative to the root.
    pub(super) fn literals(&self) -> Vec<PathBuf> {
        self.sources.iter().filter_map(|pattern| literal_path(pattern)).map(Path::to_owned).collect()
    }

    /// Returns the first pattern that matches `path` or a directory above it. Absolute paths are made relative to `root`.
    pub(super) fn find(&self, path: &str, root: &str) -> Option<&str> {
        if self.sources.is_empty() {
            return None;
        }
        let roots = if path.starts_with('/') { path_variants::path_variants(root) } else { Vec::new() };
        path_variants::path_variants(path).iter().find_map(|all| {
            let below = roots.iter().find_map(|root| all.strip_prefix(root.as_slice()));
            let components = below.unwrap_or(all);
            (1..=components.len()).find_map(|length| self.matching(components.get(..length)?))
        })
    }

    /// Returns the first pattern that matches exactly the path of these components.
    fn matching(&self, components: &[String]) -> Option<&str> {
        let last = components.last()?;
        let named =
            self.names.get(last).or_else(|| self.names.get(&path_variants::as_short_name(last)?)).copied();
        let path = components.join("/");
        let globs = self.globs.matches_candidate(&Candidate::new(&path)).into_iter();
        let at = globs.filter_map(|glob| self.glob_indices.get(glob).copied()).chain(named).min()?;
        self.sources.get(at).map(String::as_str)
    }
}
