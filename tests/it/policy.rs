//! Rules about calls, what explains them, and the answers of the person who is asked.

use crate::support::calls::{call, command, results};
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::site::{Site, redirect};
use crate::support::terminal::AtTerminal;
use serde_json::{Value, json};

fn write(path: &str) -> Value {
    call("write_file", &json!({"path": path, "content": "new\n"}))
}

fn append(path: &str) -> Value {
    call("write_file", &json!({"path": path, "content": "more\n", "mode": "append"}))
}

/// A user's configuration with these rules.
fn ruled(rules: &Value) -> Lab {
    Lab::new().config(&json!({"policy": {"rules": rules}}).to_string())
}

#[test]
fn s20_rules_decide_in_their_order_and_deny_in_every_mode() {
    let rules = json!([
        {"action": "allow", "tool": "write_file", "path": "docs/"},
        {"action": "deny", "tool": "write_*", "path": "*.md", "reason": "the handbook is written by people"},
        {"action": "deny", "command": "touch"},
        {"action": "allow", "command": "mkdir"},
        {"action": "ask", "path": "*.lock"},
    ]);
    let calls = || {
        [write("docs/a.md"), write("b.md"), command("true; env touch x"), command("mkdir y"), write("c.lock")]
    };
    for (mode, asked) in [("confirm-all", "rule"), ("yolo", "rule")] {
        let lab = ruled(&rules);
        let server = Server::calls(calls());
        let json = lab.run(&server, &["--mode", mode, "--json"]).exits(0).json();
        let told = results(&server);
        assert!(told[1].contains("policy.rules[1]") && told[1].contains("written by people"), "{}", told[1]);
        assert!(told[2].contains("policy.rules[2]"), "{}", told[2]);
        assert!(
            told[4].contains("has no prompts (policy.rules[4])") && told[4].contains(asked),
            "{}",
            told[4]
        );
        assert!(!told[4].contains("yolo"), "a mode would not help: {}", told[4]);
        assert_eq!(
            (lab.exists("docs/a.md"), lab.exists("b.md"), lab.exists("x")),
            (true, false, false),
            "{mode}"
        );
        assert_eq!((lab.exists("y"), lab.exists("c.lock")), (true, false), "{mode}");
        let denied: Vec<&str> = json["permission_denials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["rule"].as_str().unwrap())
            .collect();
        assert_eq!(denied, ["policy.rules[1]", "policy.rules[2]", "policy.rules[4]"]);
    }
}

#[test]
fn s20_a_rule_holds_for_arguments_that_a_hook_rewrote() {
    let answer = json!({"updatedInput": {"command": "touch rewritten"}});
    let config = json!({
        "hooks": {"pre_tool_use": [{"command": format!("echo '{answer}'")}]},
        "policy": {"rules": [{"action": "deny", "command": "touch rewritten"}]},
    });
    let lab = Lab::new().config(&config.to_string());
    let server = Server::calls([command("touch asked")]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(results(&server)[0].contains("policy.rules[0]"), "{:?}", results(&server));
    assert_eq!((lab.exists("asked"), lab.exists("rewritten")), (false, false));
}

#[test]
fn s20_a_rule_can_name_the_agent_and_the_host() {
    let rules = json!([
        {"action": "deny", "agent": "plan", "tool": "read_file"},
        {"action": "deny", "host": "*.example.org"},
    ]);
    let config = json!({"policy": {"rules": rules}, "web": {"enabled": true, "allowed_hosts": ["*"]}});
    let lab = Lab::with_a_txt().config(&config.to_string());
    let read = call("read_file", &json!({"path": "a.txt"}));
    let fetch = call("web_fetch", &json!({"url": "http://docs.example.org/"}));
    let server = Server::calls([read.clone(), fetch]);
    lab.run_yolo(&server, &[]).exits(0);
    let told = results(&server);
    assert!(told[0].contains("alpha") && told[1].contains("policy.rules[1]"), "{told:?}");
    let server = Server::calls([read]);
    lab.run(&server, &["--agent", "plan"]).exits(0);
    assert!(results(&server)[0].contains("policy.rules[0]"), "{:?}", results(&server));
}

#[test]
fn s20_a_redirect_does_not_lead_around_a_rule_about_a_host() {
    let site = Site::serving(|_| redirect("http://docs.example.org/secret"));
    let config = json!({
        "policy": {"rules": [{"action": "deny", "host": "*.example.org"}]},
        "web": {"enabled": true, "allowed_hosts": ["*"], "allowed_private": [site.address.to_string()]},
    });
    let lab = Lab::new().config(&config.to_string());
    let server = Server::calls([call("web_fetch", &json!({"url": site.url("/")}))]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(results(&server)[0].contains("a permission rule names that host"), "{:?}", results(&server));
}

#[test]
fn s20_a_project_may_only_tighten_and_is_heard_last() {
    let project = json!({"policy": {"rules": [
        {"action": "ask", "path": "secret.txt"},
        {"action": "allow"},
        {"action": "deny", "path": "b.txt"},
    ]}});
    let user = json!([{"action": "deny", "path": "secret.txt"}]);
    for flags in [&[] as &[&str], &["--trust-workspace"]] {
        let lab = ruled(&user).file(".agent/config.yaml", project.to_string());
        let server = Server::calls([write("secret.txt"), write("b.txt"), write("c.txt")]);
        let done = lab.run(&server, flags).exits(0);
        let told = results(&server);
        assert!(told[0].contains("Refused by a rule"), "{}", told[0]);
        assert!(told[1].contains("Refused by a rule"), "{}", told[1]);
        assert!(told[2].contains("mode.confirm-sensitive"), "nobody allowed it: {}", told[2]);
        assert!(done.stderr.contains("ignored policy.rules"), "{}", done.stderr);
    }
}

#[test]
fn s20_a_rule_that_is_none_is_an_error_with_its_place() {
    for (rule, problem) in [
        (json!({"tool": "x"}), "`action` is missing"),
        (json!({"action": "forbid"}), "one of allow, ask, deny"),
        (json!({"action": "deny", "host": "http://x/"}), "must be a host"),
        (json!({"action": "deny", "comand": "x"}), "unknown key"),
    ] {
        let done = ruled(&json!([rule])).agent(&["config", "validate"]).exits(3);
        assert!(done.stderr.contains("policy.rules[0]") && done.stderr.contains(problem), "{}", done.stderr);
    }
}

#[test]
fn s20_policy_test_says_what_decides() {
    let lab = ruled(&json!([
        {"action": "deny", "command": "git push", "reason": "people release"},
        {"action": "allow", "tool": "edit_file", "path": "docs/"},
    ]));
    let test = |args: &[&str]| lab.agent(&[&["policy", "test"], args].concat()).exits(0).stdout;
    let denied = test(&["run_command git -C x push"]);
    assert!(denied.starts_with("deny: run_command git -C x push\ndecided by: policy.rules[0]\n"), "{denied}");
    assert!(denied.contains("people release"), "{denied}");
    assert_eq!(
        test(&["edit_file", "docs/a.md"]),
        "allow: edit_file docs/a.md\ndecided by: policy.rules[1]\n"
    );
    let asked = test(&["edit_file", "a.md"]);
    assert!(asked.starts_with("ask: edit_file a.md\ndecided by: mode.confirm-sensitive\n"), "{asked}");
    let json = test(&["--mode", "yolo", "write_file", r#"{"path": "x", "content": ""}"#]);
    assert!(json.ends_with("decided by: mode.yolo\n"), "{json}");
    let protected = test(&["--mode", "yolo", "write_file .git/config"]);
    assert!(protected.contains("decided by: guardrails.protected_files"), "{protected}");
    let other = test(&["--agent", "plan", "edit_file docs/a.md"]);
    assert!(other.contains("decided by: agent.allowed_tools"), "{other}");
    let none = lab.agent(&["policy", "test", "no_such_tool x"]).exits(3);
    assert!(none.stderr.contains("no_such_tool"), "{}", none.stderr);
}

#[test]
fn s23_a_no_with_a_reason_is_read_by_the_model() {
    let lab = Lab::new().unprivileged();
    let server = Server::calls([write("a.txt"), write("b.txt")]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.answer("no, put it below docs\r");
    run.answer("n\r");
    run.finish().exits(0);
    let told = results(&server);
    assert!(told[0].contains("declined this action: put it below docs"), "{}", told[0]);
    assert!(told[1].contains("declined this action.\n"), "{}", told[1]);
    assert!(!lab.exists("a.txt") && !lab.exists("b.txt"));
}

#[test]
fn s23_what_is_allowed_from_now_on_is_said_and_nothing_else_is() {
    let lab = Lab::new().unprivileged();
    let calls = [
        write("a.txt"),
        append("a.txt"),
        write("b.txt"),
        command("touch made"),
        command("touch made"),
        command("touch made; touch other"),
    ];
    let server = Server::calls(calls);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    let shown = run.answer("a\r");
    assert!(shown.contains("a allows from now on: all file edits that only the mode asks about"), "{shown}");
    let shown = run.answer("a\r");
    assert!(shown.contains("a allows from now on: simple commands that begin with `touch`"), "{shown}");
    let shown = run.answer("n\r");
    assert!(shown.contains("touch other"), "{shown}");
    run.finish().exits(0);
    assert_eq!(lab.read("a.txt"), "new\nmore\n");
    assert_eq!((lab.exists("b.txt"), lab.exists("made"), lab.exists("other")), (true, true, false));
}

#[test]
fn s23_what_is_refused_is_not_asked_about_and_no_answer_lasts_for_it() {
    let rules = json!([{"action": "deny", "path": "b.txt"}]);
    let lab = ruled(&rules).unprivileged();
    let server = Server::calls([write("a.txt"), write("b.txt"), write(".git/config")]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.answer("a\r");
    run.finish().exits(0);
    let told = results(&server);
    assert!(told[1].contains("policy.rules[0]") && told[2].contains("Protected file"), "{told:?}");
}
