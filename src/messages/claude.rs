//! Messages for clients of Claude Code.

/// `--permission-prompt-tool` with the name of a tool.
pub const CLAUDE_PROMPT_TOOL: &str =
    "--permission-prompt-tool: only `stdio` can be asked, so calls that need approval are refused";
/// `bypassPermissions` without the flag that permits it.
pub const CLAUDE_NO_BYPASS: &str =
    "bypassPermissions is not permitted: start with `--allow-dangerously-skip-permissions` to permit it";
/// The mode `auto` on the command line.
pub const CLAUDE_AUTO_IS_DEFAULT: &str = "--permission-mode auto: no classifier decides here, so the mode is `default` and --allowedTools has no effect";
/// The mode `auto` in a control request.
pub const CLAUDE_NO_AUTO: &str = "there is no mode `auto` here, because no classifier decides";
/// A command line without `--print`.
pub const CLAUDE_NOT_INTERACTIVE: &str = "these are flags of Claude Code, which work with `-p` or `--input-format stream-json` only; for a conversation at the terminal: `agent chat`";
/// The combination of formats that the protocol excludes.
pub const CLAUDE_INPUT_FORMAT: &str = "--input-format stream-json needs --output-format stream-json";
/// Why a question gets no answer.
pub const CLAUDE_NO_ANSWER: &str = "the client gave no valid answer";
/// A `Stop` hook that wants the run to continue.
pub const CLAUDE_STOP_HOOK: &str = "a Stop hook cannot make the run continue here";
/// A prompt that a hook blocks.
pub const CLAUDE_PROMPT_BLOCKED: &str = "a UserPromptSubmit hook blocked the message";
/// A message without text.
pub const CLAUDE_EMPTY_MESSAGE: &str = "the message has neither text nor images";
/// Messages beyond those that can wait.
pub const CLAUDE_TOO_MANY_MESSAGES: &str = "too many messages wait for their turn";

/// A flag of Claude Code without effect.
pub fn claude_flag_ignored(flag: &str) -> String {
    format!("{flag} has no effect here")
}

/// A flag that takes permission away and has no counterpart.
pub fn claude_flag_refused(flag: &str) -> String {
    format!(
        "{flag} can take permission away and cannot be honoured here, so no run begins: configure this program instead (`agent help serve`)"
    )
}

/// An entry of `--disallowedTools` without a counterpart.
pub fn claude_refusal_unknown(entry: &str, why: &str) -> String {
    format!("--disallowedTools {entry}: {why}; it cannot be honoured, so no run begins")
}

/// An entry of `--allowedTools` without a counterpart.
pub fn claude_allowance_ignored(entry: &str, why: &str) -> String {
    format!("--allowedTools {entry} has no effect: {why}")
}

/// A value without a counterpart.
pub fn claude_value_ignored(name: &str, value: &str) -> String {
    format!("{name}={value} is not known here and has no effect")
}

/// An entry of `--mcp-config` that cannot be read.
pub fn claude_mcp_config(problem: &str) -> String {
    format!("--mcp-config: {problem}")
}

/// A field of `initialize` without effect.
pub fn claude_field_ignored(field: &str) -> String {
    format!("{field} of `initialize` has no effect here")
}

/// A field of `initialize` that takes permission away and has no counterpart.
pub fn claude_field_refused(field: &str) -> String {
    format!("{field} of `initialize` can take permission away and cannot be honoured here")
}

/// A hook event that is not fired.
pub fn claude_hook_ignored(event: &str) -> String {
    format!("hooks of {event} are not run here")
}

/// A control request that is not known.
pub fn claude_request_unknown(subtype: &str) -> String {
    format!("unsupported control request: {subtype}")
}

/// A line that is no message.
pub fn claude_line_invalid(problem: &str) -> String {
    format!("a line of standard input is not used: {problem}")
}

/// A hook that failed.
pub fn claude_hook_failed(problem: &str) -> String {
    format!("a hook of the client failed: {problem}")
}

/// A model that takes over.
pub fn claude_model_switched(from: &str, to: &str, why: &str) -> String {
    format!("{from} failed ({why}); {to} continues")
}
