//! Where a queue is.

use std::path::{Path, PathBuf};

/// Where a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a database of this machine.
    Sqlite(PathBuf),
}

impl Location {
    /// Parses `sqlite:PATH`; by default the queue is a file in `state`.
    ///
    /// # Errors
    /// For another kind of queue.
    pub fn parse(url: Option<&str>, state: &Path) -> Result<Self, String> {
        let default = || Self::Sqlite(state.join("fleet").join("tasks.sqlite"));
        let Some(url) = url else { return Ok(default()) };
        match url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some("") => Ok(default()),
            Some(path) if Path::new(path).is_absolute() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(format!(
                "`{url}` is no queue: write `sqlite:/absolute/path`, or `sqlite:` for the default"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_an_absolute_path() {
        let parse = |url| Location::parse(url, Path::new("/state"));
        assert_eq!(parse(None), parse(Some("sqlite:")));
        assert_eq!(parse(Some("sqlite:///a/b")), Ok(Location::Sqlite(PathBuf::from("/a/b"))));
        assert_eq!(parse(Some("sqlite:/a/b")), Ok(Location::Sqlite(PathBuf::from("/a/b"))));
        assert!(parse(Some("sqlite:a")).is_err() && parse(Some("redis://x")).is_err());
    }
}
