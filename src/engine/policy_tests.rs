//! Tests of the policy: decisions by mode and command class, and refusals in every mode.

use super::*;
use crate::command_class::{CommandOptions, classify};
use agent_tools::TouchedFile;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

fn options(mode: Mode) -> PolicyOptions {
    PolicyOptions {
        mode,
        agent: "build".into(),
        allowed_tools: Vec::new(),
        protected_files: vec![".env".into(), "*.pem".into(), "config/*.yml".into(), "vault/".into()],
        sensitive_files: vec!["secret.txt".into(), "private/**".into()],
        blocked_commands: vec!["^docker".into()],
        trusts_sandbox: false,
        auto: AutoScope::default(),
        allowed_only: false,
        rules: Vec::new(),
        missing_grants: BTreeMap::new(),
        root: "/srv/shop".into(),
        language: Language::En,
    }
}

const SAFE: CommandVerdict =
    CommandVerdict { class: CommandClass::Safe, is_known: true, risks: BTreeSet::new() };

fn policy(mode: Mode) -> Policy {
    Policy::new(options(mode)).unwrap()
}

fn touching(path: &str, write: bool) -> Plan {
    Plan { touched_files: vec![TouchedFile { path: path.into(), write }], ..Plan::default() }
}

fn outcome(decision: &Decision) -> &str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask { rule, .. } | Decision::Deny { rule, .. } => rule,
    }
}

const MODES: [Mode; 3] = [Mode::ConfirmAll, Mode::ConfirmSensitive, Mode::Yolo];

#[test]
fn the_workspace_is_given_the_same_rules_about_files() {
    let policy = Arc::new(policy(Mode::Yolo));
    let guard = Policy::file_guard(&policy);
    for (path, is_sensitive, is_protected) in [
        ("secret.txt", true, false),
        ("/srv/shop/private/key", true, false),
        (".env", false, true),
        ("config/a.yml", false, true),
        (".git/config", false, true),
        ("src/main.rs", false, false),
    ] {
        assert_eq!(
            ((guard.sensitive)(path), (guard.protected)(path)),
            (is_sensitive, is_protected),
            "{path}"
        );
    }
    let named = |path: &str| guard.named.iter().any(|named| named == std::path::Path::new(path));
    assert!(named(".env") && named("vault") && named(".git"), "{:?}", guard.named);
    assert!(!guard.named.iter().any(|named| named.to_string_lossy().contains('*')), "{:?}", guard.named);
}

#[test]
fn a_policy_without_sensitive_files_hides_none() {
    assert!(policy(Mode::Yolo).has_sensitive_files());
    let none = PolicyOptions { sensitive_files: Vec::new(), ..options(Mode::Yolo) };
    let policy = Policy::new(none).unwrap();
    assert!(!policy.has_sensitive_files() && !policy.is_sensitive("secret.txt"));
}

