use super::super::{Action, Checkpoint, Debate, Schema};
use super::*;
use proptest::prelude::*;

fn agents(name: &str) -> bool {
    ["build", "plan", "review"].contains(&name)
}

fn errors(text: &str) -> Vec<String> {
    parse(text, &agents).map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
}

/// A file with every key.
const FULL: &str = "name: release
variables: {branch: main, count: 3, dry: true}
steps:
  - name: test
    run: cargo test
    checks: [test -e a, test -e b]
    timeout: 60
    continue_on_error: true
  - name: write
    prompt: Write notes for {{branch}}
    agent: build
    model: openai/mock
    checkpoint: commit
    condition: '{{dry}}'
    if: steps.test.status == 'success'
    if_command: test -e Cargo.toml
    output_var: notes
    output_schema: {type: object}
    checks: test -s notes
    budget: 0.5
  - prompt: Review it
    chain: [plan, review]
    checkpoint: true
    output_schema: schema.json
  - parallel:
      - {name: lint, run: cargo clippy, timeout: 60}
      - prompt: Look at {{notes}}
        output_var: risks
  - consolidate: {question: 'Which of {{risks}}?', models: [a, b], judge: c, rounds: 2}
    timeout: 60
";

#[test]
fn every_key_is_read() {
    let pipeline = parse(FULL, &agents).unwrap();
    assert_eq!((pipeline.name.as_str(), pipeline.variables["count"].as_str()), ("release", "3"));
    let [test, write, review, looks, debate] = pipeline.steps.as_slice() else { panic!() };
    assert_eq!(test.action, Action::Run("cargo test".to_owned()));
    assert_eq!((test.timeout, test.continue_on_error, test.checks.len()), (Some(60), true, 2));
    assert_eq!(write.action, Action::Prompt("Write notes for {{branch}}".to_owned()));
    assert_eq!((write.checkpoint, write.budget), (Checkpoint::Commit, Some(0.5)));
    assert_eq!(write.output_schema, Some(Schema::Inline(serde_json::json!({"type": "object"}))));
    assert_eq!(write.commands().collect::<Vec<_>>(), ["test -e Cargo.toml", "test -s notes"]);
    assert_eq!((review.name.as_str(), review.checkpoint), ("step-3", Checkpoint::Reference));
    assert!(matches!(&review.action, Action::Chain { agents, .. } if agents.len() == 2));
    let [lint, look] = looks.inner() else { panic!() };
    assert_eq!((lint.name.as_str(), look.name.as_str(), looks.name.as_str()), ("lint", "step-4-2", "step-4"));
    assert!(matches!(&debate.action, Action::Consolidate(Debate { rounds: 2, judge, .. }) if judge == "c"));
    assert_eq!(pipeline.references().count(), 7);
}

#[test]
fn all_errors_are_found_at_once_with_their_positions() {
    let text = "nam: x
steps:
  - name: one
    task: do it
  - prompt: ' '
    timeout: 0
    agent: nobody
  - run: echo {{x}}
    agent: build
    budget: -1
  - name: one
    prompt: a
    run: b
    if: 'x =='
    output_var: 1a
  - parallel: []
    budget: 1
    consolidate: {models: [a], judge: b, rounds: 11}
  - parallel: [{run: a, checkpoint: true}, {parallel: [{run: b}]}, {run: 'c {{x}}', agnt: d}]
";
    let found = errors(text);
    for expected in [
        "1:1: unknown key `nam` (did you mean `name`?)",
        "4:5: unknown key `task` (did you mean `prompt`?)",
        "5:13: `prompt` is empty",
        "6:14: `timeout` must be 1 to 86400 seconds (a duration is a number of seconds, or has units, such as 90s, 5m or 1h30m)",
        "7:12: no agent is called `nobody`; `agent agents` lists them",
        "8:10: `{{x}}` in a command: a variable never becomes part of a command, write \"$AGENT_VAR_X\"",
        "9:5: `agent` has no effect on a step with `run`",
        "10:5: `budget` has no effect on a step with `run`",
        "10:13: `budget` is a number of US dollars above 0, such as 0.50",
        "11:5: another step has the name `one`",
        "11:5: a step has only one of prompt, run",
        "14:9: `if` is no expression",
        "15:17: `1a`: the name of a variable has letters",
        "16:15: `parallel` is empty",
        "16:5: a step has only one of parallel, consolidate",
        "17:5: `budget` has no effect on a step with `parallel`",
        "18:18: `consolidate` needs `question`, `models` (2 to 8, all different) and `judge`, another model",
        "18:50: `rounds` is a number of rounds, 1 to 10",
        "19:25: a step of `parallel` cannot have `checkpoint`",
        "19:45: a step of `parallel` cannot have `parallel`",
        "19:74: `{{x}}` in a command",
        "19:85: unknown key `agnt` (did you mean `agent`?)",
    ] {
        assert!(found.iter().any(|error| error.starts_with(expected)), "{expected}\n{found:#?}");
    }
    assert_eq!(found.len(), 22, "{found:#?}");
}

