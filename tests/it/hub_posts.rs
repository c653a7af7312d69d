//! Posts of activations: each text is on the Hub once, in the right place, and without secrets, whatever goes wrong.

use crate::hub::{ALWAYS, Place};
use crate::support::hub::{Fault, HUB_KEY};
use crate::support::run::Running;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// A model that answers.
fn answering() -> Server {
    Server::start("turns: [{text: The answer., repeat: 99}]")
}

/// An agent that may post at any time, and does not look for posts.
fn place() -> Place {
    Place::new().with_agent(ALWAYS, "You are Bob.")
}

fn states(place: &Place) -> Vec<Value> {
    place.tasks().iter().map(|task| task["state"].clone()).collect()
}

#[test]
fn b18_a_notification_that_cannot_be_marked_as_read_is_answered_once() {
    let place = Place::new();
    let (post, notification) = place.mention("@bob?");
    place.hub.fault("POST /api/v1/notifications/read", Fault::Status(403), 2);
    let server = Server::start("turns: [{text: The answer., repeat: 9}]");
    for _ in 0..2 {
        place.feed();
        place.worker(&server, &["--once"]);
        assert!(!place.hub.was_read(&notification));
    }
    place.feed();
    place.worker(&server, &["--once"]).exits(0);
    assert!(place.hub.was_read(&notification));
    assert_eq!((place.hub.comments(&post).len(), server.requests().len()), (1, 1));
    let states: Vec<_> = place.tasks().iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["failed", "failed", "done"]);
}

// Fault B3: the summary was dropped, the notification stayed unread, and was tried three times.
#[test]
fn the_summary_at_a_limit_is_the_answer_and_a_run_without_one_fails() {
    let agent = ALWAYS.replace("behavior: {", "behavior: {max_iterations: 1, ");
    let look = "{calls: [{name: hub_search, arguments: {query: monad}}]}";
    for (closing, comments) in [("{text: THE SUMMARY}", 1), ("{error: {kind: request}}", 0)] {
        let place = Place::new().with_agent(&agent, "You are Bob.");
        let (post, notification) = place.mention("@bob?");
        let server = Server::start(&format!("turns: [{look}, {closing}]"));
        place.worker(&server, &["--agent", "bob", "--once"]).exits(if comments == 1 { 0 } else { 2 });
        let posted = place.hub.comments(&post);
        assert_eq!(
            (posted.len(), place.hub.was_read(&notification)),
            (comments, comments == 1),
            "{posted:?}"
        );
        assert!(posted.iter().all(|(_, text)| text == "THE SUMMARY"), "{posted:?}");
        assert_eq!((states(&place).len(), server.requests().len()), (1, 2));
    }
}

// Fault B13: only what this queue had posted was counted.
#[test]
fn comments_on_the_hub_count_for_the_limit_of_a_thread_whoever_posted_them() {
    let place =
        Place::new().with_agent(&ALWAYS.replace("limits: {", "limits: {max_responses_per_thread: 3, "), "");
    let (full, read) = place.mention("@bob?");
    (1..=3).for_each(|number| place.hub.comment("bob", &full, &format!("Answer {number}")));
    let server = Server::start(&format!(
        "turns:\n  - calls: [{{name: hub_post, arguments: {{content: more, reply_to: {full}}}}}]\n  - text: The answer.\n"
    ));
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    assert_eq!((place.hub.was_read(&read), server.requests().len()), (true, 0), "no model was called");
    // The tool keeps the limit too, and comments of others do not count.
    let other = place.hub.post("ann", "Hello");
    (1..=3).for_each(|number| place.hub.comment("ann", &other, &format!("Comment {number}")));
    place.hub.notify("bob", "mention", &other, "@bob?");
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    assert_eq!((place.hub.comments(&full).len(), place.hub.comments(&other).len()), (3, 4));
    let told = server.requests()[1].body.to_string();
    assert!(told.contains("the limit of 3 comments in a thread is reached"), "{told}");
}

#[test]
fn b18_another_queue_has_other_keys() {
    let place = place();
    let other = format!("sqlite:{}", place.lab.outside().join("other.sqlite").display());
    for (queue, count) in [(None, 1), (Some(other.as_str()), 2)] {
        let (post, _) = place.mention("@bob?");
        let server = answering();
        let mut more = vec!["--agent", "bob", "--once"];
        more.extend(queue.iter().flat_map(|queue| ["--queue", queue]));
        place.worker(&server, &more).exits(0);
        assert_eq!(
            (place.hub.comments(&post).len(), place.hub.calls("POST /api/v1/posts/").len()),
            (1, count)
        );
    }
}