#[test]
fn s02_the_person_who_is_asked_is_told_why() {
    let asked = |verdict| match policy(Mode::ConfirmSensitive).decide(
        "any",
        Access::Execute,
        &Plan::default(),
        Some(&verdict),
    ) {
        Decision::Ask { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    for (command, why) in [
        ("rm -rf build", "`rm -r` cannot be undone"),
        ("cd src && rm -rf build", "`rm -r` cannot be undone"),
        ("git reset --hard", "`git reset` cannot be undone"),
        ("git push", "`git push` reaches other machines or services"),
        ("npm install x", "`npm install` reaches other machines or services"),
        ("python3 -m pip install x", "`pip install` reaches other machines or services"),
        (
            "rm -r a; cat /etc/passwd; curl x",
            "`rm -r` cannot be undone; `curl` reaches other machines or services; `/etc/passwd` is outside the workspace",
        ),
        ("cat /etc/passwd", "`/etc/passwd` is outside the workspace"),
        ("cd src; touch a", "after `cd`, `src/a` can be outside the workspace"),
        ("$EDITOR a", "it runs a program or code that its text does not show"),
        (
            "echo 'a",
            "it cannot be parsed as shell code; it runs a program or code that its text does not show",
        ),
        ("echo a\u{200b}", "it has characters that a terminal does not show"),
    ] {
        let reason = asked(classify(command, &CommandOptions::default()));
        assert_eq!(reason, format!("{why} (mode confirm-sensitive)"), "{command}");
    }
    assert!(asked(CommandVerdict::new(CommandClass::Confine, false)).contains("not known to be safe"));
}

#[test]
fn s02_modes_decide_by_what_a_tool_does() {
    let table = [
        (Access::Read, ["mode.confirm-all", "allow", "allow"]),
        (Access::Write, ["mode.confirm-all", "mode.confirm-sensitive", "allow"]),
        (Access::Network, ["mode.confirm-all", "mode.confirm-sensitive", "allow"]),
        (Access::Execute, ["mode.confirm-all", "mode.confirm-sensitive", "allow"]),
    ];
    for (access, expected) in table {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let decision = policy(mode).decide("any", access, &Plan::default(), None);
            assert_eq!(outcome(&decision), expected, "{access:?} {mode:?}");
        }
    }
}

#[test]
fn s02_commands_are_decided_by_their_class() {
    let table = [
        (CommandClass::Safe, ["mode.confirm-all", "allow", "allow"]),
        (CommandClass::Confine, ["mode.confirm-all", "mode.confirm-sensitive", "allow"]),
        (CommandClass::Ask, ["mode.confirm-all", "mode.confirm-sensitive", "allow"]),
        (CommandClass::Blocked { pattern: "sudo".into() }, ["commands.blocked_patterns"; 3]),
    ];
    for (class, expected) in table {
        let command = CommandVerdict::new(class, true);
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let decision =
                policy(mode).decide("run_command", Access::Execute, &Plan::default(), Some(&command));
            assert_eq!(outcome(&decision), expected, "{command:?} {mode:?}");
        }
    }
}

#[test]
fn s09_allowed_only_refuses_dangerous_commands_in_every_mode() {
    for mode in MODES {
        let policy = Policy::new(PolicyOptions { allowed_only: true, ..options(mode) }).unwrap();
        for class in [CommandClass::Confine, CommandClass::Ask] {
            let decide = |is_known| {
                let command = CommandVerdict::new(class.clone(), is_known);
                policy.decide("run_command", Access::Execute, &Plan::default(), Some(&command))
            };
            assert_eq!(outcome(&decide(false)), "commands.allowed_only");
            assert_ne!(outcome(&decide(true)), "commands.allowed_only");
        }
    }
}

#[test]
fn a_tool_that_reads_but_would_write_is_asked() {
    let decision = policy(Mode::ConfirmSensitive).decide("odd", Access::Read, &touching("a.rs", true), None);
    assert_eq!(outcome(&decision), "mode.confirm-sensitive");
}

#[test]
fn t23_a_tool_outside_the_agents_list_is_refused_with_the_list() {
    let options =
        PolicyOptions { allowed_tools: vec!["read_file".into(), "grep".into()], ..options(Mode::Yolo) };
    let policy = Policy::new(PolicyOptions { agent: "plan".into(), ..options }).unwrap();
    let decision = policy.decide("write_file", Access::Write, &touching("a.rs", true), None);
    let Decision::Deny { reason, rule } = decision else { panic!("{decision:?}") };
    assert_eq!(rule, "agent.allowed_tools");
    assert_eq!(reason, "The agent `plan` may not use `write_file`. It may use: read_file, grep.");
    assert!(policy.allows_tool("grep") && !policy.allows_tool("write_file"));
    assert_eq!(policy.decide("grep", Access::Read, &Plan::default(), None), Decision::Allow);
}

// Fault E5: entries matched the text of names.
#[test]
fn an_entry_of_allowed_tools_covers_the_tools_of_its_server_only() {
    for (entry, tool, is_covered) in [
        ("mcp__a__*", "mcp__a__b__x", true),
        ("mcp__a__b*", "mcp__a__b__x", true),
        ("mcp__a__b__x", "mcp__a__b__x", true),
        ("mcp__a_*", "mcp__a__x", false),
        ("mcp__a_*", "mcp__a_b__x", true),
        ("mcp__*", "mcp__a__x", true),
        ("mcp__a__*", "read_file", false),
    ] {
        assert_eq!(covers(entry, tool), is_covered, "{entry} {tool}");
    }
}

