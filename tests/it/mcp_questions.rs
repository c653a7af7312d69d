//! Questions of MCP servers during a call, answered at a terminal.

use crate::support::calls::call;
use crate::support::mcp::{peers, results};
use crate::support::run::{Finished, Lab, YOLO};
use crate::support::server::Server;
use crate::support::terminal::AtTerminal;
use serde_json::json;

/// A form with hostile texts.
const FORM: &str = r#"{"type":"object","properties":{"level":{"type":"string","enum":["low","high"]},"name":{"type":"string","title":"Your \u001b[2Jname","description":"\u001b]0;owned\u0007as \u202ein the file"},"sure":{"type":"boolean","default":true}},"required":["name","level"]}"#;

/// A server that asks with this form and repeats the answer.
fn asking(form: &str, elicitation: &str) -> (Lab, Server) {
    let functions = format!(
        r#"at_call() {{ call=$id
           say '{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"message":"Who\u001b[2J\nare you?","requestedSchema":{form}}}}}'
           read -r answer; id=$call; text "$(printf '%s' "$answer" | tr -d '"{{}}\\')"; }}"#
    );
    let lab = peers(&[("test", &functions, "")]);
    let yaml = std::fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    let lab = lab.config(&yaml.replace("mcp:\n", &format!("mcp:\n  elicitation: {elicitation}\n")));
    (lab, Server::calls([call("mcp__test__echo", &json!({}))]))
}

/// Runs at a terminal, where each text that the screen shows is answered with keys; returns the end and what the server got.
fn answered(form: &str, answers: &[(&str, &str)]) -> (Finished, String) {
    let (lab, model) = asking(form, "ask");
    let mut run = AtTerminal::start(&lab, &model, &YOLO);
    for (at, (shown, keys)) in answers.iter().enumerate() {
        let before = answers[..at].iter().filter(|(other, _)| other == shown).count();
        run.see(shown, |screen| screen.matches(shown).count() > before);
        run.types(keys);
    }
    let finished = run.finish();
    let got = model.requests().get(1).map(results).unwrap_or_default();
    (finished, got)
}

#[test]
fn a_form_is_shown_without_control_characters_and_what_is_typed_reaches_the_server() {
    let (finished, got) =
        answered(FORM, &[("level:", "high\n"), ("Your [2Jname", "Ana\n"), ("sure [true]:", "\n")]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(got.contains("action:accept"), "{got}");
    assert!(got.contains("name:Ana") && got.contains("level:high") && got.contains("sure:true"), "{got}");
    let screen = finished.stderr;
    assert!(screen.contains("MCP test asks: Who[2J\\nare you?"), "{screen}");
    for raw in ["\u{1b}[2J", "\u{1b}]0;", "\u{7}", "\u{202e}"] {
        assert!(!screen.contains(raw), "{screen:?}");
    }
}

#[test]
fn a_wrong_value_is_asked_again_and_the_third_one_declines() {
    let (finished, got) =
        answered(FORM, &[("level:", "x\n"), ("level:", "low\n"), ("name", "Ana\n"), ("sure [true]:", "n\n")]);
    assert!(finished.stderr.contains("one of low, high"), "{}", finished.stderr);
    assert!(got.contains("level:low") && got.contains("sure:false"), "{got}");
    let number = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let (lab, model) = asking(number, "ask");
    let mut run = AtTerminal::start(&lab, &model, &YOLO);
    for (count, keys) in ["\n", "many\n", "1.5\n"].iter().enumerate() {
        run.see("the field", |screen| screen.matches("   n:").count() > count);
        run.types(keys);
    }
    assert_eq!(run.finish().code, Some(0));
    assert!(results(&model.requests()[1]).contains("action:decline"));
}

#[test]
fn ctrl_d_declines_a_question_and_ctrl_c_ends_the_run() {
    let (finished, got) = answered(FORM, &[("level:", "\u{4}")]);
    assert!(finished.code == Some(0) && got.contains("action:decline"), "{got}");
    let (lab, model) = asking(FORM, "ask");
    let run = AtTerminal::start(&lab, &model, &YOLO);
    run.see("the field", |screen| screen.contains("level:"));
    run.signal(rustix::process::Signal::INT);
    assert_eq!(run.finish().code, Some(130));
}

#[test]
fn a_question_without_fields_is_confirmed_by_yes_only() {
    let empty = r#"{"type":"object","properties":{}}"#;
    let (_, got) = answered(empty, &[("yes or no:", "yes\n")]);
    assert!(got.contains("action:accept"), "{got}");
    for keys in ["no\n", "\u{4}"] {
        let (_, got) = answered(empty, &[("yes or no:", keys)]);
        assert!(got.contains("action:decline"), "{keys:?}: {got}");
    }
}

#[test]
fn without_a_terminal_questions_are_declined_and_defaults_answer_only_with_defaults() {
    let form = |default: &str| {
        format!(r#"{{"type":"object","properties":{{"n":{{"type":"integer"{default}}}}},"required":["n"]}}"#)
    };
    let cases = [
        (form(r#","default":7"#), "ask", "action:decline"),
        (form(r#","default":7"#), "decline", "action:decline"),
        (form(r#","default":7"#), "defaults", "n:7"),
        (form(""), "defaults", "action:decline"),
    ];
    for (form, elicitation, wanted) in cases {
        let (lab, model) = asking(&form, elicitation);
        lab.run_yolo(&model, &[]).exits(0);
        let got = results(&model.requests()[1]);
        assert!(got.contains(wanted), "{elicitation}, {form}: {got}");
    }
}

#[test]
fn a_server_lists_the_same_tools_with_and_without_a_terminal() {
    let functions = r#"at_initialize() { case "$line" in *'"elicitation"'*) more=",$(tool question)" ;; esac
        answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}'; }
        at_list() { answer '{"tools":['"$(tool echo)$more"']}'; }"#;
    let lab = peers(&[("test", functions, "")]);
    let done = || Server::calls([call("mcp__test__question", &json!({}))]);
    let (at_terminal, without) = (done(), done());
    let first = AtTerminal::start(&lab, &at_terminal, &YOLO).finish();
    assert!(first.stderr.contains("2 tools accepted"), "{}", first.stderr);
    let listed = lab.agent(&["mcp", "list"]).exits(0).stdout;
    assert!(listed.contains("ok") && listed.contains("2 tools"), "{listed}");
    let finished = lab.run_yolo(&without, &[]).exits(0);
    assert!(!finished.stderr.contains("lists other tools"), "{}", finished.stderr);
    assert!(results(&without.requests()[1]).contains("called"));
}
