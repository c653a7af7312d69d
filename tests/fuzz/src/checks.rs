//! What must hold of any bytes from a server or a model: one function per fuzz target.

use agent_config::pipeline::parse as parse_pipeline;
use agent_core::decision::Decision;
use agent_core::image::{Image, MAX_IMAGE_BYTES, MAX_IMAGE_SIDE};
use agent_core::language::Language;
use agent_engine::call_arguments;
use agent_engine::command_class::{CommandClass, CommandOptions, classify, named_files, read_targets};
use agent_engine::policy::{AutoScope, Mode, Policy, PolicyOptions};
use agent_engine::rules::{Action, PolicyRule, Ruling};
use agent_fetch::allowed_host::host_name;
use agent_fetch::command_proxy::head;
use agent_fetch::page_url::{self, HostPattern};
use agent_llm::LlmError;
use agent_llm::embedded_call;
use agent_llm::framing::{FrameDecoder, Framing, FramingError};
use agent_llm::quirks::Quirks;
use agent_llm::response_builder::{FinishContext, ResponseBuilder};
use agent_llm::response_reader::ResponseReader;
use agent_llm::retry::RetryAdvice;
use agent_llm::wire_format::WireFormat;
use agent_llm::{Progress, Response};
use agent_process::shell::quoted;
use agent_text::edit::{Replacement, replace};
use agent_text::patch::apply::apply;
use agent_text::patch::parse;
use agent_text::shell;
use agent_tools::{Access, Plan};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest message of an error, in characters; it stands on one line of a terminal.
const MESSAGE_CHARS: usize = 1000;

/// A fuzz target by its name, which is also that of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 17] = [
    ("sse", |bytes| frames(Framing::Sse, bytes)),
    ("ndjson", |bytes| frames(Framing::Ndjson, bytes)),
    ("chat_completions", |bytes| answer(WireFormat::ChatCompletions, bytes)),
    ("messages", |bytes| answer(WireFormat::Messages, bytes)),
    ("gemini", |bytes| answer(WireFormat::Gemini, bytes)),
    ("ollama", |bytes| answer(WireFormat::Ollama, bytes)),
    ("responses", |bytes| answer(WireFormat::Responses, bytes)),
    ("error_body", error_body),
    ("embedded_call", embedded),
    ("envelope", |bytes| patched(bytes, None)),
    ("unified_diff", |bytes| patched(bytes, Some("f"))),
    ("edit", edited),
    ("command", command),
    ("policy", policy),
    ("proxy_head", proxy_head),
    ("image", image),
    ("pipeline", pipeline),
];

/// A file is a pipeline, or each of its errors is one short line. A pipeline is the same when it is read again.
fn pipeline(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = || parse_pipeline(&text, &|name| name == "build");
    match read() {
        Err(errors) => errors.iter().for_each(|error| fit_for_a_line(&error.to_string())),
        Ok(pipeline) => {
            assert!(!pipeline.steps.is_empty() && pipeline.changes_since(&read().unwrap()).is_empty());
        }
    }
}

/// An accepted image is within the limits.
fn image(bytes: &[u8]) {
    if let Ok(image) = Image::check("i", bytes) {
        let sides = 1..=MAX_IMAGE_SIDE;
        assert!(
            sides.contains(&image.width) && sides.contains(&image.height) && image.bytes <= MAX_IMAGE_BYTES
        );
        assert!(image.max_tokens() > 0);
    }
}

/// Ways to cut `bytes`: at every byte, and at places that depend on what they say.
fn cuts(bytes: &[u8]) -> [Vec<&[u8]>; 3] {
    let sum = bytes.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let (front, back) = bytes.split_at(sum % (bytes.len() + 1));
    [bytes.chunks(1).collect(), bytes.chunks(2 + sum % 61).collect(), vec![front, back]]
}

/// A stream has the same events, up to the same error, however it is cut.
fn frames(framing: Framing, bytes: &[u8]) {
    let divide = |pieces: &[&[u8]]| -> (Vec<String>, Result<(), FramingError>) {
        let mut decoder = FrameDecoder::new(framing);
        let mut events = Vec::new();
        let read = pieces.iter().try_for_each(|piece| decoder.push(piece, &mut events));
        let ended = read.and_then(|()| decoder.finish(&mut events));
        (events, ended)
    };
    let whole = divide(&[bytes]);
    assert!(whole.0.iter().map(String::len).sum::<usize>() <= bytes.len());
    for pieces in cuts(bytes) {
        assert_eq!(divide(&pieces), whole);
    }
}

