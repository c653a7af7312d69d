//! `agent sessions`: earlier sessions listed, searched, copied, handed on and removed.

use crate::support::run::{Finished, KEY, Lab, holding};
use crate::support::schema;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const TWO_STEPS: &str = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
    usage: {input: 100, output: 10}
  - text: It says Alpha.
    usage: {input: 100, output: 10}
";

fn sessions(lab: &Lab, args: &[&str]) -> Finished {
    lab.agent(&[&["sessions"], args].concat())
}

/// Runs a session with two steps; its id.
fn ran(lab: &Lab) -> String {
    lab.run(&Server::start(TWO_STEPS), &["--json"]).exits(0).json()["session_id"].as_str().unwrap().to_owned()
}

/// Goes on with session `id` to a good end.
fn resumed(lab: &Lab, id: &str, server: &Server, more: &[&str]) -> Finished {
    lab.agent_on(server, &[&["resume", id], more].concat()).exits(0)
}

fn listed(lab: &Lab) -> Vec<Value> {
    sessions(lab, &["list", "--all", "--json"]).exits(0).json().as_array().unwrap().clone()
}

fn ids(lab: &Lab) -> Vec<String> {
    listed(lab).iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn o14_sessions_are_listed_newest_first_with_status_steps_and_cost() {
    let lab = Lab::with_a_txt();
    let first = ran(&lab);
    lab.run(&Server::start("turns: [{error: {status: 400, message: no}}]"), &[]).exits(1);
    let entries = listed(&lab);
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[0]["status"], &entries[0]["stop_reason"]), (&json!("failed"), &json!("llm_error")));
    let old = &entries[1];
    assert_eq!(old["id"], first.as_str());
    assert_eq!(
        (&old["task"], &old["steps"], &old["model"]),
        (&json!("task"), &json!(2), &json!("openai/mock"))
    );
    assert!(old["last_ms"].as_u64().unwrap() >= old["began_ms"].as_u64().unwrap());
    let table = sessions(&lab, &["list", "--limit", "1"]).exits(0).stdout;
    assert!(
        !table.contains(&first) && table.ends_with("There are older ones: --all, or --limit N\n"),
        "{table}"
    );
    let table = sessions(&lab, &["list"]).exits(0).stdout;
    assert!(table.contains("success (llm_done)") && table.contains("failed (llm_error)"), "{table}");
}

#[test]
fn k17_a_search_finds_what_was_said_and_what_tools_said() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let found = |text: &str| sessions(&lab, &["search", text]).exits(0).stdout;
    for (text, who) in [("TASK", "you"), ("it says alpha", "model"), ("a.txt (lines", "read_file")] {
        let told = found(text);
        assert!(told.starts_with(&id) && told.contains(&format!("{who}: ")), "{text}: {told}");
    }
    assert_eq!(found("nowhere"), "not found in any session of this workspace\n");
    assert!(
        sessions(&lab, &["search", "a", "--limit", "1"])
            .stdout
            .ends_with("there are more matches: --limit N\n")
    );
}

#[test]
fn o16_a_fork_goes_on_by_itself_and_the_original_stays_as_it_is() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let original = fs::read(lab.session_dir(&id).join("journal.jsonl")).unwrap();
    let fork = sessions(&lab, &["fork", &id]).exits(0).stdout.trim().to_owned();
    assert_ne!(fork, id);
    let server = Server::start("turns: [{text: other}]");
    let done = resumed(&lab, &fork, &server, &["and now?", "--json"]).json();
    assert_eq!((&done["session_id"], &done["steps"]), (&json!(fork), &json!(3)));
    let sent = server.requests()[0].messages().to_vec();
    assert!(sent.iter().any(|message| message["content"] == "It says Alpha."), "{sent:?}");
    assert_eq!(fs::read(lab.session_dir(&id).join("journal.jsonl")).unwrap(), original);
}

