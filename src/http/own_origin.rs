//! HTTP client for a server that gets a token: https, or http on this machine, and redirects only within its origin.

use super::{HttpError, built, configured, is_loopback};
use reqwest::{Client, StatusCode, Url, redirect};
use std::time::Duration;

/// Maximum redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// Why a redirect is not followed.
#[derive(Debug, thiserror::Error)]
enum RefusedRedirect {
    #[error("it redirects to {0}, another origin, which is not followed")]
    OtherOrigin(String),
    #[error("it redirects with status {0}, which would lose the message; configure the address {1} instead")]
    LosesBody(u16, Url),
    #[error("it redirects more than {MAX_REDIRECTS} times")]
    TooMany,
}

/// Parses an address to which a token may be sent.
///
/// # Errors
/// When it is not https (or http on this machine), or contains a user name, a password or a fragment.
pub fn address(url: &str) -> Result<Url, HttpError> {
    let invalid = |why: &str| HttpError::Address(why.to_owned());
    let parsed = Url::parse(url).map_err(|error| invalid(&format!("is not an address: {error}")))?;
    let is_private = parsed.scheme() == "https" || (parsed.scheme() == "http" && is_loopback(&parsed));
    if !is_private || parsed.host_str().is_none_or(str::is_empty) {
        return Err(invalid("must begin with https://, or with http:// and name this machine"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(invalid("contains a user name or password; use `token_env` or `headers` instead"));
    }
    if parsed.fragment().is_some() {
        return Err(invalid("contains a fragment (`#`)"));
    }
    Ok(parsed)
}

/// Returns a client for `url`; `connect` is the time limit of a connection.
///
/// # Errors
/// When it cannot be set up.
pub fn client(url: &Url, connect: Duration) -> Result<Client, HttpError> {
    let origin = url.origin();
    let policy = redirect::Policy::custom(move |attempt| {
        let next = attempt.url();
        let keeps_body =
            matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if next.origin() != origin {
            let shown = next.origin().ascii_serialization();
            attempt.error(RefusedRedirect::OtherOrigin(shown))
        } else if !keeps_body {
            let (status, next) = (attempt.status().as_u16(), next.clone());
            attempt.error(RefusedRedirect::LosesBody(status, next))
        } else if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error(RefusedRedirect::TooMany)
        } else {
            attempt.follow()
        }
    });
    built(configured(url, connect)?.redirect(policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_only_to_https_or_to_this_machine() {
        for url in ["https://h/mcp?x=1", "http://localhost:1/mcp", "http://[::1]/", "http://127.0.0.1/"] {
            address(url).unwrap();
        }
        for url in ["http://h/mcp", "https://u:secret@h/", "https://h/#f", "ftp://h/", "h", "https://"] {
            let error = address(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
