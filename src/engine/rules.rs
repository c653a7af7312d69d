//! The configured `policy.rules`: the first rule that matches a call decides.
//!
//! Commands are matched by their parts. A `deny` or `ask` rule matches every part that it possibly covers. An `allow` rule
//! matches only parts that it certainly covers, and a command is allowed only when every part is. If the text of a part does
//! not determine which rule covers it, the strictest possible rule decides, whatever their order.

use super::command_class::program::{self, Program};
use super::command_class::{CommandOptions, classify};
use super::command_parts::{CommandPart, visit_parts};
use super::file_patterns::FilePatterns;
use agent_core::message::MCP_PREFIX;
use agent_fetch::page_url::HostPattern;
use agent_mcp::definition::{SEPARATOR, server_and_tool};
use agent_text::shell::Word;
use agent_tools::Plan;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Action of a rule, in order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call runs without approval, in every mode.
    Allow,
    /// The call needs approval, in every mode.
    Ask,
    /// The call never runs, in any mode.
    Deny,
}

/// A configured rule. It matches a call when all of its conditions match; missing conditions always match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The action on a matching call.
    pub action: Action,
    /// Glob on the tool's name; in `mcp__SERVER__TOOL` one on the server's name and one on the tool's.
    #[schemars(extend("x-format" = "glob"))]
    pub tool: Option<String>,
    /// File pattern, as in ignore files.
    #[schemars(extend("x-format" = "glob"))]
    pub path: Option<String>,
    /// First words of a command.
    #[schemars(extend("x-format" = "filled"))]
    pub command: Option<String>,
    /// Web host: `example.org`, `*.example.org` for all subdomains, `*` for every host.
    #[schemars(extend("x-format" = "host"))]
    pub host: Option<String>,
    /// Whether the rule leaves alone commands that cannot be undone, or reach beyond the workspace or the machine.
    pub confined: Option<bool>,
    /// Name of the agent.
    #[schemars(extend("x-format" = "agent-name"))]
    pub agent: Option<String>,
    /// Reason, shown to the user in the question and to the model in the refusal.
    #[schemars(extend("x-format" = "filled"))]
    pub reason: Option<String>,
}

impl PolicyRule {
    /// Creates a rule that allows all calls of the tools whose names match the glob `tool`.
    pub fn allow(tool: &str) -> Self {
        Self { tool: Some(tool.to_owned()), ..Self::all(Action::Allow) }
    }

    fn all(action: Action) -> Self {
        Self {
            action,
            tool: None,
            path: None,
            command: None,
            host: None,
            confined: None,
            agent: None,
            reason: None,
        }
    }
}

/// A rule that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("policy.rules[{index}]: {problem}")]
pub struct RuleError {
    index: usize,
    problem: String,
}

/// Decision of a rule on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The action.
    pub action: Action,
    /// The rule's name, `policy.rules[0]`.
    pub rule: String,
    /// The configured reason.
    pub reason: Option<String>,
}

/// The compiled rules of an agent.
#[derive(Debug, Clone)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    index: usize,
    action: Action,
    tool: Option<ToolPattern>,
    path: Option<FilePatterns>,
    command: Option<Vec<String>>,
    host: Option<HostPattern>,
    confined: bool,
    reason: Option<String>,
}

/// Globs on the name of a tool.
#[derive(Debug, Clone)]
enum ToolPattern {
    /// On the whole name.
    Name(GlobMatcher),
    /// On the names of a server and of its tool, so that no `*` reaches from one into the other.
    OfServer(GlobMatcher, GlobMatcher),
}

impl ToolPattern {
    /// Compiles a pattern: `mcp__SERVER__TOOL`, or one of the whole name. A `__` within braces separates nothing.
    fn new(text: &str) -> Result<Self, globset::Error> {
        let glob = |text: &str| GlobBuilder::new(text).build().map(|glob| glob.compile_matcher());
        let of_server = text.strip_prefix(MCP_PREFIX).unwrap_or_default();
        let parts = of_server.match_indices(SEPARATOR).find_map(|(at, _)| {
            let (server, tool) = (of_server.get(..at)?, of_server.get(at + SEPARATOR.len()..)?);
            Some(Self::OfServer(glob(server).ok()?, glob(tool).ok()?))
        });
        parts.map_or_else(|| glob(text).map(Self::Name), Ok)
    }

    fn is_match(&self, name: &str) -> bool {
        match self {
            Self::Name(glob) => glob.is_match(name),
            Self::OfServer(server, tool) => {
                server_and_tool(name).is_some_and(|named| server.is_match(named.0) && tool.is_match(named.1))
            }
        }
    }
}

impl Rules {
    /// Compiles the rules that apply to `agent`.
    ///
    /// # Errors
    /// When a pattern is not valid.
    pub(super) fn new(rules: &[PolicyRule], agent: &str) -> Result<Self, RuleError> {
        let holds = |rule: &PolicyRule| rule.agent.as_ref().is_none_or(|wanted| wanted == agent);
        let compile = |(index, rule): (usize, &PolicyRule)| {
            Rule::new(index, rule).map_err(|problem| RuleError { index, problem })
        };
        rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| holds(rule))
            .map(compile)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the decision of the rules on a call of `tool`; `None` when no rule matches.
    pub(super) fn decide(&self, tool: &str, plan: &Plan, root: &str) -> Option<Ruling> {
        let about: Vec<&Rule> = self.0.iter().filter(|rule| rule.applies_to(tool, plan, root)).collect();
        if about.is_empty() {
            return None;
        }
        let Some(command) = &plan.command else { return about.first().map(|rule| rule.ruling()) };
        let mut firsts: Vec<Option<&Rule>> = Vec::new();
        visit_parts(command, &mut |part| firsts.push(first(&about, &part)));
        let strictest = firsts.iter().flatten().rev().max_by_key(|rule| rule.action)?;
        let holds = strictest.action != Action::Allow || firsts.iter().all(Option::is_some);
        holds.then(|| strictest.ruling())
    }
}