#[test]
fn o16_a_fork_of_the_first_step_does_not_know_the_second() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let fork = sessions(&lab, &["fork", &id, "--to-step", "1"]).exits(0).stdout.trim().to_owned();
    let server = Server::start("turns: [{text: other}]");
    resumed(&lab, &fork, &server, &[]);
    let sent = server.requests()[0].messages().to_vec();
    assert_eq!(sent.last().unwrap()["role"], "tool");
}

#[test]
fn an_exported_session_goes_on_elsewhere() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let file = lab.outside().join("session.jsonl");
    let path = file.to_str().unwrap();
    sessions(&lab, &["export", &id, "-o", path]).exits(0);
    assert!(sessions(&lab, &["export", &id, "-o", path]).exits(3).stderr.contains("is not overwritten"));

    let other = Lab::with_a_txt();
    let brought = sessions(&other, &["import", path]).exits(0).stdout.trim().to_owned();
    let again = sessions(&other, &["import", path]).exits(0).stdout.trim().to_owned();
    assert!(brought != id && again != id && again != brought, "each import has an id of its own");
    let server = Server::start("turns: [{text: gone on}]");
    assert_eq!(resumed(&other, &brought, &server, &["more"]).stdout, "gone on\n");
    let sent = server.requests()[0].messages().to_vec();
    assert!(sent.iter().any(|message| message["content"] == "It says Alpha."), "{sent:?}");
}

#[test]
fn a_session_comes_through_a_pipe_with_its_kept_outputs_and_without_paths_that_name_somebody() {
    let script = "turns:
  - calls: [{name: run_command, arguments: {command: 'pwd; seq 20000'}}]
  - text: done
";
    let lab = Lab::with_a_txt();
    let done = lab.run_yolo(&Server::start(script), &["--json"]).exits(0).json();
    let id = done["session_id"].as_str().unwrap();
    let kept = |lab: &Lab, id: &str| {
        let entries = fs::read_dir(lab.session_dir(id).join("outputs")).unwrap();
        entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect::<String>()
    };
    let workspace = lab.ws().to_str().unwrap().to_owned();
    assert!(kept(&lab, id).contains(&workspace));
    let exported = sessions(&lab, &["export", id, "--redact"]).exits(0).stdout;
    assert!(!exported.contains(&workspace) && exported.contains("/workspace"));

    let other = Lab::with_a_txt().stdin(exported);
    let brought = sessions(&other, &["import", "-"]).exits(0).stdout.trim().to_owned();
    let output = kept(&other, &brought);
    assert!(output.contains("/workspace\n") && output.contains("\n20000\n"));
    assert_eq!(holding(&other.home(), &workspace), Vec::<String>::new());
}

/// Imports the session in `text`; its id.
fn imported(lab: &Lab, text: &str) -> String {
    let file = lab.outside().join("archive.jsonl");
    fs::write(&file, text).unwrap();
    sessions(lab, &["import", file.to_str().unwrap()]).exits(0).stdout.trim().to_owned()
}

/// Exports a session that changed `a.txt` from `alpha` to `beta`, as `agent sessions export` does, with this id in the header.
fn archive(id: &str) -> String {
    let lab = Lab::with_a_txt();
    let edit =
        json!({"name": "edit_file", "arguments": {"path": "a.txt", "old_str": "alpha", "new_str": "beta"}});
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
    let turns = json!({"turns": [{"calls": [read, edit]}, {"text": "done"}]});
    let done = lab.run_yolo(&Server::start(&turns.to_string()), &["--json"]).exits(0).json();
    assert_eq!(lab.read("a.txt"), "beta\n");
    let own = done["session_id"].as_str().unwrap();
    let exported = sessions(&lab, &["export", own]).exits(0).stdout;
    exported.replacen(own, id, 1)
}

