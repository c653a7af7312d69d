//! Hooks of the client as control requests: `hook_callback`.

use super::args::PermissionMode;
use super::outbox::Answer;
use super::questions::Questioner;
use agent_config::claude_names::names;
use agent_engine::hooks::{ClientHookAnswer, ClientHooks, HookEvent, HookInput, Refusal};
use agent_messages as messages;
use agent_report::claude::{ShownCall, informational};
use agent_runtime::clock::Clock;
use futures_util::future::LocalBoxFuture;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Time limit of a callback without one, and the longest, in seconds.
const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 600;
/// Maximum bytes of a compiled matcher.
const MAX_MATCHER_BYTES: usize = 1 << 20;
/// Events that are fired.
const EVENTS: [&str; 5] = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit"];
/// Events that are not fired and could refuse something.
const REFUSED_EVENTS: [&str; 4] =
    ["PermissionRequest", "Elicitation", "PreModelSwitch", "UserPromptExpansion"];

/// Hooks by the name of their event.
pub type Registered = BTreeMap<String, Vec<Matcher>>;

/// Callbacks for some tools.
#[derive(Debug)]
pub struct Matcher {
    /// The tools; absent: all.
    tools: Option<Regex>,
    callbacks: Vec<String>,
    timeout: Duration,
}

/// The same as a client sends it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentMatcher {
    matcher: Option<String>,
    hook_callback_ids: Vec<String>,
    timeout: Option<f64>,
}

/// Reads the hooks of `initialize`; returns also the events that are not fired.
///
/// # Errors
/// For an event that could refuse something and is not fired, and for an invalid matcher.
pub fn registered(hooks: &Value) -> Result<(Registered, Vec<String>), String> {
    let (mut found, mut ignored) = (Registered::new(), Vec::new());
    for (event, matchers) in hooks.as_object().into_iter().flatten() {
        if REFUSED_EVENTS.contains(&event.as_str()) {
            return Err(messages::claude_field_refused(&format!("hooks.{event}")));
        }
        if !EVENTS.contains(&event.as_str()) {
            ignored.push(event.clone());
            continue;
        }
        let sent: Vec<SentMatcher> =
            serde_json::from_value(matchers.clone()).map_err(|error| error.to_string())?;
        let matchers = sent.into_iter().map(Matcher::new).collect::<Result<_, _>>()?;
        found.insert(event.clone(), matchers);
    }
    Ok((found, ignored))
}

impl Matcher {
    fn new(sent: SentMatcher) -> Result<Self, String> {
        let pattern = sent.matcher.filter(|text| !["", "*"].contains(&text.as_str()));
        let compiled = pattern
            .map(|text| RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_MATCHER_BYTES).build())
            .transpose();
        let seconds = sent.timeout.map_or(DEFAULT_SECONDS, whole_seconds);
        Ok(Self {
            tools: compiled.map_err(|error| error.to_string())?,
            callbacks: sent.hook_callback_ids,
            timeout: Duration::from_secs(seconds.clamp(1, MAX_SECONDS)),
        })
    }

    /// Checks whether it applies to the tool `ours`.
    fn fits(&self, ours: Option<&str>) -> bool {
        let matches =
            |regex: &Regex| ours.is_some_and(|ours| names().meanings(ours).any(|name| regex.is_match(name)));
        self.tools.as_ref().is_none_or(matches)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and the value is bounded after it"
)]
fn whole_seconds(seconds: f64) -> u64 {
    seconds as u64
}

/// Calls the hooks of the client.
pub struct Callbacks {
    /// The hooks.
    pub hooks: Rc<Registered>,
    /// The way to the client.
    pub questioner: Questioner,
    /// Measures the time of answers.
    pub clock: Rc<Clock>,
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callbacks").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

impl ClientHooks for Callbacks {
    fn has(&self, event: HookEvent) -> bool {
        names_of(event).iter().any(|name| self.hooks.contains_key(*name))
    }

    fn call<'a>(&'a self, event: HookEvent, input: &'a HookInput) -> LocalBoxFuture<'a, ClientHookAnswer> {
        Box::pin(async move {
            let started = self.clock.elapsed();
            let answer = self.answer(event, input).await;
            ClientHookAnswer { duration: self.clock.elapsed().saturating_sub(started), ..answer }
        })
    }
}

/// Returns the events there that an event here may be.
fn names_of(event: HookEvent) -> &'static [&'static str] {
    match event {
        HookEvent::PreToolUse => &["PreToolUse"],
        HookEvent::PostToolUse => &["PostToolUse", "PostToolUseFailure"],
        HookEvent::AgentComplete => &["Stop"],
        _ => &[],
    }
}