#[test]
fn s11_protected_files_are_read_but_not_changed() {
    let policy = policy(Mode::Yolo);
    for path in [
        ".env",
        "deep/down/.env",
        "./.env",
        "a/../.env",
        ".ENV",
        "/srv/shop/.env",
        "tls/Key.PEM",
        "config/a.yml",
        "/srv/shop//config/./a.yml",
        "/srv/shop/x/../config/a.yml",
        "vault/deep/file",
        "x/vault/file",
    ] {
        let write = policy.decide("edit_file", Access::Write, &touching(path, true), None);
        assert_eq!(outcome(&write), "guardrails.protected_files", "{path}");
        assert_eq!(policy.decide("read_file", Access::Read, &touching(path, false), None), Decision::Allow);
    }
    for path in ["environment", ".env.example", "config/deep/a.yml", "other/config/a.yml", "vaults/file"] {
        let write = policy.decide("edit_file", Access::Write, &touching(path, true), None);
        assert_eq!(write, Decision::Allow, "{path}");
    }
}

#[test]
fn s11_the_reason_names_the_file_the_pattern_and_what_to_do() {
    let decision = policy(Mode::Yolo).decide("write_file", Access::Write, &touching("a/.env", true), None);
    let Decision::Deny { reason, .. } = decision else { panic!() };
    assert!(reason.starts_with("Protected file blocked by guardrail: a/.env (pattern: .env)."), "{reason}");
    assert!(reason.contains("say in your answer"), "{reason}");
}

#[test]
fn s12_sensitive_files_are_neither_read_nor_found() {
    let policy = policy(Mode::Yolo);
    for path in ["secret.txt", "a/SECRET.txt", "private/key", "/srv/shop/private/x/y"] {
        for write in [false, true] {
            let decision = policy.decide("any", Access::Read, &touching(path, write), None);
            assert_eq!(outcome(&decision), "guardrails.sensitive_files", "{path}");
        }
        assert!(policy.is_sensitive(path), "{path}");
    }
    assert!(!policy.is_sensitive("src/secret.rs"));
}

#[test]
fn what_makes_programs_run_or_gives_permission_is_protected_in_every_mode() {
    for path in [
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/module/.git/config",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u{200c}it/config",
        "GIT~1/config",
        ".git\\config",
        ".agent/config.yaml",
        ".agent",
        ".claude/settings.json",
        ".mcp.json",
        ".vscode/tasks.json",
        ".envrc",
        ".gitmodules",
        "sub/.husky/pre-commit",
        ".devcontainer/devcontainer.json",
        "opencode.jsonc",
    ] {
        for mode in MODES {
            let decision = policy(mode).decide("write_file", Access::Write, &touching(path, true), None);
            assert_eq!(outcome(&decision), "guardrails.protected_files", "{path}");
        }
    }
    for path in [".gitignore", ".github/workflows/ci.yml", "agent/x.rs", "digit~1", ".agent.md"] {
        let decision = policy(Mode::Yolo).decide("write_file", Access::Write, &touching(path, true), None);
        assert_eq!(decision, Decision::Allow, "{path}");
    }
}

#[test]
fn a_literal_pattern_matches_only_that_path_and_what_is_below() {
    let own = vec![literal_pattern("conf[1]/agent")];
    let policy = Policy::new(PolicyOptions { protected_files: own, ..options(Mode::Yolo) }).unwrap();
    let write = |path: &str| policy.decide("w", Access::Write, &touching(path, true), None);
    assert_ne!(write("conf[1]/agent/sessions/x"), Decision::Allow);
    assert_eq!(write("conf1/agent/x"), Decision::Allow);
    assert_eq!(write("x/conf[1]/agent/x"), Decision::Allow);
}

#[test]
fn s03_without_a_person_a_question_becomes_a_refusal_with_three_remedies() {
    let policy = Policy::new(options(Mode::ConfirmSensitive)).unwrap();
    let reason = policy.no_approver_message("write_file", "mode.confirm-sensitive");
    for remedy in ["`--mode yolo`", "`--dry-run`", "`mode: yolo`"] {
        assert!(reason.contains(remedy), "{reason}");
    }
    assert!(reason.contains("(mode.confirm-sensitive)"), "{reason}");
}