#[test]
fn a_file_without_steps_is_no_pipeline() {
    for (text, expected) in [
        ("", "a pipeline is a map"),
        ("name: x", "a pipeline needs `steps`"),
        ("steps: []", "`steps` is empty"),
        ("steps: {a: 1}", "`steps` is a list of steps"),
        ("steps: [1]", "a step is a map"),
        ("steps: [{name: a}]", "a step needs `prompt`, `run`, `parallel` or `consolidate`"),
        ("steps: [{chain: [plan]}]", "`chain` needs `prompt`"),
        ("steps: [", "not valid YAML"),
        ("steps: [{parallel: x}]", "`parallel` is a list of steps"),
        ("steps: [{name: a, parallel: [{name: a, run: x}]}]", "another step has the name `a`"),
        ("steps: [{consolidate: {models: [a, b], judge: c}}]", "`consolidate` needs `question`"),
        ("steps: [{consolidate: {question: q, models: [a, b], judge: b}}]", "`judge`, another model"),
        ("variables: {a: 1, A: 2}\nsteps: [{run: x}]", "`A` and `a` have the same name"),
        ("variables: {steps: 1}\nsteps: [{run: x}]", "`steps`: `steps` is no name for a variable"),
    ] {
        let found = errors(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    for many in ["  - run: x\n".repeat(201), format!("  - parallel:\n{}", "      - run: x\n".repeat(200))] {
        assert!(errors(&format!("steps:\n{many}"))[0].contains("201 steps are too many: at most 200"));
    }
    assert!(errors(&format!("# {}", "x".repeat(256 << 10)))[0].contains("larger than 262144 bytes"));
}

#[test]
fn what_changed_is_named_by_step() {
    let before = parse(FULL, &agents).unwrap();
    assert_eq!(before.changes_since(&before), Vec::<String>::new());
    let commented = parse(&format!("# comment\n{FULL}"), &agents).unwrap();
    assert_eq!(commented.changes_since(&before), Vec::<String>::new());
    let after = FULL.replace("cargo test", "cargo check").replace("count: 3", "count: 4");
    assert_eq!(parse(&after, &agents).unwrap().changes_since(&before), ["variables", "step test"]);
    let longer = parse(&format!("{FULL}  - run: last\n"), &agents).unwrap();
    assert_eq!(longer.changes_since(&before), ["step step-6"]);
    assert_eq!(before.changes_since(&longer), ["step step-6"]);
}

/// Parts of pipelines, right and wrong, between the bytes of a mutated file.
const PARTS: [&str; 16] = [
    "\n  - ",
    "{{x}}",
    "prompt: ",
    "if: a == 'b'",
    "checks: [",
    "]",
    "}",
    "{",
    "&a ",
    "*a",
    "\u{202e}",
    "\"",
    "budget: 1e999",
    "\n    ",
    "parallel: [",
    "consolidate: {",
];

proptest! {
    #[test]
    fn a_mutated_file_is_a_pipeline_or_has_errors_fit_for_a_line(
        edits in prop::collection::vec((0.0..1.0_f64, 0..40_usize, 0..PARTS.len()), 1..8),
    ) {
        let mut text: Vec<char> = FULL.chars().collect();
        for (at, removed, part) in edits {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
            let at = (at * text.len() as f64) as usize;
            let end = (at + removed).min(text.len());
            text.splice(at..end, PARTS[part].chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text, &agents) {
            Ok(pipeline) => prop_assert!(!pipeline.steps.is_empty()),
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                for error in errors {
                    let line = error.to_string();
                    prop_assert!(line.chars().count() < 1000 && !line.contains(char::is_control), "{:?}", line);
                }
            }
        }
    }
}
