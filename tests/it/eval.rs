//! `agent eval`: ranking of models and configurations, checks in worktrees, exit codes, resuming.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{newest_id, on_server};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A repository with one commit, and scripted models: `good` makes b.txt, `bad` only answers.
fn with_models() -> Lab {
    let good =
        "turns:\n  - calls: [{name: write_file, arguments: {path: b.txt, content: x}}]\n  - text: done\n";
    Lab::repository().file("../good.yaml", good).file("../bad.yaml", "turns: [{text: done}]")
}

fn model(lab: &Lab, name: &str) -> String {
    format!("scripted:{}", lab.outside().join(format!("{name}.yaml")).display())
}

fn eval(lab: &Lab, more: &[&str]) -> Finished {
    lab.agent(&[&["eval", "make b.txt", "--mode", "yolo"], more].concat())
}

fn names(json: &Value) -> Vec<String> {
    let ranking = json["ranking"].as_array().unwrap();
    ranking.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a18_models_are_ranked_by_their_score_and_a_failed_check_is_in_the_exit_code() {
    let lab = with_models();
    let (good, bad) = (model(&lab, "good"), model(&lab, "bad"));
    let models = format!("{bad},{good}");
    let json = eval(&lab, &["--models", &models, "--check", "test -e b.txt", "--json"]).exits(2).json();
    schema::valid(&schema::of("work"), &json);
    assert_eq!(names(&json), [good.clone(), bad.clone()]);
    let (first, last) = (&json["ranking"][0], &json["ranking"][1]);
    assert_eq!((&first["passed"], &last["passed"]), (&json!(1), &json!(0)));
    assert_eq!(first["parts"], json!({"checks": 40.0, "status": 30.0, "efficiency": 19.2, "cost": 10.0}));
    assert_eq!((&first["score"], &last["parts"]["checks"]), (&json!(99.2), &json!(0.0)));
    assert_eq!(json["stop_reason"], "run_partial");
    assert!(!lab.exists("b.txt"));
}

#[test]
fn a18_every_run_begins_with_the_same_commit_and_repetitions_count() {
    let lab = with_models();
    let models = format!("{},{}", model(&lab, "good"), model(&lab, "bad"));
    let done = eval(&lab, &["--models", &models, "--repeat", "3", "--check", "test ! -e c.txt"]).exits(0);
    assert!(done.stdout.contains("3/3 (44-100 %)"), "{}", done.stdout);
    let mut git = std::process::Command::new("git");
    let listed = git.args(["branch", "--list", "agent/*"]).current_dir(lab.ws()).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 6);
}

#[test]
fn a18_a_configuration_reaches_its_run() {
    let lab = with_models();
    for name in ["good", "bad"] {
        let text = format!("llm: {{model: \"{}\"}}\n", model(&lab, name));
        std::fs::write(lab.outside().join(format!("{name}.config.yaml")), text).unwrap();
    }
    let config = |name: &str| lab.outside().join(format!("{name}.config.yaml")).to_str().unwrap().to_owned();
    let configs = format!("{},{}", config("bad"), config("good"));
    let json = eval(&lab, &["--configs", &configs, "--check", "test -e b.txt", "--json"]).exits(2).json();
    assert_eq!(names(&json), [config("good"), config("bad")]);
}

#[test]
fn a18_an_unknown_cost_leaves_its_part_out_and_is_said() {
    let lab = with_models();
    let server = Server::start("turns: [{text: done, repeat: 4}]");
    let url = server.url();
    let models = format!("openai/mock,{}", model(&lab, "good"));
    let connection = ["--api-base", &url, "--api-key", KEY];
    let done = eval(&lab, &[&["--models", &models], &connection[..]].concat()).exits(0);
    assert!(done.stdout.contains("The cost of a run is unknown"), "{}", done.stdout);
    let json = eval(&lab, &[&["--models", &models, "--json"], &connection[..]].concat()).exits(0).json();
    let unknown =
        json["ranking"].as_array().unwrap().iter().find(|one| one["name"] == "openai/mock").unwrap();
    assert_eq!((&unknown["parts"]["cost"], &unknown["median_cost_usd"]), (&Value::Null, &Value::Null));
}

#[test]
fn a18_fewer_than_two_models_is_exit_3() {
    let lab = with_models();
    let good = model(&lab, "good");
    for more in [&[][..], &["--models", &good], &["--models", &format!("{good},{good}")]] {
        let done = eval(&lab, more).exits(3);
        assert!(done.stderr.contains("a comparison needs two or more different models"), "{}", done.stderr);
    }
}

#[test]
fn a18_an_eval_that_was_killed_goes_on_and_repeats_no_ended_run() {
    let lab = with_models().config("parallel: {workers: 1}");
    let server = Server::start("turns: [{fault: hang}]");
    let (url, good) = (server.url(), model(&lab, "good"));
    let models = format!("{good},openai/mock");
    let args = ["eval", "make b.txt", "--mode", "yolo", "--models", &models];
    let running = lab.start(&on_server(&args, &url));
    server.wait_for_request(1);
    running.signal(Signal::KILL);
    running.finish();
    let sessions = lab.journals().len();
    let id = newest_id(&lab);
    // What excludes each other on one command line does so too when one of the two is recorded.
    for option in [&["--configs", "a.yaml,b.yaml"], &["--model", "openai/mock"]] {
        let refused = lab.agent(&[&["eval", "resume", &id], &option[..]].concat()).exits(3);
        let told = format!("--models and {} exclude each other", option[0]);
        assert!(refused.stderr.contains(&told), "{}", refused.stderr);
    }
    let again = Server::done();
    let url = again.url();
    let json = lab.agent(&on_server(&["eval", "resume", &id, "--json"], &url)).exits(0).json();
    assert_eq!(json["runs"].as_array().unwrap().len(), 2);
    assert_eq!((again.requests().len(), lab.journals().len()), (1, sessions));
}