/// An answer is the same, and shows the same text, however it is cut; it is an error or it says something usable.
pub fn answer(format: WireFormat, bytes: &[u8]) {
    for streamed in [true, false] {
        let whole = receive(format, streamed, &[bytes]);
        if let (Ok(response), _) = &whole {
            let mut ids: Vec<_> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
            let calls = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert!(ids.len() == calls && ids.first() != Some(&""), "{ids:?}");
        }
        if let (Err(error), _) = &whole {
            fit_for_a_line(&error.message);
        }
        for pieces in cuts(bytes) {
            assert_eq!(receive(format, streamed, &pieces), whole, "{format:?}, streamed: {streamed}");
        }
    }
}

/// What comes of a body that arrives in these pieces, and what was shown.
pub fn receive(format: WireFormat, streamed: bool, pieces: &[&[u8]]) -> (Result<Response, LlmError>, String) {
    let codec = format.codec(Quirks::default());
    let mut shown = String::new();
    let mut show = |progress: Progress<'_>| match progress {
        Progress::Text(text) => shown.push_str(text),
        Progress::Thinking(text) => shown.extend(["<", text, ">"]),
        Progress::Sent { .. } | Progress::Retry { .. } => {}
    };
    let mut answer = ResponseBuilder::new(codec.name(), true, &mut show);
    let mut reader = ResponseReader::new(codec.as_ref(), streamed);
    let made = Cell::new(0);
    let new_id = || {
        made.set(made.get() + 1);
        format!("made_{}", made.get())
    };
    let context = FinishContext {
        is_offered: &|name| name == "read_file",
        is_echo: &|_| false,
        is_structured_answer: &|_| false,
        new_id: &new_id,
    };
    let outcome = pieces
        .iter()
        .try_for_each(|piece| reader.push(piece, &mut answer).map(drop))
        .and_then(|()| reader.finish(&mut answer))
        .and_then(|()| answer.finish(&context));
    (outcome, shown)
}

