//! Where a queue is.

use std::path::{Path, PathBuf};

/// Where a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a database of this machine.
    Sqlite(PathBuf),
    /// On a NATS server; `None` for the configured one.
    Nats(Option<String>),
}

impl Location {
    /// Checks whether `url` is that of a server, whose workers may be on other machines.
    pub fn is_server(url: Option<&str>) -> bool {
        matches!(Self::parse(url, Path::new("/")), Ok(Self::Nats(_)))
    }

    /// Parses `sqlite:PATH`, `nats:` or the address of a NATS server; by default the queue is a file in `state`.
    ///
    /// # Errors
    /// For another kind of queue.
    pub fn parse(url: Option<&str>, state: &Path) -> Result<Self, String> {
        let default = || Self::Sqlite(state.join("fleet").join("tasks.sqlite"));
        let Some(url) = url else { return Ok(default()) };
        if url == "nats:" {
            return Ok(Self::Nats(None));
        }
        if ["nats://", "tls://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Ok(Self::Nats(Some(url.to_owned())));
        }
        match url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some("") => Ok(default()),
            Some(path) if Path::new(path).is_absolute() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(format!(
                "`{url}` is no queue: write `sqlite:/absolute/path`, `sqlite:` for the default, `nats://HOST:PORT`, `tls://HOST:PORT`, or `nats:` for the configured server"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_an_absolute_path_or_a_server() {
        let parse = |url| Location::parse(url, Path::new("/state"));
        assert_eq!(parse(None), parse(Some("sqlite:")));
        assert_eq!(parse(Some("sqlite:///a/b")), Ok(Location::Sqlite(PathBuf::from("/a/b"))));
        assert_eq!(parse(Some("sqlite:/a/b")), Ok(Location::Sqlite(PathBuf::from("/a/b"))));
        assert_eq!(parse(Some("nats:")), Ok(Location::Nats(None)));
        assert_eq!(parse(Some("nats://a:1")), Ok(Location::Nats(Some("nats://a:1".to_owned()))));
        for (url, is_server) in
            [(Some("tls://a:1"), true), (Some("nats:"), true), (Some("x"), false), (None, false)]
        {
            assert_eq!(Location::is_server(url), is_server, "{url:?}");
        }
        assert!(parse(Some("sqlite:a")).is_err() && parse(Some("redis://x")).is_err());
    }
}
