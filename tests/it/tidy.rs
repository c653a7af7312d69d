//! Rules of the code base: sizes, docs, tables that must equal the code.

use crate::support::run::Lab;
use agent_core::language::Language;
use agent_core::stop_reason::StopReason;
use agent_llm::provider_table::{self, Provider};
use agent_messages as messages;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// The loop, from its `fn` line to its closing brace.
const MAX_LOOP_LINES: usize = 32;
/// `main`, likewise.
const MAX_MAIN_LINES: usize = 15;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file below `dir`, relative to the root, sorted.
fn rust_files(dir: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![root().join(dir)];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The text of a file without its unit tests: up to the module that holds them, and without declarations of test files.
fn without_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if *line != "#[cfg(test)]" {
            kept.push(*line);
            at += 1;
            continue;
        }
        let item = at + 1 + lines[at + 1..].iter().take_while(|line| line.starts_with("#[")).count();
        if lines[item].ends_with('{') && lines[item].contains("mod ") {
            break;
        }
        at = item + 1;
    }
    kept.join("\n")
}

fn is_test_file(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.ends_with("_tests.rs")
}

/// Every source file with its text.
fn sources() -> Vec<(String, String)> {
    let files = rust_files("src").into_iter().filter(|file| !is_test_file(file));
    files.map(|file| (file.clone(), without_tests(&read(&file)))).collect()
}

#[test]
fn the_loop_and_main_stay_small() {
    let length = |file: &str, start: &str| {
        let text = read(file);
        let body: Vec<&str> = text.lines().skip_while(|line| !line.starts_with(start)).collect();
        body.iter().position(|line| *line == "}").map_or(usize::MAX, |end| end + 1)
    };
    let the_loop = length("src/session/agent_loop.rs", "async fn drive");
    let main = length("src/main.rs", "fn main");
    assert!(the_loop <= MAX_LOOP_LINES, "the loop has {the_loop} lines");
    assert!(main <= MAX_MAIN_LINES, "main has {main} lines");
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(file, _)| file).collect();
    assert!(silent.is_empty(), "without a `//!` sentence: {silent:?}");
}

/// Compares the part of `file` between two marks with `expected`; `AGENT_UPDATE_DOCS=1` writes it.
fn check_generated(file: &str, name: &str, expected: &str) {
    let text = read(file);
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let start = text.find(&begin).unwrap_or_else(|| panic!("{file} has no {begin}")) + begin.len();
    let stop = text.find(&end).unwrap_or_else(|| panic!("{file} has no {end}"));
    if std::env::var_os("AGENT_UPDATE_DOCS").is_some() {
        fs::write(root().join(file), format!("{}{expected}{}", &text[..start], &text[stop..])).unwrap();
        return;
    }
    assert_eq!(&text[start..stop], expected, "{file}: run the tests with AGENT_UPDATE_DOCS=1 to renew it");
}

#[test]
fn the_manuals_errors_are_the_errors() {
    check_generated("config/help/errors.md", "errors", &agent_llm::error_action::error_table());
}

/// The table of providers as people read it: what is not confirmed by a source has a question mark.
fn providers_table() -> String {
    let mut table = String::from("| provider | also | key | speaks | differs |\n|---|---|---|---|---|\n");
    for provider in provider_table::built_in_providers().unwrap() {
        let keys = if provider.local { "none".to_owned() } else { provider.keys.join(", ") };
        let keys = keys + mark(&provider, "keys");
        let (name, also, row) = (&provider.name, provider.aliases.join(", "), json!(provider));
        let (format, differs) = (row["format"].as_str().unwrap(), differs(&provider).join("; "));
        let _ = writeln!(table, "| {name} | {also} | {keys} | {format} | {differs} |");
    }
    table
}

fn mark(provider: &Provider, key: &str) -> &'static str {
    if provider.unconfirmed.iter().any(|known| known == key) { "?" } else { "" }
}

/// The keys of a row that are not as usual, apart from those with a column of their own.
fn differs(provider: &Provider) -> Vec<String> {
    let (row, usual) = (json!(provider), json!(Provider::default()));
    let of_the_row = ["path", "query", "key_header", "window"].map(|key| (key, &row[key], &usual[key]));
    let quirks = row["quirks"].as_object().unwrap().iter();
    let quirks = quirks.map(|(key, value)| (key.as_str(), value, &usual["quirks"][key]));
    let told = of_the_row.into_iter().chain(quirks).filter(|(_, value, usual)| value != usual);
    told.map(|(key, value, _)| {
        let value = if *value == json!(true) { String::new() } else { format!(": {value}") };
        format!("{key}{value}{}", mark(provider, key)).replace('"', "")
    })
    .collect()
}

