//! `agent tools` and `agent doctor` with MCP servers.

use crate::support::mcp::{SERVER, configure, peers, processes_with, with_search};
use crate::support::run::{KEY, Lab, YOLO};

/// A server that leaves a file when it is started.
const MARKED: (&str, &str, &str) =
    ("other", "at_start() { touch started; }", "workspace: write, env: {TOKEN: {from: MY_TOKEN}}");

/// A server whose only tool repeats its argument.
const REPEATER: (&str, &str, &str) =
    ("test", r#"at_call() { text "$(printf '%s' "$line" | sed 's/.*"text":"\([^"]*\)".*/\1/')"; }"#, "");

#[test]
fn tools_lists_those_of_servers_and_starts_none_when_none_is_configured() {
    let lab = peers(&[REPEATER]);
    let listed = lab.agent(&["tools"]).exits(0);
    let line = listed.stdout.lines().find(|line| line.starts_with("mcp__test__echo")).unwrap();
    assert!(line.ends_with("Repeats a text"), "{line}");
    assert!(listed.stderr.contains("MCP server test: first contact"), "{}", listed.stderr);
    assert_eq!(processes_with(&lab.ws().display().to_string()), 0);
    let broken = Lab::new().config("mcp: {servers: {gone: {command: /nowhere/server}}}\n");
    let listed = broken.agent(&["tools"]).exits(0);
    assert!(listed.stdout.contains("read_file") && listed.stderr.contains("MCP server gone is not used"));
}

#[test]
fn a_tool_of_a_server_is_called_under_the_same_rules_and_no_other_server_is_started() {
    let lab =
        peers(&[MARKED, REPEATER]).env("MY_TOKEN", "sekrit-0123456789").file("a.txt", "sekrit-0123456789\n");
    let call = ["tools", "call", "mcp__test__echo", r#"{"text":"repeated"}"#];
    let called = lab.agent(&[&call[..], &YOLO].concat()).exits(0);
    assert_eq!(called.stdout, "repeated\n");
    assert!(called.stderr.contains("MCP server test: first contact"), "{}", called.stderr);
    let read = lab.agent(&["tools", "call", "read_file", r#"{"path":"a.txt"}"#]).exits(0);
    assert!(!read.stdout.contains("sekrit"), "mapped to a server that is not started: {}", read.stdout);
    assert!(!lab.exists("started"), "only the server of the tool is started");
    let asked = lab.agent(&[&call[..], &["--mode", "confirm-sensitive"]].concat()).exits(1);
    assert!(asked.stderr.contains("needs a confirmation"), "{}", asked.stderr);
    let unknown = lab.agent(&["tools", "call", "mcp__test__other", "{}", "--mode", "yolo"]).exits(1);
    assert!(unknown.stderr.contains("Unknown tool"), "{}", unknown.stderr);
    let lab = configure(lab, "policy: {rules: [{action: deny, tool: mcp__test__*}]}\n");
    let denied = lab.agent(&[&call[..], &YOLO].concat()).exits(1);
    assert!(denied.stderr.contains("policy.rules[0]"), "{}", denied.stderr);
    assert_eq!(processes_with(&lab.ws().display().to_string()), 0);
}

#[test]
fn a_tool_of_a_server_is_called_when_there_are_too_many_to_list() {
    let lab = with_search(peers(&[REPEATER]));
    assert!(lab.agent(&["tools"]).exits(0).stdout.contains("mcp__test__echo"));
    let called = lab.agent(&["tools", "call", "mcp__test__echo", r#"{"text":"x"}"#, "--mode", "yolo"]);
    assert_eq!(called.exits(0).stdout, "x\n");
}

#[test]
fn doctor_shows_each_server_and_what_to_do() {
    let failing = ("failing", r"at_start() { printf 'no \033[2Jlicense' >&2; exit 4; }", "");
    let off = ("off", "at_start() { touch started; }", "workspace: write, enabled: false");
    let lab = peers(&[REPEATER, failing, off]).file(
        ".agent/config.yaml",
        "mcp: {servers: {evil: {command: /bin/sh, args: [-c, touch started]}}}\n",
    );
    let lab = configure(lab, "    unset: {command: cat, env: {A: {from: NOT_SET_HERE}}}\n");
    let shown = lab.agent(&["doctor"]).stdout;
    let line = |name: &str| {
        let start = format!("mcp server     {name}: ");
        shown.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{name}: {shown}"))
    };
    let ok = line("test");
    assert!(ok.starts_with("ok, 1 tools, protocol 2025-11-25, ") && ok.ends_with(" ms"), "{ok}");
    assert!(
        line("failing").contains("it exited with code 4") && line("failing").contains("license"),
        "{shown}"
    );
    assert!(line("unset").contains("NOT_SET_HERE is not set"), "{shown}");
    assert_eq!(line("off"), "disabled by mcp.servers.off.enabled");
    assert_eq!(line("evil"), "not trusted: `agent trust` shows and trusts it");
    assert!(!lab.exists("started") && !shown.contains('\u{1b}'), "{shown}");
    assert!(!Lab::new().agent(&["doctor"]).stdout.contains("mcp"));
}

#[test]
fn t32_list_show_pin_and_doctor_warn_about_a_tool_that_is_listed_twice() {
    let lab = peers(&[(
        "test",
        r#"at_list() { answer '{"tools":['"$(tool echo)"','"$(tool echo other)"']}'; }"#,
        "",
    )]);
    let warning = "MCP server test: it lists the tool `echo` twice; the first one counts";
    for command in [&["mcp", "list"][..], &["mcp", "show", "test"], &["mcp", "pin", "test"], &["doctor"]] {
        let told = lab.agent(command);
        assert_eq!(told.stderr.matches(warning).count(), 1, "{command:?}: {}", told.stderr);
    }
}

#[test]
fn policy_test_knows_accepted_tools_and_starts_no_server() {
    let server = ("test", "at_start() { touch started; }", "workspace: write");
    let lab = peers(&[server]);
    lab.agent(&["mcp", "pin", "test"]).exits(0);
    std::fs::remove_file(lab.ws().join("started")).unwrap();
    let test = |lab: &Lab| {
        let flags = ["policy", "test", "--mode", "confirm-sensitive", "mcp__test__echo", r#"{"text":"x"}"#];
        lab.agent(&flags).exits(0).stdout
    };
    let asked = test(&lab);
    assert!(asked.starts_with("ask: mcp__test__echo ") && asked.contains("calls of MCP servers"), "{asked}");
    let lab = with_search(lab);
    assert_eq!(test(&lab), asked);
    let lab = configure(lab, "policy: {rules: [{action: deny, tool: mcp__test__*}]}\n");
    let denied = test(&lab);
    assert!(denied.starts_with("deny: ") && denied.contains("policy.rules[0]"), "{denied}");
    assert!(!lab.exists("started"));
}

#[test]
fn an_npx_package_without_a_fixed_version_is_a_warning() {
    let npx = |args: &str| {
        let lab = Lab::new()
            .config(&format!("mcp: {{servers: {{s: {{command: /nowhere/npx, args: [{args}]}}}}}}\n"));
        lab.agent(&["tools"]).exits(0).stderr
    };
    let warned = npx("--yes, --package=@s/thing@latest, start");
    let wanted =
        "`npx -y` may install another version of @s/thing@latest at each start; write @s/thing@VERSION";
    assert!(warned.contains(wanted), "{warned}");
    for args in ["-y, thing@1.2.3", "-y, -p, '@s/thing@1.2.3', start", "thing"] {
        assert!(!npx(args).contains("may install"), "{args}");
    }
}

/// The test server's program and argument.
fn program(lab: &Lab) -> [String; 2] {
    ["/bin/sh".to_owned(), lab.ws().join("server.sh").display().to_string()]
}

#[test]
fn u18_a_server_is_added_with_its_program_and_removed() {
    let lab = Lab::new().file("server.sh", SERVER).config("# mine\nmode: confirm-all\n");
    let file = || std::fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    let [shell, script] = program(&lab);
    let added = lab.agent(&["mcp", "add", "test", "--", &shell, &script, "-x y"]).exits(0).stdout;
    assert!(added.contains("config.yaml:6: added the MCP server test\n"), "{added}");
    assert!(
        added.ends_with("see its tools: agent mcp show test  (what it may do: agent help mcp)\n"),
        "{added}"
    );
    let server = format!("  servers:\n    test:\n      command: /bin/sh\n      args: [{script}, \"-x y\"]\n");
    assert_eq!(file(), format!("# mine\nmode: confirm-all\nmcp:\n{server}"));
    assert!(lab.agent(&["mcp", "show", "test"]).exits(0).stdout.starts_with("test: 1 tools"));
    let again = lab.agent(&["mcp", "add", "test", "--url", "https://example.com/mcp"]).exits(3);
    assert!(again.stderr.contains("--replace"), "{}", again.stderr);
    lab.agent(&["mcp", "add", "test", "--replace", "--url", "https://example.com/mcp"]).exits(0);
    assert_eq!(
        file(),
        "# mine\nmode: confirm-all\nmcp:\n  servers:\n    test:\n      url: https://example.com/mcp\n"
    );
    let removed = lab.agent(&["mcp", "remove", "test"]).exits(0).stdout;
    assert!(removed.ends_with(": removed the MCP server test\n"), "{removed}");
    assert_eq!(file(), "# mine\nmode: confirm-all\n");
    lab.agent(&["mcp", "remove", "test"]).exits(3);
}

#[test]
fn u18_a_server_that_would_not_load_or_holds_a_secret_is_not_added() {
    let lab = Lab::new().env("OPENAI_API_KEY", KEY);
    for (args, part) in [
        (&["Bad.Name", "--", "x"][..], "the name of a server"),
        (&["s", "--url", "ftp://x"], "http"),
        (&["s", "--url", "http://x/mcp"], "https"),
        (&["s", "--", "x", "--token", KEY], "contains a secret"),
        (&["s"], "--url"),
        (&["s", "--url", "https://x/mcp", "--", "x"], "cannot be used with"),
    ] {
        let done = lab.agent(&[&["mcp", "add"], args].concat()).exits(3);
        assert!(done.stderr.contains(part) && !done.stderr.contains(KEY), "{part}: {}", done.stderr);
    }
    assert!(!lab.home().join("config.yaml").exists());
}

#[test]
fn u18_a_server_of_the_project_needs_trust_and_is_not_started() {
    let lab = Lab::new();
    let added = lab.agent(&["mcp", "add", "--project", "s", "--", "touch", "started"]).exits(0);
    assert!(added.stdout.contains(".agent/config.yaml:4: added"), "{}", added.stdout);
    assert!(added.stdout.contains("see its tools: agent trust, then agent mcp show s"), "{}", added.stdout);
    assert!(added.stderr.contains("until you trust the project's configuration"), "{}", added.stderr);
    assert!(!lab.exists("started"));
    lab.agent(&["mcp", "remove", "--project", "s"]).exits(0);
    assert_eq!(lab.read(".agent/config.yaml"), "");
}
