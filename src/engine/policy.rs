//! What may run: modes compiled to rules, the agent's tools, protected and sensitive files.

use super::command_class::{CommandClass, Verdict};
use crate::decision::Decision;
use crate::process::sandbox::configurations::{CONFIGURATIONS, literal};
use crate::process::sandbox::repositories::GIT;
use crate::tools::{Access, Plan};
use crate::workspace::{Guard, alias};
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call is asked.
    ConfirmAll,
    /// Calls that change something are asked.
    ConfirmSensitive,
    /// Nothing is asked; refusals stand.
    Yolo,
}

impl Mode {
    /// Its name in files, flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfirmAll => "confirm-all",
            Self::ConfirmSensitive => "confirm-sensitive",
            Self::Yolo => "yolo",
        }
    }
}

/// What a policy is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOptions {
    /// How much is asked.
    pub mode: Mode,
    /// The agent's name, for reasons.
    pub agent: String,
    /// The tools the agent may use; empty: all.
    pub allowed_tools: Vec<String>,
    /// Globs of files that may be read but not changed, besides [`CONFIGURATIONS`].
    pub protected_files: Vec<String>,
    /// Globs of files that may be neither read nor changed.
    pub sensitive_files: Vec<String>,
    /// Whether dangerous commands are refused in every mode.
    pub allowed_only: bool,
    /// Whether the kernel keeps commands inside the workspace, and that is enough to build and test unasked.
    pub contained: bool,
    /// The workspace's path, so that absolute paths below it match relative patterns.
    pub root: String,
}

/// The rules of one run. Pure: asks nothing and touches nothing.
#[derive(Debug, Clone)]
pub struct Policy {
    mode: Mode,
    agent: String,
    allowed_tools: Vec<String>,
    allowed_only: bool,
    contained: bool,
    root: String,
    protected: Patterns,
    sensitive: Patterns,
}

impl Policy {
    /// Compiles the rules.
    ///
    /// # Errors
    /// A glob that is not valid.
    pub fn new(options: PolicyOptions) -> Result<Self, globset::Error> {
        let own = options.protected_files.into_iter();
        let built_in = [GIT].into_iter().chain(CONFIGURATIONS.iter().copied());
        let protected = Patterns::new(built_in.map(str::to_owned).chain(own))?;
        Ok(Self {
            mode: options.mode,
            agent: options.agent,
            allowed_tools: options.allowed_tools,
            allowed_only: options.allowed_only,
            contained: options.contained,
            root: options.root,
            protected,
            sensitive: Patterns::new(options.sensitive_files.into_iter())?,
        })
    }

    /// Whether the agent may use this tool at all; others are not offered to the model either.
    pub fn offers(&self, tool: &str) -> bool {
        self.allowed_tools.is_empty() || self.allowed_tools.iter().any(|allowed| allowed == tool)
    }

    /// Whether a path is one of the sensitive files, which searches leave out.
    pub fn hidden(&self, path: &str) -> bool {
        self.sensitive.find(path, &self.root).is_some()
    }

    /// The same rules about files for the workspace, which knows where a path really leads when it is opened.
    pub fn guard(policy: &Arc<Self>) -> Guard {
        let (sensitive, protected) = (Arc::clone(policy), Arc::clone(policy));
        Guard {
            sensitive: Arc::new(move |path| sensitive.hidden(path)),
            protected: Arc::new(move |path| protected.protected.find(path, &protected.root).is_some()),
            named: policy.protected.literals(),
        }
    }

    /// Whether there are sensitive files at all.
    pub fn hides(&self) -> bool {
        !self.sensitive.shown.is_empty()
    }

    /// May this call run? `command` is what is known of the plan's command. Refusals come first, in every mode.
    pub fn decide(&self, tool: &str, access: Access, plan: &Plan, command: Option<&Verdict>) -> Decision {
        self.refusal(tool, plan, command).unwrap_or_else(|| self.by_mode(access, plan, command))
    }

    fn refusal(&self, tool: &str, plan: &Plan, command: Option<&Verdict>) -> Option<Decision> {
        if !self.offers(tool) {
            let (agent, allowed) = (&self.agent, self.allowed_tools.join(", "));
            let reason = format!("The agent `{agent}` may not use `{tool}`. It may use: {allowed}.");
            return Some(deny("agent.allowed_tools", reason));
        }
        plan.touches
            .iter()
            .find_map(|touch| self.file_refusal(&touch.path, touch.write))
            .or_else(|| self.command_refusal(command?))
    }

    fn file_refusal(&self, path: &str, write: bool) -> Option<Decision> {
        if let Some(pattern) = self.sensitive.find(path, &self.root) {
            let reason = format!(
                "Sensitive file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be neither read nor \
                 changed: go on without it, and say in your answer if the task needs it."
            );
            return Some(deny("guardrails.sensitive_files", reason));
        }
        let pattern = self.protected.find(path, &self.root).filter(|_| write)?;
        let reason = format!(
            "Protected file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be read but not changed: go on \
             without changing it, and say in your answer what a person should change there."
        );
        Some(deny("guardrails.protected_files", reason))
    }

    fn command_refusal(&self, command: &Verdict) -> Option<Decision> {
        match &command.class {
            CommandClass::Blocked { pattern } => {
                let reason = format!(
                    "Command blocked by security policy: '{pattern}'.\nIt never runs, in no mode: reach the goal in \
                     another way, or say in your answer what a person should run."
                );
                Some(deny("commands.blocked_patterns", reason))
            }
            _ if self.allowed_only && !command.is_known => {
                let reason = "Command refused: `commands.allowed_only` permits only commands that are known to be \
                              safe and development commands.\nUse plain commands of those, in lists and pipes but \
                              without variables and redirections, or the file tools.";
                Some(deny("commands.allowed_only", reason.to_owned()))
            }
            _ => None,
        }
    }

