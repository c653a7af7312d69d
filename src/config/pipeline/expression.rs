//! Expressions of `if`: compared values of variables and of the steps before, with bounded work.

use super::variables::{STEPS, Variables};
use minijinja::value::Object;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum instructions of one evaluation; a comparison takes about five.
const FUEL: u64 = 10_000;
/// Maximum bytes of an expression: the parser recurses into each part of it.
const MAX_BYTES: usize = 1_000;

/// What an expression knows of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepState {
    /// `success`, `partial`, `failed` or `skipped`.
    pub status: &'static str,
    /// Its output.
    pub output: String,
}

/// Values by name.
#[derive(Debug)]
struct Names(BTreeMap<String, Value>);

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).cloned()
    }
}

fn names(values: impl Iterator<Item = (String, Value)>) -> Value {
    Value::from_object(Names(values.collect()))
}

fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_test("defined", |value: &Value| !value.is_undefined());
    environment.add_filter("length", |text: &str| text.chars().count());
    environment.add_filter("number", number);
    environment
}

/// Returns the number that a text is.
fn number(text: &str) -> Result<f64, minijinja::Error> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| minijinja::Error::new(ErrorKind::InvalidOperation, "the text is no number"))
}

/// Checks that `text` is an expression.
///
/// # Errors
/// Why it is none.
pub fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    environment().compile_expression(text).map(drop).map_err(|error| problem(&error))
}

/// Returns the truth of the expression `text`.
///
/// # Errors
/// Why it has none, such as an unknown name.
pub fn evaluate(
    text: &str,
    variables: &Variables,
    steps: &BTreeMap<String, StepState>,
) -> Result<bool, String> {
    check(text)?;
    let environment = environment();
    let step = |(name, step): (&String, &StepState)| {
        let fields = [("status", step.status), ("output", &step.output)];
        (name.clone(), names(fields.into_iter().map(|(field, text)| (field.to_owned(), Value::from(text)))))
    };
    let steps = (STEPS.to_owned(), names(steps.iter().map(step)));
    let variables = variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let scope = names(variables.chain([steps]));
    let value = environment.compile_expression(text).and_then(|expression| expression.eval(scope));
    let value = value.map_err(|error| problem(&error))?;
    if value.is_undefined() {
        return Err("it names something that does not exist".to_owned());
    }
    Ok(value.is_true())
}

fn problem(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(text: &str) -> Result<bool, String> {
        let variables =
            Variables::from([("branch".to_owned(), "main".to_owned()), ("n".to_owned(), "3".to_owned())]);
        let state = StepState { status: "success", output: "{{branch}}".to_owned() };
        let steps = BTreeMap::from([("build".to_owned(), state.clone()), ("a-b".to_owned(), state)]);
        evaluate(text, &variables, &steps)
    }

    #[test]
    fn variables_and_steps_are_compared() {
        for (text, expected) in [
            ("branch == 'main'", true),
            ("branch in ['dev', 'next']", false),
            ("steps.build.status == 'success' and not branch == 'dev'", true),
            ("steps['a-b'].output == '{{branch}}'", true),
            ("n|number > 2.5", true),
            ("n|number + 1 == 4", true),
            ("branch|length == 4", true),
            ("branch is defined", true),
            ("missing is not defined or missing == 'x'", true),
            ("missing is defined", false),
            ("branch", true),
            ("''", false),
        ] {
            assert_eq!(truth(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_has_no_truth() {
        for text in [
            "missing",
            "steps.missing.status == 'success'",
            "steps.build.size",
            "missing == 'x'",
            "branch|number > 1",
            "n|int",
        ] {
            assert!(truth(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_work_of_an_expression_is_bounded() {
        assert!(check("a ==").is_err() && check("").is_err());
        assert!(check(&vec!["n == '3'"; 20_000].join(" and ")).is_err());
        for (part, count) in [("(", 1000), ("not ", 249), ("-", 999), ("[", 1000), ("n.", 499), ("n|", 499)] {
            let _ends = truth(&format!("{}n", part.repeat(count)));
        }
        assert!(truth("('x' * 100000000) * 100000000").is_err());
        assert_eq!(truth(&vec!["n == '3'"; 76].join(" and ")), Ok(true));
    }
}