// Fault E3: an imported session was the newest one, and what its file claimed to have changed was undone.
#[test]
fn an_imported_session_is_never_the_newest_and_its_changes_are_not_undone() {
    let lab = Lab::with_a_txt().file("c.txt", "c\n");
    let change =
        json!({"name": "run_command", "arguments": {"command": "echo own >> c.txt; echo beta > a.txt"}});
    let server = Server::batch([change]);
    let done = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let own = done["session_id"].as_str().unwrap();
    let imported = imported(&lab, &archive("20991231-235959-ffffff"));
    assert!(!imported.starts_with("2099"), "{imported}");

    for args in [
        &["undo", &imported][..],
        &["undo", &imported, "--force"],
        &["redo", &imported],
        &["history", &imported],
    ] {
        lab.agent(args).exits(0);
        assert_eq!((lab.read("a.txt"), lab.read("c.txt")), ("beta\n".into(), "c\nown\n".into()), "{args:?}");
    }
    let fork = sessions(&lab, &["fork", &imported, "--to-step", "1"]).exits(0).stdout.trim().to_owned();
    lab.agent(&["undo", &fork]).exits(0);
    assert_eq!(lab.read("a.txt"), "beta\n");

    assert!(lab.agent(&["diff"]).exits(0).stdout.contains("+own"));
    let server = Server::start("turns: [{text: more}]");
    let resumed = lab.agent_on(&server, &["resume", "--last", "--json"]);
    assert_eq!(resumed.exits(0).json()["session_id"], own);
    lab.agent(&["undo"]).exits(0);
    assert_eq!((lab.read("a.txt"), lab.read("c.txt")), ("alpha\n".into(), "c\n".into()));
}

// Fault E3: what the user changes in an imported session is the user's.
#[test]
fn changes_of_runs_that_continue_an_imported_session_are_undone() {
    let lab = Lab::new().file("a.txt", "beta\n").file("c.txt", "c\n");
    let imported = imported(&lab, &archive("x"));
    let newest = lab.agent(&["undo"]).exits(3);
    assert!(newest.stderr.contains(&imported), "{}", newest.stderr);
    let change = json!({"name": "run_command", "arguments": {"command": "echo own >> c.txt"}});
    let server = Server::batch([change]);
    resumed(&lab, &imported, &server, &["go on", "--mode", "yolo"]);
    lab.agent(&["undo", &imported]).exits(0);
    assert_eq!((lab.read("a.txt"), lab.read("c.txt")), ("beta\n".into(), "c\n".into()));
}

// Fault E3: a resumed session took its model and agent from the file.
#[test]
fn no_model_and_no_agent_come_from_an_imported_session() {
    let source = Lab::with_a_txt();
    let server = Server::start(TWO_STEPS);
    let done = source.run(&server, &["--agent", "plan", "--json"]).exits(0).json();
    let exported = sessions(&source, &["export", done["session_id"].as_str().unwrap()]).exits(0).stdout;
    let lab = Lab::with_a_txt();
    let imported = imported(&lab, &exported);
    let refused = lab.agent(&["resume", &imported, "go on"]).exits(4);
    assert!(refused.stderr.contains("model"), "{}", refused.stderr);
    resumed(&lab, &imported, &Server::start("turns: [{text: more}]"), &["go on"]);
    let shown = sessions(&lab, &["show", &imported]).exits(0).stdout;
    assert!(shown.contains("run: agent plan") && shown.contains("resumed: agent build"), "{shown}");
}

#[test]
fn what_is_no_session_is_not_taken_over() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let whole = sessions(&lab, &["export", &id]).exits(0).stdout;
    let damaged = whole.replacen("task", "tusk", 1);
    let without_start: Vec<&str> =
        whole.lines().enumerate().filter(|line| line.0 != 1).map(|line| line.1).collect();
    let without_start = without_start.join("\n");
    let hostile = format!("{whole}{}\n", json!({"output": "../../x", "base64": "eA=="}));
    for (text, why) in [
        ("", "it is not an exported session"),
        ("{}\n", "it is not an exported session"),
        (whole.lines().next().unwrap(), "no record"),
        (&damaged, "damaged"),
        (&without_start, "does not begin with the start of a session"),
        (&hostile, "is not a stored output"),
        (&whole.replacen("\"agent_session\":1", "\"agent_session\":3", 1), "later version"),
    ] {
        let file = lab.outside().join("hostile.jsonl");
        fs::write(&file, text).unwrap();
        let done = sessions(&lab, &["import", file.to_str().unwrap()]).exits(3);
        assert!(done.stderr.contains(why), "{why}: {}", done.stderr);
    }
    assert_eq!(ids(&lab), [id]);
}