    fn by_mode(&self, access: Access, plan: &Plan, command: Option<&Verdict>) -> Decision {
        let what = match access {
            _ if self.mode == Mode::Yolo => return Decision::Allow,
            _ if self.mode == Mode::ConfirmAll => "every tool call is confirmed",
            Access::Execute if command.is_some_and(|command| self.runs_unasked(command)) => {
                return Decision::Allow;
            }
            Access::Execute if command.is_some_and(|command| command.class == CommandClass::Ask) => {
                "commands that destroy, reach beyond the workspace or are not understood are confirmed"
            }
            Access::Execute => "commands that are not known to be safe are confirmed",
            Access::Network => "requests to the web are confirmed",
            Access::Write => "changes to files are confirmed",
            Access::Read if plan.touches.iter().any(|touch| touch.write) => "changes to files are confirmed",
            Access::Read => return Decision::Allow,
        };
        let mode = self.mode.name();
        Decision::Ask { reason: format!("{what} (mode {mode})"), rule: format!("{ASKING_RULES}{mode}") }
    }

    /// Whether a command runs in the mode that asks about changes only: it reads, or it builds and tests behind walls.
    fn runs_unasked(&self, command: &Verdict) -> bool {
        match command.class {
            CommandClass::Safe => true,
            CommandClass::Confine => command.is_known && self.contained,
            CommandClass::Ask | CommandClass::Blocked { .. } => false,
        }
    }
}

/// The beginning of the names of rules that ask.
pub const ASKING_RULES: &str = "mode.";
/// What stands in place of a rule where the person who was asked said no.
pub const SAID_NO_RULE: &str = "person";

/// What a question becomes when there is nobody to answer it: a refusal the model is told about.
pub fn nobody_to_ask(tool: &str, rule: &str) -> Decision {
    let reason = format!(
        "`{tool}` needs a confirmation and there is nobody to ask ({rule}).\nIt did not run. A person can allow it \
         with `--mode yolo`, look at it with `--dry-run`, or set `mode: yolo` for this agent. Go on with what needs \
         no confirmation, and say in your answer what was left undone."
    );
    deny(rule, reason)
}

fn deny(rule: &str, reason: String) -> Decision {
    Decision::Deny { reason, rule: rule.to_owned() }
}

/// A pattern that matches exactly this path and what is below it.
pub fn literal_pattern(path: &str) -> String {
    format!("/{}", globset::escape(path))
}

/// File patterns as in ignore files: without a slash they match a name at any depth, with one the path from the
/// root; what is below a matching directory matches too. A path matches when some file system would take it for one
/// that does ([`alias`]); a name without wildcards also stands for its short names.
#[derive(Debug, Clone)]
struct Patterns {
    shown: Vec<String>,
    /// Names without wildcards, long and short: which pattern each belongs to. They need no regular expression, which
    /// would cost every start some of its milliseconds.
    names: HashMap<String, usize>,
    /// All others, and which pattern each is.
    globs: GlobSet,
    of_globs: Vec<usize>,
}

impl Patterns {
    fn new(patterns: impl Iterator<Item = String>) -> Result<Self, globset::Error> {
        let (mut shown, mut names, mut of_globs) = (Vec::new(), HashMap::new(), Vec::new());
        let mut globs = GlobSetBuilder::new();
        for (at, pattern) in patterns.enumerate() {
            let folded = alias::folded(&pattern);
            let bare = folded.trim_start_matches("./").trim_end_matches('/');
            if bare.contains(['/', '*', '?', '[', '{', '\\']) {
                let rooted = bare.trim_start_matches('/');
                let anywhere = if bare.contains('/') { rooted.to_owned() } else { format!("**/{rooted}") };
                globs.add(GlobBuilder::new(&anywhere).literal_separator(true).build()?);
                of_globs.push(at);
            } else {
                for name in alias::short_name(bare).into_iter().chain([bare.to_owned()]) {
                    names.entry(name).or_insert(at);
                }
            }
            shown.push(pattern);
        }
        Ok(Self { shown, names, globs: globs.build()?, of_globs })
    }

    /// The paths from the root that those without wildcards are.
    fn literals(&self) -> Vec<PathBuf> {
        self.shown.iter().filter_map(|pattern| literal(pattern)).map(Path::to_owned).collect()
    }

    /// The first pattern that matches `path` or a directory above it; an absolute path counts from `root`.
    fn find(&self, path: &str, root: &str) -> Option<&str> {
        if self.shown.is_empty() {
            return None;
        }
        let roots = if path.starts_with('/') { alias::readings(root) } else { Vec::new() };
        alias::readings(path).iter().find_map(|all| {
            let below = roots.iter().find_map(|root| all.strip_prefix(root.as_slice()));
            let components = below.unwrap_or(all);
            (1..=components.len()).find_map(|length| self.matching(components.get(..length)?))
        })
    }

    /// The first pattern that matches the path of these components itself.
    fn matching(&self, components: &[String]) -> Option<&str> {
        let last = components.last()?;
        let named = self.names.get(last).or_else(|| self.names.get(&alias::as_short_name(last)?)).copied();
        let path = components.join("/");
        let globs = self.globs.matches_candidate(&Candidate::new(&path)).into_iter();
        let at = globs.filter_map(|glob| self.of_globs.get(glob).copied()).chain(named).min()?;
        self.shown.get(at).map(String::as_str)
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
