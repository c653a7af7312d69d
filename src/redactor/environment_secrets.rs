//! Detects secrets in environment variables: by the variable's name, by the form of the value, and as passwords in URLs.

use super::MIN_BYTES;
use agent_text::header_list::headers;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Suffixes of variable names whose values are secrets in any form, unless they are ordinary words; compared in upper case.
/// With a suffix of the next list, a value is a secret only if it looks like a key.
const SECRET_NAME_SUFFIXES: &[&str] = &[
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "SECRET_KEY",
    "PRIVATE_KEY",
    "ENCRYPTION_KEY",
    "SIGNING_KEY",
    "MASTER_KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "_PASS",
    "_PWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Suffixes of variable names whose values may be secrets: `CACHE_KEY` is the name of something, `DEPLOY_KEY` is a secret.
const LIKELY_SECRET_NAME_SUFFIXES: &[&str] =
    &["_KEY", "_KEY_ID", "_PAT", "_AUTH", "_JWT", "_COOKIE", "_WEBHOOK", "_WEBHOOK_URL", "_DSN"];

/// Variables with HTTP headers for telemetry, which usually hold a key.
pub const HEADER_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

/// Placeholders where no secret is needed, and common words; compared in lower case. Values below [`MIN_BYTES`] need no
/// entry.
const PLACEHOLDER_VALUES: &[&str] = &[
    "anonymous",
    "automatic",
    "changeit",
    "changeme",
    "change-me",
    "change_me",
    "default-key",
    "developer",
    "development",
    "disabled",
    "dummy-key",
    "fake-key",
    "localhost",
    "lm-studio",
    "mongodb",
    "no-key-needed",
    "no-key-required",
    "not-a-key",
    "not-needed",
    "not-required",
    "optional",
    "password",
    "placeholder",
    "postgres",
    "postgresql",
    "production",
    "required",
    "rabbitmq",
    "test-key",
    "testing",
    "undefined",
    "username",
    "xxxxxxxx",
    "your-api-key",
    "your_api_key",
];

/// Minimum bytes of a value that looks like a key: 64 random bits in hexadecimal digits.
const MIN_KEY_BYTES: usize = 16;
/// Minimum number of changes between letters and digits in a word of a key; ordinary words have one or two (`x86`,
/// `utf8mb4`).
const MIN_CHANGES: usize = 3;
/// Number of hexadecimal digits in a UUID, which is a key even with few such changes.
const UUID_DIGITS: usize = 32;

/// Returns the secrets in the variable `name` with this value: the whole value, the password of a URL, and the values of
/// headers.
pub fn secrets_in<'a>(name: &str, value: &'a str) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
    let name = name.to_ascii_uppercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let has_headers = HEADER_VARIABLES.contains(&name.as_str());
    let is_secret = if has_headers {
        true
    } else if ends(SECRET_NAME_SUFFIXES) {
        !is_ordinary(value)
    } else {
        ends(LIKELY_SECRET_NAME_SUFFIXES) && looks_like_a_key(value)
    };
    let whole = is_secret.then_some(Cow::Borrowed(value));
    let headers = if has_headers { header_values(value) } else { Vec::new() };
    whole
        .into_iter()
        .chain(url_passwords(value))
        .chain(headers.into_iter().map(Cow::Owned))
        .filter(|secret| secret.len() >= MIN_BYTES)
}

/// Returns the values of headers, and the credentials without their scheme (`Bearer`, `Basic`).
fn header_values(list: &str) -> Vec<String> {
    let values = headers(list).flatten().map(|(_, value)| value).filter(|value| !is_placeholder(value));
    let with_credentials = |value: String| {
        let credentials = value.split_once(' ').map(|(_, credentials)| credentials.trim().to_owned());
        std::iter::once(value).chain(credentials)
    };
    values.flat_map(with_credentials).collect()
}

/// Checks whether a value configured as a key is only a placeholder.
pub fn is_placeholder(value: &str) -> bool {
    PLACEHOLDER_VALUES.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Checks whether a value cannot be a secret: a placeholder, a number, a truth value, a path, or a URL without a random
/// part.
fn is_ordinary(value: &str) -> bool {
    let value = value.trim();
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || b".,:_-+ ".contains(&byte));
    let is_location =
        ["/", "~/", "./", "../"].iter().any(|start| value.starts_with(start)) || value.contains("://");
    is_placeholder(value)
        || is_number
        || is_location && !value.split(['/', '?', '&', '=', '@', ':']).any(looks_like_a_key)
}

/// Checks whether a value looks random: long, without spaces, and a mixture of letters and digits.
pub(super) fn looks_like_a_key(value: &str) -> bool {
    let value = value.trim();
    let is_long = value.len() >= MIN_KEY_BYTES && !value.contains(char::is_whitespace);
    let is_uuid = value.bytes().filter(u8::is_ascii_hexdigit).count() >= UUID_DIGITS
        && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_long && (is_uuid || value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random))
}

/// Checks whether a word of letters and digits is a mixture of them.
fn is_random(word: &str) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit();
    let changes =
        word.as_bytes().windows(2).filter(|pair| pair.iter().filter(|byte| digits(byte)).count() == 1);
    let has = |of_kind: fn(&u8) -> bool| word.as_bytes().iter().any(of_kind);
    let of_all_kinds = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    changes.count() >= MIN_CHANGES || of_all_kinds && word.len() >= MIN_KEY_BYTES
}

