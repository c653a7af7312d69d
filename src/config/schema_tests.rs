//! Tests that the documents generated from the schema are current. `AGENT_UPDATE_SCHEMA=1` regenerates them.

use super::Document;
use crate::key_rules::{KeyRule, Kind, Scope, Stricter, embedded_schema};
use crate::schema_rules::compile;
use crate::validate;
use crate::yaml::Node;
use schemars::transform::Transform;
use serde_json::Value;
use std::fmt::Write as _;

/// The defaults file that users read and copy from.
const DEFAULTS: &str = include_str!("../../config/default.yaml");

/// Compares a file of the repository with its expected content, or writes it.
#[expect(clippy::disallowed_methods, reason = "a test that keeps generated files in step")]
fn in_step(path: &str, expected: &str) {
    let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    if std::env::var("AGENT_UPDATE_SCHEMA").is_ok_and(|value| value == "1") {
        std::fs::write(&path, expected).unwrap();
    }
    let actual = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{} is out of step: run with AGENT_UPDATE_SCHEMA=1", path.display());
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Anywhere => "anywhere",
        Scope::NeedsTrust => "needs-trust",
        Scope::NeverFromProject => "never-from-project",
    }
}

/// Describes the values that a key allows, and its scope.
fn facts(rule: &KeyRule) -> String {
    let kind = match &rule.kind {
        Kind::Map(values) if matches!(values.kind, Kind::Group(_)) => {
            format!("names, each with some of: {}", keys(values))
        }
        Kind::Map(values) => format!("names, each with {}", validate::expected(values)),
        _ => validate::expected(rule),
    };
    let nothing = if rule.nullable { ", or null" } else { "" };
    let words = rule.tightens.iter().map(|value| value.to_string().trim_matches('"').to_owned());
    let tight: Vec<String> = words.chain(rule.stricter.map(|by| stricter(rule, by).to_owned())).collect();
    let except = if tight.is_empty() { String::new() } else { format!(" except {}", tight.join(", ")) };
    format!("{kind}{nothing}; {}{except}", scope_name(rule.scope))
}

/// Names the values that an untrusted project may set.
fn stricter(rule: &KeyRule, by: Stricter) -> &'static str {
    match (by, matches!(rule.kind, Kind::Choice(_))) {
        (Stricter::Lower, false) => "a lower number",
        (Stricter::LowerThanSet, false) => "a lower number than that in force",
        (Stricter::LowerNotZero, false) => "a lower number than that in force, not 0",
        (Stricter::Higher, false) => "a higher number",
        (Stricter::Lower | Stricter::LowerThanSet | Stricter::LowerNotZero, true) => {
            "a word before that in force"
        }
        (Stricter::Higher, true) => "a word after that in force",
    }
}

fn defaults() -> Value {
    serde_yaml::from_str(DEFAULTS).unwrap()
}

/// Allows units in durations, such as `5m`.
fn allow_units(schema: &mut schemars::Schema) {
    if schema.get("x-unit").is_some_and(|unit| unit == "seconds") {
        let types: Value = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().cloned().chain(["string".into()]).collect(),
            one => one.cloned().into_iter().chain(["string".into()]).collect(),
        };
        schema.insert("type".to_owned(), types);
        let pattern = "^[0-9]+([dhms]([0-9]+[hms]){0,3})?$";
        schema.insert("pattern".to_owned(), pattern.into());
    }
}