#[test]
fn an_id_with_path_parts_in_an_exported_session_becomes_another() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let whole = sessions(&lab, &["export", &id]).exits(0).stdout;
    let header = json!({"agent_session": 1, "session_id": "../../evil"});
    let text = format!("{header}\n{}", whole.split_once('\n').unwrap().1);
    let other = Lab::with_a_txt().stdin(text);
    let brought = sessions(&other, &["import", "-"]).exits(0).stdout.trim().to_owned();
    assert_eq!(ids(&other), [brought]);
    assert_eq!(holding(&other.outside(), "evil"), Vec::<String>::new());
}

#[test]
fn o14_sessions_are_removed_by_id_and_by_age_and_never_while_somebody_works_on_them() {
    let lab = Lab::with_a_txt();
    let all: Vec<String> = (0..3).map(|_| ran(&lab)).collect();
    sessions(&lab, &["rm", &all[0]]).exits(0);
    assert!(sessions(&lab, &["rm", &all[0], "../x"]).exits(3).stderr.contains("no session"));
    lab.age(&all[1], 9);
    let server = Server::start("turns: [{fault: hang}]");
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(1);
    let busy = ids(&lab).remove(0);
    lab.age(&busy, 9);
    assert_eq!(
        sessions(&lab, &["cleanup", "--older-than", "9", "--dry-run"]).exits(0).stdout,
        format!("{}\n{busy}\n", all[1])
    );
    let told = sessions(&lab, &["cleanup", "--older-than", "9"]).exits(0).stdout;
    assert!(told.starts_with("1 session removed\nnot removed: ") && told.contains("busy"), "{told}");
    run.signal(rustix::process::Signal::INT);
    run.finish().exits(130);
    assert_eq!(ids(&lab), [busy, all[2].clone()]);
    assert!(sessions(&lab, &["cleanup"]).exits(3).stderr.contains("--older-than"));
}

#[test]
fn o14_the_configuration_removes_what_is_old_at_the_end_of_a_run() {
    let lab = Lab::with_a_txt();
    let (old, newer) = (ran(&lab), ran(&lab));
    lab.age(&old, 8);
    lab.age(&newer, 6);
    let lab = lab.config("sessions: {cleanup_after_days: 7}\n");
    let last = ran(&lab);
    assert_eq!(ids(&lab), [last, newer]);
}

#[test]
fn figures_are_told_by_session_model_and_day() {
    let lab = Lab::with_a_txt();
    let script = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}, {name: read_file, arguments: {path: none}}]
    usage: {input: 100, cached_read: 900, output: 10}
  - {text: done, usage: {input: 1000, output: 5}}
