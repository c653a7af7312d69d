//! Texts for users in English and Spanish, and the agent loop's own messages to the model.

mod approval_prompt;
mod approvals;
mod background;
mod breakers;
mod compaction;
mod costs;
mod directories;
mod evaluation;
mod events;
mod gates;
mod guardrail_refusals;
mod guardrails;
mod human_log;
mod io_errors;
mod models;
mod numbers;
mod output_schema;
mod preparation;
mod refusals;
mod replay;
mod report;
mod resume;
mod run_end;
mod run_loop;
mod sandbox;
mod stop_reason;
mod subagents;
mod trust;
mod undo;
mod workspace;

pub use approval_prompt::{
    always_scope_call, always_scope_files, always_scope_host, line_cut, link_target, more_links, preview_cut,
    prompt_always, prompt_choices, prompt_reason, prompt_title,
};
pub use approvals::{
    HOW_TO_ANSWER, NO_PENDING_CALLS, NOT_ANSWERED, ago, answer_key_unusable, answer_label, approval_answered,
    no_pending_call, pending_call_details, resume_hint,
};
pub use background::{
    background_command_damage, background_commands_lost, background_end, background_ended, background_start,
};
pub use breakers::{
    ANNOUNCED_ACTION, errors_in_a_row, no_progress_last_warning, no_progress_notice, no_progress_warning,
    repeated_call_refused, reverted_edits, same_call, same_error, same_result, same_round,
};
pub use compaction::{
    STEPS_OMITTED, SUMMARY_HEADING, SUMMARY_INSTRUCTIONS, compaction, compaction_level, mechanical_summary,
    output_shortened, summary_request, tools_fill_window,
};
pub use costs::{budget_warning, cache_miss, cached_answer, costs, money, prefix_changed, tokens};
pub use directories::{AGENT_HOME_HINT, directory_not_writable};
pub use evaluation::{
    EVALUATION_NO_REPLY, EVALUATION_OUT_OF_TIME, EVALUATION_OVER_BUDGET, EVALUATION_UNREADABLE,
    answer_rejected, best_answer, evaluation, evaluation_findings, evaluation_request,
    evaluator_instructions,
};
pub use events::{
    history_added, request_sent, run_limits, session_place, spinner_model, spinner_tool, system_message,
    user_message,
};
pub use gates::{gate, gates_failed};
pub use guardrail_refusals::{
    CountedChanges, code_rule_refusal, command_changes_over_limit, tests_required, too_many_commands,
    too_many_files, too_many_lines,
};
pub use guardrails::{ANSWER_WITHHELD, guardrail_triggered, withheld_text};
pub use human_log::{LogStyle, RetryLine, SessionHeader};
pub use io_errors::{
    LOG_LEVELS, NO_THREAD, answer_not_written, blob_missing, interrupting, journal_damaged,
    journal_incomplete, log_file_failed, panicked, state_not_stored, state_unusable,
};
pub use models::{
    NO_USABLE_MODEL, context_overflow, fallbacks_failed, incomplete_answer, model_switched,
    secret_marker_refused,
};
pub use numbers::{bytes, count, duration, thousands};
pub use output_schema::{
    ANSWER_NOT_STRUCTURED, answer_schema_mismatch, contains_schema, schema_message, schema_repair,
    schema_repair_notice,
};
pub use preparation::{git_diff, git_diff_unknown, no_git_diff, no_plan, plan};
pub use refusals::{
    answer_mismatch, approved_arguments_changed, approved_call_changed, asked_by_rule, cannot_be_pending,
    command_blocked, command_never_runs, command_not_known, declined, denied_by_rule, file_changed,
    hook_blocked, links_changed, no_approver, not_executed, paths_changed, protected_file, sensitive_file,
    stopped_by_hook, tool_changed, tool_not_allowed, would_execute, would_fail,
};
pub use replay::{
    BACKGROUND_OUTPUT_CALL, DID_NOT_RUN, IN_INTERRUPTED_STEP, NOTHING_TO_REPLAY, REPLAY_INTERRUPTED,
    REPLAY_LATER_VERSION, REPLAY_REFUSED, REPLAY_REQUEST_DIFFERS, REPLAYED_UNTIL_KILLED, STATE_LEFT_OUT,
    SUBAGENT_CALL, UNSANDBOXED_COMMAND, WEB_CALL, replay_cache_in_workspace, replay_caches, replay_call,
    replay_contents_missing, replay_copy, replay_difference, replay_imported, replay_left_out,
    replay_no_copy, replay_other_result, replayed, replayed_calls, replayed_differs, replayed_record_missing,
    replayed_run, replayed_same, replayed_unknown,
};
pub use report::{REPORT_FORMS, model_call_abandoned, report_not_written, report_written_elsewhere};
pub use resume::{changed_setting, settings_changed, tool_list_changed, tool_list_changed_notice};
pub use run_end::{RunEndSummary, dry_run_plan, more_planned, nothing_planned};
pub use run_loop::{
    CHANGES_NEVER_LISTED, CHANGES_NOT_LISTED, CONTINUE_CUT_ANSWER, OUTCOME_UNKNOWN, RESUME_MESSAGE,
    TOOL_CALLS_EXHAUSTED, arguments_changed, call_timed_out, hook_context, leftover_file,
    limits_nearly_reached, money_left, time_left, tokens_left, too_many_calls,
};
pub use sandbox::{
    NETWORK_ALLOWED, SANDBOX_OFF, command_damage, hidden_directory_notice, no_sandbox, not_confined,
    sandbox_probe_failed, sandbox_required, writable_dir_missing,
};
pub use stop_reason::{closing_instruction, fixed_closing, stop_reason_text};
pub use subagents::{subagent_ended, subagent_in_report, subagent_started};
pub use trust::{
    NO_TRUST_TO_REVOKE, NOT_TRUSTED, TRUST_NEEDS_TERMINAL, TRUST_QUESTION, TRUST_REASON, TRUST_REVOKED,
    TRUSTED, trust_ended, trust_hash_mismatch, trust_not_stored, trust_record_rejected, trust_totals,
    trusted_this_run,
};
pub use undo::{
    NO_FILE_CHANGES, cannot_be_undone, changed_by_others, changes_left_out, checkpoint, checkpoints_stay,
    commands_not_undone, contents_not_stored, day, files_restored, list_paths, minute, mode_changed,
    no_checkpoints, no_diff, nothing_to_restore, restore_refused, restored, transaction_not_undone,
    transaction_undone, transaction_unreadable,
};
pub use workspace::{executables, instructions, instructions_invisible, instructions_not_compared};
