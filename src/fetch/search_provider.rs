//! The search services of `web_search`: the request that each expects, and the common form of their answers.

use super::WebRequest;
use agent_core::secret::Secret;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Header with the key of Brave Search.
const BRAVE_KEY: HeaderName = HeaderName::from_static("x-subscription-token");

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchProvider {
    /// Tavily (<https://docs.tavily.com/documentation/api-reference/endpoint/search>).
    Tavily,
    /// Brave Search (<https://api-dashboard.search.brave.com/app/documentation>).
    Brave,
    /// A `SearXNG` server with the format `json` enabled (<https://docs.searxng.org/dev/search_api.html>).
    Searxng,
}

// The field of a search. Doc comments here would be sent to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SearchTopic {
    #[default]
    General,
    News,
    Finance,
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchQuery<'a> {
    /// The words to search for.
    pub text: &'a str,
    /// Maximum number of results.
    pub max_results: usize,
    /// The topic; a service that does not know it searches in general.
    pub topic: SearchTopic,
}

/// The answer of a search service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchAnswer {
    /// A short answer that the service wrote itself.
    pub answer: Option<String>,
    /// The results, best first.
    pub results: Vec<SearchResult>,
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SearchResult {
    /// The address of the page.
    pub url: String,
    /// The title of the page.
    #[serde(default)]
    pub title: String,
    /// An excerpt of the page.
    #[serde(default, alias = "description")]
    pub content: Option<String>,
}

/// The fields of an answer that are read; Brave has the results of its general search below `web`.
#[derive(Deserialize)]
struct Body {
    answer: Option<String>,
    #[serde(default)]
    answers: Vec<Value>,
    results: Option<Vec<SearchResult>>,
    web: Option<WebResults>,
    query: Option<Value>,
}

#[derive(Deserialize)]
struct WebResults {
    results: Vec<SearchResult>,
}

impl SearchProvider {
    /// Returns the address of the service; `None` for servers that users run.
    pub fn default_url(self) -> Option<&'static str> {
        match self {
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Brave => Some("https://api.search.brave.com/res/v1"),
            Self::Searxng => None,
        }
    }

    /// Returns the usual environment variable of the key; `None` when the service needs none.
    pub fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Searxng => None,
        }
    }

    /// Creates the request for `query` to the service at `base`.
    ///
    /// # Errors
    /// When the address or the key is invalid.
    pub fn request(
        self,
        base: &str,
        key: Option<&Secret>,
        query: SearchQuery<'_>,
    ) -> Result<WebRequest, String> {
        let path = match (self, query.topic) {
            (Self::Tavily | Self::Searxng, _) => "search",
            (Self::Brave, SearchTopic::News) => "news/search",
            (Self::Brave, _) => "web/search",
        };
        let url = format!("{}/{path}", base.trim_end_matches('/'));
        let mut url = Url::parse(&url).map_err(|error| format!("web.search.url is invalid: {error}"))?;
        match self {
            Self::Tavily => {}
            Self::Brave => {
                let count = query.max_results.to_string();
                let pairs = [("q", query.text), ("count", &count), ("text_decorations", "false")];
                url.query_pairs_mut().extend_pairs(pairs);
            }
            Self::Searxng => {
                let category = if query.topic == SearchTopic::News { "news" } else { "general" };
                let pairs = [("q", query.text), ("format", "json"), ("categories", category)];
                url.query_pairs_mut().extend_pairs(pairs);
            }
        }
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let (name, text) = match self {
                Self::Brave => (BRAVE_KEY, key.expose().to_owned()),
                Self::Tavily | Self::Searxng => (AUTHORIZATION, format!("Bearer {}", key.expose())),
            };
            let mut value = HeaderValue::try_from(text)
                .map_err(|_| "The key of the search contains characters that no header can contain.")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let body = (self == Self::Tavily).then(|| {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            tavily_body(query).to_string()
        });
        let method = if body.is_some() { Method::POST } else { Method::GET };
        Ok(WebRequest { method, url, headers, body })
    }
}