";
    let ran = |script: &str, model: &str| {
        let server = Server::start(script);
        lab.run_model(model, &server.url(), &["--json"]).exits(0).json()
    };
    let (done, other) = (ran(script, "openai/gpt-5-mini"), ran("turns: [{text: hi}]", "openai/unheard-of"));
    let told = |by: &str| {
        let document = lab.agent(&["stats", "--by", by, "--json"]).exits(0).json();
        schema::valid(&schema::of("stats"), &document);
        assert_eq!((&document["by"], &document["total"]["answers"]), (&json!(by), &json!(3)));
        document["groups"].clone()
    };
    let models = told("model");
    let known = &models["openai/gpt-5-mini"];
    assert_eq!(
        (&known["answers"], &known["tool_calls"], &known["tool_errors"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!(known["usage"], done["usage"]);
    assert_eq!(known["cost_usd"], done["cost"]["total_usd"]);
    assert_eq!(models["openai/unheard-of"]["unknown_costs"], 1);
    let sessions = told("session");
    for run in [&done, &other] {
        assert!(sessions[run["session_id"].as_str().unwrap()].is_object(), "{sessions}");
    }
    assert_eq!(told("day").as_object().unwrap().len(), 1);
    let table = lab.agent(&["stats"]).exits(0).stdout;
    assert!(
        table.lines().any(|line| line.starts_with("openai/gpt-5-mini") && line.contains(" 45 % ")),
        "{table}"
    );
    assert!(table.ends_with("+?: without the cost of 1 request, which is not known\n"), "{table}");
}

#[test]
fn steps_are_counted_over_all_runs_where_they_are_shown_and_found() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    resumed(&lab, &id, &Server::start(TWO_STEPS), &["and again"]);
    let shown = sessions(&lab, &["show", &id]).exits(0).stdout;
    for line in ["step 1 (2 messages)", "step 3 (6 messages)", "step 4 (8 messages)", "  model:  [1 call]"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}:\n{shown}");
    }
    let found = sessions(&lab, &["search", "Alpha."]).exits(0).stdout;
    assert!(found.contains("  step 2    model: ") && found.contains("  step 4    model: "), "{found}");
    let fork = sessions(&lab, &["fork", &id, "--to-step", "3"]).exits(0).stdout.trim().to_owned();
    let shown = sessions(&lab, &["show", &fork]).exits(0).stdout;
    assert!(shown.contains("step 3 (6") && !shown.contains("step 4 ("), "{shown}");
}

