//! Request path, query and key header of servers that deviate from their wire format.

use crate::codec::Codec;
use agent_redactor::ESCAPED;
use percent_encoding::utf8_percent_encode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Placeholder for the model in a custom path.
const MODEL: &str = "{model}";

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Authorization,
    /// `api-key: KEY`.
    ApiKey,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `x-goog-api-key: KEY`.
    XGoogApiKey,
}

/// Deviations of one server's address and key header from its format; usually none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointOverrides {
    /// Path after the API base, with its leading slash; may contain `{model}`.
    pub path: Option<String>,
    /// Query parameters.
    pub query: BTreeMap<String, String>,
    /// Header that carries the key.
    pub key_header: Option<KeyHeader>,
}

impl EndpointOverrides {
    /// Returns the request path for `model`: the part after the API base, with its leading slash.
    pub fn path(&self, codec: &dyn Codec, model: &str, stream: bool) -> String {
        let own = self.path.as_ref().map(|path| path.replace(MODEL, &percent_encoded(model)));
        let mut path = own.unwrap_or_else(|| codec.path(model, stream));
        for (name, value) in &self.query {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.extend([&percent_encoded(name), "=", &percent_encoded(value)]);
        }
        path
    }

    /// Returns the API base; removes the request path, or a prefix of it, from the end of `base`.
    pub fn api_base<'a>(&self, base: &'a str, codec: &dyn Codec, model: &str) -> &'a str {
        let base = base.trim_end_matches('/');
        let Some(own) = &self.path else {
            return codec.api_base(base.strip_suffix(&codec.path(model, true)).unwrap_or(base));
        };
        let own = own.replace(MODEL, &percent_encoded(model));
        let ends = own.match_indices('/').map(|(at, _)| at).skip(1).chain([own.len()]);
        let beginnings: Vec<&str> = ends.filter_map(|end| own.get(..end)).collect();
        beginnings.iter().rev().find_map(|beginning| base.strip_suffix(beginning)).unwrap_or(base)
    }

    /// Returns the headers of every request, including the one with the key.
    pub fn headers(&self, codec: &dyn Codec, key: Option<&str>) -> Vec<(&'static str, String)> {
        let (Some(header), Some(key)) = (self.key_header, key) else { return codec.headers(key) };
        let mut headers = codec.headers(None);
        headers.push(match header {
            KeyHeader::Authorization => ("authorization", format!("Bearer {key}")),
            KeyHeader::ApiKey => ("api-key", key.to_owned()),
            KeyHeader::XApiKey => ("x-api-key", key.to_owned()),
            KeyHeader::XGoogApiKey => ("x-goog-api-key", key.to_owned()),
        });
        headers
    }
}

/// Returns `text` percent-encoded as one path segment or one query value.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::Quirks;
    use crate::wire_format::WireFormat;
    use proptest::prelude::*;

    fn azure() -> EndpointOverrides {
        EndpointOverrides {
            path: Some("/openai/deployments/{model}/chat/completions".into()),
            query: BTreeMap::from([("api-version".into(), "2024-10-21".into())]),
            key_header: Some(KeyHeader::ApiKey),
        }
    }

    #[test]
    fn a_server_may_have_a_path_a_query_and_a_header_of_its_own() {
        let codec = WireFormat::ChatCompletions.codec(Quirks::default());
        assert_eq!(
            azure().path(codec.as_ref(), "my gpt", true),
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(azure().headers(codec.as_ref(), Some("k")), [("api-key", "k".to_owned())]);
        assert_eq!(azure().headers(codec.as_ref(), None), []);
        let plain = EndpointOverrides::default();
        assert_eq!(plain.path(codec.as_ref(), "m", true), "/chat/completions");
        assert_eq!(plain.headers(codec.as_ref(), Some("k")), [("authorization", "Bearer k".to_owned())]);
    }

    #[test]
    fn the_headers_of_the_format_stay_when_the_key_stands_in_another() {
        let codec = WireFormat::Messages.codec(Quirks::default());
        let address =
            EndpointOverrides { key_header: Some(KeyHeader::Authorization), ..EndpointOverrides::default() };
        let names: Vec<_> =
            address.headers(codec.as_ref(), Some("k")).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["anthropic-version", "authorization"]);
    }

    #[test]
    fn a_base_may_hold_the_beginning_of_the_path_or_all_of_it() {
        let codec = WireFormat::ChatCompletions.codec(Quirks::default());
        for more in ["", "/", "/openai", "/openai/deployments/m", "/openai/deployments/m/chat/completions"] {
            assert_eq!(
                azure().api_base(&format!("https://h{more}"), codec.as_ref(), "m"),
                "https://h",
                "{more}"
            );
        }
        let plain = EndpointOverrides::default();
        assert_eq!(plain.api_base("https://h/v1/chat/completions", codec.as_ref(), "m"), "https://h/v1");
        assert_eq!(plain.api_base("https://h/openai", codec.as_ref(), "m"), "https://h/openai");
    }

    proptest! {
        #[test]
        fn percent_encoded_text_stays_within_its_segment(text in any::<String>()) {
            let encoded = percent_encoded(&text);
            prop_assert!(!encoded.contains(['/', '?', '#', '&', '=', ' ']) && encoded.is_ascii());
        }
    }
}