fn tavily_body(query: SearchQuery<'_>) -> Value {
    json!({
        "query": query.text,
        "topic": query.topic,
        "max_results": query.max_results,
        "include_answer": true,
    })
}

/// Reads the answer of any of the services.
///
/// # Errors
/// What is wrong with `body`.
pub fn parse_answer(body: &[u8]) -> Result<SearchAnswer, String> {
    let found: Body = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let results = found.results.or_else(|| found.web.map(|web| web.results));
    if results.is_none() && found.query.is_none() {
        return Err("it has no results".to_owned());
    }
    // `SearXNG` has a list of texts, or of objects with a text.
    let first = found.answers.first();
    let first = first.and_then(|answer| answer.as_str().or_else(|| answer.get("answer")?.as_str()));
    let answer = found.answer.or_else(|| first.map(str::to_owned));
    let answer = answer.filter(|answer| !answer.trim().is_empty());
    Ok(SearchAnswer { answer, results: results.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: SearchQuery<'_> = SearchQuery { text: "a b&c", max_results: 3, topic: SearchTopic::General };

    #[test]
    fn t29_each_service_is_asked_in_its_own_way() {
        let key = Secret::new("k1");
        let tavily = SearchProvider::Tavily.request("https://t/", Some(&key), QUERY).unwrap();
        assert_eq!((tavily.method, tavily.url.as_str()), (Method::POST, "https://t/search"));
        assert_eq!(tavily.headers.get("authorization").unwrap(), "Bearer k1");
        assert!(tavily.body.unwrap().contains(r#""query":"a b&c""#));
        let brave = SearchProvider::Brave.request("https://b/v1", Some(&key), QUERY).unwrap();
        assert_eq!(brave.url.as_str(), "https://b/v1/web/search?q=a+b%26c&count=3&text_decorations=false");
        assert_eq!(brave.headers.get("x-subscription-token").unwrap(), "k1");
        assert!(brave.headers.values().all(HeaderValue::is_sensitive));
        let news = SearchQuery { topic: SearchTopic::News, ..QUERY };
        let searxng = SearchProvider::Searxng.request("http://s:8888", None, news).unwrap();
        assert_eq!(searxng.url.as_str(), "http://s:8888/search?q=a+b%26c&format=json&categories=news");
        assert!(searxng.headers.is_empty() && searxng.body.is_none());
    }

    #[test]
    fn t29_the_answers_of_all_services_have_one_form() {
        let result = |content: Option<&str>| SearchResult {
            url: "https://e/".to_owned(),
            title: "E".to_owned(),
            content: content.map(str::to_owned),
        };
        let tavily = r#"{"query": "q", "answer": "42", "results": [{"title": "E", "url": "https://e/", "content": "x", "score": 1}]}"#;
        let answer = parse_answer(tavily.as_bytes()).unwrap();
        assert_eq!(answer, SearchAnswer { answer: Some("42".to_owned()), results: vec![result(Some("x"))] });
        let brave = r#"{"query": {"original": "q"}, "web": {"results": [{"title": "E", "url": "https://e/", "description": "x"}]}}"#;
        assert_eq!(parse_answer(brave.as_bytes()).unwrap().results, [result(Some("x"))]);
        let searxng = r#"{"query": "q", "answers": [{"answer": "42"}], "results": [{"title": "E", "url": "https://e/", "content": null}]}"#;
        let answer = parse_answer(searxng.as_bytes()).unwrap();
        assert_eq!(answer, SearchAnswer { answer: Some("42".to_owned()), results: vec![result(None)] });
        assert_eq!(parse_answer(br#"{"query": {}}"#).unwrap(), SearchAnswer::default());
        for wrong in ["", "<html>", "[]", r#"{"error": "x"}"#, r#"{"results": [{}]}"#] {
            assert!(parse_answer(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
