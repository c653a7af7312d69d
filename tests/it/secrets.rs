//! What must not be told: keys and tokens, to the model, in journals, logs, documents.

use crate::support::calls::{command, script, write};
use crate::support::kernel::Kernel;
use crate::support::run::{KEY, Lab, holding};
use crate::support::server::Server;

/// The value of a variable that is called like a secret; no key by its form.
const TOKEN: &str = "correct-horse-battery-9";

#[test]
fn class_55_s25_a_secret_is_told_to_nobody_and_its_marker_is_not_written_back() {
    let lab =
        Lab::new().started().env("DEPLOY_TOKEN", TOKEN).file("a.txt", format!("token = {TOKEN}\nport = 1\n"));
    let server = Server::start(
        r#"{"turns": [
            {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
            {"calls": [{"name": "write_file", "arguments": {"path": "a.txt",
                "content": "token = [redacted: DEPLOY_TOKEN]\nport = 2\n"}}]},
            {"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "old_str": "port = 1", "new_str": "port = 2"}}]},
            {"text": "the token is correct-horse-battery-9"}]}"#,
    );
    let log = lab.outside().join("run.log");
    let run = lab.run_yolo(&server, &["--json", "--log-file", log.to_str().unwrap()]).exits(0);
    assert_eq!(lab.read("a.txt"), format!("token = {TOKEN}\nport = 2\n"), "the edit works on the real bytes");
    let requests = server.requests();
    let sent = |n: usize| String::from_utf8_lossy(&requests[n].bytes).into_owned();
    assert!(sent(1).contains("[redacted: DEPLOY_TOKEN]"), "{}", sent(1));
    assert!(sent(2).contains("stands for a secret"), "{}", sent(2));
    assert!(!sent(3).contains(TOKEN), "{}", sent(3));
    assert_eq!(run.json()["output"], "the token is [redacted: DEPLOY_TOKEN]");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    for told in [run.stdout, run.stderr, read(&lab.journal()), read(&log)] {
        assert!(!told.contains(TOKEN), "{told}");
    }
}

#[test]
fn class_55_a_call_with_a_secret_is_run_as_it_was_meant_and_sent_to_no_server_again() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN);
    let text = format!("token = {TOKEN}\n");
    let calls = [write("a.txt", &text), command(&format!("printf %s {TOKEN} > b.txt"))];
    let server = Server::start(&script(&[calls.to_vec()]));
    lab.run_yolo(&server, &[]).exits(0);
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), (text, TOKEN.to_owned()));
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("[redacted: DEPLOY_TOKEN]") && !sent.contains(TOKEN), "{sent}");
    assert_eq!(holding(&lab.home(), TOKEN), Vec::<String>::new());
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn class_55_s25_names_and_paths_are_told_without_secrets() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN);
    let server = Server::start(&format!(
        r#"{{"turns": [
            {{"calls": [{{"name": "write_file", "arguments": {{"path": "{TOKEN}.txt", "content": "x"}}}}]}},
            {{"calls": [{{"name": "run_command", "arguments": {{"command": "cp *.txt {TOKEN}.sh; chmod +x {TOKEN}.sh"}}}}]}},
            {{"calls": [{{"name": "nothing_{TOKEN}", "arguments": {{"{TOKEN}": 1}}}}]}},
            {{"text": "done"}}]}}"#,
    ));
    let log = lab.outside().join("run.log");
    let run = lab.run_yolo(&server, &["--json", "--log-file", log.to_str().unwrap()]).exits(0);
    let document = run.json();
    assert_eq!(document["files_modified"][1]["path"], "[redacted: DEPLOY_TOKEN].sh");
    assert_eq!(document["executables"]["files"][0], "[redacted: DEPLOY_TOKEN].sh");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    for told in [run.stdout, run.stderr, read(&lab.journal()), read(&log)] {
        assert!(!told.contains(TOKEN), "{told}");
    }
}

#[test]
fn class_47_invisible_characters_are_pointed_out_to_the_model() {
    let lab = Lab::new().started().file("a.txt", "x\u{202e}y\n");
    let server = Server::start(
        r#"{"turns": [{"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "done"}]}"#,
    );
    lab.run(&server, &[]).exits(0);
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("Invisible characters in this result: U+202E in line"), "{sent}");
    assert_eq!(lab.read("a.txt"), "x\u{202e}y\n");
}

/// Looks at what the kernel shows of every process; what is looked for stands in a file, so that no process that looks
/// shows it.
const LOOK: &str = r#"
for shown in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
    if tr '\0' '\n' < "$shown" 2>/dev/null | grep -q -F -f wanted; then echo "found in $shown"; fi
done
echo looked
"#;

