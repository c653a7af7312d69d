//! Parser of HTTP headers in an environment variable of OpenTelemetry: `name=value,name=value`, percent-encoded.

use percent_encoding::percent_decode_str;

/// Iterates over the headers of a list; `None` stands for an entry that is not `name=value`. Empty entries are skipped.
pub fn headers(list: &str) -> impl Iterator<Item = Option<(String, String)>> + '_ {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(|entry| {
        let (name, value) = entry.split_once('=')?;
        let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8().ok().map(String::from);
        Some((decoded(name).filter(|name| !name.is_empty())?, decoded(value)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_split_trimmed_and_decoded() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        for (list, expected) in [
            ("a=1", vec![pair("a", "1")]),
            (" a = 1 , b=x=y,", vec![pair("a", "1"), pair("b", "x=y")]),
            ("authorization=Basic%20dXNlcg==", vec![pair("authorization", "Basic dXNlcg==")]),
            ("a=%2C%3D", vec![pair("a", ",=")]),
            ("a=", vec![pair("a", "")]),
            ("a,=b,c=%ff", vec![None, None, None]),
            ("", vec![]),
        ] {
            assert_eq!(headers(list).collect::<Vec<_>>(), expected, "{list}");
        }
    }
}
