use super::*;
use serde_json::json;

fn rule(value: Value) -> HookRule {
    serde_json::from_value(value).unwrap()
}

fn compile(event: HookEvent, rules: Vec<Value>, dir: &Path) -> Result<Hooks, HookRuleError> {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let rules = BTreeMap::from([(event, rules.into_iter().map(rule).collect())]);
    Hooks::new(rules, dir, &Launcher::new(env, Vec::new()))
}

fn fire_in(event: HookEvent, rules: Vec<Value>, input: HookInput, dir: &Path) -> HookOutcome {
    let hooks = compile(event, rules, dir).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(hooks.fire(event, input, &CancellationToken::new()))
}

fn fire(event: HookEvent, rules: Vec<Value>, input: HookInput) -> HookOutcome {
    fire_in(event, rules, input, tempfile::tempdir().unwrap().path())
}

fn about(tool: &str, file: &str) -> HookInput {
    HookInput { tool_name: Some(tool.to_owned()), file_path: Some(file.to_owned()), ..HookInput::default() }
}

fn verdicts(outcome: &HookOutcome) -> Vec<HookVerdict> {
    outcome.runs.iter().map(|run| run.verdict).collect()
}

#[test]
fn h2_zero_allows_two_blocks_other_codes_warn() {
    let outcome = fire(
        HookEvent::PreToolUse,
        vec![
            json!({"command": "exit 0"}),
            json!({"command": "echo odd; exit 7", "name": "odd one"}),
            json!({"command": "echo because >&2; exit 2"}),
        ],
        about("write_file", "a"),
    );
    assert_eq!(verdicts(&outcome), [HookVerdict::Allow, HookVerdict::Warn, HookVerdict::Block]);
    assert_eq!(outcome.block.as_deref(), Some("because"));
    assert_eq!(outcome.runs[1].name, "odd one");
    assert!(outcome.runs[1].output.contains("exited with 7") && outcome.context.is_empty());
}

#[test]
fn h2_a_guard_that_cannot_answer_blocks_unless_told_otherwise() {
    let commands = ["sleep 60", "/no/such/program", "kill -9 $$"];
    for command in commands {
        let asked = |on_error: Value| json!({"command": command, "timeout": 1, "on_error": on_error});
        let blocked = |event, on_error| fire(event, vec![asked(on_error)], about("t", "a")).block.is_some();
        assert!(blocked(HookEvent::PreToolUse, Value::Null), "{command}");
        assert!(!blocked(HookEvent::PreToolUse, json!("allow")), "{command}");
        assert!(!blocked(HookEvent::PostEdit, Value::Null), "{command}");
        assert!(blocked(HookEvent::PostEdit, json!("block")), "{command}");
    }
}

#[test]
fn h3_a_block_stops_later_hooks() {
    let dir = tempfile::tempdir().unwrap();
    let rules = vec![json!({"command": "exit 2"}), json!({"command": "touch second"})];
    let outcome = fire_in(HookEvent::PreToolUse, rules, about("t", "a"), dir.path());
    assert_eq!((outcome.runs.len(), dir.path().join("second").exists()), (1, false));
    assert_eq!(outcome.block.as_deref(), Some("the hook gave no reason"));
}

