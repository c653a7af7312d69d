//! The permission policy: decides on calls by allowed tools, protected and sensitive files, blocked commands, rules and mode.

use super::command_class::{CommandClass, CommandVerdict, Risk};
use super::file_patterns::FilePatterns;
use super::guardrails::blocked_commands::BlockedCommands;
use super::rules::{Action, PolicyRule, RuleError, Rules, Ruling};
use agent_core::decision::Decision;
use agent_core::language::Language;
use agent_core::message::MCP_PREFIX;
use agent_mcp::definition::server_and_tool;
use agent_messages as messages;
use agent_process::sandbox::protected_names::TOOL_CONFIGURATIONS;
use agent_process::sandbox::repositories::GIT;
use agent_tools::toolbox::{CALL_TOOL, TOOL_SEARCH};
use agent_tools::{Access, Plan};
use agent_workspace::FileProtection;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Permission mode: what the agent may do without approval, from least to most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    /// Every call needs approval.
    ConfirmAll,
    /// Changes of files, and commands that are not known to be safe, need approval.
    ConfirmSensitive,
    /// Changes of files in a git work tree, and commands that the sandbox confines, need no approval; what cannot be undone or leaves the sandbox
    /// does.
    Auto,
    /// No call needs approval; refusals still apply.
    Yolo,
}

agent_core::impl_name!(Mode);

impl Mode {
    /// The modes, the strictest first.
    pub const ALL: [Self; 4] = [Self::ConfirmAll, Self::ConfirmSensitive, Self::Auto, Self::Yolo];
}

/// What the mode `auto` runs without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AutoScope {
    /// Edits of files: the workspace is in a git work tree of the user.
    pub edits: bool,
    /// Commands that the sandbox confines: they reach no network.
    pub commands: bool,
}

/// Settings of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The permission mode.
    pub mode: Mode,
    /// The agent's name, for messages.
    pub agent: String,
    /// Tools that the agent may use; empty: all.
    pub allowed_tools: Vec<String>,
    /// Globs of files that may be read but not changed, besides [`TOOL_CONFIGURATIONS`].
    pub protected_files: Vec<String>,
    /// Globs of files that may be neither read nor changed.
    pub sensitive_files: Vec<String>,
    /// Regular expressions of commands that never run.
    pub blocked_commands: Vec<String>,
    /// Whether dangerous commands are refused in every mode.
    pub allowed_only: bool,
    /// Whether the sandbox confines commands well enough to build and test without approval.
    pub trusts_sandbox: bool,
    /// What the mode `auto` runs without asking.
    pub auto: AutoScope,
    /// The configured rules, in order.
    pub rules: Vec<PolicyRule>,
    /// Tools for which an agent of a Hub has no grant, each with the grant.
    pub missing_grants: BTreeMap<String, String>,
    /// The workspace's path, so that absolute paths below it match relative patterns.
    pub root: String,
    /// Language of refusals and of the reasons for questions.
    pub language: Language,
}

/// The policy of one run. It has no side effects.
#[derive(Debug, Clone)]
pub struct Policy {
    options: PolicyOptions,
    protected: FilePatterns,
    sensitive: FilePatterns,
    blocked: BlockedCommands,
    rules: Rules,
    /// For a subagent: the policy of the agent that started it, which also applies.
    parent: Option<Arc<Policy>>,
}

