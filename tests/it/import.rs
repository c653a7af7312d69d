//! `agent import`: what becomes of the settings of other agents, and what is listed instead of being carried over.

use crate::support::run::{Finished, Lab};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const CONFIG: &str = ".agent/config.yaml";
const CLAUDE: &str = ".claude/settings.json";

fn import(lab: &Lab, args: &[&str]) -> Finished {
    lab.agent(&[&["import"], args].concat())
}

/// A project with permissions, hooks and MCP servers for Claude Code.
fn claude() -> Lab {
    let hook = |command: &str| json!([{"type": "command", "command": command}]);
    let settings = json!({
        "permissions": {
            "allow": ["Bash(npm run test:*)", "Edit(docs/**)"],
            "ask": ["Bash(git push:*)"],
            "deny": ["Read(./.env)", "Edit(.github/**)", "Bash(git * --force)"],
            "defaultMode": "bypassPermissions",
        },
        "env": {"TOKEN": "t0p-secret"},
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": hook("\"$CLAUDE_PROJECT_DIR\"/guard.sh")}],
            "PostToolUse": [{"matcher": "Edit|Write", "hooks": hook("jq .tool_input.file_path")}],
            "Notification": [{"hooks": hook("notify-send hi")}],
        },
    });
    Lab::new()
        .file(CLAUDE, settings.to_string())
        .file(".mcp.json", r#"{"mcpServers": {"git\u001bhub": {"command": "npx"}}}"#)
        .file("CLAUDE.md", "# Ours\n")
        .script("guard.sh", "#!/bin/sh\n")
}

/// The decision of `agent policy test` on a call.
fn decision(lab: &Lab, call: &str) -> String {
    let out = lab.agent(&["policy", "test", call]).exits(0).stdout;
    out.split(':').next().unwrap().to_owned()
}

#[test]
fn import_of_claude_code_carries_over_what_restricts_and_lists_the_rest() {
    let lab = claude();
    let out = import(&lab, &["claude"]).exits(0);
    assert!(out.stdout.contains("created      .agent/config.yaml"), "{}", out.stdout);
    assert!(out.stdout.contains("unchanged    CLAUDE.md (agent reads it as it is)"), "{}", out.stdout);
    lab.agent(&["config", "validate"]).exits(0);
    for (call, expected) in [
        ("run_command git push origin", "ask"),
        ("run_command git push --force", "deny"),
        ("read_file .env", "deny"),
        ("write_file .github/x.yml", "deny"),
    ] {
        assert_eq!(decision(&lab, call), expected, "{call}");
    }
    let (_, skipped) = out.stdout.split_once("not carried over:").unwrap();
    for name in [
        "permissions.allow Bash(npm run test:*)",
        "permissions.allow Edit(docs/**)",
        "permissions.defaultMode",
        "settings.json: env",
        "hooks.PostToolUse Edit|Write `jq .tool_input.file_path`",
        "hooks.Notification `notify-send hi`",
        "MCP server git",
    ] {
        assert!(skipped.contains(name), "{name}: {skipped}");
    }
    let text = lab.read(CONFIG);
    for absent in ["allow", "yolo", "t0p-secret", "model", "notify-send"] {
        assert!(!text.contains(absent) && !out.stdout.contains("t0p-secret"), "{absent}: {text}");
    }
    assert!(!out.stdout.contains('\u{1b}'), "{}", out.stdout);
}

