//! Every text for people, and the few the loop itself says to the model: one place to read, correct and translate.

mod approvals;
mod background;
mod breakers;
mod closing;
mod compaction;
mod evaluation;
mod figures;
mod gates;
mod guardrails;
mod home;
mod log;
mod model;
mod preparation;
mod prompt;
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
    HOW_TO_ANSWER, NOTHING_WAITS, OTHER_ARGUMENTS, OTHER_PLACES, OTHER_QUESTION, OTHER_TOOL, UNANSWERED, ago,
    answer_in_words, answered, asked, cannot_wait, no_seal, not_what_was_approved, nothing_waits_under,
    other_file, then_resume,
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
    STOPPED_BY_HOOK, arguments_changed, call_out_of_time, closing_instruction, fixed_closing, hook_context,
    leftover_kept, little_left, money_left, reason_in_words, said_no, time_left, tokens_left, too_many_calls,
};
pub use compaction::{
    LEFT_OUT, SUMMARY_HEADING, SUMMARY_INSTRUCTIONS, compaction, compaction_level, mechanical_summary,
    output_shortened, summary_request, tools_fill_window,
};
pub use evaluation::{
    EVALUATION_BROKEN_OFF, EVALUATION_LATE, EVALUATION_UNAFFORDABLE, EVALUATION_UNREADABLE, best_answer,
    evaluation, evaluation_request, evaluator, findings, found_wanting,
};
pub use figures::{bytes, count, duration, thousands};
pub use gates::{gate, gates_failed};
pub use guardrails::{ANSWER_WITHHELD, guardrail, withheld};
pub use home::{ANOTHER_HOME, home_unusable};
pub use log::{
    DRY_RUN_PLAN, Ending, Form, KEPT_ANSWER, LOG_LEVELS, NOTHING_PLANNED, Session, answer_not_written,
    budget_warning, cache_lost, costs, history_given, interrupting, journal_damaged, journal_incomplete,
    log_file_lost, money, more_planned, offered, panicked, prefix_changed, request_sent, session_place,
    spinner_model, spinner_tool, state_not_kept, state_unusable, system_message, text_missing, tokens,
    user_message,
};
pub use model::{
    MODEL_NOT_READY, after_fallback, broken_off, context_overflow, marker_echoed, model_switched,
};
pub use preparation::{git_diff, git_diff_unknown, no_git_diff, no_plan, plan};
pub use prompt::{
    LINKS_CHANGED, lasting_call, lasting_files, lasting_host, leads_elsewhere, line_cut, more_links,
    preview_cut, prompt_choices, prompt_lasting, prompt_reason, prompt_title,
};
pub use replay::{
    CUT_SHORT, DID_NOT_RUN, NOT_HELD, NOTHING_TO_REPLAY, OF_A_MOMENT, OF_A_SUBAGENT, OF_THE_WEB,
    REPLAY_ASKS_ELSE, REPLAY_INTERRUPTED, REPLAY_LATER_VERSION, REPLAY_REFUSED, REPLAYED_CUT_OFF,
    replay_brought, replay_caches, replay_call, replay_copy, replay_difference, replay_inside,
    replay_left_out, replay_lost, replay_no_copy, replay_other_result, replayed, replayed_calls,
    replayed_differs, replayed_lacks, replayed_run, replayed_same, replayed_unknown,
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
pub use subagents::{
    subagent_ended, subagent_error, subagent_hook, subagent_in_report, subagent_refused, subagent_retry,
};
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
