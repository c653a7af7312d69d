//! `policy.rules`: what people have said about calls, in their order; the first rule that matches decides.
//!
//! A command is judged by its parts. A rule that forbids or asks matches a part that it may be about; a rule that allows
//! matches what it is certainly about, and allows a command only when every part of it is allowed. Of rules that a part may
//! be about, where its text does not tell, the strictest decides: no rule in front of another one lets it through.

use super::command_class::program::{self, Program};
use super::command_parts::{CommandPart, visit_parts};
use super::file_patterns::FilePatterns;
use crate::fetch::page_url::HostPattern;
use crate::text::shell::Word;
use crate::tools::Plan;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rule does with the calls that it matches; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They run without a question, in every mode.
    Allow,
    /// A person is asked, in every mode.
    Ask,
    /// They do not run, in no mode.
    Deny,
}

/// One rule as it is configured. It matches a call when all that it names fits; what it does not name fits always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// What becomes of the call.
    pub action: Action,
    /// The tool's name; `*` stands for any letters.
    #[schemars(extend("x-format" = "glob"))]
    pub tool: Option<String>,
    /// A file pattern, as in ignore files.
    #[schemars(extend("x-format" = "glob"))]
    pub path: Option<String>,
    /// The words that a command begins with.
    #[schemars(extend("x-format" = "filled"))]
    pub command: Option<String>,
    /// A host of the web: `example.org`, `*.example.org` for all below, `*` for every one.
    #[schemars(extend("x-format" = "host"))]
    pub host: Option<String>,
    /// The agent.
    #[schemars(extend("x-format" = "agent-name"))]
    pub agent: Option<String>,
    /// Why: read by the person who is asked and by the model that is refused.
    #[schemars(extend("x-format" = "filled"))]
    pub reason: Option<String>,
}

/// A rule that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("policy.rules[{index}]: {problem}")]
pub struct RuleError {
    index: usize,
    problem: String,
}

/// What the rules say about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What becomes of it.
    pub action: Action,
    /// The rule's name, `policy.rules[0]`.
    pub rule: String,
    /// Why, in the words of who wrote the rule.
    pub reason: Option<String>,
}

/// The rules that hold for an agent, compiled.
#[derive(Debug, Clone)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    index: usize,
    action: Action,
    tool: Option<GlobMatcher>,
    path: Option<FilePatterns>,
    command: Option<Vec<String>>,
    host: Option<HostPattern>,
    reason: Option<String>,
}

impl Rules {
    /// Compiles those of `rules` that hold for `agent`.
    ///
    /// # Errors
    /// A pattern that is none.
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

    /// What the rules say about a call of `tool`; nothing where none of them does.
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

/// The first rule that matches a part; the strictest of those up to the first that certainly does.
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
        let glob = |text: &String| GlobBuilder::new(text).build().map(|glob| glob.compile_matcher());
        let paths = |text: &String| FilePatterns::new(std::iter::once(text.clone()));
        Ok(Self {
            index,
            action: rule.action,
            tool: rule.tool.as_ref().map(glob).transpose().map_err(|error| format!("tool: {error}"))?,
            path: rule.path.as_ref().map(paths).transpose().map_err(|error| format!("path: {error}"))?,
            command: rule.command.as_ref().map(|text| text.split_whitespace().map(str::to_owned).collect()),
            host: rule
                .host
                .as_deref()
                .map(HostPattern::parse)
                .transpose()
                .map_err(|error| format!("host {error}"))?,
            reason: rule.reason.clone(),
        })
    }

    /// Whether all fits but the words of the command.
    fn applies_to(&self, tool: &str, plan: &Plan, root: &str) -> bool {
        let names = |pattern: &HostPattern| plan.host.as_ref().is_some_and(|host| pattern.matches(host));
        self.tool.as_ref().is_none_or(|glob| glob.is_match(tool))
            && self.host.as_ref().is_none_or(names)
            && self.path.as_ref().is_none_or(|pattern| self.applies_to_files(pattern, plan, root))
            && (self.command.is_none() || plan.command.is_some())
    }

    /// A command touches more than the files that it names, so that none of them says that it may run.
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

    /// Whether a rule that matches a part is about it whatever the shell makes of the text.
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

/// Whether these are certainly the first words.
fn starts_with_words(words: &[Word], wanted: &[String]) -> bool {
    words.len() >= wanted.len()
        && words.iter().zip(wanted).all(|(word, wanted)| word.is_literal && word.text == *wanted)
}

/// Whether it may be called with these first words, whatever directory it is in and whichever options stand between.
fn may_start_with(program: &Program<'_>, placeholder: Option<&str>, wanted: &[String]) -> bool {
    let Some((name, rest)) = wanted.split_first() else { return false };
    let mut args = program.args.iter();
    (!program.has_literal_name || program.name == program::name(name))
        && rest.iter().all(|wanted| may_follow(&mut args, placeholder, wanted))
}

/// Whether `wanted` may be next, behind options and a value for each; words from elsewhere may be where their placeholder is, and at
/// the end.
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
