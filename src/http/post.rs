//! One POST request to a complete address, whose short response is read as a whole; for telemetry.

use super::{HttpError, MAX_ERROR_BODY_BYTES, RequestBody, authority, build, explain};
use agent_core::secret::Secret;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// A request. The caller limits its time.
#[derive(Debug)]
pub struct PostRequest<'a> {
    /// The address, http or https.
    pub url: &'a str,
    /// Headers, which may contain a key.
    pub headers: &'a [(String, Secret)],
    /// Type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: RequestBody,
    /// Time limit of the connection.
    pub connect: Duration,
}

/// A response.
#[derive(Debug)]
pub struct PostResponse {
    /// The status code.
    pub status: u16,
    /// The status code with its reason phrase.
    pub status_line: String,
    /// The start of the body, at most [`MAX_ERROR_BODY_BYTES`].
    pub body: Vec<u8>,
}

/// Sends a request. A redirect is a response like any other and is not followed.
///
/// # Errors
/// When the address or a header is invalid, or there is no response.
pub async fn post(request: &PostRequest<'_>) -> Result<PostResponse, HttpError> {
    let invalid = |why: &str| HttpError::Address(format!("not a valid address: {why}"));
    let form = "it must begin with http:// or https:// and name a host";
    let url = Url::parse(request.url).map_err(|error| {
        if request.url.contains("://") { invalid(&error.to_string()) } else { invalid(form) }
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid(form));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it contains a user name or password, which belongs in a header"));
    }
    let client = build(&url, request.connect)?;
    let sent = client
        .post(url)
        .headers(headers(request.headers)?)
        .header(CONTENT_TYPE, request.content_type)
        .body(request.body.0.clone())
        .send()
        .await;
    let mut response = sent.map_err(|error| explain(error, request.connect))?;
    let (status, status_line) = (response.status().as_u16(), response.status().to_string());
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BODY_BYTES {
        // The status alone is a response; a body that breaks is cut.
        let Ok(Some(chunk)) = response.chunk().await else { break };
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_ERROR_BODY_BYTES);
    Ok(PostResponse { status, status_line, body })
}

/// Returns the part of an address that contains no key: scheme, host and port.
pub fn shown_address(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) if url.has_host() => format!("{}://{}", url.scheme(), authority(&url)),
        _ => "the endpoint".to_owned(),
    }
}

fn headers(headers: &[(String, Secret)]) -> Result<HeaderMap, HttpError> {
    let invalid = || HttpError::Setup("a header has an invalid name or value".to_owned());
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        map.append(name, value);
    }
    Ok(map)
}