#[cfg(target_os = "linux")]
#[test]
fn class_08_s25_the_kernel_shows_no_key_of_the_agent_to_its_commands() {
    let unique = std::process::id();
    let given = format!("given-key-{unique}-1a2b3c4d");
    let named = format!("named-token-{unique}-1a2b3c4d");
    let chosen = format!("chosen-{unique}-1a2b3c4d");
    let url = format!("postgres://me:{unique}-url-secret@db.example/x");
    let wanted = format!("{given}\n{named}\n{chosen}\n{unique}-url-secret\n");
    for (kernel, more) in [
        (Kernel::DockerWithoutLandlock, &[][..]),
        (Kernel::DockerWithoutLandlock, &["--sandbox", "off"]),
        (Kernel::Native, &["--sandbox", "off"]),
        (Kernel::Native, &[]),
    ] {
        for unprivileged in [false, true] {
            let lab = Lab::new()
                .started()
                .env("DEPLOY_TOKEN", &named)
                .env("LANGUAGE", &chosen)
                .env("DATABASE_URL", &url)
                .config("llm: {api_key_env: LANGUAGE}\n")
                .file("look.sh", LOOK)
                .file("wanted", &wanted);
            let lab = if unprivileged { lab.unprivileged() } else { lab };
            let joined = format!("--api-key={given}");
            for key in [&["--api-key", given.as_str()][..], &[&joined]] {
                let server = Server::start(
                    "turns: [{calls: [{name: run_command, arguments: {command: sh look.sh}}]}, {text: done}]",
                );
                let base = server.url();
                let args = ["run", "task", "--mode", "yolo", "--model", "openai/mock", "--api-base", &base];
                kernel.start(&lab, &[&args, key, more].concat()).finish().exits(0);
                let told = server.requests().last().unwrap().body["messages"].to_string();
                assert!(told.contains("looked"), "{kernel:?} {more:?}: {told}");
                assert!(!told.contains("found in"), "{kernel:?} {more:?} {unprivileged}: {told}");
            }
        }
    }
}

#[test]
fn class_55_the_file_of_a_long_output_holds_no_secret() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN).file("a.txt", TOKEN);
    let long = "cat a.txt; seq 1 40000; printf 'correct-horse-'; sleep 0.3; echo battery-9; cat a.txt >&2; seq 1 40000";
    let server = Server::turns(serde_json::json!([
            {"calls": [{"id": "c1", "name": "run_command", "arguments": {"command": long}}]},
            {"calls": [{"name": "grep", "arguments": {"pattern": "redacted", "path": "output:c1"}}]},
            {"calls": [{"name": "write_file", "arguments": {"path": "b.txt", "content": "[redacted: DEPLOY_TOKEN]"}}]},
            {"calls": [{"name": "run_command", "arguments": {"command": "cat a.txt; seq 1 40000", "background": true}}]},
            {"calls": [{"name": "command_output", "arguments": {"id": "bg1", "wait": 60}}]},
            {"text": "done"}]));
    lab.run_yolo(&server, &[]).exits(0);
    assert_eq!(holding(&lab.home(), TOKEN), Vec::<String>::new());
    let told = server.requests().last().unwrap().body["messages"].to_string();
    assert!(told.matches("[redacted: DEPLOY_TOKEN]").count() >= 4, "{told}");
    assert!(told.contains("stands for a secret") && !lab.exists("b.txt"), "{told}");
}

#[test]
fn class_55_the_halves_of_a_secret_are_not_told_one_after_the_other() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN).file("begin.sh", BEGIN).file("wait.sh", WAIT);
    let look = serde_json::json!({"name": "command_output", "arguments": {"id": "bg1", "wait": 60}});
    let run = |command: &str, background: bool| serde_json::json!({"name": "run_command", "arguments": {"command": command, "background": background}});
    let calls = [run("sh begin.sh", true), look.clone(), run("sh wait.sh", false), look];
    let turns = calls.into_iter().map(|call| serde_json::json!({ "calls": [call] }));
    let turns: Vec<_> = turns.chain([serde_json::json!({"text": "done"})]).collect();
    let server = Server::turns(turns);
    lab.run_yolo(&server, &[]).exits(0);
    let told = server.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("output:\\nit is \\n["), "what comes before is told at once: {told}");
    assert!(told.contains("[redacted: DEPLOY_TOKEN] and goes on"), "{told}");
    assert!(!told.contains("correct-horse") && !told.contains("battery-9"), "{told}");
}

/// Writes half of the token, and the other half when it is asked to.
const BEGIN: &str = "printf 'it is correct-horse-'; while ! [ -e go ]; do sleep 0.05; done
echo 'battery-9 and goes on'; touch written; while :; do sleep 0.05; done";
/// Asks for the other half.
const WAIT: &str = "touch go; while ! [ -e written ]; do sleep 0.05; done";

#[test]
fn class_55_a_session_from_before_the_secret_was_known_is_shown_without_it() {
    let server = Server::start(&format!("turns: [{{text: 'it is {TOKEN}'}}]"));
    let lab = Lab::new().started();
    let task = format!("use {TOKEN}");
    lab.agent_on(&server, &["run", &task]).exits(0);
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let shows = |lab: &Lab, args: &[&str]| lab.agent(args).exits(0).stdout;
    assert!(
        shows(&lab, &["sessions", "show", &id]).contains(TOKEN),
        "as it was told when nobody knew better"
    );
    let lab = lab.env("DEPLOY_TOKEN", TOKEN);
    for args in [&["sessions", "list"][..], &["sessions", "show", &id]] {
        let shown = shows(&lab, args);
        assert!(shown.contains("[redacted: DEPLOY_TOKEN]") && !shown.contains(TOKEN), "{shown}");
    }
}