/// Generates spellings of the path `components` that a model might write.
fn disguised(components: &'static [&'static str]) -> impl Strategy<Value = String> {
    let part = |name: &'static str| {
        (prop::collection::vec(any::<bool>(), name.len()), 0..4_usize, 0..3_usize).prop_map(
            move |(upper, noise, tail)| {
                let cased: String = name
                    .chars()
                    .zip(upper)
                    .map(|(c, upper)| if upper { c.to_ascii_uppercase() } else { c })
                    .collect();
                let noise = ["", "./", "x/../", "/"].get(noise).copied().unwrap_or_default();
                let tail = ["", ".", " "].get(tail).copied().unwrap_or_default();
                format!("{noise}{cased}{tail}")
            },
        )
    };
    let root = prop::sample::select(vec!["", "./", "/srv/shop/", "/srv/shop/./", "sub/../"]);
    (root, components.iter().copied().map(part).collect::<Vec<_>>())
        .prop_map(|(root, parts)| format!("{root}{}", parts.join("/")))
}

#[test]
fn s14_a_blocked_command_is_refused_in_every_mode_and_by_its_own_name() {
    for mode in MODES {
        let rules = vec![serde_json::from_str(r#"{"action": "allow", "command": "docker"}"#).unwrap()];
        let policy = Policy::new(PolicyOptions { rules, ..options(mode) }).unwrap();
        let decide = |text: &str| {
            let plan = Plan { command: Some(text.into()), ..Plan::default() };
            policy.decide("run_command", Access::Execute, &plan, Some(&SAFE))
        };
        let Decision::Deny { reason, rule } = decide("ls && env A=1 docker ps") else { panic!("{mode:?}") };
        assert_eq!(rule, "guardrails.blocked_commands");
        assert!(reason.contains("(pattern: ^docker)"), "{reason}");
        assert_ne!(outcome(&decide("ls docker")), "guardrails.blocked_commands");
    }
    let blocked_commands = vec!["(".into()];
    assert!(Policy::new(PolicyOptions { blocked_commands, ..options(Mode::Yolo) }).is_err());
}

#[test]
fn s20_rules_stand_between_refusals_and_modes() {
    for mode in MODES {
        let rule = |text: &str| serde_json::from_str(text).unwrap();
        let rules = vec![
            rule(r#"{"action": "allow", "path": "/free.txt"}"#),
            rule(r#"{"action": "allow", "path": ".env"}"#),
            rule(r#"{"action": "ask", "tool": "grep"}"#),
            rule(r#"{"action": "deny", "tool": "write_file", "reason": "not today"}"#),
        ];
        let policy = Policy::new(PolicyOptions { rules, ..options(mode) }).unwrap();
        let write = |path| policy.decide("write_file", Access::Write, &touching(path, true), None);
        assert_eq!(write("free.txt"), Decision::Allow);
        assert_eq!(outcome(&write(".env")), "guardrails.protected_files");
        let Decision::Deny { reason, rule } = write("other.txt") else { panic!("{mode:?}") };
        assert_eq!(rule, "policy.rules[3]");
        assert!(reason.contains("not today"), "{reason}");
        let asked = policy.decide("grep", Access::Read, &Plan::default(), None);
        assert_eq!(outcome(&asked), "policy.rules[2]");
    }
}

proptest! {
    #[test]
    fn no_mode_allows_a_protected_write(
        path in prop_oneof![
            disguised(&[".git", "config"]),
            disguised(&[".env"]),
            disguised(&["config", "db.yml"]),
            disguised(&["vault", "a", "b"]),
            disguised(&[".agent", "agents", "x.md"]),
        ],
        mode in prop::sample::select(MODES.to_vec()),
        access in prop::sample::select(vec![Access::Read, Access::Write, Access::Network, Access::Execute]),
        others in prop::collection::vec("[a-z]{1,8}", 0..3),
    ) {
        let mut plan = touching(&path, true);
        plan.touched_files.extend(others.into_iter().map(|path| TouchedFile { path, write: false }));
        let decision = policy(mode).decide("any", access, &plan, Some(&SAFE));
        prop_assert!(matches!(decision, Decision::Deny { .. }), "{path:?}: {decision:?}");
    }

    #[test]
    fn deciding_never_panics_and_a_stricter_mode_never_allows_more(path in ".*", write: bool) {
        let decide = |mode| policy(mode).decide("any", Access::Write, &touching(&path, write), None);
        let (all, sensitive, yolo) =
            (decide(Mode::ConfirmAll), decide(Mode::ConfirmSensitive), decide(Mode::Yolo));
        prop_assert_ne!(&all, &Decision::Allow);
        prop_assert_ne!(&sensitive, &Decision::Allow);
        prop_assert_eq!(matches!(all, Decision::Deny { .. }), matches!(yolo, Decision::Deny { .. }));
    }
}

#[test]
fn u10_auto_runs_what_can_be_undone_and_is_confined_and_asks_about_the_rest() {
    let decide = |is_work_tree, trusts_sandbox, access, class: Option<CommandClass>| {
        let options = PolicyOptions {
            trusts_sandbox,
            auto: AutoScope { edits: is_work_tree, commands: true },
            ..options(Mode::Auto)
        };
        let plan = if access == Access::Write { touching("a.txt", true) } else { Plan::default() };
        let command = class.map(|class| CommandVerdict::new(class, false));
        Policy::new(options).unwrap().decide("any", access, &plan, command.as_ref())
    };
    for (is_work_tree, trusts_sandbox, access, class, asks) in [
        (true, true, Access::Write, None, false),
        (false, true, Access::Write, None, true),
        (true, true, Access::Execute, Some(CommandClass::Confine), false),
        (true, false, Access::Execute, Some(CommandClass::Confine), true),
        (true, true, Access::Execute, Some(CommandClass::Ask), true),
        (true, true, Access::Network, None, true),
        (true, true, Access::Mcp, None, true),
        (false, false, Access::Read, None, false),
    ] {
        let decision = decide(is_work_tree, trusts_sandbox, access, class.clone());
        let asked = matches!(&decision, Decision::Ask { rule, .. } if rule == "mode.auto");
        assert_eq!(asked, asks, "{is_work_tree} {trusts_sandbox} {access:?} {class:?}: {decision:?}");
        assert!(asks || decision == Decision::Allow, "{decision:?}");
    }
    // A fact of the memory is no file of the work tree.
    let options = |is_offline| PolicyOptions {
        trusts_sandbox: true,
        auto: AutoScope { edits: true, commands: is_offline },
        ..options(Mode::Auto)
    };
    let remembered =
        Policy::new(options(true)).unwrap().decide("remember", Access::Write, &Plan::default(), None);
    assert!(matches!(remembered, Decision::Ask { .. }), "{remembered:?}");
    let command = CommandVerdict::new(CommandClass::Confine, false);
    let online =
        Policy::new(options(false)).unwrap().decide("any", Access::Execute, &Plan::default(), Some(&command));
    assert!(matches!(online, Decision::Ask { .. }), "{online:?}");
    let blocked = CommandClass::Blocked { pattern: "x".to_owned() };
    let decision = decide(true, true, Access::Execute, Some(blocked));
    assert!(matches!(decision, Decision::Deny { .. }), "{decision:?}");
}

#[test]
fn s24_building_and_testing_is_unasked_only_where_the_kernel_keeps_commands_in() {
    let plan = Plan::default();
    for (trusts_sandbox, class, is_known, asked) in [
        (true, CommandClass::Confine, true, false),
        (false, CommandClass::Confine, true, true),
        (true, CommandClass::Confine, false, true),
        (true, CommandClass::Ask, true, true),
    ] {
        let policy =
            Policy::new(PolicyOptions { trusts_sandbox, ..options(Mode::ConfirmSensitive) }).unwrap();
        let command = CommandVerdict::new(class, is_known);
        let decision = policy.decide("run_command", Access::Execute, &plan, Some(&command));
        assert_eq!(matches!(decision, Decision::Ask { .. }), asked, "{command:?} {trusts_sandbox}");
    }
}