#[test]
fn stats_html_is_one_page_without_scripts_that_takes_the_place_of_the_file() {
    let lab = Lab::with_a_txt();
    let write = || lab.agent(&["stats", "--html", "out/stats.html"]).exits(0);
    assert_eq!(write().stdout, "");
    assert!(lab.read("out/stats.html").contains("No session of this workspace"));
    let script = "turns:
  - {calls: [{name: read_file, arguments: {path: none}}], usage: {input: 250, cached_read: 750, output: 10}}
  - {text: done, usage: {input: 1000, output: 5}}
";
    let server = Server::start(script);
    let url = server.url();
    lab.run_model("openai/gpt-5-mini", &url, &[]).exits(0);
    write();
    let page = lab.read("out/stats.html");
    for text in
        ["prompt, cached 750, prompt 1,250, answer 15", ": share 37.5 %", ": share 100.0 %", ": cost $0.000"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("://") && !page.contains(KEY), "{page}");
    let mode = fs::metadata(lab.ws().join("out/stats.html")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    lab.agent(&["stats", "--html", "x.html", "--json"]).exits(3);
    lab.agent(&["stats", "--html", "/proc/x.html"]).exits(3);
}

/// What `agent stats` says of all sessions together.
fn total(lab: &Lab) -> Value {
    lab.agent(&["stats", "--json"]).exits(0).json()["total"].clone()
}

#[test]
fn what_a_fork_or_an_import_took_over_was_spent_once() {
    let lab = Lab::with_a_txt();
    let id = ran(&lab);
    let before = total(&lab);
    let fork = sessions(&lab, &["fork", &id, "--to-step", "1"]).exits(0).stdout.trim().to_owned();
    sessions(&lab, &["export", &id, "-o", "exported"]).exits(0);
    sessions(&lab, &["import", "exported"]).exits(0);
    assert_eq!(total(&lab), before);
    resumed(&lab, &fork, &Server::start("turns: [{text: more, usage: {input: 7, output: 1}}]"), &["go on"]);
    let after = total(&lab);
    assert_eq!(after["usage"]["input"].as_u64(), Some(before["usage"]["input"].as_u64().unwrap() + 7));
    let by = lab.agent(&["stats", "--by", "session", "--json"]).exits(0).json()["groups"].clone();
    assert_eq!((&by[&fork]["usage"]["input"], &by[&fork]["answers"]), (&json!(7), &json!(1)));
    // What only a copy still holds is not forgotten with the session in which it was spent.
    sessions(&lab, &["rm", &id]).exits(0);
    assert_eq!(total(&lab), after);
}

#[test]
fn figures_say_what_they_do_not_know() {
    let lab = Lab::with_a_txt().config("llm: {retries: 1}\n");
    assert!(lab.agent(&["stats"]).exits(0).stdout.starts_with("no session in this workspace yet"));
    let script = "turns: [{text: a long answer, chunk: 4, fault: {cut: 2}}, {text: done, usage: {input: 10, output: 5}}]";
    let server = Server::start(script);
    lab.run_model("openai/gpt-5-mini", &server.url(), &["--json"]).exits(0);
    assert_eq!(server.requests().len(), 2);
    assert_eq!((&total(&lab)["answers"], &total(&lab)["unknown_costs"]), (&json!(1), &json!(1)));
    let mut journal = fs::read(lab.journal()).unwrap();
    journal.extend(b"torn\n");
    fs::write(lab.journal(), journal).unwrap();
    let table = lab.agent(&["stats"]).exits(0).stdout;
    assert!(table.ends_with("which is not known\n1 line of journals damaged and left out\n"), "{table}");
}

#[test]
fn a_fork_takes_no_question_along_and_no_answer() {
    let script = "turns:
  - calls: [{name: write_file, arguments: {path: b.txt, content: x}}]
";
    let lab = Lab::with_a_txt();
    let done = lab.run(&Server::start(script), &["--approvals", "pause", "--json"]).exits(2).json();
    let asked = done["awaiting_approval"][0]["id"].as_str().unwrap().to_owned();
    lab.agent(&["approve", &asked]).exits(0);
    let id = done["session_id"].as_str().unwrap();
    let fork = sessions(&lab, &["fork", id]).exits(0).stdout.trim().to_owned();
    let server = Server::start("turns: [{text: gone on}]");
    resumed(&lab, &fork, &server, &[]);
    assert!(!lab.exists("b.txt"));
    let sent = server.requests()[0].messages().to_vec();
    assert!(sent.last().unwrap()["content"].as_str().unwrap().contains("outcome unknown"), "{sent:?}");
}

#[test]
fn o16_what_lies_beside_a_journal_goes_with_the_session_wherever_it_goes() {
    let lab = Lab::with_a_txt();
    let content = "0123456789".repeat(10_000);
    let script = format!(
        "turns:\n  - calls: [{{name: write_file, arguments: {{path: b.txt, content: '{content}'}}}}]\n  - text: one\n"
    );
    let done = lab.run_yolo(&Server::start(&script), &["--json"]).exits(0);
    let id = done.json()["session_id"].as_str().unwrap().to_owned();
    let elsewhere = Lab::new();
    sessions(&lab, &["export", &id, "--output", elsewhere.ws().join("it").to_str().unwrap()]).exits(0);
    let fork = sessions(&lab, &["fork", &id]).exits(0).stdout.trim().to_owned();
    sessions(&lab, &["rm", &id]).exits(0);
    assert!(!lab.session_dir(&id).exists());
    let imported = sessions(&elsewhere, &["import", "it"]).exits(0).stdout.trim().to_owned();
    for (lab, id) in [(&lab, &fork), (&elsewhere, &imported)] {
        let journal = fs::read_to_string(lab.session_dir(id).join("journal.jsonl")).unwrap();
        assert!(journal.lines().all(|line| line.len() <= 64 << 10));
        let server = Server::start("turns: [{text: two}]");
        resumed(lab, id, &server, &["go on"]);
        assert!(server.requests()[0].body.to_string().contains(&content), "{id}");
    }
}