#[test]
fn h4_new_arguments_reach_the_next_hook_and_the_caller() {
    let outcome = fire(
        HookEvent::PreToolUse,
        vec![json!({"command": r#"echo '{"updatedInput": {"path": "b"}}'"#}), json!({"command": "cat >&2"})],
        HookInput { tool_input: Some(json!({"path": "a"})), ..about("t", "a") },
    );
    assert_eq!(outcome.updated_input, Some(json!({"path": "b"})));
    assert!(outcome.runs[1].output.contains(r#""tool_input":{"path":"b"}"#), "{}", outcome.runs[1].output);
    let outcome = fire(HookEvent::PostEdit, vec![json!({"command": "cat"})], about("t", "a"));
    assert_eq!(outcome.context, Vec::<String>::new(), "a JSON document without our keys is no text");
    let outcome = fire(
        HookEvent::PostEdit,
        vec![json!({"command": r#"echo '{"updatedInput": {}}'"#})],
        about("t", "a"),
    );
    assert_eq!(outcome.updated_input, None);
}

#[test]
fn h5_what_a_hook_says_is_for_the_model() {
    let say = |text: &str| vec![json!({ "command": format!("echo '{text}'") })];
    for event in [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::PreLlmCall] {
        assert_eq!(fire(event, say("plain"), about("t", "a")).context, ["plain"]);
        assert_eq!(fire(event, say(r#"{"additionalContext": "deep"}"#), about("t", "a")).context, ["deep"]);
    }
}

#[test]
fn h6_matcher_patterns_and_enabled_filter() {
    let count = |rule: Value, tool: &str, file: &str| {
        fire(HookEvent::PreToolUse, vec![rule], about(tool, file)).runs.len()
    };
    let matcher = |matcher: &str| json!({"command": "true", "matcher": matcher});
    assert_eq!(count(matcher("*"), "anything", ""), 1);
    assert_eq!(count(matcher("write_file|edit_file"), "edit_file", ""), 1);
    assert_eq!(count(matcher("edit"), "edit_file", ""), 0, "anchored at the end");
    assert_eq!(count(matcher("file"), "edit_file", ""), 0, "anchored at the start");
    let patterns = json!({"command": "true", "file_patterns": ["*.py", "Makefile", "src/**/*.rs"]});
    for (file, matches) in
        [("a.py", 1), ("x/y/a.py", 1), ("x/Makefile", 1), ("src/a/b.rs", 1), ("b.rs", 0), ("", 0)]
    {
        assert_eq!(count(patterns.clone(), "t", file), matches, "{file}");
    }
    assert_eq!(count(json!({"command": "true", "enabled": false}), "t", "a"), 0);
    assert!(fire(HookEvent::SessionStart, vec![matcher("edit")], HookInput::default()).runs.is_empty());
}

#[test]
fn h6_a_background_hook_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let run = std::process::id();
    let command = format!("until [ -e go ]; do sleep 0.01; done; touch done-{run}");
    let hooks =
        compile(HookEvent::PostEdit, vec![json!({"command": command, "async": true})], dir.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let outcome = hooks.fire(HookEvent::PostEdit, about("t", "a"), &CancellationToken::new()).await;
        assert_eq!(outcome, HookOutcome::default());
        std::fs::File::create(dir.path().join("go")).unwrap();
        while !dir.path().join(format!("done-{run}")).exists() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn h7_what_a_linter_finds_is_for_the_model_and_does_not_stop_others() {
    let rules = vec![
        json!({"command": "echo \"$AGENT_EDITED_FILE: bad\"; exit 1", "name": "lint"}),
        json!({"command": "cat {file}"}),
    ];
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy("/proc/self/comm", dir.path().join("it's a.py")).unwrap();
    let outcome = fire_in(HookEvent::PostEdit, rules, about("edit_file", "it's a.py"), dir.path());
    assert_eq!(verdicts(&outcome), [HookVerdict::Warn, HookVerdict::Allow]);
    assert_eq!(outcome.context[0], "Hook 'lint' exited with 1:\nit's a.py: bad");
    assert_eq!(outcome.context.len(), 2);
}

#[test]
fn a_word_on_stderr_is_told_to_people_only() {
    let outcome =
        fire(HookEvent::PostEdit, vec![json!({"command": "echo not installed >&2"})], about("t", "a"));
    assert_eq!((verdicts(&outcome), outcome.context.len()), (vec![HookVerdict::Allow], 0));
    assert_eq!(outcome.runs[0].output, "not installed");
}

#[test]
fn a_flood_is_bounded() {
    let outcome =
        fire(HookEvent::PostEdit, vec![json!({"command": "yes | head -c 5000000"})], about("t", "a"));
    assert!(outcome.context[0].len() < 10_000 && outcome.runs[0].output.len() <= 2000);
}

#[test]
fn a_rule_that_cannot_work_is_named() {
    let error =
        |rule: Value| compile(HookEvent::PostEdit, vec![rule], Path::new("/")).unwrap_err().to_string();
    assert!(error(json!({"command": "x", "matcher": "("})).starts_with("hooks.post_edit[0].matcher: "));
    assert!(
        error(json!({"command": "x", "file_patterns": ["["]}))
            .starts_with("hooks.post_edit[0].file_patterns: ")
    );
    assert!(error(json!({"command": "x", "timeout": 301})).contains("between 1 and 300"));
    assert!(error(json!({"command": " "})).ends_with("command: is empty"));
}

// Fault A11: an answer that is not understood let the call run, and so did a refusal before a failure.
#[test]
fn an_answer_that_is_not_understood_is_on_error_and_a_refusal_counts_with_every_exit_code() {
    let says = |text: &str, more: Value| {
        let mut rule = json!({"command": format!("echo '{text}'"), "name": "guard"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        vec![rule]
    };
    for text in ["{\"decision\": \"blo", "{\"verdict\": \"no\"}"] {
        let outcome = fire(HookEvent::PreToolUse, says(text, json!({})), about("t", "a"));
        assert!(outcome.block.unwrap().starts_with("Hook 'guard' failed: its output is not understood"));
        let outcome = fire(HookEvent::PreToolUse, says(text, json!({"on_error": "allow"})), about("t", "a"));
        assert_eq!((verdicts(&outcome), outcome.block), (vec![HookVerdict::Warn], None));
    }
    let deny = r#"echo "{\"decision\": \"deny\", \"reason\": \"no\"}"; "#;
    for exit in ["exit 0", "exit 1", "exit 2"] {
        let rule = json!({"command": format!("{deny}{exit}"), "on_error": "allow"});
        assert!(
            fire(HookEvent::PreToolUse, vec![rule], about("t", "a")).block.unwrap().contains("no"),
            "{exit}"
        );
    }
    let block = r#"{"decision": "block", "reason": "look again"}"#;
    for event in [HookEvent::PostToolUse, HookEvent::PostEdit, HookEvent::PreLlmCall, HookEvent::SessionStart]
    {
        assert_eq!(fire(event, says(block, json!({})), about("t", "a")).block.as_deref(), Some("look again"));
    }
    for event in [HookEvent::AgentComplete, HookEvent::SessionEnd, HookEvent::ContextCompress] {
        let outcome = fire(event, says(block, json!({})), about("t", "a"));
        assert_eq!(verdicts(&outcome), [HookVerdict::Warn]);
        assert!(outcome.runs[0].output.contains("look again"), "{}", outcome.runs[0].output);
    }
    let ask = r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}"#;
    let outcome = fire(HookEvent::PreToolUse, says(ask, json!({})), about("t", "a"));
    assert_eq!((outcome.ask.as_deref(), outcome.block), (Some("sure?"), None));
}
