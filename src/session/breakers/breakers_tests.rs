//! Tests of the breakers alone, with scripted answers.

use super::*;
use agent_core::file_change::{Change, ChangeAction, ChangedBy};
use agent_core::message::{Part, Role, ToolCall, ToolResult};
use proptest::prelude::*;

/// A scripted model.
struct Model {
    breakers: Breakers,
    limits: BreakerLimits,
    calls: usize,
    /// Content of the file that it writes.
    content: String,
}

/// A call: tool, arguments and result. A result with a leading `!` is an error; an edit is the content it leaves.
type Made<'a> = (&'a str, &'a str, &'a str);

impl Model {
    fn new(limits: BreakerLimits) -> Self {
        let mut model = Self { breakers: Breakers::default(), limits, calls: 0, content: "first".into() };
        model.apply(&Event::RunStart {
            agent: "build".into(),
            model: "m".into(),
            mode: "yolo".into(),
            tools: vec!["write_file".into()],
            mcp_tools: BTreeMap::new(),
            max_steps: 1,
            resumed: false,
            sandbox: String::new(),
            bounds: None,
        });
        model
    }

    fn apply(&mut self, event: &Event) {
        self.breakers.apply(event, &self.limits);
    }

    fn respond(&mut self, parts: Vec<Part>, finish: FinishReason) {
        let message = Message { role: Role::Assistant, parts };
        let purpose = Purpose::Step;
        let usage = None;
        self.apply(&Event::ModelResponse { purpose, message, finish, usage, cost_usd: None, latency_ms: 0 });
    }

    /// Answers with a text without calls; returns the reaction.
    fn says(&mut self, text: &str) -> Option<AnswerAction> {
        self.respond(vec![Part::Text { text: text.into() }], FinishReason::Stop);
        self.breakers.answer_action(&self.limits)
    }

