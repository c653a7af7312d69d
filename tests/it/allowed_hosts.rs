//! Hosts that commands reach through the proxy (`--allow-host`, `sandbox.allowed_hosts`).

use crate::support::calls::{call, results, script};
use crate::support::kernel::{Kernel, here, kernels};
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::site::{Site, agent_with_names, page};
use serde_json::json;
use std::fs;

/// A script that sends one request to the proxy and prints the answer.
const ASK: &str =
    "exec 3<>/dev/tcp/127.0.0.1/3128\nprintf 'GET http://%s/x HTTP/1.1\\r\\n\\r\\n' \"$1\" >&3\ncat <&3\n";

/// What a command prints.
fn output_of(kernel: Kernel, lab: &Lab, command: &str) -> String {
    let arguments = json!({ "command": command }).to_string();
    let done = kernel.agent(lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]);
    format!("{}{}", done.stdout, done.stderr)
}

fn with_allowed_hosts(site: &Site, hosts: &str) -> Lab {
    Lab::new().started().file("ask.sh", ASK).config(&format!(
        "web: {{allowed_private: ['{}']}}\nsandbox: {{allowed_hosts: {hosts}}}\n",
        site.address
    ))
}

#[test]
fn class_54_commands_reach_allowed_hosts_and_no_others_in_each_tier_with_a_network_of_its_own() {
    let (site, other) =
        (Site::serving(|_| page("text/plain", "there")), Site::serving(|_| page("text/plain", "CANARY")));
    let (port, other_port) = (site.address.port(), other.address.port());
    for (kernel, tier) in kernels().into_iter().filter(|(_, tier)| matches!(*tier, "full" | "bubblewrap")) {
        let lab = with_allowed_hosts(&site, &format!("['localhost:{port}']"));
        if !here(&lab, kernel, tier) {
            continue;
        }
        let said = output_of(kernel, &lab, &format!("bash ask.sh localhost:{port}"));
        assert!(said.contains("there"), "{tier}: {said}");
        let refused =
            [format!("localhost:{other_port}"), "example.org:80".to_owned(), format!("127.0.0.1:{port}")];
        for host in refused {
            let said = output_of(kernel, &lab, &format!("bash ask.sh {host}"));
            assert!(!said.contains("CANARY") && !said.contains("there"), "{tier}: {said}");
            assert!(
                said.contains("is not one of sandbox.allowed_hosts")
                    || said.contains("is not the name of a host"),
                "{said}"
            );
        }
        // There is no other way out.
        let lab = lab.file("direct.sh", format!("cat < /dev/tcp/127.0.0.1/{port}\n"));
        let said = output_of(kernel, &lab, "bash direct.sh");
        assert!(said.contains("refused") && !said.contains("there"), "{tier}: {said}");
        let said = output_of(kernel, &lab, "env");
        assert!(
            said.contains("https_proxy=http://127.0.0.1:3128") && said.contains("NO_PROXY=localhost"),
            "{said}"
        );
    }
    assert!(other.heads().is_empty());
}

#[test]
fn class_53_a_name_is_resolved_for_each_connection_and_a_private_address_is_never_dialled() {
    let hosts =
        Lab::new().started().file("hosts", "127.0.0.1 moves.test\n1.1.1.1 both.test\n127.0.0.3 both.test\n");
    let path = hosts.ws().join("hosts");
    let moved = path.clone();
    let site = Site::serving(move |_| {
        fs::write(&moved, "127.0.0.2 moves.test\n").unwrap();
        page("text/plain", "there")
    });
    let port = site.address.port();
    let lab = with_allowed_hosts(&site, &format!("['moves.test:{port}', 'both.test:{port}']"));
    let command = ["both", "moves", "moves"].map(|name| format!("bash ask.sh {name}.test:{port}; ")).concat();
    let arguments = json!({ "command": command }).to_string();
    let args = ["tools", "call", "run_command", &arguments, "--mode", "yolo"];
    let Some(said) = agent_with_names(&lab, &path, &args) else { return };
    if said.contains("here it is `") {
        eprintln!("not tried, commands have no network of their own here: {said}");
        return;
    }
    assert_eq!((said.matches("there").count(), site.heads().len()), (1, 1), "{said}");
    for (name, address) in [("both", "127.0.0.3"), ("moves", "127.0.0.2")] {
        let refused =
            format!("{name}.test:{port}: {name}.test is at {address}, which is not a public address");
        assert!(said.contains(&refused), "{refused}: {said}");
    }
}

#[test]
fn class_54_commands_at_the_same_time_are_each_told_why_a_host_was_refused() {
    let hosts = ["a.test:80", "b.test:80"];
    let ask =
        |host| call("run_command", &json!({"command": format!("bash ask.sh {host}; sh meet.sh {host}")}));
    // Each command ends after both hosts have been refused.
    let meet =
        "touch $1; for host in a.test:80 b.test:80; do until test -e $host; do sleep 0.01; done; done\n";
    let config = "sandbox: {allowed_hosts: [other.test]}\ntools: {parallel: all}\n";
    let lab = Lab::new().started().file("ask.sh", ASK).file("meet.sh", meet).config(config);
    let server = Server::start(&script(&[hosts.map(ask).to_vec()]));
    let done = lab.run_yolo(&server, &[]);
    if done.stderr.contains("here it is `") {
        eprintln!("not tried, commands have no network of their own here");
        return;
    }
    let results = results(&server);
    for (host, result) in hosts.iter().zip(&results) {
        let (_, note) = result.split_once("[the proxy refused requests of commands: ").unwrap();
        assert!(note.contains(&format!("{host} is not one of sandbox.allowed_hosts")), "{results:?}");
    }
}

#[test]
fn class_54_tr_030_an_empty_list_is_no_host_and_a_project_cannot_add_one() {
    let site = Site::serving(|_| page("text/plain", "there"));
    let port = site.address.port();
    let lab = with_allowed_hosts(&site, "[]")
        .file(".agent/config.yaml", format!("sandbox: {{allowed_hosts: ['localhost:{port}']}}\n"));
    assert!(!output_of(Kernel::around(), &lab, &format!("bash ask.sh localhost:{port}")).contains("there"));
    assert!(!output_of(Kernel::around(), &lab, "env").contains("3128"));
    assert!(site.heads().is_empty());
    for wrong in ["127.0.0.1", "*", "a.test.", "https://a.test", "u@a.test", "a.test:x", "[::1]"] {
        let done = Lab::new()
            .started()
            .agent(&["run", "x", "--model", "scripted:x", "--allow-host", wrong])
            .exits(3);
        assert!(done.stderr.contains("must be a host such as"), "{wrong}: {}", done.stderr);
    }
}

#[test]
fn class_54_without_a_network_of_their_own_allowed_hosts_are_exit_3_naming_the_tier() {
    for (kernel, tier) in kernels().into_iter().filter(|(_, tier)| matches!(*tier, "rules" | "none")) {
        let lab = Lab::new().started();
        if !here(&lab, kernel, tier) {
            continue;
        }
        let done = kernel.agent(&lab, &["run", "x", "--model", "scripted:x", "--allow-host", "example.org"]);
        assert_eq!(done.code, Some(3), "{}", done.stderr);
        assert!(done.stderr.contains(&format!("here it is `{tier}`")), "{}", done.stderr);
    }
    let args = ["run", "x", "--model", "scripted:x", "--sandbox", "off", "--allow-host", "example.org"];
    let done = Lab::new().started().agent(&args).exits(3);
    assert!(done.stderr.contains("here it is `none`"), "{}", done.stderr);
}