#[test]
fn import_of_mcp_servers_needs_trust_and_lists_their_values() {
    let servers = json!({"mcpServers": {
        "Git Hub": {"type": "stdio", "command": "npx", "args": ["-y", "hub"], "env": {"A": "t0p-secret", "B": "${TOKEN}"}},
        "wiki": {"type": "http", "url": "https://wiki.example/mcp", "headers": {"X-Key": "t0p-secret"}, "timeout": 5},
        "off": {"command": "off-server", "disabled": true},
        "old": {"type": "sse", "url": "https://old.example/sse"},
        "none": {},
        "a: {b": {"command": "x"},
    }});
    let denied = json!({"permissions": {"deny": ["mcp__wiki", "mcp__wiki__edit"], "ask": ["mcp__off__x"]}});
    let lab = Lab::new().file(".mcp.json", servers.to_string()).file(CLAUDE, denied.to_string());
    let out = import(&lab, &[]).exits(0);
    assert!(out.stderr.contains("agent trust"), "{}", out.stderr);
    let text = lab.read(CONFIG);
    let (_, servers) = text.split_once("mcp:\n").unwrap();
    let (servers, _) = servers.split_once("policy:\n").unwrap();
    assert_eq!(
        servers,
        "  servers:\n    git-hub:\n      command: \"npx\"\n      args:\n        - \"-y\"\n        - \"hub\"\n      \
         env:\n        B:\n          from: \"TOKEN\"\n    wiki:\n      url: \"https://wiki.example/mcp\"\n    \
         off:\n      command: \"off-server\"\n      enabled: false\n"
    );
    let (_, skipped) = out.stdout.split_once("not carried over:").unwrap();
    for line in [
        "MCP server Git Hub: env A\n      its value may be secret: set a variable and write `mcp: {servers: {git-hub: {env: {A: {from: VARIABLE}}}}}`",
        "MCP server wiki: headers X-Key\n      its value may be secret: set a variable and write `mcp: {servers: {wiki: {headers: {X-Key: {from: VARIABLE}}}}}`",
        "MCP server wiki: timeout\n",
        "MCP server old: type \"sse\"\n",
        "MCP server none\n",
        "MCP server a: {b\n",
    ] {
        assert!(skipped.contains(line), "{line}: {skipped}");
    }
    assert!(!text.contains("t0p-secret") && !out.stdout.contains("t0p-secret"), "{}", out.stdout);
    for rule in [
        r#"{action: "deny", tool: "mcp__wiki__*"}"#,
        r#"{action: "deny", tool: "mcp__wiki__edit"}"#,
        r#"{action: "ask", tool: "mcp__off__x"}"#,
    ] {
        assert!(text.contains(rule), "{rule}: {text}");
    }
    let shown = lab.agent(&["mcp", "list"]).stdout;
    assert!(!shown.contains("git-hub"), "without trust there is no server: {shown}");
    lab.agent(&["trust", "--yes"]).exits(0);
    lab.agent(&["config", "validate"]).exits(0);
}

#[test]
fn import_of_hooks_needs_trust_and_shows_the_script_that_they_name() {
    let lab = claude();
    let out = import(&lab, &[]).exits(0);
    let (_, notes) = out.stdout.split_once("check these:").unwrap();
    assert!(notes.contains("hooks.PreToolUse Bash"), "{notes}");
    assert!(out.stdout.contains("\nguard.sh\n  named by hooks.pre_tool_use"), "{}", out.stdout);
    assert!(out.stderr.contains("agent trust"), "{}", out.stderr);
    assert!(lab.agent(&["trust", "--show"]).exits(0).stdout.contains("status  not trusted"));
}

#[test]
fn import_twice_changes_nothing_and_an_existing_configuration_is_kept() {
    let lab = claude();
    let shown = import(&lab, &["--dry-run"]).exits(0).stdout;
    assert!(shown.contains("--- .agent/config.yaml (would be created)") && !lab.exists(".agent"), "{shown}");
    import(&lab, &[]).exits(0);
    let first = lab.read(CONFIG);
    assert!(import(&lab, &[]).exits(0).stdout.contains("unchanged    .agent/config.yaml"));
    let lab = lab.file(CONFIG, "language: es\n");
    assert!(import(&lab, &[]).exits(0).stdout.contains("kept         .agent/config.yaml"));
    assert_eq!(lab.read(CONFIG), "language: es\n");
    assert!(import(&lab, &["--overwrite"]).exits(0).stdout.contains("replaced     .agent/config.yaml"));
    assert_eq!(lab.read(CONFIG), first);
}