/// Returns the strictest of the rules that match a part, up to and including the first that certainly covers it.
fn first<'a>(about: &[&'a Rule], part: &CommandPart<'_>) -> Option<&'a Rule> {
    let mut strictest: Option<&Rule> = None;
    for rule in about.iter().copied().filter(|rule| rule.matches(part)) {
        if strictest.is_none_or(|other| rule.action > other.action) {
            strictest = Some(rule);
        }
        if rule.is_certain(part) {
            break;
        }
    }
    strictest
}

impl Rule {
    fn new(index: usize, rule: &PolicyRule) -> Result<Self, String> {
        let tool = |text: &String| ToolPattern::new(text);
        let paths = |text: &String| FilePatterns::new(std::iter::once(text.clone()));
        Ok(Self {
            index,
            action: rule.action,
            tool: rule.tool.as_ref().map(tool).transpose().map_err(|error| format!("tool: {error}"))?,
            path: rule.path.as_ref().map(paths).transpose().map_err(|error| format!("path: {error}"))?,
            command: rule.command.as_ref().map(|text| text.split_whitespace().map(str::to_owned).collect()),
            host: rule
                .host
                .as_deref()
                .map(HostPattern::parse)
                .transpose()
                .map_err(|error| format!("host {error}"))?,
            confined: rule.confined == Some(true),
            reason: rule.reason.clone(),
        })
    }

    /// Checks all conditions except the words of the command.
    fn applies_to(&self, tool: &str, plan: &Plan, root: &str) -> bool {
        let names = |pattern: &HostPattern| plan.host.as_ref().is_some_and(|host| pattern.matches(host));
        self.tool.as_ref().is_none_or(|pattern| pattern.is_match(tool))
            && self.host.as_ref().is_none_or(names)
            && self.path.as_ref().is_none_or(|pattern| self.applies_to_files(pattern, plan, root))
            && (self.command.is_none() || plan.command.is_some())
            && !(self.confined && plan.command.as_deref().is_some_and(is_risky))
    }

    /// Checks the file pattern. An `allow` rule with a path never matches a command, which may touch files that it does not
    /// name.
    fn applies_to_files(&self, pattern: &FilePatterns, plan: &Plan, root: &str) -> bool {
        let mut fitting = plan.touched_files.iter().map(|touch| pattern.find(&touch.path, root).is_some());
        match self.action {
            Action::Allow => {
                plan.command.is_none() && !plan.touched_files.is_empty() && fitting.all(|fits| fits)
            }
            Action::Ask | Action::Deny => fitting.any(|fits| fits),
        }
    }

    fn matches(&self, part: &CommandPart<'_>) -> bool {
        let Some(wanted) = &self.command else { return true };
        match self.action {
            Action::Allow => part.is_plain && starts_with_words(part.words, wanted),
            Action::Ask | Action::Deny => {
                !part.is_known
                    || part.program.is_some_and(|program| may_start_with(program, part.placeholder, wanted))
            }
        }
    }

    /// Checks whether a matching rule covers a part with certainty, whatever the shell expands.
    fn is_certain(&self, part: &CommandPart<'_>) -> bool {
        let Some(wanted) = &self.command else { return true };
        let is_literal =
            |program: &Program<'_>| program.has_literal_name && program.args.iter().all(|arg| arg.is_literal);
        let is_whole = part.is_known && part.placeholder.is_none();
        starts_with_words(part.words, wanted) || (is_whole && part.program.is_some_and(is_literal))
    }

    fn ruling(&self) -> Ruling {
        let rule = format!("policy.rules[{}]", self.index);
        Ruling { action: self.action, rule, reason: self.reason.clone() }
    }
}

/// Checks whether a command cannot be undone, or reaches beyond the workspace or the machine.
fn is_risky(command: &str) -> bool {
    !classify(command, &CommandOptions::default()).risks.is_empty()
}

/// Checks whether `words` certainly start with `wanted`.
fn starts_with_words(words: &[Word], wanted: &[String]) -> bool {
    words.len() >= wanted.len()
        && words.iter().zip(wanted).all(|(word, wanted)| word.is_literal && word.text == *wanted)
}

/// Checks whether a program call may start with `wanted`, ignoring the program's directory and any options in between.
fn may_start_with(program: &Program<'_>, placeholder: Option<&str>, wanted: &[String]) -> bool {
    let Some((name, rest)) = wanted.split_first() else { return false };
    let mut args = program.args.iter();
    (!program.has_literal_name || program.name == program::name(name))
        && rest.iter().all(|wanted| may_follow(&mut args, placeholder, wanted))
}

/// Checks whether `wanted` may be the next argument after options with at most one value each. Inserted words may be at
/// their placeholder and at the end.
fn may_follow<'a>(
    args: &mut impl Iterator<Item = &'a Word>,
    placeholder: Option<&str>,
    wanted: &str,
) -> bool {
    let mut may_be_value = false;
    for arg in args {
        let is_option = arg.text.starts_with('-');
        let is_open =
            !arg.is_literal || placeholder.is_some_and(|placeholder| arg.text.contains(placeholder));
        if arg.text == wanted || (is_open && !is_option) {
            return true;
        }
        if !is_option && !may_be_value {
            return false;
        }
        may_be_value = is_option;
    }
    placeholder.is_some()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
