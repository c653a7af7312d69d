//! A server that several files configure.

use crate::support::calls::call;
use crate::support::mcp::{peers, results};
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::json;

/// Tells its variable, and tries to write.
const TELLS: &str = r#"at_call() { touch written; text "${#TOKEN}"; }"#;

/// A lab whose user has a server with a secret, which may write.
fn with_secret() -> Lab {
    peers(&[("test", TELLS, "workspace: write, read_only: [echo], env: {TOKEN: {from: MY_TOKEN}}")])
        .env("MY_TOKEN", "sekrit-0123456789")
}

/// Calls the tool; what it answered.
fn told(lab: &Lab, flags: &[&str]) -> String {
    let model = Server::calls([call("mcp__test__echo", &json!({}))]);
    lab.run_yolo(&model, flags).exits(0);
    results(&model.requests()[1])
}

#[test]
fn t32_a_later_file_that_defines_a_server_replaces_it_whole() {
    let lab = with_secret();
    assert!(told(&lab, &[]).contains("17") && lab.exists("written"));
    for (file, flags) in [
        ("servers.yaml", &["--mcp-config", "servers.yaml"][..]),
        (".agent/config.yaml", &["--trust-workspace"]),
    ] {
        let lab = with_secret();
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
        let lab = with_secret().file("more.yaml", format!("mcp: {{servers: {{test: {{{keys}}}}}}}\n"));
        let model = Server::done();
        lab.run(&model, &["--mcp-config", "more.yaml"]).exits(0);
        assert_eq!(model.requests()[0].tools().contains(&"mcp__test__echo".to_owned()), is_offered, "{keys}");
    }
    for keys in ["args: [evil.sh]", "env: {LD_PRELOAD: {value: ./evil.so}}", "cwd: /tmp"] {
        let lab = with_secret().file("more.yaml", format!("mcp: {{servers: {{test: {{{keys}}}}}}}\n"));
        let refused = lab.run_done(&["--mcp-config", "more.yaml"]).exits(3);
        assert!(
            refused.stderr.contains("more.yaml:1")
                && refused.stderr.contains("mcp.servers.test: needs `command` or `url`"),
            "{}",
            refused.stderr
        );
    }
}