impl Callbacks {
    async fn answer(&self, event: HookEvent, input: &HookInput) -> ClientHookAnswer {
        let name = match (event, input.tool_success) {
            (HookEvent::PostToolUse, Some(false)) => "PostToolUseFailure",
            (event, _) => names_of(event).first().copied().unwrap_or_default(),
        };
        let tool = input.tool_name.as_deref();
        let arguments = input.tool_input.clone().unwrap_or_default();
        let key = input.call.clone().unwrap_or_default();
        let mut call = tool.map(|tool| self.questioner.shown(&key, tool, &arguments));
        let mut combined = ClientHookAnswer::default();
        for (id, timeout) in self.callbacks(name, tool) {
            let answer =
                self.callback(&id, timeout, &self.document(name, call.as_ref(), input), call.as_ref()).await;
            match (event, answer) {
                (HookEvent::PreToolUse, answer) => {
                    self.before_call(answer, input, &mut call, &mut combined).await;
                }
                (HookEvent::AgentComplete, Ok(answer))
                    if matches!(refusal(&answer), Ok(Some(Refusal::Block(_)))) =>
                {
                    self.questioner.outbox.message(informational(messages::CLAUDE_STOP_HOOK));
                }
                (_, Ok(answer)) => after_call(&answer, event, &mut combined),
                (_, Err(why)) => {
                    self.questioner.outbox.message(informational(&messages::claude_hook_failed(&why)));
                }
            }
            if combined.block.is_some() || combined.stop.is_some() {
                break;
            }
        }
        combined.is_approved &= self.questioner.permissions.mode() != PermissionMode::Plan;
        combined
    }

    /// Asks the hooks whether a message may be sent; returns texts for the model.
    ///
    /// # Errors
    /// Why it may not.
    pub async fn prompt(&self, text: &str) -> Result<Vec<String>, String> {
        const EVENT: &str = "UserPromptSubmit";
        let mut context = Vec::new();
        for (id, timeout) in self.callbacks(EVENT, None) {
            let mut input = self.document(EVENT, None, &HookInput::default());
            input["prompt"] = text.into();
            let answer = self.callback(&id, timeout, &input, None).await?;
            if let Some(refusal) = refusal(&answer).map_err(|why| messages::claude_hook_failed(&why))? {
                return Err(refusal.stated_reason().unwrap_or(messages::CLAUDE_PROMPT_BLOCKED).to_owned());
            }
            context.extend(additional(&answer));
        }
        Ok(context)
    }

    fn callbacks(&self, event: &str, tool: Option<&str>) -> Vec<(String, Duration)> {
        let matchers = self.hooks.get(event).into_iter().flatten().filter(|matcher| matcher.fits(tool));
        matchers.flat_map(|it| it.callbacks.iter().map(|id| (id.clone(), it.timeout))).collect()
    }

    async fn callback(&self, id: &str, timeout: Duration, input: &Value, call: Option<&ShownCall>) -> Answer {
        let mut request = json!({"subtype": "hook_callback", "callback_id": id, "input": input});
        if let Some(call) = call {
            request["tool_use_id"] = call.id.as_str().into();
        }
        let answer = tokio::time::timeout(timeout, self.questioner.outbox.request(request)).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {} s", timeout.as_secs())))
    }

    fn document(&self, event: &str, call: Option<&ShownCall>, input: &HookInput) -> Value {
        let Questioner { outbox, permissions, root, .. } = &self.questioner;
        let mut document = json!({"hook_event_name": event, "session_id": *outbox.session_id.borrow(),
            "transcript_path": "", "cwd": root, "permission_mode": permissions.mode().name()});
        if let Some(call) = call {
            document["tool_name"] = call.name.as_str().into();
            document["tool_input"] = call.input.clone();
            document["tool_use_id"] = call.id.as_str().into();
        }
        if let Some(output) = &input.tool_output {
            let field = if event == "PostToolUseFailure" { "error" } else { "tool_response" };
            document[field] = output.as_str().into();
        }
        if event == "Stop" {
            document["stop_hook_active"] = false.into();
        }
        document
    }