#[test]
fn b18_a_post_of_an_earlier_attempt_to_another_place_is_not_taken_for_the_answer() {
    let place = place().adding("llm: {retries: 0}\n");
    let (post, notification) = place.mention("@bob?");
    place.feed();
    let server = Server::start(
        "turns:
  - calls: [{name: hub_post, arguments: {content: Something new, title: News}}]
  - {fault: {http: {status: 503, body: no}}}
  - text: The answer.
",
    );
    place.worker(&server, &["--drain"]).exits(0);
    assert_eq!((&place.tasks()[0]["state"], &place.tasks()[0]["attempt"]), (&json!("done"), &json!(2)));
    assert_eq!((place.hub.comments(&post).len(), place.hub.was_read(&notification)), (1, true));
    assert_eq!(place.hub.posts().iter().filter(|post| post["title"] == "News").count(), 1);
}

#[test]
fn b18_attempts_that_post_in_another_order_post_once() {
    let place = place().adding("llm: {retries: 0}\n");
    let [first, second] = ["one", "two"].map(|text| place.hub.post("ann", text));
    let (post, _) = place.mention("@bob?");
    place.feed();
    let call = |text: &str, post: &str| {
        format!("  - calls: [{{name: hub_post, arguments: {{content: {text}, reply_to: {post}}}}}]\n")
    };
    let (a, b) = (call("A", &first), call("B", &second));
    let server = Server::start(&format!(
        "turns:\n{a}{b}  - {{fault: {{http: {{status: 503, body: no}}}}}}\n{b}{a}  - text: C\n"
    ));
    place.worker(&server, &["--drain", "--mode", "notification"]).exits(0);
    let texts = |post: &str| place.hub.comments(post).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(
        (texts(&first), texts(&second), texts(&post)),
        (vec!["A".into()], vec!["B".into()], vec!["C".into()])
    );
}

#[test]
fn b18_a_post_whose_outcome_is_not_known_is_not_posted_under_another_key() {
    let place = place();
    let (post, _) = place.mention("@bob?");
    place.hub.fault(&format!("POST /api/v1/posts/{post}/comments"), Fault::AnswerLost, 1);
    // After the look at the thread for the prompt, and that before the post.
    place.hub.fault_after(2, &format!("GET /api/v1/posts/{post}"), Fault::Status(503), 3);
    let call = format!("  - calls: [{{name: hub_post, arguments: {{content: X, reply_to: {post}}}}}]\n");
    let server = Server::start(&format!("turns:\n{call}{call}  - text: done\n"));
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    assert_eq!(place.hub.comments(&post).len(), 1);
    assert_eq!(place.tasks()[0]["posts"][0]["state"], "done");
}

#[test]
fn b18_a_lost_answer_is_not_taken_for_an_older_comment_with_the_same_text() {
    let place = place();
    let post = place.hub.post("ann", "Hello");
    let server = answering();
    for count in 1..=2 {
        place.hub.notify("bob", "mention", &post, "@bob?");
        if count == 2 {
            place.hub.fault(&format!("POST /api/v1/posts/{post}/comments"), Fault::Status(500), 1);
        }
        place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
        assert_eq!(place.hub.comments(&post).len(), count);
    }
}

#[test]
fn b18_a_repeat_that_is_refused_may_have_been_stored_before() {
    let place = place();
    let (post, notification) = place.mention("@bob?");
    let comments = format!("POST /api/v1/posts/{post}/comments");
    place.hub.fault(&comments, Fault::Status(504), 1);
    place.hub.fault(&comments, Fault::Status(409), 1);
    place.worker(&answering(), &["--agent", "bob", "--once"]).exits(0);
    assert_eq!((place.hub.calls(&comments).len(), place.hub.was_read(&notification)), (2, true));
    assert_eq!(place.tasks()[0]["posts"][0]["state"], "unknown");
}

#[test]
fn b18_a_hub_that_asks_to_wait_gets_the_answer_later() {
    let place = place();
    let (post, notification) = place.mention("@bob?");
    place.hub.fault(&format!("POST /api/v1/posts/{post}/comments"), Fault::Status(429), 3);
    let server = answering();
    place.feed();
    place.worker(&server, &["--drain", "--mode", "notification"]).exits(0);
    assert_eq!((states(&place), place.hub.comments(&post).len()), (vec![json!("dead")], 0));
    assert_eq!(place.tasks()[0]["posts"][0]["state"], "not_stored");
    place.feed();
    place.worker(&server, &["--drain", "--mode", "notification"]).exits(0);
    assert_eq!((place.hub.comments(&post).len(), place.hub.was_read(&notification)), (1, true));
}

#[test]
fn without_the_grant_to_post_no_model_is_called_and_nothing_is_read() {
    let place = Place::new().with_agent("behavior: {}", "You are Bob.");
    let (_, notification) = place.mention("@bob?");
    let server = answering();
    let done = place.worker(&server, &["--agent", "bob", "--once"]).exits(2);
    assert!(done.stderr.contains("Missing grant hub:write"), "{}", done.stderr);
    assert_eq!((server.requests().len(), place.hub.was_read(&notification)), (0, false));
}

