//! Whose certificate is believed: a page's and the model's server's alike.

use crate::support::run::{KEY, Lab};
use crate::support::site::{Site, fetched, page, redirect};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use std::fs;

/// A certificate authority that nobody knows.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// What a server proves itself with that calls itself `name`.
    fn server(&self, name: &str, change: impl Fn(&mut CertificateParams)) -> rustls::ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        rustls::ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }

    /// A user who believes this authority.
    fn believed(&self, lab: Lab) -> Lab {
        let file = lab.outside().join("authority.pem");
        fs::write(&file, &self.pem).unwrap();
        lab.started().env("SSL_CERT_FILE", file.to_str().unwrap())
    }
}

#[test]
fn t27_a_page_is_read_over_tls_from_a_server_that_proves_who_it_is() {
    let authority = Authority::new("one");
    let site = Site::secured(authority.server("127.0.0.1", |_| {}), |path| match path {
        "/down" => redirect("http://127.0.0.1:1/"),
        _ => page("text/plain", "WELCOME"),
    });
    let lab = authority.believed(site.lab());
    assert!(fetched(&lab, &site.url("/")).contains("WELCOME"));
    let said = fetched(&lab, &site.url("/down"));
    assert!(said.contains("redirects to http://127.0.0.1:1/, away from https"), "{said}");
}

#[test]
fn t27_a_certificate_that_proves_nothing_is_refused_before_anything_is_asked() {
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    };
    for (server, why) in [
        (other.server("127.0.0.1", |_| {}), "UnknownIssuer"),
        (authority.server("example.org", |_| {}), "not valid for"),
        (authority.server("127.0.0.1", expired), "expired"),
    ] {
        let site = Site::secured(server, |_| page("text/plain", "CANARY"));
        let said = fetched(&authority.believed(site.lab()), &site.url("/?token=a"));
        assert!(
            said.contains("The TLS certificate of 127.0.0.1 was rejected") && said.contains(why),
            "{said}"
        );
        assert!(said.contains("SSL_CERT_FILE") && !said.contains("CANARY"), "{said}");
        assert!(site.heads().is_empty());
    }
    let plain = Site::serving(|_| page("text/plain", "CANARY"));
    let said = fetched(&plain.lab(), &plain.url("/").replace("http", "https"));
    assert!(!said.contains("CANARY") && plain.heads().is_empty(), "{said}");
}

#[test]
fn a_models_server_gets_the_key_only_once_it_has_proved_who_it_is() {
    let authority = Authority::new("one");
    let answer = r#"{"choices": [{"message": {"content": "proved"}, "finish_reason": "stop"}]}"#;
    let site =
        Site::secured(authority.server("127.0.0.1", |_| {}), move |_| page("application/json", answer));
    let base = site.url("/v1");
    let args =
        ["run", "task", "--model", "openai/mock", "--api-base", &base, "--api-key", KEY, "--no-stream"];
    let stranger = Lab::new().started().agent(&args).exits(1);
    assert!(
        stranger.stderr.contains("TLS failed") && stranger.stderr.contains("SSL_CERT_FILE"),
        "{stranger:?}"
    );
    assert!(site.heads().is_empty());
    let done = authority.believed(Lab::new().started()).agent(&args).exits(0);
    assert_eq!(done.stdout.trim(), "proved");
    assert!(site.heads().last().unwrap().contains(KEY));
}

// Fault A18: a proxy that was not understood was skipped for a direct connection; certificates that cannot be read were not named.
#[test]
fn a_run_ends_with_exit_3_and_the_name_of_a_variable_that_cannot_be_used() {
    let run = |base: &str, variables: &[(&str, &str)]| {
        let lab = variables
            .iter()
            .fold(Lab::new().started().file("empty.pem", ""), |lab, (name, value)| lab.env(name, value));
        lab.agent(&["run", "x", "--model", "openai/m", "--api-base", base, "--api-key", "k"]).exits(3).stderr
    };
    for (base, name, value) in [
        ("http://model.test/v1", "HTTP_PROXY", "socks://h:1"),
        ("https://model.test/v1", "https_proxy", "ftp://u:secret@h"),
        ("https://model.test/v1", "ALL_PROXY", "http://[bad"),
        ("https://model.test/v1", "SSL_CERT_FILE", "/nowhere/ca.pem"),
        ("https://model.test/v1", "SSL_CERT_FILE", "empty.pem"),
    ] {
        let error = run(base, &[(name, value)]);
        assert!(error.contains(name) && !error.contains("secret"), "{name}={value}: {error}");
    }
}