/// Generates the schema from the types, with the defaults.
fn generated() -> String {
    let mut schema = schemars::schema_for!(Document);
    schema.insert("default".to_owned(), defaults());
    schemars::transform::RecursiveTransform(allow_units).transform(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

fn rules() -> KeyRule {
    compile(&generated()).rules
}

fn render_defaults(rule: &KeyRule, value: &Value, depth: usize, out: &mut String) {
    let Kind::Group(rules) = &rule.kind else { return };
    let indent = "  ".repeat(depth);
    for (name, value) in value.as_object().unwrap() {
        let rule = rules.get(name).unwrap_or_else(|| panic!("{name} is not in the schema"));
        let about = rule.description.lines().next().unwrap_or_default();
        if matches!(rule.kind, Kind::Group(_)) && !value.as_object().unwrap().is_empty() {
            write!(out, "\n{indent}# {about}\n{indent}{name}:\n").unwrap();
            render_defaults(rule, value, depth + 1, out);
        } else {
            let what = if matches!(rule.kind, Kind::Group(_)) {
                format!("keys: {}; {}", keys(rule), scope_name(rule.scope))
            } else {
                facts(rule)
            };
            // Without quotes, readers of YAML 1.1 would take the word for `false`.
            let value = if value == "off" { "\"off\"".to_owned() } else { plain(value) };
            write!(out, "{indent}# {about}\n{indent}#   {what}\n{indent}{name}: {value}\n").unwrap();
        }
    }
}

fn keys(rule: &KeyRule) -> String {
    let Kind::Group(rules) = &rule.kind else { return String::new() };
    rules.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn the_defaults_file_has_every_key_with_its_meaning_and_scope() {
    let mut text = String::from(
        "# Every key with its default: the lowest layer of the configuration. Copy what you change into\n\
         # $XDG_CONFIG_HOME/agent/config.yaml (yours) or .agent/config.yaml (the project's).\n\
         # The comments are made from src/config/schema.rs.\n\n",
    );
    render_defaults(&rules(), &defaults(), 0, &mut text);
    in_step("config/default.yaml", &text);
}

#[test]
fn the_json_schema_is_in_step() {
    in_step("config/schema/config.json", &generated());
}

#[test]
fn the_embedded_rules_are_in_step() {
    let compiled = compile(&generated());
    in_step("config/rules.json", &format!("{}\n", serde_json::to_string(&compiled).unwrap()));
    assert!(
        *embedded_schema().unwrap() == compiled,
        "config/rules.json is out of step: run the tests once more"
    );
}

#[test]
fn the_manual_lists_every_key() {
    let manual = include_str!("../../config/help/config.md");
    let start = "<!-- keys: made from src/config/schema.rs -->\n";
    let head = manual.split(start).next().unwrap_or_default();
    let defaults = defaults();
    let mut text = format!(
        "{head}{start}\n| key | default | holds | who may set it | meaning |\n|---|---|---|---|---|\n"
    );
    let rules = rules();
    for (key, rule) in rules.keys() {
        let default = key.split('.').try_fold(&defaults, |value, name| value.get(name));
        let default = default.map_or_else(|| "–".to_owned(), |value| format!("`{}`", plain(value)));
        let facts = facts(rule).replace('|', "\\|");
        let (holds, scope) = facts.split_once("; ").unwrap();
        let about = rule.description.lines().next().unwrap_or_default();
        writeln!(text, "| `{key}` | {default} | {holds} | {scope} | {about} |").unwrap();
    }
    in_step("config/help/config.md", &text);
}

#[test]
fn the_defaults_are_valid_and_complete() {
    validate::leaves(&rules(), &Node::of(&defaults())).unwrap();
    serde_json::from_value::<Document>(defaults()).unwrap();
}

#[test]
fn every_key_has_a_meaning_and_every_number_a_unit() {
    for (key, rule) in rules().keys() {
        assert!(!rule.description.is_empty(), "{key}");
        if matches!(rule.kind, Kind::Integer(..)) {
            assert!(rule.unit.is_some(), "{key}");
        }
    }
}

// Fault E4: keys that raise cost or lift the breakers of the user could be set by an untrusted project.
#[test]
fn what_could_run_something_or_redirect_a_key_is_out_of_reach_of_a_project() {
    let rules = rules();
    for (key, rule) in rules.keys() {
        let wanted = match key.as_str() {
            "llm.api_base"
            | "llm.api_key_env"
            | "logging.file"
            | "sessions.cleanup_after_days"
            | "workspace.root"
            | "costs.prices_file"
            | "sandbox.mode"
            | "sandbox.network"
            | "sandbox.allowed_hosts"
            | "sandbox.writable"
            | "policy.rules" => Scope::NeverFromProject,
            key if ["llm.cache.", "web.", "telemetry.", "fleet.", "hub."]
                .iter()
                .any(|group| key.starts_with(group)) =>
            {
                Scope::NeverFromProject
            }
            // These neither cost anything nor loosen a limit of the user.
            "agents.NAME.description"
            | "chat.notify"
            | "chat.notify_after"
            | "chat.queue"
            | "commands.blocked_patterns"
            | "guardrails.blocked_commands"
            | "guardrails.code_rules"
            | "guardrails.protected_files"
            | "guardrails.sensitive_files"
            | "guardrails.text_rules"
            | "health.exclude_dirs"
            | "health.include_patterns"
            | "indexer.exclude_dirs"
            | "indexer.exclude_patterns"
            | "language"
            | "llm.images"
            | "llm.stream"
            | "llm.temperature"
            | "loop.warn_when_low"
            | "sandbox.hidden"
            | "skills.disabled"
            | "tools.edit_format"
            | "tools.result_format"
            | "tools.todo" => Scope::Anywhere,
            "chat.editing" | "chat.notify_command" | "memory.enabled" | "skills.dirs" => {
                Scope::NeverFromProject
            }
            key if key.starts_with("llm.providers.") => Scope::NeverFromProject,
            _ => Scope::NeedsTrust,
        };
        assert_eq!(rule.scope, wanted, "{key}");
    }
}
