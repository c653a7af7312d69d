//! What runs without asking the client, by its permission mode and its list of allowed tools. This answers only where the mode
//! `confirm-sensitive` needs approval: rules, guardrails and stricter modes of the configuration always apply.

use super::args::{ClaudeArgs, PermissionMode, PermissionPrompts};
use agent_config::claude_names::names;
use agent_core::failure::FailureKind;
use agent_core::message::MCP_PREFIX;
use agent_engine::approver::Question;
use agent_engine::policy::is_of_confirm_sensitive;
use agent_mcp::definition::{SEPARATOR, server_and_tool};
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use std::cell::Cell;

/// What the client has permitted.
pub struct Permissions {
    mode: Cell<PermissionMode>,
    /// Whether `bypassPermissions` is permitted.
    may_bypass: bool,
    /// Whether the client answers questions.
    asks: bool,
    /// Names there of the tools whose calls run without asking.
    allowed: Vec<String>,
}

/// How a question is answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Permitted {
    /// The call runs.
    Yes,
    /// The client is asked.
    Ask,
    /// Nobody is asked.
    Unanswered,
}

impl Permissions {
    /// Creates the permissions of the command line.
    ///
    /// # Errors
    /// For `bypassPermissions` without the flag that permits it.
    pub fn new(args: &ClaudeArgs, allowed: Vec<String>) -> AppResult<Self> {
        let skips = args.dangerously_skip_permissions;
        let is_stdio = args.permission_prompt_tool.as_deref() == Some("stdio");
        let this = Self {
            mode: Cell::new(PermissionMode::Default),
            may_bypass: skips || args.allow_dangerously_skip_permissions,
            asks: is_stdio && args.permission_prompts != Some(PermissionPrompts::None),
            allowed,
        };
        let default = if skips { PermissionMode::BypassPermissions } else { PermissionMode::Default };
        let mode = match args.permission_mode {
            Some(PermissionMode::Auto) => PermissionMode::Default,
            mode => mode.unwrap_or(default),
        };
        this.set_mode(mode).map_err(|why| AppError::new(FailureKind::Usage, why))?;
        Ok(this)
    }

    /// Returns the mode.
    pub fn mode(&self) -> PermissionMode {
        self.mode.get()
    }

    /// Sets the mode, which applies to the next question.
    ///
    /// # Errors
    /// Why it is not permitted.
    pub fn set_mode(&self, mode: PermissionMode) -> Result<(), &'static str> {
        if mode == PermissionMode::BypassPermissions && !self.may_bypass {
            return Err(messages::CLAUDE_NO_BYPASS);
        }
        if mode == PermissionMode::Auto {
            return Err(messages::CLAUDE_NO_AUTO);
        }
        self.mode.set(mode);
        Ok(())
    }

    /// Checks whether the client can be asked.
    pub fn can_ask(&self) -> bool {
        self.asks && self.mode() != PermissionMode::DontAsk
    }

    /// Determines how a question is answered.
    pub fn answer(&self, question: &Question) -> Permitted {
        if is_of_confirm_sensitive(&question.rule) && self.permits(&question.tool) {
            Permitted::Yes
        } else if self.can_ask() {
            Permitted::Ask
        } else {
            Permitted::Unanswered
        }
    }

    fn permits(&self, tool: &str) -> bool {
        let by_mode = match self.mode() {
            PermissionMode::BypassPermissions => true,
            PermissionMode::AcceptEdits => names().edits(tool),
            PermissionMode::Plan => return false,
            PermissionMode::Default | PermissionMode::DontAsk | PermissionMode::Auto => false,
        };
        by_mode || self.allowed.iter().any(|entry| allows(entry, tool))
    }
}

/// Checks whether an entry of `--allowedTools` allows the tool `ours`.
fn allows(entry: &str, ours: &str) -> bool {
    if let Some(server) = entry.strip_prefix(MCP_PREFIX) {
        let (server, tool) = server.split_once(SEPARATOR).unwrap_or((server, "*"));
        return server_and_tool(ours)
            .is_some_and(|named| named.0 == server && (tool == "*" || tool == named.1));
    }
    names().ours(entry).any(|tool| tool == ours)
}