    /// Applies the answer of a hook before a call. One that fails or is not understood blocks the call.
    async fn before_call(
        &self,
        answer: Answer,
        input: &HookInput,
        call: &mut Option<ShownCall>,
        combined: &mut ClientHookAnswer,
    ) {
        let understood = answer.and_then(|answer| Ok((refusal(&answer)?, answer)));
        let (refusal, answer) = match understood {
            Ok(understood) => understood,
            Err(why) => {
                combined.block = Some(messages::claude_hook_failed(&why));
                return;
            }
        };
        after_call(&answer, HookEvent::PreToolUse, combined);
        let specific = &answer["hookSpecificOutput"];
        if let (Some(call), Some(tool), updated @ Value::Object(_)) =
            (call.as_mut(), &input.tool_name, &specific["updatedInput"])
        {
            call.input.clone_from(updated);
            combined.updated_input = Some(names().arguments_here(tool, updated));
            // An earlier hook has approved other arguments.
            combined.is_approved = false;
        }
        match (refusal, call) {
            (None, _) if specific["permissionDecision"].is_null() => {}
            (None, _) => combined.is_approved = true,
            (Some(refusal @ Refusal::Ask(_)), Some(call)) => {
                match self.questioner.confirm(call, refusal.reason()).await {
                    Ok(()) => combined.is_approved = true,
                    Err(why) => combined.block = Some(why),
                }
            }
            (Some(_), _) => {}
        }
    }
}

/// Reads the refusal in an answer; an answer may be empty.
fn refusal(answer: &Value) -> Result<Option<Refusal>, String> {
    match answer {
        Value::Null => Ok(None),
        Value::Object(fields) => Refusal::read(fields),
        _ => Err("the answer is not an object".to_owned()),
    }
}

/// Applies what an answer may contain for each event.
fn after_call(answer: &Value, event: HookEvent, combined: &mut ClientHookAnswer) {
    let refusal = refusal(answer).ok().flatten().filter(|_| event.can_block());
    match &refusal {
        Some(refusal @ Refusal::Stop(_)) => combined.stop = Some(refusal.reason().to_owned()),
        Some(refusal @ Refusal::Block(_)) => combined.block = Some(refusal.reason().to_owned()),
        Some(Refusal::Ask(_)) | None => {}
    }
    if let Some(text) = additional(answer) {
        let context = combined.context.get_or_insert_default();
        let gap = if context.is_empty() { "" } else { "\n" };
        context.extend([gap, &text]);
    }
}

fn additional(answer: &Value) -> Option<String> {
    answer["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_could_refuse_are_honoured_or_refused_and_others_are_named() {
        let matcher = json!([{"matcher": "Write|mcp__.*", "hookCallbackIds": ["a"], "timeout": 0.5}]);
        let (hooks, ignored) = registered(&json!({"PreToolUse": matcher, "SessionStart": matcher})).unwrap();
        let [pre] = hooks["PreToolUse"].as_slice() else { panic!("{hooks:?}") };
        assert_eq!((pre.timeout, ignored), (Duration::from_secs(1), vec!["SessionStart".to_owned()]));
        for (tool, fits) in
            [("write_file", true), ("apply_patch", true), ("mcp__s__t", true), ("read_file", false)]
        {
            assert_eq!(pre.fits(Some(tool)), fits, "{tool}");
        }
        assert!(registered(&json!({"PermissionRequest": matcher})).is_err());
        assert!(registered(&json!({"PreToolUse": [{"matcher": "(", "hookCallbackIds": []}]})).is_err());
        assert!(registered(&json!({"PreToolUse": [{"hookCallbackIds": "x"}]})).is_err());
    }

    #[test]
    fn what_an_answer_says_for_all_events_is_applied_where_it_can_be() {
        let mut combined = ClientHookAnswer::default();
        after_call(
            &json!({"decision": "block", "hookSpecificOutput": {"additionalContext": "x"}}),
            HookEvent::PostToolUse,
            &mut combined,
        );
        assert_eq!(combined.block.as_deref(), Some("the hook gave no reason"));
        assert_eq!(combined.context.as_deref(), Some("x"));
        let mut combined = ClientHookAnswer::default();
        after_call(&json!({"continue": false, "stopReason": "enough"}), HookEvent::PreToolUse, &mut combined);
        assert_eq!(combined.stop.as_deref(), Some("enough"));
        after_call(&json!({"decision": "block"}), HookEvent::AgentComplete, &mut combined);
        assert_eq!(combined.block, None);
        // Fault A11: only the exact words `block` and `deny` of one field each were refusals.
        for answer in [json!({"decision": "deny"}), json!({"decision": "Block"})] {
            let mut combined = ClientHookAnswer::default();
            after_call(&answer, HookEvent::PreToolUse, &mut combined);
            assert!(combined.block.is_some(), "{answer}");
        }
        for answer in [json!("deny"), json!([]), json!({"decision": "no"}), json!({"continue": 0})] {
            assert!(refusal(&answer).is_err(), "{answer}");
        }
    }
}