#[test]
fn class_55_what_goes_wrong_before_a_run_is_told_without_secrets() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN);
    let named = format!("{TOKEN}.yaml");
    for (args, marker) in [
        (vec!["run", "x", "--json", "--model", "openai/m", "--config", &named], "DEPLOY_TOKEN"),
        (vec!["run", "x", "--model", KEY, "--api-key", KEY], "API key"),
        (vec!["config", "show", "--config", &named], "DEPLOY_TOKEN"),
        (vec!["tools", "call", "read_file", r#"{"path": "correct-horse-battery-9"}"#], "DEPLOY_TOKEN"),
        (vec!["sessions", "show", TOKEN], "DEPLOY_TOKEN"),
        (vec!["run", TOKEN, "--mode", TOKEN], "DEPLOY_TOKEN"),
    ] {
        let done = lab.agent(&args);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert_ne!(done.code, Some(0), "{args:?}: {told}");
        assert!(told.contains(&format!("[redacted: {marker}]")), "{args:?}: {told}");
        assert!(!told.contains(TOKEN) && !told.contains(KEY), "{args:?}: {told}");
    }
}

#[test]
fn class_55_an_answer_that_holds_a_secret_is_not_kept() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN);
    let server = Server::start(&format!(
        "turns: [{{text: 'it is {TOKEN}'}}, {{calls: [{{name: list_files, arguments: {{path: {TOKEN}}}}}]}}, {{text: all well}}]"
    ));
    lab.run(&server, &["--cache"]).exits(0);
    lab.run(&server, &["--cache"]).exits(0);
    assert_eq!(server.requests().len(), 3, "asked again, because nothing was kept");
    lab.run(&server, &["--cache"]);
    assert_eq!(holding(&lab.home(), TOKEN), Vec::<String>::new());
}

#[test]
fn class_55_one_call_of_a_tool_is_told_without_secrets() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN).file("a.txt", TOKEN);
    let shown = lab.agent(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#]).exits(0).stdout;
    assert!(shown.contains("[redacted: DEPLOY_TOKEN]") && !shown.contains(TOKEN), "{shown}");
}

#[test]
fn s25_ordinary_values_of_variables_that_are_called_like_secrets_stay_readable() {
    let lab = Lab::new()
        .started()
        .env("CACHE_KEY", "production")
        .env("POSTGRES_PASSWORD", "postgres")
        .env("SSH_KEY", "/etc/ssh/key")
        .file("a.txt", "production postgres /etc/ssh/key\n");
    let shown = lab.agent(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#]).exits(0).stdout;
    assert!(shown.contains("production postgres /etc/ssh/key"), "{shown}");
}

#[test]
fn class_55_s25_the_password_of_an_address_is_not_told_in_the_form_it_is_given_to_a_server_either() {
    let lab = Lab::new()
        .started()
        .env("DATABASE_URL", "postgres://me:pa55w%40rd@db.example/x")
        .env("REPORTS_DSN", "postgres://me:Xk29%2Fq8Lm41z@db.example/x")
        .file("a.txt", "1 pa55w%40rd\n2 pa55w@rd\n3 Xk29%2Fq8Lm41z\n4 Xk29/q8Lm41z\n");
    let shown = lab.agent(&["tools", "call", "read_file", r#"{"path": "a.txt"}"#]).exits(0).stdout;
    for (line, name) in ["DATABASE_URL", "DATABASE_URL", "REPORTS_DSN", "REPORTS_DSN"].iter().enumerate() {
        assert!(shown.contains(&format!("{} [redacted: {name}]", line + 1)), "{shown}");
    }
}

#[test]
fn class_55_the_keys_of_a_structured_answer_are_told_without_secrets_and_none_is_lost() {
    let lab = Lab::new().started().env("DEPLOY_TOKEN", TOKEN).file("schema.json", r#"{"type": "object"}"#);
    let answer =
        serde_json::json!({TOKEN: 1, "[redacted: DEPLOY_TOKEN]": 2, "in": {format!("x {TOKEN}"): 3}});
    let server = Server::turns(serde_json::json!([{"text": answer.to_string()}]));
    let run = lab.run(&server, &["--json", "--output-schema", "schema.json"]).exits(0);
    let told = serde_json::json!({
        "[redacted: DEPLOY_TOKEN]": 1, "[redacted: DEPLOY_TOKEN] (2)": 2, "in": {"x [redacted: DEPLOY_TOKEN]": 3}});
    assert_eq!(run.json()["output"], told);
    assert_eq!(holding(&lab.home(), TOKEN), Vec::<String>::new());
    lab.agent(&["replay"]).exits(0);
}