/// Returns the password of a URL such as `postgres://user:password@host/db`: as written and, if it is percent-encoded, also
/// decoded.
fn url_passwords(value: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let written = raw_url_password(value);
    let decoded = written.and_then(|password| percent_decode_str(password).decode_utf8().ok());
    let decoded = decoded.filter(|decoded| written.is_some_and(|written| written != decoded));
    written.map(Cow::Borrowed).into_iter().chain(decoded).filter(|password| !is_placeholder(password))
}

fn raw_url_password(address: &str) -> Option<&str> {
    let (_scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _host) = authority.rsplit_once('@')?;
    let (_name, password) = user.split_once(':')?;
    Some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_values_are_secret_by_name_and_look() {
        for (name, value) in [
            ("OPENAI_API_KEY", "sk-whatever-it-is"),
            ("github_token", "correct-horse-battery-9"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1"),
            ("SOME_KEY_ID", "K1A2B3C4D5E6F7G8"),
            ("AWS_SESSION_TOKEN", "FwoGZXIvYXdzEBYaDH"),
            ("PGPASSWORD", "hunter2hunter2"),
            ("DB_PASSWORD", "correcthorse"),
            ("SMTP_PASS", "a b c d e f"),
            ("MYSQL_PWD", "swordfish"),
            ("CLIENT_SECRET", "https://hooks.example/T0A1B2C3/x9Y8z7W6v5U4t3S2"),
            ("DEPLOY_KEY", "9f86d081884c7d659a2feaa0c55ad015"),
            ("RAILS_MASTER_KEY", "abcdefghijklmnop"),
            ("APP_KEY", "550e8400-e29b-41d4-a716-446655440000"),
            ("CI_PAT", "a1b2c3d4e5f6g7h8i9j0"),
            ("NPM_AUTH", "dXNlcjpodW50ZXIyMTIz"),
            ("SENTRY_DSN", "https://0123456789abcdef0123456789abcdef@sentry.example/1"),
        ] {
            assert_eq!(secrets_in(name, value).collect::<Vec<_>>(), [value], "{name}={value}");
        }
    }

    #[test]
    fn s25_words_numbers_paths_and_addresses_are_no_secrets() {
        for (name, value) in [
            ("CACHE_KEY", "production"),
            ("CACHE_KEY", "node-modules-v12-2024-x86_64"),
            ("SORT_KEY", "created_at_descending"),
            ("MONKEY", "bananas-bananas"),
            ("KEYBOARD", "a1b2c3d4e5f6g7h8"),
            ("TOKENIZERS_PARALLELISM", "a1b2c3d4e5f6g7h8"),
            ("HOME", "/home/a1b2c3d4e5f6g7h8"),
            ("OLDPWD", "/home/somebody"),
            ("PWD", "/home/somebody"),
            ("POSTGRES_PASSWORD", "postgres"),
            ("DB_PASSWORD", "Password"),
            ("MAX_TOKEN", "1000000000"),
            ("NEEDS_TOKEN", "true"),
            ("SSH_PRIVATE_KEY", "/home/somebody/.ssh/id_ed25519"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "~/keys/service-account.json"),
            ("AUTH_SECRET", "https://auth.example/realms/main"),
            ("SSH_AUTH", "keyboard-interactive"),
            ("LLM_API_KEY", "not-needed"),
            ("X_TOKEN", "short"),
            ("EDITOR", "vim"),
        ] {
            assert_eq!(secrets_in(name, value).next(), None, "{name}={value}");
        }
    }

    #[test]
    fn s25_headers_for_telemetry_are_secrets() {
        let list = "authorization=Bearer%20abcdefgh-1,x-short=1,x-env=production";
        for name in HEADER_VARIABLES {
            let found: Vec<_> = secrets_in(name, list).collect();
            assert_eq!(found, [list, "Bearer abcdefgh-1", "abcdefgh-1"], "{name}");
        }
        assert_eq!(secrets_in("OTEL_RESOURCE_ATTRIBUTES", list).next(), None);
    }

    #[test]
    fn s25_the_password_of_an_address_is_a_secret_under_any_name() {
        for (value, passwords) in [
            ("postgres://me:hunter2hunter2@db.example:5432/x", &["hunter2hunter2"][..]),
            ("amqp://me:p:ss@word1@host", &["p:ss@word1"]),
            ("amqp://me:p%3Ass%40word1@host", &["p%3Ass%40word1", "p:ss@word1"]),
            ("amqp://me:p%3Ass%40@host", &["p%3Ass%40"]),
            ("amqp://me:pass%77ord@host", &["pass%77ord"]),
            ("amqp://me:hunter2%ffhunter2@host", &["hunter2%ffhunter2"]),
            ("redis://:only-a-password@host", &["only-a-password"]),
            ("postgres://postgres:postgres@localhost/x", &[]),
            ("https://user@host/me:hunter2hunter2@x", &[]),
            ("https://host:8080/path", &[]),
            ("me:hunter2hunter2@db", &[]),
            ("redis://:short@host", &[]),
        ] {
            assert_eq!(secrets_in("DATABASE_URL", value).collect::<Vec<_>>(), passwords, "{value}");
        }
        let dsn = "https://me:a1b2c3d4e5f6g7h8@sentry.example/1";
        assert_eq!(secrets_in("SENTRY_DSN", dsn).collect::<Vec<_>>(), [dsn, "a1b2c3d4e5f6g7h8"]);
    }
}
