//! Variables of a pipeline: their names, and the places of a text where they stand as `{{name}}`.

use std::collections::BTreeMap;

/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 64;
/// The name under which expressions find the steps.
pub const STEPS: &str = "steps";
/// Prefix of the environment variables of commands.
const ENVIRONMENT_PREFIX: &str = "AGENT_VAR_";

/// The values by name.
pub type Variables = BTreeMap<String, String>;

/// Checks whether `name` can be the name of a variable; an error says what a name is.
///
/// # Errors
/// When it cannot.
pub fn check_name(name: &str) -> Result<(), String> {
    match name {
        STEPS => Err(format!("`{STEPS}` is no name for a variable: expressions find the steps under it")),
        _ if is_name(name) && name.len() <= MAX_NAME_CHARS => Ok(()),
        _ => Err(format!(
            "the name of a variable has letters, digits and `_`, at most {MAX_NAME_CHARS}, and no digit first"
        )),
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_') && name.chars().all(is_part)
}

/// Returns the name of the environment variable with the value of the variable `name`.
pub fn environment_name(name: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", name.to_ascii_uppercase())
}

/// Returns the environment of commands.
pub fn environment(variables: &Variables) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| (environment_name(name), value.clone())).collect()
}

/// Splits `text` at its first `{{name}}`: the text before it, the name, the text after it.
fn first_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("{{") {
        let start = from + at;
        let (inner, after) = text.get(start + 2..)?.split_once("}}")?;
        if is_name(inner.trim()) {
            return Some((text.get(..start)?, inner.trim(), after));
        }
        from = start + 1;
    }
    None
}

/// Returns the first variable that stands in `text`.
pub fn first_variable(text: &str) -> Option<&str> {
    first_placeholder(text).map(|(_, name, _)| name)
}

/// Returns `text` with each `{{name}}` replaced by its value. Values are not searched again, and unknown names stay.
pub fn replace(text: &str, variables: &Variables) -> String {
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = first_placeholder(rest) {
        replaced.push_str(before);
        match variables.get(name) {
            Some(value) => replaced.push_str(value),
            None => replaced.push_str(rest.get(before.len()..rest.len() - after.len()).unwrap_or_default()),
        }
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Returns the truth of a condition after variables are replaced: `false`, `no`, `0` and nothing are false.
pub fn is_true(text: &str) -> bool {
    !["false", "no", "0", ""].contains(&text.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_replace_their_names_once_and_unknown_names_stay() {
        let known = variables(&[("x", "{{y}}"), ("y", "no"), ("z_1", "$(touch x)")]);
        for (text, expected) in [
            ("a {{x}} b {{ z_1 }}", "a {{y}} b $(touch x)"),
            ("{{unknown}} {{y}}", "{{unknown}} no"),
            ("{{{y}}}", "{no}"),
            ("{{ {{y}} }}", "{{ no }}"),
            ("{{.State}} {{y", "{{.State}} {{y"),
            ("{{1a}} {{}} é{{y}}é", "{{1a}} {{}} énoé"),
        ] {
            assert_eq!(replace(text, &known), expected, "{text}");
        }
    }

    #[test]
    fn a_condition_is_false_only_for_four_texts() {
        for (text, truth) in [("", false), (" No ", false), ("0", false), ("FALSE", false), ("{{x}}", true)] {
            assert_eq!(is_true(text), truth, "{text}");
        }
        assert!(is_true("yes") && is_true("1") && is_true("anything"));
    }

    #[test]
    fn a_name_is_an_identifier() {
        assert!(check_name("a_1").is_ok() && check_name("_").is_ok());
        for name in ["", "1a", "a-b", "é", "steps", "a b", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(environment_name("branch"), "AGENT_VAR_BRANCH");
    }

    proptest! {
        #[test]
        fn what_a_value_holds_is_not_replaced(value in "[{}xy ]{0,12}", text in "[{}xy ]{0,20}") {
            let marked = replace(&text, &variables(&[("x", "\u{1}")]));
            prop_assert_eq!(replace(&text, &variables(&[("x", &value)])), marked.replace('\u{1}', &value));
        }
    }
}