    /// Answers with these calls; returns which of them ran.
    fn makes(&mut self, made: &[Made<'_>]) -> Vec<bool> {
        let calls: Vec<ToolCall> = made.iter().map(|(tool, asks, _)| self.call(tool, asks)).collect();
        self.respond(calls.iter().cloned().map(Part::ToolCall).collect(), FinishReason::ToolCalls);
        let ran: Vec<bool> = calls.iter().map(|call| self.breakers.refusal(&call.id).is_none()).collect();
        for ((call, (.., gives)), ran) in calls.iter().zip(made).zip(&ran) {
            self.apply(&ended(call, if *ran { gives } else { "!refused" }, &self.content));
            if call.name == "write_file" {
                (*gives).clone_into(&mut self.content);
            }
        }
        ran
    }

    /// Makes the same call this many times, one per answer; returns which of them ran.
    fn repeats(&mut self, made: Made<'_>, times: usize) -> Vec<bool> {
        (0..times).flat_map(|_| self.makes(&[made])).collect()
    }

    /// Returns the first word of the due warning, which is then added, or the stop reason.
    fn next_warning(&mut self) -> String {
        let warning = self.breakers.warning();
        if let Some(text) = &warning {
            self.apply(&Event::user_message(text.clone(), MessageOrigin::Breaker));
        }
        let warning =
            warning.map(|text| text.trim_start_matches("[SYSTEM] ").split(' ').next().unwrap().to_owned());
        warning.or(self.breakers.stop_reason().map(|reason| reason.to_string())).unwrap_or_default()
    }

    fn call(&mut self, tool: &str, asks: &str) -> ToolCall {
        self.calls += 1;
        let arguments = serde_json::json!({"asks": asks}).to_string();
        ToolCall::new(format!("c{}", self.calls), tool, arguments)
    }
}

fn ended(call: &ToolCall, gives: &str, before: &str) -> Event {
    let change = |content: &str| Change {
        path: "f".into(),
        action: ChangeAction::Modified,
        by: ChangedBy::Tool,
        before: Some(before.into()),
        after: Some(content.into()),
        before_mode: None,
        after_mode: None,
        directories: 0,
    };
    Event::tool_not_run(
        call.name.clone(),
        String::new(),
        ToolResult {
            call_id: call.id.clone(),
            text: gives.into(),
            is_error: gives.starts_with('!'),
            images: Vec::new(),
        },
        (call.name == "write_file").then(|| change(gives)).into_iter().collect(),
    )
}

fn repeated(repeated_calls: u32) -> BreakerLimits {
    BreakerLimits { repeated_calls, ..BreakerLimits::default() }
}

const A: Made<'static> = ("read_file", "a", "alpha");
const B: Made<'static> = ("read_file", "b", "beta");

#[test]
fn l23_a_call_that_was_refused_runs_again_after_another() {
    let mut model = Model::new(repeated(3));
    assert_eq!(model.repeats(A, 5), [true, true, false, false, false]);
    assert_eq!(model.makes(&[A, B, A]), [false, true, true]);
    assert_eq!(model.repeats(A, 2), [true, false]);
    assert_eq!(Model::new(repeated(1)).repeats(A, 2), [true, false]);
    assert_eq!(Model::new(repeated(0)).repeats(A, 9), [true; 9]);
}

#[test]
fn l23_another_result_begins_anew() {
    let mut model = Model::new(repeated(3));
    assert_eq!(model.repeats(A, 2), [true, true]);
    let mut model = Model::new(repeated(3));
    model.makes(&[A]);
    let other = ("read_file", "a", "other");
    assert_eq!(model.repeats(other, 3), [true, true, false]);
}

#[test]
fn l23_what_waits_or_fails_for_reasons_that_go_by_themselves_may_repeat_ten_times_as_often() {
    for made in [("command_output", "bg1", "nothing"), ("fetch", "x", "!Connection refused")] {
        let ran = Model::new(repeated(3)).repeats(made, 31);
        assert_eq!(ran.iter().filter(|ran| **ran).count(), 29, "{made:?}");
    }
}

#[test]
fn l28_a_call_that_repeats_one_that_failed_has_failed_too() {
    let limits = |consecutive_errors| BreakerLimits { consecutive_errors, ..repeated(3) };
    let fails = ("read_file", "none", "!no such file");
    let mut model = Model::new(limits(3));
    assert_eq!(model.repeats(fails, 3), [true, true, false]);
    assert_eq!(model.next_warning(), "consecutive_errors");
    let mut model = Model::new(limits(3));
    model.repeats(A, 9);
    assert_eq!(model.next_warning(), "repeated_call", "one that went well has not");
    let mut model = Model::new(limits(5));
    model.repeats(fails, 5);
    assert_eq!(model.next_warning(), "repeated_call", "what it is told for comes first");
}

#[test]
fn l24_calls_of_one_answer_are_taken_to_give_the_same() {
    assert_eq!(Model::new(repeated(2)).makes(&[A, A, A]), [true, false, false]);
    assert_eq!(Model::new(repeated(3)).makes(&[A, B, A, A, B]), [true; 5]);
}

#[test]
fn l27_the_call_that_ends_the_third_round_is_refused() {
    let limits = |repeat_window| BreakerLimits { repeat_window, ..BreakerLimits::default() };
    for (length, window, refused) in
        [(2, 6, true), (3, 9, true), (4, 12, true), (4, 11, false), (2, 5, false)]
    {
        let asks: Vec<String> = (0..length).map(|n| n.to_string()).collect();
        let mut model = Model::new(limits(window));
        let mut rounds =
            || -> Vec<bool> { asks.iter().flat_map(|ask| model.makes(&[("read_file", ask, ask)])).collect() };
        assert_eq!((rounds(), rounds()), (vec![true; length], vec![true; length]));
        let mut third = vec![true; length];
        *third.last_mut().unwrap() = !refused;
        assert_eq!(rounds(), third, "{length} in {window}");
    }
    let mut model = Model::new(limits(12));
    assert_eq!(model.repeats(A, 12), [true; 12], "equal calls in a row are no round");
    let mut model = Model::new(limits(12));
    let ran: Vec<bool> =
        (0..12).flat_map(|n| model.makes(&[A, ("read_file", "b", &n.to_string())])).collect();
    assert_eq!(ran, [true; 24], "what one of them gives is another thing each time");
}

#[test]
fn patterns_lead_to_a_warning_a_last_warning_and_the_end() {
    let mut model = Model::new(repeated(2));
    let warning: Vec<String> = (0..4)
        .map(|_| {
            model.makes(&[A]);
            model.next_warning()
        })
        .collect();
    assert_eq!(warning, ["", "You", "Your", "repeated_call"]);
    let mut model = Model::new(BreakerLimits { on_repeat: OnRepeat::Stop, ..repeated(2) });
    model.repeats(A, 2);
    assert_eq!(model.next_warning(), "repeated_call");
}

#[test]
fn escalation_resets_after_fifteen_answers() {
    for (answers, warning) in [(14, "Your"), (15, "You")] {
        let mut model = Model::new(repeated(2));
        model.repeats(A, 2);
        assert_eq!(model.next_warning(), "You");
        for n in 1..answers {
            model.makes(&[("read_file", &n.to_string(), "new")]);
            assert_eq!(model.next_warning(), "");
        }
        model.repeats(A, 1);
        assert_eq!((model.next_warning().as_str(), model.makes(&[A])), ("", vec![false]));
        assert_eq!(model.next_warning(), warning);
    }
}

#[test]
fn same_errors_count_until_the_tool_succeeds_or_a_file_changes() {
    let limits = BreakerLimits { same_errors: 3, ..BreakerLimits::default() };
    let fails = |n: &'static str| ("edit_file", n, "!The passage was not found.");
    let after = |between: Made<'_>| {
        let mut model = Model::new(limits.clone());
        for made in [fails("1"), A, fails("2"), between, fails("3")] {
            model.makes(&[made]);
        }
        model.next_warning()
    };
    assert_eq!(after(B), "You");
    assert_eq!(after(("edit_file", "x", "done")), "");
    assert_eq!(after(("write_file", "x", "new")), "");
    assert_eq!(
        after(("read_file", "x", "!The passage was not found.")),
        "You",
        "other tools fail for themselves"
    );
    let mut model = Model::new(limits.clone());
    model.makes(&[fails("1"), fails("2"), fails("3"), fails("4")]);
    assert_eq!(model.next_warning(), "", "calls of one answer count once");
}

