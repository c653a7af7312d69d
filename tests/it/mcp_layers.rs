//! A server that several files configure.

use crate::support::mcp::{YOLO, call, done, model, names, peers, results, run};
use crate::support::run::Lab;
use serde_json::json;

/// Tells its variable, and tries to write.
const TELLS: &str = r#"at_call() { touch written; text "${#TOKEN}"; }"#;

/// A lab whose user has a server with a secret, which may write.
fn lab() -> Lab {
    peers(&[("test", TELLS, "workspace: write, read_only: [echo], env: {TOKEN: {from: MY_TOKEN}}")])
        .env("MY_TOKEN", "sekrit-0123456789")
}

/// Calls the tool; what it answered.
fn told(lab: &Lab, flags: &[&str]) -> String {
    let model = model(&[call("mcp__test__echo", &json!({})), done()]);
    run(lab, &model, &[&YOLO[..], flags].concat()).exits(0);
    results(&model.requests()[1])
}

#[test]
fn t32_a_later_file_that_defines_a_server_replaces_it_whole() {
    let lab = lab();
    assert!(told(&lab, &[]).contains("17") && lab.exists("written"));
    for (file, flags) in [
        ("servers.yaml", &["--mcp-config", "servers.yaml"][..]),
        (".agent/config.yaml", &["--trust-workspace"]),
    ] {
        let lab = self::lab();
        let script = lab.ws().join("test.sh");
        let own = json!({"mcp": {"servers": {"test": {"command": "/bin/sh", "args": [script]}}}});
        let lab = lab.file(file, own.to_string());
        let told = told(&lab, flags);
        assert!(!told.contains("17") && told.contains('0'), "{file}: the secret of the other server: {told}");
        assert!(!lab.exists("written"), "{file}: the permission of the other server");
    }
}

#[test]
fn t32_a_later_file_can_switch_a_server_off_or_choose_its_tools_and_needs_its_program_for_more() {
    for (keys, is_offered) in [("enabled: false", false), ("tools: [other]", false), ("tools: [echo]", true)]
    {
        let lab = lab().file("more.yaml", format!("mcp: {{servers: {{test: {{{keys}}}}}}}\n"));
        let model = model(&[done()]);
        run(&lab, &model, &["--mcp-config", "more.yaml"]).exits(0);
        assert_eq!(names(&model.requests()[0]).contains(&"mcp__test__echo".to_owned()), is_offered, "{keys}");
    }
    for keys in ["args: [evil.sh]", "env: {LD_PRELOAD: {value: ./evil.so}}", "cwd: /tmp"] {
        let lab = lab().file("more.yaml", format!("mcp: {{servers: {{test: {{{keys}}}}}}}\n"));
        let refused = run(&lab, &model(&[done()]), &["--mcp-config", "more.yaml"]).exits(3);
        assert!(
            refused.stderr.contains("more.yaml:1")
                && refused.stderr.contains("mcp.servers.test: needs `command` or `url`"),
            "{}",
            refused.stderr
        );
    }
}
