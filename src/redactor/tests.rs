use super::*;
use proptest::prelude::*;

const VALUE: &str = "hunter2/hunter2+x";

fn redactor() -> Redactor {
    Redactor::new([
        NamedSecret { name: "DB_PASSWORD".to_owned(), value: Secret::new(VALUE) },
        NamedSecret { name: "SHORT_KEY".to_owned(), value: Secret::new("abc") },
        NamedSecret { name: "LOOP_KEY".to_owned(), value: Secret::new("aXXXXXXXXa") },
    ])
}

/// A key that is made here, so that no scanner takes this file for a leak.
fn key(head: &str, length: usize) -> String {
    format!("{head}{}", "A1b2C3d4".repeat(16).get(..length).unwrap())
}

#[test]
fn s25_a_known_value_is_replaced_by_its_name_plain_and_encoded() {
    let clean = |text: &str| redactor().text(text).into_owned();
    assert_eq!(clean(&format!("a {VALUE} b")), "a [redacted: DB_PASSWORD] b");
    assert_eq!(clean("x hunter2%2Fhunter2%2Bx"), "x [redacted: DB_PASSWORD]");
    // `user:` and the value, as basic authentication sends them: five bytes before it, so it begins inside of a group.
    assert!(!clean("dXNlcjpodW50ZXIyL2h1bnRlcjIreA==").contains("bnRlcjIv"));
    assert!(clean("dXNlcjpodW50ZXIyL2h1bnRlcjIreA==").contains("[redacted: DB_PASSWORD]"));
    assert_eq!(clean("abc is short"), "abc is short");
}

#[test]
fn s25_keys_are_found_by_their_form() {
    let clean = |text: &str| Redactor::default().text(text).into_owned();
    for (key, name) in [
        (key("sk-", 40), "API key"),
        (key("sk-ant-", 40), "API key"),
        (key("ghp_", 36), "GitHub token"),
        (key("github_pat_", 40), "GitHub token"),
        (key("xoxb-", 30), "Slack token"),
        ("AKIA".to_owned() + "ABCDEFGH12345678", "AWS key id"),
        (format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 20), key("", 20)), "JWT"),
    ] {
        assert_eq!(clean(&format!("k={key};")), format!("k=[redacted: {name}];"));
    }
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----";
    assert_eq!(clean(&format!("a\n{pem}\nb")), "a\n[redacted: private key]\nb");
    assert_eq!(clean("-----BEGIN PRIVATE KEY-----\nMII"), "[redacted: private key]");
}

#[test]
fn ordinary_text_is_not_copied() {
    for text in [
        "risk-aversion-in-long-hyphenated-words",
        "sk-loading-spinner-container",
        "-----BEGIN CERTIFICATE-----",
    ] {
        assert!(matches!(redactor().text(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_marker_that_was_shown_is_recognised_when_it_comes_back() {
    let redactor = redactor();
    let arguments = serde_json::json!({"content": "p = [redacted: DB_PASSWORD]"});
    assert_eq!(redactor.echoed(&arguments), None, "nobody was shown one");
    let mut text = format!("p = {VALUE}");
    redactor.clean_for_model(&mut text);
    assert_eq!(redactor.echoed(&arguments).as_deref(), Some("[redacted: DB_PASSWORD]"));
    redactor.recall("[redacted: nobody] [redacted: JWT] [redacted: ");
    assert_eq!(redactor.echoed(&serde_json::json!("[redacted: nobody]")), None);
    assert_eq!(redactor.echoed(&serde_json::json!("[redacted: JWT]")).as_deref(), Some("[redacted: JWT]"));
}

proptest! {
    #[test]
    fn s25_a_secret_is_found_however_a_stream_is_cut(
        before in "[a-zA-Z \n.-]{0,12}", after in "[ \n,;é][a-z \n]{0,12}",
        which in 0_usize..5, cuts in proptest::collection::vec(1_usize..9, 1..40),
    ) {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIabc0123\n-----END PRIVATE KEY-----".to_owned();
        let secret = [VALUE.to_owned(), "aXXXXXXXXa".to_owned(), key("ghp_", 36), key("sk-proj-", 44), pem];
        let secret = secret.get(which).unwrap();
        let text = format!("{before} {secret}{after}");
        let redactor = redactor();
        let (mut held, mut told, mut rest) = (Held::default(), String::new(), text.as_str());
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
            told.push_str(&held.take(&redactor, piece));
            rest = later;
        }
        told.push_str(&held.finish(&redactor));
        prop_assert!(!told.contains(secret.as_str()), "{told:?}");
        prop_assert_eq!(told, redactor.text(&text).into_owned());
    }
}