#[test]
fn a_notification_that_fails_again_and_again_is_passed_over() {
    let place = Place::new()
        .with_agent(&ALWAYS.replace("behavior: {", "behavior: {discovery: {enabled: true}, "), "");
    let (post, locked) = place.mention("@bob?");
    let (other, answered) = place.mention("@bob!");
    place.hub.fault(&format!("POST /api/v1/posts/{post}/comments"), Fault::Status(403), usize::MAX);
    let server = answering();
    for number in 0..5 {
        place.feed();
        let done = place.worker(&server, &["--once"]);
        assert!(number > 0 || done.stderr.contains("failed: the Hub answers 403: "), "{}", done.stderr);
    }
    assert_eq!(states(&place), ["failed", "done", "done"]);
    // Then there is nothing to be done for it, and time to look for posts.
    let count = place.tasks().len();
    place.feed();
    let looks = place.hub.calls("GET /api/v1/feed/discover").len();
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    assert_eq!((place.tasks().len(), place.hub.calls("GET /api/v1/feed/discover").len()), (count, looks + 1));
    assert_eq!((place.hub.was_read(&locked), place.hub.was_read(&answered)), (false, true));
    assert_eq!((place.hub.comments(&other).len(), server.requests().len()), (1, 5));
}

#[test]
fn a20_an_executor_answers_for_an_agent_and_leaves_nothing() {
    let place = Place::new().with_agent(
        &format!("executor: echoes\n{}", ALWAYS.replace("}\nbeh", ", shell: {enabled: true}}\nbeh")),
        "You are Bob.",
    );
    let config = place.lab.home().join("config.yaml");
    let echoes = "echoes: {command: /bin/sh, args: [-c, 'echo $HOME > h; grep -c Bob', x], prompt: stdin}";
    let apart = "apart: {command: /bin/sh, args: [-c, 'cat ~/role/is.json; grep -c Bob', x], prompt: stdin, files: [{path: role/is.json, text: '{system_prompt_json}'}]}";
    let executor = format!("executors: {{{echoes}, {apart}}}");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("lease_seconds: 3", &format!("lease_seconds: 3, {executor}"))).unwrap();
    let (post, notification) = place.mention("@bob?");
    let server = answering();
    let refused = place.worker(&server, &["--agent", "bob", "--once"]).exits(2);
    assert!(refused.stderr.contains("--mode yolo"), "{}", refused.stderr);
    place.worker(&server, &["--agent", "bob", "--once", "--mode", "yolo"]).exits(0);
    assert_eq!(place.hub.comments(&post), [("bob".to_owned(), "1".to_owned())]);
    assert_eq!((place.hub.was_read(&notification), server.requests().len()), (true, 0));
    let definition = place.lab.outside().join("agents/bob/config.yaml");
    let text = fs::read_to_string(&definition).unwrap().replace("executor: echoes", "executor: apart");
    fs::write(&definition, text).unwrap();
    let (second, _) = place.mention("@Bob?");
    place.worker(&server, &["--agent", "bob", "--once", "--mode", "yolo"]).exits(0);
    assert_eq!(place.hub.comments(&second), [("bob".to_owned(), "\"You are Bob.\"1".to_owned())]);
    let left = fs::read_dir(place.lab.home().join("state/workspaces/hub-bob/worktrees")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn doctor_shows_the_hub_its_agents_and_the_port() {
    let place = Place::new().with_agent("brain: {api_base: 'http://x'}\n", "You are Bob.");
    let agents = place.lab.outside().join("agents");
    fs::create_dir_all(agents.join("amy")).unwrap();
    fs::write(agents.join("amy/config.yaml"), "behavior: 5\n").unwrap();
    let shown = place.lab.agent(&["doctor"]).stdout;
    for part in [
        &format!("hub            not asked: {}; use `--online`\n", place.hub.url()),
        &format!("agents         1 in {}\n", agents.display()),
        "agent          amy: not usable: ",
        "agent          bob: brain.api_base has no effect\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("port "), "{shown}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    let config = place.lab.home().join("config.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("lease_seconds: 3", &format!("lease_seconds: 3, listen: '{address}'")))
        .unwrap();
    place.mention("@bob?");
    let shown = place.lab.agent(&["doctor", "--online"]).stdout;
    assert!(shown.contains(&format!("hub            ok: {}, 1 agents have", place.hub.url())), "{shown}");
    assert!(shown.contains(&format!("port           not usable: fleet.listen {address}: ")), "{shown}");
    drop(port);
    let shown = place.lab.agent(&["doctor"]).stdout;
    assert!(shown.contains(&format!("port           ok: {address} can be opened")), "{shown}");
}

#[test]
fn an_activation_is_not_retried_by_hand() {
    let place = place();
    let (post, _) = place.mention("@bob?");
    place.hub.fault(&format!("POST /api/v1/posts/{post}/comments"), Fault::Status(403), 1);
    place.worker(&answering(), &["--agent", "bob", "--once"]).exits(2);
    let id = place.tasks()[0]["id"].as_str().unwrap().to_owned();
    let done = place.lab.agent(&["tasks", "retry", &id]).exits(3);
    assert!(done.stderr.contains("the next activation of the agent follows it"), "{}", done.stderr);
}

#[test]
fn a_secret_in_a_title_is_replaced() {
    let place = place();
    place.mention("@bob?");
    let call = format!("{{name: hub_post, arguments: {{content: x, title: 'the key {HUB_KEY}'}}}}");
    let server = Server::start(&format!("turns:\n  - calls: [{call}]\n  - text: done\n"));
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    let posts = place.hub.posts();
    let title = posts.iter().find(|post| post["content"] == "x").unwrap()["title"].as_str().unwrap();
    assert!(title.starts_with("the key ") && !title.contains(HUB_KEY), "{title}");
    assert!(!format!("{:?}", place.tasks()).contains(HUB_KEY));
}

#[test]
fn a_definition_without_network_leaves_no_tool_that_reaches_it() {
    for (network, expected) in [("true", true), ("false", false)] {
        let place = Place::new()
            .with_agent(&format!("{ALWAYS}network: {{enabled: {network}}}\n"), "You are Bob.")
            .adding("web: {enabled: true}\n");
        place.mention("@bob?");
        let server = answering();
        place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
        let tools = server.requests()[0].body["tools"].to_string();
        assert_eq!(tools.contains("web_fetch"), expected, "{tools}");
        assert!(tools.contains("hub_post"));
    }
}

#[test]
fn a_worker_that_is_ended_gives_back_an_activation_that_waits_and_tells_what_it_used() {
    let place = Place::new();
    let (post, _) = place.mention("@bob?");
    let server = answering();
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    place.hub.notify("bob", "mention", &post, "@bob again");
    let working: Running = place.start_worker(&server, &["--agent", "bob", "--grace", "0"]);
    server.wait_for_request(2);
    // It waits for the time between two posts of the agent, which is a minute.
    place.hub.wait_for("GET /api/v1/posts/", 3);
    working.signal(Signal::TERM);
    working.finish().exits(0);
    assert_eq!(states(&place), ["done", "queued"]);
    assert_eq!(place.hub.calls("POST /api/v1/system/consumption").len(), 2);
}

#[test]
fn a_worker_of_a_hub_leaves_the_tasks_of_others_alone() {
    let place = Place::new();
    fs::write(place.lab.ws().join("a.txt"), "first").unwrap();
    place.lab.commit_all();
    place.lab.agent(&["submit", "x", "--id", "a"]).exits(0);
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo killed >> log.txt}}]}, {fault: hang}, {text: no, repeat: 9}]",
    );
    let killed = place.lab.start_on(&server, &["worker", "--mode", "yolo"]);
    server.wait_for_request(2);
    killed.signal(Signal::KILL);
    killed.finish();
    place.worker(&server, &["--agent", "bob", "--once", "--mode", "notification"]).exits(0);
    assert_eq!((&states(&place)[0], server.requests().len()), (&json!("claimed"), 2));
}

