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
";

#[test]
fn every_key_is_read() {
    let pipeline = parse(FULL, &agents).unwrap();
    assert_eq!((pipeline.name.as_str(), pipeline.variables["count"].as_str()), ("release", "3"));
    let [test, write, review] = pipeline.steps.as_slice() else { panic!() };
    assert_eq!(test.action, Action::Run("cargo test".to_owned()));
    assert_eq!((test.timeout, test.continue_on_error, test.checks.len()), (Some(60), true, 2));
    assert_eq!(write.action, Action::Prompt("Write notes for {{branch}}".to_owned()));
    assert_eq!((write.checkpoint, write.budget), (Checkpoint::Commit, Some(0.5)));
    assert_eq!(write.output_schema, Some(Schema::Inline(serde_json::json!({"type": "object"}))));
    assert_eq!(write.commands().collect::<Vec<_>>(), ["test -e Cargo.toml", "test -s notes"]);
    assert_eq!((review.name.as_str(), review.checkpoint), ("step-3", Checkpoint::Reference));
    assert!(matches!(&review.action, Action::Chain { agents, .. } if agents.len() == 2));
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
";
    let found = errors(text);
    for expected in [
        "1:1: unknown key `nam` (did you mean `name`?)",
        "4:5: unknown key `task` (did you mean `prompt`?)",
        "5:13: `prompt` is empty",
        "6:14: `timeout` is a number of seconds, 1 to 86400",
        "7:12: no agent is called `nobody`; `agent agents` lists them",
        "8:10: `{{x}}` in a command: a variable never becomes part of a command, write \"$AGENT_VAR_X\"",
        "9:5: `agent` has no effect on a step with `run`",
        "10:5: `budget` has no effect on a step with `run`",
        "10:13: `budget` is a number of US dollars above 0, such as 0.50",
        "11:5: another step has the name `one`",
        "11:5: a step has only one of prompt, run",
        "14:9: `if` is no expression",
        "15:17: `1a`: the name of a variable has letters",
        "16:5: `parallel` steps are not supported yet",
    ] {
        assert!(found.iter().any(|error| error.starts_with(expected)), "{expected}\n{found:#?}");
    }
    assert_eq!(found.len(), 14, "{found:#?}");
}

#[test]
fn a_file_without_steps_is_no_pipeline() {
    for (text, expected) in [
        ("", "a pipeline is a map"),
        ("name: x", "a pipeline needs `steps`"),
        ("steps: []", "`steps` is empty"),
        ("steps: {a: 1}", "`steps` is a list"),
        ("steps: [1]", "a step is a map"),
        ("steps: [{name: a}]", "a step needs `prompt` or `run`"),
        ("steps: [{chain: [plan]}]", "`chain` needs `prompt`"),
        ("steps: [", "not valid YAML"),
        ("variables: {a: 1, A: 2}\nsteps: [{run: x}]", "`A` and `a` have the same name"),
        ("variables: {steps: 1}\nsteps: [{run: x}]", "`steps`: `steps` is no name for a variable"),
    ] {
        let found = errors(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    let many = format!("steps:\n{}", "  - run: x\n".repeat(201));
    assert!(errors(&many)[0].contains("at most 200"));
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
    assert_eq!(longer.changes_since(&before), ["step step-4"]);
    assert_eq!(before.changes_since(&longer), ["step step-4"]);
}

/// Parts of pipelines, right and wrong, between the bytes of a mutated file.
const PARTS: [&str; 14] = [
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
