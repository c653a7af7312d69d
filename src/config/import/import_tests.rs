use super::*;
use serde_json::json;

/// The configuration of one rule, or the reason why it is not carried over.
fn rule(action: &str, rule: &str, target: Target) -> String {
    let text = json!({"permissions": {action: [rule]}}).to_string();
    let imported = combine(claude::settings("f", &text, target).unwrap(), target, |_| false).unwrap();
    match imported.skipped.first() {
        Some((_, why)) => why.clone(),
        None => serde_yaml::from_str::<Value>(&imported.config).unwrap().to_string(),
    }
}

#[test]
fn import_a_denied_or_asked_rule_becomes_at_least_as_strict() {
    let command = |action: &str, words: &str| {
        json!({"policy": {"rules": [{"action": action, "command": words}]}}).to_string()
    };
    let rule_on_tool = |action: &str, tool: &str| {
        json!({"policy": {"rules": [{"action": action, "tool": tool}]}}).to_string()
    };
    let blocked = |pattern: &str| json!({"guardrails": {"blocked_commands": [pattern]}}).to_string();
    for (action, text, expected) in [
        ("deny", "Bash(git push:*)", command("deny", "git push")),
        ("deny", "Bash(git push *)", command("deny", "git push")),
        ("ask", "Bash(npm publish)", command("ask", "npm publish")),
        ("deny", "Bash(rm*)", blocked("^rm")),
        ("deny", "Bash(git * main)", blocked("^git .* main$")),
        ("deny", "Bash(echo \"$A\":*)", blocked("^echo \"\\$A\"")),
        ("deny", "Read(./.env)", json!({"guardrails": {"sensitive_files": [".env"]}}).to_string()),
        ("deny", "Edit(/src/**)", json!({"guardrails": {"protected_files": ["src/**"]}}).to_string()),
        (
            "deny",
            "WebFetch(domain:a.example)",
            json!({"policy": {"rules": [{"action": "deny", "host": "a.example"}]}}).to_string(),
        ),
        ("deny", "mcp__Git_Hub", rule_on_tool("deny", "mcp__git?hub__*")),
        ("ask", "mcp__a__b_c", rule_on_tool("ask", "mcp__a__b_c")),
        ("ask", "Bash", json!({"policy": {"rules": [{"action": "ask", "tool": "run_command"}]}}).to_string()),
    ] {
        assert_eq!(rule(action, text, Target::Project), expected, "{action} {text}");
    }
    for text in [
        "Bash(git * main)",
        "Read(~/.ssh/**)",
        "Read(../x)",
        "Read(!a)",
        "mcp__a__b(x)",
        "Bash(x",
        "Skill(x)",
    ] {
        assert!(!rule("ask", text, Target::Project).starts_with('{'), "{text}");
    }
}

#[test]
fn import_an_allowed_rule_is_carried_over_only_where_exactly_the_same_is_allowed() {
    let expected = json!({"policy": {"rules": [{"action": "allow", "command": "npm run test"}]}}).to_string();
    assert_eq!(rule("allow", "Bash(npm run test:*)", Target::User), expected);
    let own = rule("allow", "Bash(npm run test:*)", Target::Project);
    assert!(own.contains(r#"`policy: {rules: [{action: "allow", command: "npm run test"}]}`"#), "{own}");
    for text in [
        "Bash",
        "Bash(*)",
        "Bash(npm run build)",
        "Bash(npm*)",
        "Bash(git * main)",
        "Bash(a; b:*)",
        "Bash(A=1 b:*)",
        "Edit",
        "Edit(docs/**)",
        "Read(x)",
        "WebFetch",
        "WebFetch(domain:a.example)",
        "Task(x)",
    ] {
        assert!(!rule("allow", text, Target::User).starts_with('{'), "{text}");
    }
}

#[test]
fn import_an_allowed_rule_is_listed_where_a_restriction_above_it_is_missing_here() {
    let hook = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]);
    for (more, is_allowed) in [
        (json!({}), true),
        (json!({"permissions": {"ask": ["Bash(git push:*)"], "deny": ["Bash(git * -f)"]}}), true),
        (json!({"permissions": {"ask": ["Bash(git * -f)"]}}), false),
        (json!({"permissions": {"deny": "Bash(git push)"}}), false),
        (json!({"hooks": {"PreToolUse": hook}}), false),
        (json!({"hooks": {"PostToolUse": hook}}), true),
    ] {
        let mut all = json!({"permissions": {}});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all["permissions"]["allow"] = json!(["Bash(git:*)"]);
        let found = claude::settings("f", &all.to_string(), Target::User).unwrap();
        let imported = combine(found, Target::User, |_| false).unwrap();
        assert_eq!(imported.config.contains("\"allow\""), is_allowed, "{all}");
        let listed = imported.skipped.iter().any(|(name, _)| name == "f: permissions.allow Bash(git:*)");
        assert_eq!(listed, !is_allowed, "{all}");
    }
}

// Fault B23: a hook with a regular expression or the tools of an MCP server as its matcher was not carried over.
#[test]
fn import_converts_the_matcher_of_a_hook_to_the_names_here() {
    let imported = |matcher: &str| {
        let hook = json!([{"matcher": matcher, "hooks": [{"type": "command", "command": "./guard.sh"}]}]);
        let text = json!({"hooks": {"PreToolUse": hook}}).to_string();
        let found = claude::settings("f", &text, Target::User).unwrap();
        combine(found, Target::User, |_| false).unwrap().config
    };
    for (theirs, ours) in [
        ("Bash", "run_command"),
        ("Write|Edit", "write_file|apply_patch|delete_file|edit_file"),
        ("Notebook.*", "edit_file|apply_patch|delete_file"),
        ("(Web|Agent).*", "dispatch_subagent|web_fetch|web_search"),
        ("mcp__docs__.*|Bash", "mcp__docs__.*|run_command"),
    ] {
        assert!(imported(theirs).contains(&format!("matcher: \"{ours}\"")), "{theirs}: {}", imported(theirs));
    }
    assert_eq!(imported("Unknown|Bash"), "");
}

