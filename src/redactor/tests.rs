use super::*;
use proptest::prelude::*;

const VALUE: &str = "hunter2/hunter2+x";

fn redactor() -> Redactor {
    redactor_with_others(0)
}

/// Creates a redactor with this number of additional secrets.
fn redactor_with_others(others: usize) -> Redactor {
    let others = (0..others).map(|number| ("OTHER_KEY", format!("other-{number}-value")));
    let known = [("DB_PASSWORD", VALUE), ("SHORT_KEY", "abc"), ("LOOP_KEY", "abbbbbbbba")];
    let known = known.map(|(name, value)| (name, value.to_owned())).into_iter().chain(others);
    Redactor::new(known.map(|(name, value)| NamedSecret { name: name.to_owned(), value: Secret::new(value) }))
}

/// Generates a key, so that secret scanners do not report this file.
fn key(head: &str, length: usize) -> String {
    format!("{head}{}", "A1b2C3d4".repeat(16).get(..length).unwrap())
}

#[test]
fn s25_a_known_value_is_replaced_by_its_name_plain_and_encoded() {
    let clean = |text: &str| redactor().text(text).into_owned();
    assert_eq!(clean(&format!("a {VALUE} b")), "a [redacted: DB_PASSWORD] b");
    assert_eq!(clean("x hunter2%2Fhunter2%2Bx"), "x [redacted: DB_PASSWORD]");
    // `user:` and the value, as in basic authentication: the five bytes before it shift it within a base64 group.
    assert!(!clean("dXNlcjpodW50ZXIyL2h1bnRlcjIreA==").contains("bnRlcjIv"));
    assert!(clean("dXNlcjpodW50ZXIyL2h1bnRlcjIreA==").contains("[redacted: DB_PASSWORD]"));
    assert_eq!(clean("abc is short"), "abc is short");
    assert_eq!(clean("x hunter2%2fhunter2%2bx"), "x [redacted: DB_PASSWORD]", "small digits are the same");
}

#[test]
fn s25_a_value_is_found_in_json_in_both_alphabets_of_base64_and_line_by_line() {
    let lines = format!("-----BEGIN X-----\n{}\nordinary words\n", key("", 40));
    let values =
        [("QUOTED", "a\"b\\c\td\ne\""), ("BYTES", "\u{3ff}\u{3ff}\u{3ff}\u{3ff}\u{3ff}"), ("LINES", &lines)];
    let redactor = Redactor::new(
        values.map(|(name, value)| NamedSecret { name: name.to_owned(), value: Secret::new(value) }),
    );
    let clean = |text: &str| redactor.text(text).into_owned();
    let json = serde_json::json!({"content": values[0].1}).to_string();
    assert_eq!(clean(&json), r#"{"content":"[redacted: QUOTED]"}"#);
    assert_eq!(clean("z7/Pv8+/z7/Pvw=="), "[redacted: BYTES]vw==", "all that depends on the value alone");
    assert_eq!(clean("z7_Pv8-_z7_Pvw=="), "[redacted: BYTES]vw==");
    assert_eq!(clean(&format!("12\t{}\n", key("", 40))), "12\t[redacted: LINES]\n");
    assert_eq!(clean("ordinary words"), "ordinary words");
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
    let endless = format!("-----BEGIN PRIVATE KEY-----\na{}", "é".repeat(key_formats::MAX_PEM_BYTES));
    assert!(clean(&endless).starts_with("[redacted: private key]éé"), "cut between characters");
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
    assert_eq!(redactor.echoed_marker(&arguments), None, "no marker was shown");
    let mut text = format!("p = {VALUE}");
    redactor.redact_for_model(&mut text);
    assert_eq!(redactor.echoed_marker(&arguments).as_deref(), Some("[redacted: DB_PASSWORD]"));
    redactor.remember_markers("[redacted: nobody] [redacted: JWT] [redacted: ");
    assert_eq!(redactor.echoed_marker(&serde_json::json!("[redacted: nobody]")), None);
    assert_eq!(
        redactor.echoed_marker(&serde_json::json!("[redacted: JWT]")).as_deref(),
        Some("[redacted: JWT]")
    );
}

#[test]
fn the_beginning_of_a_secret_at_the_end_of_a_piece_is_found_and_little_else() {
    let redactor = redactor();
    for (text, partial) in [
        ("x hunter2/hun", 11),
        ("x hun", 0),
        ("x hunter2/hunter2+x.", 0),
        ("x ghp_A1b2", 8),
        ("Password: ", 0),
        ("x -----BEGIN ", 11),
        ("", 0),
    ] {
        assert_eq!(redactor.partial_secret_len(text.as_bytes()), partial, "{text}");
    }
    assert_eq!(redactor.partial_secret_len(b"hunter2/hun\xff"), 0, "no secret continues with this byte");
    assert_eq!(redactor.partial_secret_len(b"\xff hunter2/hun"), 11);
    assert_eq!(redactor.partial_secret_len(b"\xff -----BEGIN PRIVATE KEY-----\n\xff"), 29);
}

proptest! {
    #[test]
    fn s25_a_secret_is_found_however_a_stream_is_cut(
        before in "[a-zA-Z \n.-]{0,12}", after in "[ \n,;é][a-z \n]{0,12}",
        which in 0_usize..5, cuts in proptest::collection::vec(1_usize..9, 1..40), others in 0..MIN_FINDER_VALUES,
    ) {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIabc0123\n-----END PRIVATE KEY-----".to_owned();
        let secret = [VALUE.to_owned(), "abbbbbbbba".to_owned(), key("ghp_", 36), key("sk-proj-", 44), pem];
        let secret = secret.get(which).unwrap();
        let text = format!("{before} {secret}{after}");
        let redactor = redactor_with_others(others);
        let (mut pending, mut emitted, mut rest) = (PendingText::default(), String::new(), text.as_str());
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
            emitted.push_str(&pending.take(&redactor, piece));
            rest = later;
        }
        emitted.push_str(&pending.finish(&redactor));
        prop_assert!(!emitted.contains(secret.as_str()), "{emitted:?}");
        prop_assert_eq!(emitted, redactor.text(&text).into_owned());
    }

    #[test]
    fn values_are_found_the_same_way_one_after_the_other_and_at_once(
        text in "(hunter2/hunter2\\+x|other-1-value|abbb|bbbba|a|b|other-|é| ){0,12}",
    ) {
        let mut many = redactor_with_others(MIN_FINDER_VALUES);
        let at_once = many.text(&text).into_owned();
        prop_assert!(many.finder.take().is_some() && many.finders.is_empty());
        many.finders = finders(&many.values);
        prop_assert_eq!(many.text(&text), at_once.as_str());
    }
}