#[test]
fn an_attempt_without_a_run_uses_nothing_of_the_money_of_a_day() {
    let place = Place::new();
    let config = place.lab.home().join("config.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("lease_seconds: 3", "lease_seconds: 3, budget_usd: 0.03")).unwrap();
    let server = answering();
    for _ in 0..3 {
        // It looks for posts, and there are none.
        let done = place.worker(&server, &["--agent", "bob", "--once", "--budget", "0.02"]).exits(0);
        assert!(!done.stderr.contains("no task is claimed"), "{}", done.stderr);
    }
    assert_eq!((states(&place).len(), server.requests().len()), (3, 0));
}

#[test]
fn b18_a_new_post_whose_answer_was_lost_is_found_by_its_author_and_not_repeated() {
    let place = place();
    place.hub.ignore_keys();
    place.mention("@bob?");
    place.hub.fault("POST /api/v1/posts", Fault::AnswerLost, 1);
    let server = Server::start(
        "turns:
  - calls: [{name: hub_post, arguments: {content: Something new, title: News}}]
  - text: The answer.
",
    );
    place.worker(&server, &["--agent", "bob", "--once"]).exits(0);
    assert_eq!(place.hub.posts().iter().filter(|post| post["title"] == "News").count(), 1);
    assert!(!place.hub.calls("GET /api/v1/search?").is_empty());
    assert_eq!(place.tasks()[0]["posts"][0]["state"], "done");
}