#[test]
fn import_the_strictest_rules_come_first_and_each_once() {
    let text = r#"{"permissions": {"allow": ["Bash(a:*)"], "ask": ["Bash(b:*)"], "deny": ["Bash(c:*)", "Bash(c *)"]}}"#;
    let found = claude::settings("f", text, Target::User).unwrap();
    let config = combine(found, Target::User, |_| false).unwrap().config;
    assert_eq!(
        config,
        "policy:\n  rules:\n    - {action: \"deny\", command: \"c\"}\n    - {action: \"ask\", command: \"b\"}\n    \
         - {action: \"allow\", command: \"a\"}\n"
    );
}

#[test]
fn import_a_secret_and_an_invalid_pattern_are_listed_and_the_rest_is_kept() {
    let text = r#"{"permissions": {"deny": ["Bash(x s3cret:*)", "Read(a[)", "Read(b)"]}}"#;
    let found = claude::settings("f", text, Target::Project).unwrap();
    let imported = combine(found, Target::Project, |text| text.contains("s3cret")).unwrap();
    assert_eq!(imported.config, "guardrails:\n  sensitive_files:\n    - \"b\"\n");
    assert_eq!(imported.skipped.len(), 2, "{:?}", imported.skipped);
    assert_eq!(imported.skipped[0].1, messages::IMPORT_SECRET);
    assert!(imported.skipped[1].1.starts_with("it is not valid here: "), "{:?}", imported.skipped);
}

#[test]
fn import_is_bounded_and_never_yields_an_invalid_configuration() {
    let all = |count: usize, word: &str| {
        let rules: Vec<String> = (0..count).map(|at| format!("Bash({word}{at}:*)")).collect();
        let text = json!({"permissions": {"deny": rules}}).to_string();
        combine(claude::settings("f", &text, Target::Project).unwrap(), Target::Project, |_| false)
    };
    assert_eq!(all(MAX_SETTINGS, "a").unwrap().skipped, []);
    let error = all(MAX_SETTINGS + 1, "a").unwrap_err();
    assert!(error.to_string().contains("at most 1000"), "{error}");
    let error = all(MAX_SETTINGS, &"a".repeat(600)).unwrap_err();
    assert_eq!(error.to_string(), "the imported configuration: is larger than 512 KiB");
}

#[test]
fn import_any_text_of_a_rule_is_written_as_data() {
    for text in ["a\nb: c", "x\u{7f}\u{85}\u{2028}", "\u{1b}[31m", "\"}]", "é # no", "\u{0}"] {
        let json = json!({"permissions": {"deny": [format!("Bash({text} *x)"), format!("Edit({text})")]}});
        let found = claude::settings("f", &json.to_string(), Target::Project).unwrap();
        let config = combine(found, Target::Project, |_| false).unwrap().config;
        let rules = &embedded_schema().unwrap().rules;
        let layer = text_layer(rules, LayerKind::Project, "f", &config).unwrap();
        let keys: Vec<&str> = layer.layer_values().map(|(key, _)| key).collect();
        assert!(keys.iter().all(|key| key.starts_with("guardrails.")), "{text:?}: {keys:?}");
    }
}

#[test]
fn import_two_servers_of_one_name_are_one_and_names_are_written_as_data() {
    let servers = json!({"mcpServers": {
        "A": {"command": "first", "env": {"B\nhooks": "${X}"}},
        "a": {"command": "second"},
        "b: {c": {"command": "third"},
        "d\nhooks": {"command": "fourth"},
        "e": {"command": "fifth", "url": "https://e.example/"},
        "f": {"url": "http://f.example/"},
        "g": {"command": "x", "enabled": "yes"},
        "h": 1,
    }});
    let found = claude::mcp_servers("f", &servers.to_string()).unwrap();
    let imported = combine(found, Target::Project, |_| false).unwrap();
    assert_eq!(imported.config, "mcp:\n  servers:\n    a:\n      command: \"second\"\n");
    assert_eq!(imported.skipped.len(), 7, "{:?}", imported.skipped);
    let twice = json!({"mcpServers": {"A": {"command": "first"}, "a": {"command": "second"}}});
    let found = claude::mcp_servers("f", &twice.to_string()).unwrap();
    let imported = combine(found, Target::Project, |_| false).unwrap();
    assert_eq!(imported.config, "mcp:\n  servers:\n    a:\n      command: \"first\"\n");
    assert_eq!(imported.skipped, [("f: MCP server a".to_owned(), messages::IMPORT_SAME_SERVER.to_owned())]);
}

#[test]
fn import_options_of_a_sandbox_count_only_in_its_mode() {
    let config =
        |text: &str, target| combine(codex::settings("f", text).unwrap(), target, |_| false).unwrap().config;
    let options = "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = [\"/srv\"]\n";
    let with_mode = format!("sandbox_mode = \"workspace-write\"\n{options}");
    assert_eq!(config(&with_mode, Target::User), "sandbox:\n  network: true\n  writable:\n    - \"/srv\"\n");
    assert_eq!(config(&with_mode, Target::Project), "");
    assert_eq!(config(options, Target::User), "");
}
