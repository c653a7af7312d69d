//! `web_search`: what each service is asked, what the model reads, and which failures it is told, against servers on this machine.

use crate::support::calls::{call, script};
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::site::{Site, page, redirect};
use serde_json::json;

/// A workspace whose user searches with `site`.
fn with_search(site: &Site, provider: &str, more: &str) -> Lab {
    let (address, url) = (site.address, site.url(""));
    Lab::new().config(&format!(
        "web: {{allowed_private: ['{address}'], search: {{provider: {provider}, url: '{url}', {more}}}}}\n"
    ))
}

/// What the model would read.
fn searched(lab: &Lab, arguments: &serde_json::Value) -> String {
    let done = lab.agent(&["tools", "call", "web_search", &arguments.to_string(), "--mode", "yolo"]);
    format!("{}{}", done.stdout, done.stderr)
}

fn found(number: usize) -> serde_json::Value {
    json!({"title": format!("Page {number}"), "url": format!("https://e.test/{number}"), "content": "x".repeat(3000)})
}

#[test]
fn t29_without_a_provider_there_is_no_tool_and_a_project_cannot_choose_one() {
    let lab = Lab::new();
    assert!(searched(&lab, &json!({"query": "q"})).contains("Unknown tool 'web_search'"));
    let lab = Lab::new()
        .file(".agent/config.yaml", "web: {search: {provider: searxng, url: 'http://127.0.0.1:1'}}\n");
    assert!(searched(&lab, &json!({"query": "q"})).contains("Unknown tool 'web_search'"));
    let lab = Lab::new().config("web: {search: {provider: searxng}}\n");
    let done = lab.agent(&["config", "validate"]).exits(3);
    assert!(done.stderr.contains("searxng needs web.search.url"), "{}", done.stderr);
}

#[test]
fn t29_tavily_is_asked_with_its_key_and_its_answer_is_listed_in_short() {
    let site = Site::serving(|_| {
        let results: Vec<_> = (1..10).map(found).collect();
        page(
            "application/json",
            json!({"query": "q", "answer": "Forty\ntwo", "results": results}).to_string(),
        )
    });
    let lab = with_search(&site, "tavily", "").env("TAVILY_API_KEY", "tvly-0123456789abcdef");
    let said = searched(&lab, &json!({"query": "the answer", "max_results": 2, "topic": "news"}));
    assert!(said.contains("## Answer\nForty two\n\n1. Page 1\n   https://e.test/1\n   xxx"), "{said}");
    assert!(said.contains("2. Page 2") && !said.contains("3. Page 3"), "{said}");
    assert!(said.contains(&"x".repeat(1000)) && !said.contains(&"x".repeat(1001)), "{said}");
    let heads = site.heads();
    assert!(heads[0].starts_with("POST /search ") && heads[0].contains("Bearer tvly-0123456789abcdef"));
    // Without a number there are as many as the user configured.
    let said = searched(&lab, &json!({"query": "the answer"}));
    assert!(said.contains("5. Page 5") && !said.contains("6. Page 6"), "{said}");
    for wrong in [json!({"query": "q", "max_results": 21}), json!({"query": "q", "max_results": 0})] {
        assert!(searched(&lab, &wrong).contains("`max_results` must be from 1 to 20"));
    }
    assert_eq!(site.heads().len(), 2);
}

#[test]
fn t29_a_search_server_of_ones_own_needs_no_key_and_its_address_must_be_allowed() {
    let body = json!({"query": "q", "results": [{"title": "\u{1b}[2JA", "url": "https://e.test/", "content": null}]});
    let site = Site::serving(move |_| page("application/json", body.to_string()));
    let said = searched(&with_search(&site, "searxng", ""), &json!({"query": "a b"}));
    assert!(said.contains("https://e.test/") && !said.contains('\u{1b}'), "{said}");
    assert!(site.heads()[0].starts_with("GET /search?q=a+b&format=json&categories=general "));
    let lab =
        Lab::new().config(&format!("web: {{search: {{provider: searxng, url: '{}'}}}}\n", site.url("")));
    let said = searched(&lab, &json!({"query": "a b"}));
    assert!(said.contains("not a public address") && said.contains("web.allowed_private"), "{said}");
    assert_eq!(site.heads().len(), 1);
}

#[test]
fn t29_a_missing_key_a_refusal_a_redirect_and_what_is_no_answer_are_clear_errors() {
    let status = |line: &str, body: &str| {
        format!("HTTP/1.1 {line}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    };
    let answers = [
        ("401", status("401 Unauthorized", "{\"detail\": \"bad key\"}"), "The key in SEARCH_KEY was refused"),
        ("429", status("429 Too Many Requests", "slow down"), "answered 429 Too Many Requests"),
        ("302", String::from_utf8(redirect("http://127.0.0.1:1/")).unwrap(), "answered 302 Found"),
        ("html", status("200 OK", "<html>"), "not with the JSON of a search"),
        ("large", status("200 OK", &"[".repeat(1_100_000)), "not with the JSON of a search"),
        ("none", status("200 OK", "{\"query\": \"q\", \"results\": []}"), "The search found nothing"),
    ];
    for (name, answer, wanted) in answers {
        let site = Site::serving(move |_| answer.clone().into_bytes());
        let lab = with_search(&site, "brave", "api_key_env: SEARCH_KEY");
        let said = searched(&lab, &json!({"query": "q"}));
        assert!(said.contains("the environment variable SEARCH_KEY is not set"), "{name}: {said}");
        assert!(site.heads().is_empty());
        let lab = lab.env("SEARCH_KEY", "0123456789abcdef");
        let said = searched(&lab, &json!({"query": "q"}));
        assert!(said.contains(wanted) && !said.contains("0123456789abcdef"), "{name}: {said}");
        assert_eq!(site.heads().len(), 1, "{name}");
        assert!(site.heads()[0].to_lowercase().contains("x-subscription-token: 0123456789abcdef"));
    }
}

#[test]
fn t29_a_search_is_asked_about_and_what_it_finds_opens_no_door() {
    let results =
        json!({"query": "q", "results": [{"title": "A", "url": "https://e.test/", "content": "c"}]});
    let site = Site::serving(move |_| page("application/json", results.to_string()));
    let config = format!(
        "web: {{enabled: true, allowed_hosts: [docs.test], allowed_private: ['{}'], search: {{provider: searxng, url: \
         '{}'}}}}\n",
        site.address,
        site.url("")
    );
    let lab = Lab::new().config(&config);
    let calls = || {
        let search = vec![call("web_search", &json!({"query": "q"}))];
        Server::start(&script(&[search, vec![call("web_fetch", &json!({"url": "https://e.test/"}))]]))
    };
    // Without a terminal nobody approves.
    lab.run(&calls(), &[]);
    assert!(site.heads().is_empty());
    let model = calls();
    lab.run_yolo(&model, &[]).exits(0);
    let last = model.requests()[2].body["messages"].to_string();
    assert!(last.contains("1. A") && last.contains("e.test is not one of web.allowed_hosts"), "{last}");
}