#[test]
fn same_results_count_when_long_and_from_other_arguments_in_other_answers() {
    let long = "the same line of many words ".repeat(10);
    let limits = BreakerLimits { same_results: 3, ..BreakerLimits::default() };
    let after = |made: &[Made<'_>]| {
        let mut model = Model::new(limits.clone());
        for one in made {
            model.makes(&[*one]);
        }
        model.next_warning()
    };
    let [one, two, three] = ["1", "2", "3"].map(|asks| ("grep", asks, long.as_str()));
    assert_eq!(after(&[one, A, two, three]), "You");
    assert_eq!(after(&[one, two, two, one]), "", "equal calls are another pattern");
    assert_eq!(after(&[one, two, ("grep", "x", "other"), three]), "");
    assert_eq!(after(&[one, two, ("write_file", "x", "new"), three]), "");
    assert_eq!(after(&["1", "2", "3"].map(|asks| ("grep", asks, "none"))), "");
    let mut model = Model::new(limits.clone());
    model.makes(&[one, two, three]);
    assert_eq!(model.next_warning(), "", "calls of one answer count once");
}

#[test]
fn reverted_edits_count_until_the_file_has_new_contents() {
    let limits = BreakerLimits { reverted_edits: 2, ..BreakerLimits::default() };
    let after = |contents: &[&str]| {
        let mut model = Model::new(limits.clone());
        for (n, content) in contents.iter().enumerate() {
            model.makes(&[("write_file", &n.to_string(), content)]);
        }
        model.next_warning()
    };
    assert_eq!(after(&["second", "third", "second"]), "");
    assert_eq!(after(&["second", "third", "second", "third"]), "You");
    assert_eq!(after(&["second", "first", "second"]), "You", "what was there at first counts too");
    assert_eq!(after(&["second", "third", "second", "fourth", "third"]), "");
}

#[test]
fn repeated_texts_count_above_a_minimum_length() {
    let limits = BreakerLimits { repeated_texts: 2, ..BreakerLimits::default() };
    let long = "This is what I have found out about the failing test.";
    let mut model = Model::new(limits.clone());
    assert_eq!((model.says(long), model.says(&long.to_uppercase())), (None, Some(AnswerAction::End)));
    let mut model = Model::new(limits.clone());
    assert_eq!((model.says("Done."), model.says("Done.")), (None, None));
    let mut model = Model::new(limits);
    model.says(long);
    model.makes(&[A]);
    assert_eq!(model.says(long), None, "something was done in between");
}

#[test]
fn announcements_are_followed_up_to_the_limit_which_a_call_resets() {
    let limits = BreakerLimits { announcements: 1, ..BreakerLimits::default() };
    let mut model = Model::new(limits);
    let announce = |model: &mut Model| {
        let reply = model.says("Now let me fix it:");
        model.apply(&Event::user_message("", MessageOrigin::Breaker));
        reply
    };
    assert_eq!(
        (announce(&mut model), announce(&mut model)),
        (Some(AnswerAction::AskToAct), Some(AnswerAction::End))
    );
    model.makes(&[A]);
    assert_eq!(announce(&mut model), Some(AnswerAction::AskToAct));
    assert_eq!(model.says("It is fixed."), None);
}

proptest! {
    #[test]
    fn different_calls_are_never_refused(asks in proptest::collection::vec(0..3_u8, 1..60)) {
        let mut model = Model::new(BreakerLimits { repeat_window: 12, same_results: 4, ..repeated(3) });
        for (n, ask) in asks.iter().enumerate() {
            let ran = model.makes(&[("read_file", &ask.to_string(), &format!("result {n}"))]);
            prop_assert_eq!((ran, model.next_warning()), (vec![true], String::new()));
        }
    }

    #[test]
    fn l30_nothing_is_disturbed_that_is_off(asks in proptest::collection::vec((0..3_u8, 0..3_u8), 1..40)) {
        let mut model = Model::new(BreakerLimits::default());
        for (ask, gives) in asks {
            let gives = ["same", "!error", "!Connection refused"][usize::from(gives)];
            let ran = model.makes(&[("write_file", &ask.to_string(), gives)]);
            prop_assert_eq!((ran, model.next_warning()), (vec![true], String::new()));
            prop_assert_eq!(model.says("Now let me fix it:"), None);
        }
    }

    #[test]
    fn repetitions_end_within_the_limits(asks in proptest::collection::vec(0..3_u8, 2..5)) {
        let mut model = Model::new(BreakerLimits { repeat_window: 12, ..repeated(3) });
        let mut warning = String::new();
        for ask in asks.iter().cycle().take(60) {
            model.makes(&[("read_file", &ask.to_string(), "the same")]);
            warning = model.next_warning();
            if warning == "repeated_call" {
                break;
            }
        }
        prop_assert_eq!(warning, "repeated_call");
    }
}