#[cfg(test)]
mod tests {
    use super::super::args::parse;
    use super::*;
    use agent_core::message::CallKey;
    use serde_json::Value;

    fn question(tool: &str, rule: &str) -> Question {
        Question {
            call: CallKey::new(None, "c"),
            tool: tool.to_owned(),
            arguments: Value::Null,
            summary: String::new(),
            reason: String::new(),
            rule: rule.to_owned(),
            notes: Vec::new(),
            preview: None,
            always_scope: String::new(),
            rule_for_good: None,
        }
    }

    fn permissions(words: &[&str]) -> AppResult<Permissions> {
        let args = parse(std::iter::once("agent").chain(words.iter().copied()).map(Into::into)).unwrap();
        let allowed = super::super::args::tool_list(&args.allowed_tools);
        Permissions::new(&args, allowed)
    }

    #[test]
    fn modes_and_allowed_tools_answer_only_where_the_mode_asks() {
        for (words, tool, answer) in [
            (&["-p"][..], "write_file", Permitted::Unanswered),
            (&["--permission-prompt-tool=stdio"], "write_file", Permitted::Ask),
            (&["--permission-mode=acceptEdits"], "write_file", Permitted::Yes),
            (&["--permission-mode=acceptEdits"], "run_command", Permitted::Unanswered),
            (&["--dangerously-skip-permissions"], "run_command", Permitted::Yes),
            (&["--allowedTools=Bash"], "run_command", Permitted::Yes),
            (&["--allowedTools=Bash", "--permission-mode=plan"], "run_command", Permitted::Unanswered),
            (&["--allowedTools=Edit"], "delete_file", Permitted::Unanswered),
            (&["--allowedTools=mcp__s"], "mcp__s__t", Permitted::Yes),
            (&["--allowedTools=mcp__s__*"], "mcp__s__t", Permitted::Yes),
            (&["--allowedTools=mcp__s"], "mcp__st__t", Permitted::Unanswered),
            // Fault E5: the tool `t__u` of `s` is another one.
            (&["--allowedTools=mcp__s__t"], "mcp__s__t", Permitted::Yes),
            (&["--allowedTools=mcp__s__t"], "mcp__s__t__u", Permitted::Unanswered),
            (&["--allowedTools=mcp__s__*"], "mcp__s__t__u", Permitted::Yes),
            (
                &["--permission-prompt-tool=stdio", "--permission-mode=dontAsk"],
                "run_command",
                Permitted::Unanswered,
            ),
            (&["--permission-prompt-tool=stdio", "--permission-prompts=host"], "run_command", Permitted::Ask),
            (&["--permission-prompts=host"], "run_command", Permitted::Unanswered),
            (&["--permission-mode=auto"], "write_file", Permitted::Unanswered),
            (
                &["--permission-prompt-tool=stdio", "--permission-prompts=none"],
                "run_command",
                Permitted::Unanswered,
            ),
        ] {
            let permissions = permissions(words).unwrap();
            assert_eq!(
                permissions.answer(&question(tool, "mode.confirm-sensitive")),
                answer,
                "{words:?} {tool}"
            );
            let asks = permissions.can_ask();
            let otherwise = if asks { Permitted::Ask } else { Permitted::Unanswered };
            for rule in ["policy.rules[0]", "mode.confirm-all"] {
                assert_eq!(permissions.answer(&question(tool, rule)), otherwise, "{words:?} {rule}");
            }
        }
    }

    #[test]
    fn bypass_needs_its_flag_at_the_start_and_later() {
        assert!(permissions(&["--permission-mode=bypassPermissions"]).is_err());
        let allowed = ["--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions"];
        assert_eq!(permissions(&allowed).unwrap().mode(), PermissionMode::BypassPermissions);
        let without = permissions(&["-p"]).unwrap();
        assert!(without.set_mode(PermissionMode::BypassPermissions).is_err());
        assert_eq!(without.mode(), PermissionMode::Default);
        assert!(without.set_mode(PermissionMode::Auto).is_err());
    }
}
