//! Relative paths inside the workspace, normalised so that their text never leads out of it.

use crate::path_variants;
use agent_process::sandbox::repositories::GIT;
use agent_text::lines::one_line;
use std::path::Path;

/// Longest accepted path in bytes (`PATH_MAX` of Linux).
const MAX_BYTES: usize = 4096;

/// Number of characters of a refused path that its error quotes.
const QUOTE_CHARS: usize = 200;

/// Path below the workspace root: `/`-separated, without `.`, `..` or empty parts. The root itself is `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(String);

/// Reasons to refuse the text of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is empty.
    #[error("Security error: the path is empty. Use '.' for the workspace itself.")]
    Empty,
    /// It contains a NUL byte.
    #[error("Security error: Path '{0}' contains a NUL byte. Use a path without one.")]
    Nul(String),
    /// It is too long.
    #[error("Security error: Path '{0}' is longer than {MAX_BYTES} bytes. Use a path that is shorter.")]
    TooLong(String),
    /// It leads out of the workspace.
    #[error(
        "Security error: Path '{path}' escapes the workspace. Workspace: {root}. Use a path relative to it."
    )]
    Escape {
        /// The path as given.
        path: String,
        /// The workspace root.
        root: String,
    },
}

impl RelPath {
    /// Returns the root.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Parses `raw` as a path below any of `roots`, which are names of the same directory.
    ///
    /// # Errors
    /// Fails if it is empty, contains a NUL byte, is too long or leads out.
    pub fn parse(raw: &str, roots: &[&Path]) -> Result<Self, PathError> {
        if raw.trim().is_empty() {
            return Err(PathError::Empty);
        }
        if raw.contains('\0') {
            return Err(PathError::Nul(one_line(raw, QUOTE_CHARS)));
        }
        if raw.len() > MAX_BYTES {
            return Err(PathError::TooLong(one_line(raw, QUOTE_CHARS)));
        }
        let escape = || PathError::Escape {
            path: one_line(raw, QUOTE_CHARS),
            root: roots.first().map_or_else(String::new, |root| root.display().to_string()),
        };
        if !raw.starts_with('/') {
            return normalised(raw.split('/')).ok_or_else(escape);
        }
        let absolute = normalised(raw.split('/')).ok_or_else(escape)?;
        let absolute = Path::new("/").join(absolute.0);
        let below = roots.iter().find_map(|root| absolute.strip_prefix(root).ok()).and_then(Path::to_str);
        below.and_then(|below| normalised(below.split('/'))).ok_or_else(escape)
    }

    /// Returns the path as text. Empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the parts in order. None for the root.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// Returns the parent directory and the last part. `None` for the root.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent.to_owned()), name)),
            None if self.0.is_empty() => None,
            None => Some((Self::root(), &self.0)),
        }
    }

    /// Returns the path of `name`, one or several plain parts, in this directory.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }

    /// Joins `parts`, which are plain names.
    pub fn from_parts<T: std::borrow::Borrow<str>>(parts: &[T]) -> Self {
        Self(parts.join("/"))
    }

    /// Checks whether it is `.git` or inside one, under any spelling that a file system accepts.
    pub fn is_git_internal(&self) -> bool {
        let short = path_variants::short_name(GIT);
        let is_git =
            |part: &String| part == GIT || short.is_some() && path_variants::as_short_name(part) == short;
        path_variants::path_variants(&self.0).iter().flatten().any(is_git)
    }
}

impl std::fmt::Display for RelPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

fn normalised<'a>(parts: impl Iterator<Item = &'a str>) -> Option<RelPath> {
    let mut normal: Vec<&str> = Vec::new();
    for part in parts {
        match part {
            "" | "." => {}
            ".." => {
                normal.pop()?;
            }
            name => normal.push(name),
        }
    }
    Some(RelPath(normal.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(raw: &str) -> Result<String, PathError> {
        RelPath::parse(raw, &[Path::new("/link/ws"), Path::new("/real/ws")]).map(|path| path.to_string())
    }

    #[test]
    fn relative_paths_are_normalised() {
        assert_eq!(parse("./a//b/../c"), Ok("a/c".to_owned()));
        assert_eq!(parse("."), Ok(".".to_owned()));
        assert_eq!(parse("a/.."), Ok(".".to_owned()));
    }

    #[test]
    fn absolute_paths_below_either_name_of_the_root_are_accepted() {
        assert_eq!(parse("/link/ws/a"), Ok("a".to_owned()));
        assert_eq!(parse("/real/ws/x/../a"), Ok("a".to_owned()));
        assert_eq!(parse("/real/ws"), Ok(".".to_owned()));
    }

    #[test]
    fn s01_paths_that_lead_out_are_security_errors() {
        for raw in
            ["../x", "a/../../x", "/etc/passwd", "/real/ws-evil/x", "/real/ws/../x", "/", "", "  ", "a\0b"]
        {
            let message = parse(raw).unwrap_err().to_string();
            assert!(message.starts_with("Security error: "), "{raw:?}: {message}");
        }
        assert!(parse(&"a/".repeat(3000)).is_err());
    }

    #[test]
    fn git_internals_are_known_under_every_spelling() {
        for raw in [
            ".git/config",
            "a/.GIT/hooks/x",
            ".git. /x",
            "git~1/config",
            "GIT~12",
            ".git",
            r"a\.git\x",
            ".ｇit/x",
            ".git::$DATA",
        ] {
            assert!(RelPath::parse(raw, &[]).unwrap().is_git_internal(), "{raw}");
        }
        for raw in [".gitignore", "digit~1", "git~x", "git~1x", "git/x"] {
            assert!(!RelPath::parse(raw, &[]).unwrap().is_git_internal(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_path_never_leads_out(raw in "[a./]{0,30}|\\PC{0,30}") {
            if let Ok(path) = RelPath::parse(&raw, &[Path::new("/real/ws")]) {
                prop_assert!(path.parts().all(|part| part != ".." && part != "."));
                prop_assert!(!path.as_str().starts_with('/'));
                prop_assert_eq!(RelPath::parse(&path.to_string(), &[]).unwrap(), path);
            }
        }
    }
}