#[test]
fn the_manuals_providers_are_the_table() {
    check_generated("config/help/providers.md", "providers", &providers_table());
}

/// The value of a dotted key in the defaults, as the manual writes it; nothing where there is none.
fn default_of(defaults: &Value, key: &str) -> Option<String> {
    let value =
        defaults.pointer(&format!("/{}", key.replace('.', "/"))).unwrap_or_else(|| panic!("no key {key}"));
    (!value.is_null()).then(|| format!("`{value}`"))
}

#[test]
fn the_manuals_limits_are_the_limits() {
    let defaults: Value = serde_yaml::from_str(&read("config/default.yaml")).unwrap();
    let page = read("config/help/limits.md");
    let table =
        page.split("<!-- limits -->\n").nth(1).unwrap().split("<!-- end of limits -->").next().unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let help = Lab::new().agent(&["run", "--help"]).exits(0).stdout;
    let (mut keys, mut reasons) = (BTreeSet::new(), BTreeSet::new());
    for row in &rows {
        let [key, flag, default, _, reason] = row.as_slice() else { panic!("{row:?}") };
        let (key, reason) = (key.trim_matches('`'), reason.trim_matches('`'));
        let told = default.starts_with('`').then(|| (*default).to_owned());
        assert_eq!(told, default_of(&defaults, key), "{key}");
        assert!(*flag == "–" || help.contains(&format!("{} ", flag.trim_matches('`'))), "{flag}");
        keys.insert(key.to_owned());
        // What only ends a call ends no run.
        reasons.extend((reason != "–").then(|| reason.to_owned()));
    }
    let of = |section: &str| -> Vec<String> {
        defaults[section].as_object().unwrap().iter().map(|(key, _)| format!("{section}.{key}")).collect()
    };
    let known = ["max_steps", "timeout_seconds", "step_timeout_seconds"].map(str::to_owned).into_iter();
    let no_limits = [
        "loop.on_limit",
        "loop.on_repeat",
        "loop.repeat_exempt",
        "loop.warn_when_low",
        "costs.warn_at_usd",
        "costs.prices_file",
        "context.strategy",
        "context.keep_recent_steps",
        "context.max_tool_result_tokens",
        "evaluation.mode",
        "evaluation.confidence_threshold",
    ];
    let known = ["loop", "costs", "context", "evaluation"]
        .into_iter()
        .flat_map(of)
        .chain(known)
        .filter(|key| !no_limits.contains(&key.as_str()));
    let missing: Vec<String> = known.filter(|key| !keys.contains(key)).collect();
    assert!(missing.is_empty(), "config/help/limits.md lacks {missing:?}");
    let ends = StopReason::VARIANTS
        .iter()
        .filter(|reason| messages::closing_instruction(**reason, Language::En).is_some());
    let ends: BTreeSet<String> = ends.map(ToString::to_string).collect();
    assert!(reasons.is_superset(&ends), "{reasons:?} lacks some of {ends:?}");
    let names: BTreeSet<String> = StopReason::VARIANTS.iter().map(ToString::to_string).collect();
    assert!(reasons.is_subset(&names), "{reasons:?}");
}

// Fault B21: it had 317.
#[test]
fn the_readme_has_at_most_250_lines() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 250, "{lines}");
}

#[test]
fn the_readmes_exit_codes_are_the_codes() {
    check_generated("README.md", "exit codes", &agent_run::exit_code::table());
}

/// Family and number of a row of the specification; the number of a family's only row is 0.
type Row = (String, u32);

/// Returns the row that a function is named after: `l05_max_steps_…` is a test of `L5`, `lr1_…` of `L-R1`, `lc_…` of `L-C`.
fn row_of(function: &str) -> Option<Row> {
    let (prefix, _) = function.split_once('_')?;
    let letters = prefix.trim_end_matches(|c: char| c.is_ascii_digit());
    let family = match letters {
        "lc" if prefix == "lc" => return Some(("L-C".to_owned(), 0)),
        "lr" => "L-R".to_owned(),
        "l" | "t" | "s" | "k" | "o" | "f" | "m" | "h" | "a" | "b" | "u" => letters.to_uppercase(),
        _ => return None,
    };
    Some((family, prefix[letters.len()..].parse().ok()?))
}

/// The names of the functions that are named after a row, for each row.
fn tests_by_row() -> BTreeMap<Row, BTreeSet<String>> {
    let mut rows: BTreeMap<Row, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files("tests/it").into_iter().chain(rust_files("src")) {
        for line in read(&file).lines() {
            let line = line.trim_start().trim_start_matches("async ");
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).unwrap_or_default();
            if let Some(row) = row_of(name) {
                rows.entry(row).or_default().insert(format!("`{name}`"));
            }
        }
    }
    rows
}