#[test]
fn import_of_codex_takes_the_stricter_mode_and_lists_the_rest() {
    let config = "model = \"gpt-5\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\n\
        notify = [\"x\"]\n[sandbox_workspace_write]\nnetwork_access = true\n[mcp_servers.docs]\ncommand = \"npx\"\n\
        startup_timeout_sec = 20\nenabled_tools = [\"a\", \"b\"]\ndisabled_tools = [\"b\"]\n";
    let lab = Lab::new().file(".codex/config.toml", config).file("AGENTS.md", "ours\n");
    let out = import(&lab, &["codex"]).exits(0).stdout;
    assert!(out.contains("unchanged    AGENTS.md (agent reads it as it is)"), "{out}");
    let text = lab.read(CONFIG);
    let mode = "\nmode: \"confirm-sensitive\"\ncommands:\n  trust_sandbox: false\n";
    let rule = "policy:\n  rules:\n    - {action: \"deny\", tool: \"mcp__docs__b\"}\n";
    let server = "mcp:\n  servers:\n    docs:\n      command: \"npx\"\n      tools:\n        - \"a\"\n        - \"b\"\n      start_timeout_seconds: 20\n";
    assert!(text.ends_with(&format!("{mode}{server}{rule}")), "{text}");
    for name in ["model = \"gpt-5\"", "notify", "sandbox_workspace_write.network_access"] {
        assert!(out.contains(&format!(".codex/config.toml: {name}\n")), "{name}: {out}");
    }
    let never = Lab::new().file(".codex/config.toml", "approval_policy = \"never\"\n");
    let out = import(&never, &[]).exits(0).stdout;
    assert!(out.contains("no setting has a counterpart") && !never.exists(".agent"), "{out}");
}

#[test]
fn import_with_user_writes_the_users_own_configuration_where_allow_rules_count() {
    let lab = Lab::new();
    let own = lab.home().join(CLAUDE);
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, r#"{"permissions": {"allow": ["Bash(npm run test:*)", "Bash(npm run build)"]}}"#)
        .unwrap();
    let out = import(&lab, &["claude", "--user"]).exits(0).stdout;
    assert!(
        out.contains("read         ~/.claude/settings.json") && out.contains("Bash(npm run build)"),
        "{out}"
    );
    assert!(!lab.exists(".agent"));
    assert_eq!(decision(&lab, "run_command npm run test"), "allow");
    let written = lab.home().join("config.yaml");
    assert_eq!(fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&own, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(import(&lab, &["--user"]).exits(3).stderr.contains("writable by every user"));
}

#[test]
fn import_of_nothing_and_of_unusable_files_fails_with_the_file() {
    let out = import(&Lab::new(), &[]).exits(1);
    assert!(out.stderr.contains("nothing to import") && out.stderr.contains(CLAUDE), "{}", out.stderr);
    import(&Lab::new(), &["cursor"]).exits(3);
    for (file, text, problem) in [
        (CLAUDE, "{\n\"a\": }", ".claude/settings.json:2: not a JSON object"),
        (CLAUDE, "[1]", "not a JSON object"),
        (".mcp.json", "{", ".mcp.json:1: not a JSON object"),
        (".codex/config.toml", "a = 1\nb = \u{1b}\n", ".codex/config.toml:2: not valid TOML"),
    ] {
        let lab = Lab::new().file(file, text);
        let out = import(&lab, &[]).exits(3);
        assert!(out.stderr.contains(problem) && !out.stderr.contains('\u{1b}'), "{}", out.stderr);
        assert!(!lab.exists(".agent"));
    }
    let large = Lab::new().file(CLAUDE, " ".repeat((1 << 20) + 1));
    assert!(import(&large, &[]).exits(3).stderr.contains("is larger than"), "a size limit");
}

#[test]
fn import_follows_no_link_out_of_the_workspace() {
    let lab = Lab::new();
    fs::write(lab.outside().join("settings.json"), r#"{"permissions": {"deny": ["Bash"]}}"#).unwrap();
    fs::create_dir(lab.ws().join(".claude")).unwrap();
    symlink(lab.outside().join("settings.json"), lab.ws().join(CLAUDE)).unwrap();
    let out = import(&lab, &[]).exits(3);
    assert!(out.stderr.contains(".claude/settings.json: is a link that leaves"), "{}", out.stderr);
    let lab = claude();
    symlink(lab.outside(), lab.ws().join(".agent")).unwrap();
    let out = import(&lab, &[]).exits(3);
    assert!(out.stderr.contains(".agent: is a link that leaves"), "{}", out.stderr);
    assert!(!lab.outside().join("config.yaml").exists());
}

#[test]
fn import_reports_instructions_that_are_not_read() {
    let lab = claude()
        .file("AGENTS.md", "first\n")
        .file(".claude/CLAUDE.md", "more\n")
        .file(".claude/agents/x.md", "x\n");
    let out = import(&lab, &["claude"]).exits(0).stdout;
    for line in [
        "CLAUDE.md\n      it is not read while AGENTS.md exists",
        "  .claude/CLAUDE.md\n",
        "  .claude/agents\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
}