/// A policy that cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// An invalid pattern of the guardrails.
    #[error("guardrails: {0}")]
    Pattern(#[from] globset::Error),
    /// An invalid regular expression of blocked commands.
    #[error("guardrails.blocked_commands: {0}")]
    Blocked(#[from] regex::Error),
    /// An invalid rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Most reasons that a question about a command names.
const MAX_RISKS: usize = 3;

impl Policy {
    /// Compiles the rules.
    ///
    /// # Errors
    /// When a glob, a regular expression or a rule is not valid.
    pub fn new(options: PolicyOptions) -> Result<Self, PolicyError> {
        let own = options.protected_files.iter().cloned();
        let built_in = [GIT].into_iter().chain(TOOL_CONFIGURATIONS.iter().copied());
        let protected = FilePatterns::new(built_in.map(str::to_owned).chain(own))?;
        Ok(Self {
            rules: Rules::new(&options.rules, &options.agent)?,
            protected,
            sensitive: FilePatterns::new(options.sensitive_files.iter().cloned())?,
            blocked: BlockedCommands::new(&options.blocked_commands)?,
            parent: None,
            options,
        })
    }

    /// Creates the policy of the subagent `agent` with `allowed_tools`, `mode` and the `rules` for that agent. Of its own
    /// decision and that of this policy, the stricter applies.
    ///
    /// # Errors
    /// When a rule is not valid.
    pub fn for_subagent(
        self: &Arc<Self>,
        agent: &str,
        mode: Mode,
        allowed_tools: Vec<String>,
        rules: &[PolicyRule],
    ) -> Result<Self, RuleError> {
        Ok(Self {
            options: PolicyOptions { mode, agent: agent.to_owned(), allowed_tools, ..self.options.clone() },
            rules: Rules::new(rules, agent)?,
            parent: Some(Arc::clone(self)),
            ..Self::clone(self)
        })
    }

    /// Checks whether the agent may use this tool at all; other tools are not offered to the model.
    pub fn allows_tool(&self, tool: &str) -> bool {
        let is_allowed = self.options.allowed_tools.is_empty()
            || self.options.allowed_tools.iter().any(|allowed| covers(allowed, tool));
        is_allowed && self.parent.as_ref().is_none_or(|parent| parent.allows_tool(tool))
    }

    /// Checks whether a path is a sensitive file.
    pub fn is_sensitive(&self, path: &str) -> bool {
        self.sensitive.find(path, &self.options.root).is_some()
    }

    /// Returns the file rules for the workspace, which applies them to resolved paths when it opens files.
    pub fn file_guard(policy: &Arc<Self>) -> FileProtection {
        let (sensitive, protected) = (Arc::clone(policy), Arc::clone(policy));
        FileProtection {
            sensitive: Arc::new(move |path| sensitive.is_sensitive(path)),
            protected: Arc::new(move |path| {
                protected.protected.find(path, &protected.options.root).is_some()
            }),
            named: policy.protected.literals(),
        }
    }

    /// Returns the file rule for a program that only reads the workspace at `root`: no file that one of `patterns` matches.
    ///
    /// # Errors
    /// When a pattern is not valid.
    pub fn guard_of_sensitive_files(patterns: &[String], root: &str) -> Result<FileProtection, PolicyError> {
        let (patterns, root) = (FilePatterns::new(patterns.iter().cloned())?, root.to_owned());
        Ok(FileProtection {
            sensitive: Arc::new(move |path| patterns.find(path, &root).is_some()),
            protected: Arc::new(|_| false),
            named: Vec::new(),
        })
    }

    /// Returns the patterns of sensitive files.
    pub fn sensitive_files(&self) -> &[String] {
        &self.options.sensitive_files
    }

    /// Checks whether there are patterns of sensitive files.
    pub fn has_sensitive_files(&self) -> bool {
        !self.sensitive.is_empty()
    }

    /// Decides on a call; `command` is the classification of the plan's command. Refusals come first, in every mode, then the
    /// rules, then the mode.
    pub fn decide(
        &self,
        tool: &str,
        access: Access,
        plan: &Plan,
        command: Option<&CommandVerdict>,
    ) -> Decision {
        let own = self.decide_without_parent(tool, access, plan, command);
        match &self.parent {
            Some(parent) => own.or_stricter(parent.decide(tool, access, plan, command)),
            None => own,
        }
    }

    fn decide_without_parent(
        &self,
        tool: &str,
        access: Access,
        plan: &Plan,
        command: Option<&CommandVerdict>,
    ) -> Decision {
        self.refusal(tool, plan, command)
            .or_else(|| self.ruling(tool, plan).map(|ruling| self.by_rule(ruling)))
            .unwrap_or_else(|| self.by_mode(access, plan, command))
    }

    /// Returns the decision of the rules on a call, without refusals and mode.
    pub fn ruling(&self, tool: &str, plan: &Plan) -> Option<Ruling> {
        self.rules.decide(tool, plan, &self.options.root)
    }

    /// Returns the mode, which applies where no rule matches.
    pub fn mode(&self) -> Mode {
        self.parent.as_ref().map_or(self.options.mode, |parent| self.options.mode.min(parent.mode()))
    }

    /// Returns the language of refusals and of the reasons for questions.
    pub fn language(&self) -> Language {
        self.options.language
    }

    fn refusal(&self, tool: &str, plan: &Plan, command: Option<&CommandVerdict>) -> Option<Decision> {
        if !self.allows_tool(tool) {
            let allowed = self.options.allowed_tools.join(", ");
            let reason =
                messages::tool_not_allowed(&self.options.agent, tool, &allowed, self.options.language);
            return Some(deny("agent.allowed_tools", reason));
        }
        if let Some(grant) = self.options.missing_grants.get(tool) {
            return Some(deny("fleet.grants", messages::missing_grant(grant)));
        }
        plan.touched_files
            .iter()
            .find_map(|touch| self.file_refusal(&touch.path, touch.write))
            .or_else(|| self.blocked_refusal(plan.command.as_deref()?))
            .or_else(|| self.command_refusal(command?))
    }

    fn blocked_refusal(&self, command: &str) -> Option<Decision> {
        let pattern = self.blocked.find(command)?;
        let reason = messages::command_blocked(pattern, self.options.language);
        Some(deny("guardrails.blocked_commands", reason))
    }

    fn file_refusal(&self, path: &str, write: bool) -> Option<Decision> {
        if let Some(pattern) = self.sensitive.find(path, &self.options.root) {
            let reason = messages::sensitive_file(path, pattern, self.options.language);
            return Some(deny("guardrails.sensitive_files", reason));
        }
        let pattern = self.protected.find(path, &self.options.root).filter(|_| write)?;
        let reason = messages::protected_file(path, pattern, self.options.language);
        Some(deny("guardrails.protected_files", reason))
    }

    fn command_refusal(&self, command: &CommandVerdict) -> Option<Decision> {
        match &command.class {
            CommandClass::Blocked { pattern } => {
                let reason = messages::command_never_runs(pattern, self.options.language);
                Some(deny("commands.blocked_patterns", reason))
            }
            _ if self.options.allowed_only && !command.is_known => {
                let reason = messages::command_not_known(self.options.language).to_owned();
                Some(deny("commands.allowed_only", reason))
            }
            _ => None,
        }
    }

    fn by_mode(&self, access: Access, plan: &Plan, command: Option<&CommandVerdict>) -> Decision {
        let all = command.map(|command| &command.risks);
        let risks: Vec<String> = all
            .into_iter()
            .flatten()
            .rev()
            // What is certain says more.
            .filter(|risk| !matches!(risk, Risk::PerhapsOutside(_)) || all.is_some_and(|all| all.len() == 1))
            .take(MAX_RISKS)
            .map(|risk| risk.text(self.options.language))
            .collect();
        let risk = (!risks.is_empty()).then(|| risks.join("; "));
        let what = match access {
            _ if self.options.mode == Mode::Yolo => return Decision::Allow,
            _ if self.options.mode == Mode::ConfirmAll => self
                .options
                .language
                .pick("every tool call needs approval", "toda llamada a una herramienta requiere aprobación"),
            Access::Execute if command.is_some_and(|command| self.runs_unasked(command)) => {
                return Decision::Allow;
            }
            Access::Execute if let Some(risk) = &risk => risk,
            Access::Execute => self.options.language.pick(
                "commands that are not known to be safe need approval",
                "los comandos que no se sabe que son seguros requieren aprobación",
            ),
            Access::McpWrite { is_read_only: true } => return Decision::Allow,
            Access::Mcp | Access::McpWrite { .. } => self.options.language.pick(
                "calls of MCP servers need approval",
                "las llamadas a servidores MCP requieren aprobación",
            ),
            Access::Network => self
                .options
                .language
                .pick("requests to the web need approval", "las peticiones a la web requieren aprobación"),
            Access::Read if plan.touched_files.iter().all(|touch| !touch.write) => return Decision::Allow,
            // What is stored elsewhere, such as the memory, is not in the work tree.
            Access::Write | Access::Read
                if self.options.mode == Mode::Auto
                    && self.options.auto.edits
                    && !plan.touched_files.is_empty() =>
            {
                return Decision::Allow;
            }
            Access::Write | Access::Read => self
                .options
                .language
                .pick("changes to files need approval", "los cambios de archivos requieren aprobación"),
        };
        let mode = self.options.mode.name();
        let word = self.options.language.pick("mode", "modo");
        Decision::Ask { reason: format!("{what} ({word} {mode})"), rule: format!("{MODE_RULE_PREFIX}{mode}") }
    }

    fn by_rule(&self, Ruling { action, rule, reason }: Ruling) -> Decision {
        let reason = reason.as_deref();
        match action {
            Action::Allow => Decision::Allow,
            Action::Ask => {
                Decision::Ask { reason: messages::asked_by_rule(&rule, reason, self.options.language), rule }
            }
            Action::Deny => Decision::Deny {
                reason: messages::refused_by_rule(&rule, reason, self.options.language),
                rule,
            },
        }
    }

    /// Returns the refusal, for the model, of a call that needs approval when no user can answer.
    pub fn no_approver_message(&self, tool: &str, rule: &str) -> String {
        messages::no_approver(tool, rule, rule.starts_with(MODE_RULE_PREFIX), self.options.language)
    }

    /// Checks whether a command runs without approval: it only reads, or it builds or tests in the sandbox; in the mode `auto` all that the sandbox
    /// confines.
    fn runs_unasked(&self, command: &CommandVerdict) -> bool {
        match command.class {
            CommandClass::Safe => true,
            CommandClass::Confine => {
                let is_auto = self.options.mode == Mode::Auto && self.options.auto.commands;
                self.options.trusts_sandbox && (command.is_known || is_auto)
            }
            CommandClass::Ask | CommandClass::Blocked { .. } => false,
        }
    }
}

/// Prefix of the rule name of a decision by mode.
pub const MODE_RULE_PREFIX: &str = "mode.";

/// Checks whether the mode `confirm-sensitive` or `auto` requires an approval, and neither a rule nor a stricter mode.
pub fn is_of_confirm_sensitive(rule: &str) -> bool {
    let mode = rule.strip_prefix(MODE_RULE_PREFIX);
    [Mode::ConfirmSensitive, Mode::Auto].iter().any(|asking| mode == Some(asking.name()))
}
/// Rule name of a refusal by the user.
pub const DECLINED_RULE: &str = "person";

/// Checks whether an entry of `allowed_tools` covers a tool: `mcp__github__*` covers all tools of a server, and entries for servers
/// cover the tools that search and call them.
fn covers(allowed: &str, tool: &str) -> bool {
    if allowed == tool || !allowed.starts_with(MCP_PREFIX) {
        return allowed == tool;
    }
    if matches!(tool, TOOL_SEARCH | CALL_TOOL) {
        return true;
    }
    let (Some(start), Some((server, own_name))) = (allowed.strip_suffix('*'), server_and_tool(tool)) else {
        return false;
    };
    match server_and_tool(start) {
        Some((wanted, start)) => server == wanted && own_name.starts_with(start),
        None => start.strip_prefix(MCP_PREFIX).is_some_and(|start| server.starts_with(start)),
    }
}

fn deny(rule: &str, reason: String) -> Decision {
    Decision::Deny { reason, rule: rule.to_owned() }
}

/// Returns a pattern that matches exactly this path and everything below it.
pub fn literal_pattern(path: &str) -> String {
    format!("/{}", globset::escape(path))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
