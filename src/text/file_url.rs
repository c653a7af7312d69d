//! URLs of files, as programs give them to a terminal on which a file is dropped (RFC 8089).

use percent_encoding::percent_decode_str;

/// Returns the path of a file on this machine, decoded; `None` for other text and for a path that is not valid UTF-8.
pub fn path(url: &str) -> Option<String> {
    let rest = url.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.strip_prefix("localhost").unwrap_or(authority),
        None => rest,
    };
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    decoded.starts_with('/').then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u17_the_url_of_a_file_is_decoded_to_its_path() {
        for (url, expected) in [
            ("file:///a%20b.png", Some("/a b.png")),
            ("file://localhost/%C3%A9.png", Some("/é.png")),
            ("file:/it's.png", Some("/it's.png")),
            ("file:///50%.png", Some("/50%.png")),
            ("file://other/a.png", None),
            ("file:///%ff.png", None),
            ("file:a.png", None),
            ("/a%20b.png", None),
            ("https://example.org/a.png", None),
        ] {
            assert_eq!(path(url).as_deref(), expected, "{url}");
        }
    }
}
