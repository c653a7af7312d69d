//! Every text for people, and the few the loop itself says to the model: one place to read, correct and translate.

mod approvals;
mod background;
mod breakers;
mod closing;
mod compaction;
mod ended;
mod ending;
mod evaluation;
mod events;
mod figures;
mod gates;
mod guardrails;
mod home;
mod limits;
mod log;
mod model;
mod money;
mod preparation;
mod prompt;
mod records;
mod refusals;
mod replay;
mod report;
mod resumed;
mod sandbox;
mod structured;
mod subagents;
mod trust;
mod undo;
mod workspace;

pub use approvals::{
    HOW_TO_ANSWER, NOTHING_WAITS, UNANSWERED, ago, answer_in_words, answered, asked, no_seal,
    nothing_waits_under, then_resume,
};
pub use background::{
    background_disturbed, background_end, background_ended, background_gone, background_start,
};
pub use breakers::{
    ANNOUNCED, back_and_forth, call_repeats, errors_in_a_row, goes_nowhere, must_change, same_call,
    same_error, same_result, same_round, told_of_standstill,
};
pub use closing::{
    CALLS_USED_UP, CHANGES_NEVER_LISTED, CHANGES_NOT_LISTED, CONTINUE, GO_ON, OUTCOME_UNKNOWN,
    arguments_changed, call_out_of_time, hook_context, leftover_kept, little_left, money_left, time_left,
    tokens_left, too_many_calls,
};
pub use compaction::{
    LEFT_OUT, SUMMARY_HEADING, SUMMARY_INSTRUCTIONS, compaction, compaction_level, mechanical_summary,
    output_shortened, summary_request, tools_fill_window,
};
pub use ended::{Ending, dry_run_plan, more_planned, nothing_planned};
pub use ending::{closing_instruction, fixed_closing, reason_in_words};
pub use evaluation::{
    EVALUATION_BROKEN_OFF, EVALUATION_LATE, EVALUATION_UNAFFORDABLE, EVALUATION_UNREADABLE, best_answer,
    evaluation, evaluation_request, evaluator, findings, found_wanting,
};
pub use events::{
    history_given, offered, request_sent, session_place, spinner_model, spinner_tool, system_message,
    user_message,
};
pub use figures::{bytes, count, duration, thousands};
pub use gates::{gate, gates_failed};
pub use guardrails::{ANSWER_WITHHELD, guardrail, withheld};
pub use home::{ANOTHER_HOME, home_unusable};
pub use limits::{
    Changed, code_rule_blocks, commands_changed_too_much, not_tested, too_many_commands, too_many_files,
    too_many_lines,
};
pub use log::{Form, Retry, Session};
pub use model::{
    MODEL_NOT_READY, after_fallback, broken_off, context_overflow, marker_echoed, model_switched,
};
pub use money::{budget_warning, cache_lost, costs, kept_answer, money, prefix_changed, tokens};
pub use preparation::{git_diff, git_diff_unknown, no_git_diff, no_plan, plan};
pub use prompt::{
    lasting_call, lasting_files, lasting_host, leads_elsewhere, line_cut, more_links, preview_cut,
    prompt_choices, prompt_lasting, prompt_reason, prompt_title,
};
pub use records::{
    LOG_LEVELS, answer_not_written, interrupting, journal_damaged, journal_incomplete, log_file_lost,
    panicked, state_not_kept, state_unusable, text_missing,
};
pub use refusals::{
    asked_by_rule, cannot_wait, command_blocked, command_never_runs, command_not_known, denied_by_rule,
    hook_blocked, links_changed, nobody_answers, not_executed, not_what_was_approved, other_arguments,
    other_file, other_places, other_question, other_tool, protected_file, said_no, sensitive_file,
    stopped_by_hook, tool_not_allowed, would_execute, would_fail,
};
pub use replay::{
    CUT_SHORT, DID_NOT_RUN, NOT_HELD, NOTHING_TO_REPLAY, OF_A_MOMENT, OF_A_SUBAGENT, OF_THE_WEB,
    REPLAY_ASKS_ELSE, REPLAY_INTERRUPTED, REPLAY_LATER_VERSION, REPLAY_REFUSED, REPLAYED_CUT_OFF,
    STATE_LEFT_OUT, replay_brought, replay_caches, replay_call, replay_copy, replay_difference,
    replay_inside, replay_left_out, replay_lost, replay_no_copy, replay_other_result, replayed,
    replayed_calls, replayed_differs, replayed_lacks, replayed_run, replayed_same, replayed_unknown,
};
pub use report::{REPORT_FORMS, given_up, report_elsewhere, report_lost};
pub use resumed::{goes_on_otherwise, other_now, other_tools, other_tools_told};
pub use sandbox::{
    NETWORK_ON, SANDBOX_OFF, around_hidden, command_disturbed, confinement_not_found, not_confined,
    nothing_confines, nothing_to_write, sandbox_required,
};
pub use structured::{
    ANSWER_NOT_STRUCTURED, answer_does_not_fit, output_schema, repair, repairing, tells_schema,
};
pub use subagents::{subagent_begins, subagent_ended, subagent_in_report};
pub use trust::{
    NO_TRUST_TO_REVOKE, NOT_TRUSTED, TRUST_NEEDS_A_PERSON, TRUST_QUESTION, TRUST_REASON, TRUST_REVOKED,
    TRUSTED, other_content, trust_asked, trust_ended, trust_not_believed, trust_not_kept, trusted_this_run,
};
pub use undo::{
    NOTHING_CHANGED, cannot_be_undone, change_left, change_undone, change_unread, changed_by_others,
    changes_left_out, checkpoint, checkpoints_stay, commands_not_undone, day, files_restored, in_the_way,
    minute, modes, named, no_checkpoints, no_diff, not_kept, nothing_to_restore, restored,
};
pub use workspace::{executables, instructions, instructions_invisible, instructions_not_compared};