/// The error of every format and status is one short line, and so is the wait that headers ask for.
fn error_body(bytes: &[u8]) {
    for format in WireFormat::ALL {
        let codec = format.codec(Quirks::default());
        for status in [400, 401, 404, 413, 429, 500, 503] {
            fit_for_a_line(&codec.status_error(status, bytes).message);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let advice = RetryAdvice::from_headers(&|_| Some(&text), Duration::from_secs(1_445_412_481));
    assert_ne!(advice.retry_after, Some(Duration::ZERO));
}

/// A text and a patch, with a NUL byte between them: what can be read names its files, and what fits changes as many lines
/// as it says.
fn patched(bytes: &[u8], path: Option<&str>) {
    let input = String::from_utf8_lossy(bytes);
    let (text, patch) = input.split_once('\0').unwrap_or(("", &input));
    let sections = match parse(patch, path) {
        Ok(sections) => sections,
        Err(error) => return fit_for_a_line(&error.to_string()),
    };
    assert!(!sections.is_empty());
    for section in sections {
        assert!(path.is_none_or(|path| section.path == path));
        let (added, removed) = section.line_counts();
        match apply(text, section.hunks()) {
            Err(error) => fit_for_a_line(&error.to_string()),
            Ok(patched) if !section.hunks().is_empty() => {
                assert_eq!(patched.changed_lines, added + removed);
                // A last line that is empty and has no line break is none.
                let lines = |text: &str| text.split_inclusive('\n').count();
                assert!((lines(&patched.text) + removed).abs_diff(lines(text) + added) <= 1);
            }
            Ok(patched) => assert_eq!(patched.text, text),
        }
    }
}

/// A passage, its new text and a text, with NUL bytes between them: outside of the passage every byte stays.
fn edited(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let mut parts = input.splitn(3, '\0').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let (old, new, text) = (part(), part(), part());
    let edits = [Replacement { old: &old, new: &new }];
    match replace("f", &text, &edits) {
        Err(error) => fit_for_a_line(&error.to_string()),
        Ok(edited) => {
            let front = text.bytes().zip(edited.text.bytes()).take_while(|(a, b)| a == b).count();
            let back = text.bytes().rev().zip(edited.text.bytes().rev()).take_while(|(a, b)| a == b).count();
            let lines = old.lines().count();
            let touched = text.len().saturating_sub(front + back);
            assert!(touched <= old.len() * 4 + 1000, "{touched} bytes for {lines} lines");
            assert_ne!(edited.text, text);
        }
    }
}

/// A call is found in a text only when it names an offered tool and its arguments are an object.
fn embedded(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = embedded_call::find(&text, &|name| name == "read_file");
    assert!(found.is_empty() || embedded_call::is_possible_prefix(&text));
    for call in found {
        assert_eq!(call.name, "read_file");
        assert!(call.arguments.trim_start().starts_with('{'), "{}", call.arguments);
    }
}

fn fit_for_a_line(message: &str) {
    assert!(message.chars().count() <= MESSAGE_CHARS, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

/// A command is no more harmless inside of another one, and what is called safe is understood and redirects nothing.
fn command(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let class = |text: &str| classify(text, &CommandOptions::default()).class;
    let own = class(&text);
    named_files(&text);
    read_targets(&text);
    if own == CommandClass::Safe {
        let script = shell::parse(&text).expect("what is safe is understood");
        let writes = |simple: &shell::SimpleCommand| {
            simple.redirections.iter().any(|redirection| redirection.target.text != "/dev/null")
        };
        assert!(script.is_list && !script.commands.iter().any(|simple| simple.assigns || writes(simple)));
    }
    let is_blocked = |class: &CommandClass| matches!(class, CommandClass::Blocked { .. });
    for around in [format!("sh -c -- {}", quoted(&text)), format!("ls; {text}")] {
        let class = class(&around);
        assert!(
            class >= own || (is_blocked(&class) && is_blocked(&own)),
            "{around:?}: {class:?}, not {own:?}"
        );
    }
}

/// The rules of a person, a tool and what a call of it is about, with NUL bytes between them, the rules as [`rules`] reads them:
/// what decides is a rule that there is, the first that matches; what is denied is denied in every mode and however it is
/// written.
fn policy(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let mut parts = input.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (rules, tool, about) = (rules(part()), part(), part());
    assert!(call_arguments::parse(about).map_or(true, |value| value.is_object()), "{about:?}");
    let Some(policy) = compiled(&rules) else { return };
    let plan = plan(tool, about);
    let ruling = policy.ruling(tool, &plan);
    if let Some(ruling) = &ruling {
        explained(&rules, ruling, tool, &plan);
        let decided = policy.decide(tool, Access::Execute, &plan, None);
        assert!(ruling.action != Action::Deny || matches!(decided, Decision::Deny { .. }), "{decided:?}");
    }
    let all = |action| ruled(&[PolicyRule { action, ..anything() }], tool, &plan).is_some();
    assert_eq!(all(Action::Deny), all(Action::Allow), "all is denied, or there is nothing to deny");
    match (&plan.command, &plan.host) {
        (Some(command), _) if ruling.as_ref().is_some_and(|ruling| ruling.action == Action::Deny) => {
            stays_denied(&policy, tool, command);
        }
        (None, Some(host)) if !host.contains('*') => {
            let named = HostPattern::parse(host).expect("a host that a page has can be named");
            assert!(named.matches(host), "{host}");
        }
        (None, None) if !plan.touched_files.is_empty() && !about.starts_with('/') => {
            for again in [format!("./{about}"), about.to_ascii_uppercase()] {
                assert_eq!(policy.ruling(tool, &Plan::file(&again, true)), ruling, "{again:?}");
            }
        }
        _ => {}
    }
}

/// The rule that is said to decide does what is said, decides whatever comes behind it, and is the first that matches.
fn explained(rules: &[PolicyRule], ruling: &Ruling, tool: &str, plan: &Plan) {
    let number = ruling.rule.strip_prefix("policy.rules[").and_then(|rest| rest.strip_suffix(']'));
    let index: usize = number.and_then(|number| number.parse().ok()).expect("the name of a rule");
    assert_eq!((ruling.action, &ruling.reason), (rules[index].action, &rules[index].reason), "{ruling:?}");
    // A command may be allowed by several rules together.
    if plan.command.is_none() || ruling.action != Action::Allow {
        assert_eq!(
            ruled(&rules[..=index], tool, plan).as_ref(),
            Some(ruling),
            "what comes behind decides nothing"
        );
        let alone = ruled(&rules[index..=index], tool, plan).map(|alone| alone.action);
        assert_eq!(alone, Some(ruling.action), "{ruling:?} matches on its own");
    }
    if plan.command.is_none() {
        assert_eq!(ruled(&rules[..index], tool, plan), None, "{ruling:?} is the first");
    }
}

/// What runs a denied command in its turn is denied as well.
fn stays_denied(policy: &Policy, tool: &str, command: &str) {
    let text = quoted(command);
    for around in [
        format!("sh -c -- {text}"),
        format!("ls; {command}"),
        format!("env A=1 timeout 5 nice bash -ec -- {text} name"),
        format!("eval {text} >out 2>&1 && ls"),
        format!("if true; then echo \"$(sh -c -- {text} | wc)\"; fi &"),
    ] {
        let ruling = policy.ruling(tool, &Plan { command: Some(around.clone()), ..Plan::default() });
        assert_eq!(ruling.map(|ruling| ruling.action), Some(Action::Deny), "{around:?}");
    }
}

/// A policy of these rules and nothing else, in the mode that asks nothing; none where one of them cannot be compiled, which is
/// said with its number.
fn compiled(rules: &[PolicyRule]) -> Option<Policy> {
    let made = Policy::new(PolicyOptions {
        mode: Mode::Yolo,
        agent: "build".to_owned(),
        allowed_tools: Vec::new(),
        protected_files: Vec::new(),
        sensitive_files: Vec::new(),
        blocked_commands: Vec::new(),
        allowed_only: false,
        trusts_sandbox: true,
        auto: AutoScope::default(),
        rules: rules.to_vec(),
        missing_grants: BTreeMap::new(),
        root: "/srv/shop".to_owned(),
        language: Language::En,
    });
    let error = match made {
        Ok(policy) => return Some(policy),
        Err(error) => error.to_string(),
    };
    let is_named = |index: usize| error.starts_with(&format!("policy.rules[{index}]: "));
    assert!((0..rules.len()).any(is_named), "{error}");
    None
}

fn ruled(rules: &[PolicyRule], tool: &str, plan: &Plan) -> Option<Ruling> {
    compiled(rules).and_then(|policy| policy.ruling(tool, plan))
}

/// A rule that matches everything.
fn anything() -> PolicyRule {
    PolicyRule {
        action: Action::Allow,
        tool: None,
        path: None,
        command: None,
        host: None,
        agent: None,
        confined: None,
        reason: None,
    }
}

/// The rules of a text, one on a line: the action, and then keys and values, with tabs between them. At most eight: more are
/// slow and show no more.
fn rules(text: &str) -> Vec<PolicyRule> {
    let rule = |line: &str| {
        let mut fields = line.split('\t');
        let action = match fields.next() {
            Some("deny") => Action::Deny,
            Some("ask") => Action::Ask,
            _ => Action::Allow,
        };
        let mut rule = PolicyRule { action, ..anything() };
        while let (Some(key), Some(value)) = (fields.next(), fields.next()) {
            let field = match key {
                "tool" => &mut rule.tool,
                "path" => &mut rule.path,
                "command" => &mut rule.command,
                "host" => &mut rule.host,
                "agent" => &mut rule.agent,
                _ => &mut rule.reason,
            };
            *field = Some(value.to_owned());
        }
        rule
    };
    text.lines().take(8).map(rule).collect()
}

/// What a call of `tool` would do that is about one thing, as `agent policy test` takes it.
fn plan(tool: &str, about: &str) -> Plan {
    match tool {
        "run_command" => Plan { command: Some(about.to_owned()), ..Plan::default() },
        "web_fetch" => {
            let host =
                page_url::parse_page_url(about).ok().and_then(|page| page.host_str().map(str::to_owned));
            Plan { host, ..Plan::default() }
        }
        _ => Plan::file(about, true),
    }
}

/// The head of a request to the proxy of commands: what passes names one host in strict form, and is decided by its own bytes.
fn proxy_head(bytes: &[u8]) {
    let Ok(Some(found)) = head::parse(bytes) else { return };
    assert_eq!(host_name(&found.host), Some(found.host.clone()));
    assert!(found.port > 0 && found.length <= bytes.len());
    assert_eq!(head::parse(&bytes[..found.length]).unwrap().unwrap(), found);
    for end in 0..found.length {
        assert!(!matches!(head::parse(&bytes[..end]), Ok(Some(_))), "a part of a head passes");
    }
    if let Some(sent) = found.head {
        assert_eq!(sent.matches("\r\n\r\n").count(), 1);
        assert_eq!(sent.to_ascii_lowercase().matches("\r\nhost:").count(), 1);
    }
}