fn is_row(line: &str) -> bool {
    line.strip_prefix("| ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Parses `| L5 | sentence | tests |` as row and sentence.
fn row_with_sentence(line: &str) -> (Row, String) {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let ["", id, sentence, _, ""] = cells[..] else { panic!("not `| id | sentence | tests |`: {line}") };
    let family = id.trim_end_matches(|c: char| c.is_ascii_digit());
    ((family.to_owned(), id[family.len()..].parse().unwrap_or(0)), sentence.to_owned())
}

fn id_of((family, number): &Row) -> String {
    if *number == 0 { family.clone() } else { format!("{family}{number}") }
}

/// Returns `old` with the tables of `sentences` and `tests`: below the heading `## L: …` stands the table of the family `L`.
fn specification(
    old: &str,
    sentences: &BTreeMap<Row, String>,
    tests: &BTreeMap<Row, BTreeSet<String>>,
) -> String {
    let (mut text, mut family) = (String::new(), "");
    for line in old.lines().filter(|line| !is_row(line)) {
        let _ = writeln!(text, "{line}");
        family = line.strip_prefix("## ").and_then(|rest| rest.split(':').next()).unwrap_or(family);
        if line != "|---|---|---|" {
            continue;
        }
        for (row, sentence) in sentences.iter().filter(|(row, _)| row.0 == family) {
            let names: Vec<&str> = tests.get(row).into_iter().flatten().map(String::as_str).collect();
            let _ = writeln!(text, "| {} | {sentence} | {} |", id_of(row), names.join(", "));
        }
    }
    text
}

#[test]
fn the_specification_has_a_sentence_and_the_tests_of_every_row() {
    let file = "tests/SPECIFICATION.md";
    let (old, tests) = (read(file), tests_by_row());
    let mut sentences: BTreeMap<Row, String> = tests.keys().map(|row| (row.clone(), String::new())).collect();
    sentences.extend(old.lines().filter(|line| is_row(line)).map(row_with_sentence));
    let new = specification(&old, &sentences, &tests);
    if std::env::var_os("AGENT_UPDATE_DOCS").is_some() {
        fs::write(root().join(file), new).unwrap();
        return;
    }
    let ids = |is_wrong: &dyn Fn(&Row) -> bool| -> Vec<String> {
        sentences.keys().filter(|row| is_wrong(row)).map(id_of).collect()
    };
    let without_sentence = ids(&|row| sentences[row].is_empty());
    assert!(without_sentence.is_empty(), "{file}: write the sentence of {without_sentence:?}");
    let without_test = ids(&|row| !tests.contains_key(row));
    assert!(without_test.is_empty(), "{file}: no test is named after {without_test:?}");
    let difference = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(old == new, "{file}: run the tests with AGENT_UPDATE_DOCS=1 to renew it; {difference:#?}");
}

#[test]
fn the_nine_packages_of_the_card_are_used() {
    let manifest = read("Cargo.toml");
    let code: String = sources().into_iter().map(|(_, text)| text).collect();
    for name in
        ["clap", "tokio", "reqwest", "serde_json", "ctrlc", "indicatif", "globset", "serde_yaml", "anyhow"]
    {
        let declared = manifest.lines().any(|line| line.starts_with(&format!("{name} = ")));
        assert!(declared, "{name} is not a direct dependency");
        assert!(code.contains(&format!("{name}::")), "{name} is declared but not used");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let words =
        [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["#[ig", "nore"].concat(), ["#[all", "ow("].concat()];
    let mut found = Vec::new();
    for file in rust_files("src").into_iter().chain(rust_files("tests")) {
        for (number, line) in (1..).zip(read(&file).lines()) {
            if words.iter().any(|word| line.contains(word.as_str())) {
                found.push(format!("{file}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A planted bug that no longer applies proves nothing (`tests/planted.sh`).
#[test]
fn every_planted_bug_can_be_planted() {
    if !root().join(".git").exists() {
        eprintln!("skipped: this is no checkout");
        return;
    }
    let mut planted = 0;
    for entry in fs::read_dir(root().join("tests/planted")).unwrap() {
        let patch = entry.unwrap().path();
        let checked = std::process::Command::new("git")
            .args(["apply", "--check"])
            .arg(&patch)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(
            checked.status.success(),
            "{}: {}",
            patch.display(),
            String::from_utf8_lossy(&checked.stderr)
        );
        planted += 1;
    }
    assert!(planted >= 10, "{planted} bugs are planted");
}
