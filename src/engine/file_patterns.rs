//! File patterns of rules, matched against every path that some file system would take for the same.

use crate::process::sandbox::protected_names::literal_path;
use crate::workspace::path_variants;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// File patterns as in ignore files: without a slash they match a name at any depth, with one the path from the
/// root; what is below a matching directory matches too. A path matches when some file system would take it for one
/// that does ([`alias`]); a name without wildcards also stands for its short names.
#[derive(Debug, Clone)]
pub(super) struct FilePatterns {
    sources: Vec<String>,
    /// Names without wildcards, long and short: which pattern each belongs to. They need no regular expression, which
    /// would cost every start some of its milliseconds.
    names: HashMap<String, usize>,
    /// All others, and which pattern each is.
    globs: GlobSet,
    glob_indices: Vec<usize>,
}

impl FilePatterns {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// A glob that is not valid.
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

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The paths from the root that those without wildcards are.
    pub(super) fn literals(&self) -> Vec<PathBuf> {
        self.sources.iter().filter_map(|pattern| literal_path(pattern)).map(Path::to_owned).collect()
    }

    /// The first pattern that matches `path` or a directory above it; an absolute path counts from `root`.
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

    /// The first pattern that matches the path of these components itself.
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
