//! A small HTTP server on this machine: one answer for each request, without streams.

use agent_text::lines::{QUOTE_CHARS, one_line};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::bytes::Bytes;

/// Maximum bytes of the body of a request.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Maximum time until the head of a request is complete.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time until its body is.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of connections at the same time; further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// Time before the next attempt when no connection can be accepted, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a page may do: nothing but show text with its own style.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A request.
#[derive(Debug, Clone, Default)]
pub struct HttpRequest {
    /// Its method, in capitals.
    pub method: String,
    /// The path, decoded, without the query.
    pub path: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The bearer token.
    pub token: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Returns the parts of the path between slashes.
    pub fn parts(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl HttpAnswer {
    /// Returns an answer with a JSON document.
    pub fn json(document: &Value) -> Self {
        Self { status: 200, content_type: "application/json", body: document.to_string() }
    }

    /// Returns an answer with a page.
    pub fn html(body: String) -> Self {
        Self { status: 200, content_type: "text/html; charset=utf-8", body }
    }

    /// Returns an answer with text.
    pub fn text(body: String) -> Self {
        Self { status: 200, content_type: "text/plain; version=0.0.4; charset=utf-8", body }
    }

    /// Returns an answer that says what is wrong.
    pub fn error(status: u16, why: &str) -> Self {
        Self { status, ..Self::json(&json!({"error": why})) }
    }
}

/// Serves the connections to `listener` for ever; dropping the future closes them. On a loopback address only requests that name this
/// machine are answered, so that no page of another site reaches the server by a name that is resolved to it.
pub async fn serve(listener: TcpListener, answer: &dyn AsyncAnswer) -> Infallible {
    let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let mut connections = FuturesUnordered::new();
    loop {
        let accepts = connections.len() < MAX_CONNECTIONS;
        tokio::select! {
            Some(()) = connections.next() => {}
            accepted = listener.accept(), if accepts => match accepted {
                Ok((stream, _)) => connections.push(async move {
                    let service = service_fn(|request| async move {
                        Ok::<_, Infallible>(respond(request, is_loopback, answer).await)
                    });
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD_TIMEOUT)
                        .serve_connection(TokioIo::new(stream), service);
                    // A client that goes away needs no answer.
                    drop(connection.await);
                }),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// Answers requests.
pub trait AsyncAnswer {
    /// Returns the answer to a request.
    fn answer(&self, request: HttpRequest) -> LocalBoxFuture<'_, HttpAnswer>;
}

async fn respond(
    request: Request<Incoming>,
    is_loopback: bool,
    answer: &dyn AsyncAnswer,
) -> Response<Full<Bytes>> {
    let done = match read(request, is_loopback).await {
        Ok(request) => answer.answer(request).await,
        Err(refusal) => refusal,
    };
    let mut response = Response::new(Full::new(Bytes::from(done.body)));
    *response.status_mut() = StatusCode::from_u16(done.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fixed = [
        (CONTENT_TYPE, done.content_type),
        (HeaderName::from_static("content-security-policy"), PAGE_POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cache-control"), "no-store"),
    ];
    response.headers_mut().extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

async fn read(request: Request<Incoming>, is_loopback: bool) -> Result<HttpRequest, HttpAnswer> {
    let (head, body) = request.into_parts();
    let text = |name: &HeaderName| head.headers.get(name)?.to_str().ok().map(str::to_owned);
    if is_loopback && !names_this_machine(&head.headers) {
        return Err(HttpAnswer::error(403, "the request does not name this machine"));
    }
    let token = text(&AUTHORIZATION).and_then(|value| Some(value.strip_prefix("Bearer ")?.to_owned()));
    let key = text(&HeaderName::from_static("idempotency-key"));
    let body = timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    let body = body.map_err(|_| HttpAnswer::error(408, "the body takes too long"))?;
    let body = body.map_err(|error| HttpAnswer::error(413, &one_line(&error.to_string(), QUOTE_CHARS)))?;
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    Ok(HttpRequest {
        method: head.method.as_str().to_owned(),
        path: percent_decode_str(head.uri.path()).decode_utf8_lossy().into_owned(),
        query: pairs(&head.uri).map(|(name, value)| (decoded(name), decoded(value))).collect(),
        token,
        key,
        body: body.to_bytes().to_vec(),
    })
}

fn pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='))
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for (host, expected) in [
            ("localhost:8000", true),
            ("127.0.0.1", true),
            ("[::1]:1", true),
            ("evil.example:8000", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            assert_eq!(names_this_machine(&headers), expected, "{host}");
        }
    }
}
