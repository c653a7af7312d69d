//! `guardrails.code_rules`: regular expressions of code that edits must not write, matched against the lines that they add.

use super::edit::Edit;
use crate::file_patterns::FilePatterns;
use agent_text::diff::LineReplacement;
use agent_text::lines::BOM;
use agent_text::pattern;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Number of unchanged lines before and after a change that a match may include.
const CONTEXT_LINES: usize = 20;

/// Maximum bytes of these lines on either side.
const CONTEXT_BYTES: usize = 4096;

/// Maximum number of skipped matches that end before a change; each search may scan all of a long change.
const MAX_SKIPPED_MATCHES: usize = 32;

/// Effect of a match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CodeSeverity {
    /// The change is made, and the model receives a remark.
    #[default]
    Warn,
    /// Nothing is written, and the model receives the refusal.
    Block,
}

/// A configured rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeRule {
    /// Regular expression of code that must not be written.
    #[schemars(extend("x-format" = "regex"))]
    pub pattern: String,
    /// Message for the model: why, and what to write instead.
    #[schemars(extend("x-format" = "filled"))]
    pub message: String,
    /// Effect of a match.
    #[serde(default)]
    pub severity: CodeSeverity,
    /// File pattern of the files to which it applies; absent: all.
    #[serde(default)]
    #[schemars(extend("x-format" = "glob"))]
    pub path: Option<String>,
}

/// A rule that cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CodeRuleError {
    /// An invalid regular expression.
    #[error(transparent)]
    Pattern(#[from] regex::Error),
    /// An invalid file pattern.
    #[error(transparent)]
    Path(#[from] globset::Error),
}

/// A match of a rule in a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Index of the rule, from 0.
    pub index: usize,
    /// Effect of the match.
    pub severity: CodeSeverity,
    /// Position, message and pattern.
    pub text: String,
}

/// The compiled rules.
#[derive(Debug, Clone)]
pub struct CodeRules {
    rules: Vec<Rule>,
    root: String,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: Regex,
    message: String,
    severity: CodeSeverity,
    path: Option<FilePatterns>,
}

impl CodeRules {
    /// Compiles `rules`; absolute paths are made relative to `root`.
    ///
    /// # Errors
    /// When a pattern is not valid.
    pub fn new(rules: Vec<CodeRule>, root: String) -> Result<Self, CodeRuleError> {
        let rules = rules.into_iter().map(Rule::new).collect::<Result<_, _>>()?;
        Ok(Self { rules, root })
    }

    /// Checks whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the first match of each rule in `edit`.
    pub fn find(&self, edit: &Edit) -> Vec<Finding> {
        let Some(new) = edit.new.as_deref().filter(|_| !self.is_empty()) else { return Vec::new() };
        let new = new.strip_prefix(BOM).unwrap_or(new);
        let windows = windows(new, &edit.replaced);
        let finding = |(index, rule): (usize, &Rule)| {
            if !rule.applies_to(edit, &self.root) {
                return None;
            }
            let line = windows.iter().find_map(|window| window.first_match(&rule.pattern))?;
            let text = format!("{}:{line}: {} (pattern: {})", edit.display_path, rule.message, rule.pattern);
            Some(Finding { index, severity: rule.severity, text })
        };
        self.rules.iter().enumerate().filter_map(finding).collect()
    }
}

impl Rule {
    fn new(rule: CodeRule) -> Result<Self, CodeRuleError> {
        let CodeRule { pattern, message, severity, path } = rule;
        let path = path.map(|glob| FilePatterns::new(std::iter::once(glob))).transpose()?;
        Ok(Self { pattern: pattern::case_sensitive(&pattern)?, message, severity, path })
    }

    fn applies_to(&self, edit: &Edit, root: &str) -> bool {
        let names = [&edit.path, &edit.display_path];
        self.path.as_ref().is_none_or(|glob| names.iter().any(|name| glob.find(name, root).is_some()))
    }
}

/// Changed lines with their context.
struct Window<'a> {
    text: &'a str,
    /// The number of its first line, from 1.
    line: usize,
    /// Byte range of the new text; empty when lines were only removed.
    changed: Range<usize>,
}

/// Returns the windows of `text` around its new lines.
fn windows<'a>(text: &'a str, replaced: &[LineReplacement]) -> Vec<Window<'a>> {
    let mut starts: Vec<usize> = vec![0];
    starts.extend(text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    let start = |line: usize| starts.get(line).copied().unwrap_or(text.len());
    let window = |part: &LineReplacement| {
        let changed = start(part.new.start)..start(part.new.end);
        let lines = part.new.start.saturating_sub(CONTEXT_LINES)..=part.new.start;
        let first = lines.into_iter().find(|line| changed.start - start(*line) <= CONTEXT_BYTES)?;
        let lines = (part.new.end..=part.new.end + CONTEXT_LINES).rev();
        let end = lines.map(start).find(|end| end - changed.end <= CONTEXT_BYTES)?;
        let from = start(first);
        let text = text.get(from..end)?;
        Some(Window { text, line: first + 1, changed: changed.start - from..changed.end - from })
    };
    replaced.iter().filter_map(window).collect()
}

impl Window<'_> {
    /// Returns the line of the first match that includes new text or the position of removed text.
    fn first_match(&self, pattern: &Regex) -> Option<usize> {
        let mut at = 0;
        for _ in 0..MAX_SKIPPED_MATCHES {
            let found = pattern.find_at(self.text, at).filter(|found| found.start() < self.changed.end)?;
            if found.end().max(found.start() + 1) > self.changed.start {
                return Some(self.line_of(found.start()));
            }
            at = self.after(found.range());
        }
        let found = pattern.find_at(self.text, self.changed.start)?;
        (found.start() < self.changed.end).then(|| self.line_of(found.start()))
    }

    /// Returns where to continue the search after a match, which may be empty.
    fn after(&self, found: Range<usize>) -> usize {
        let rest = self.text.get(found.end..).unwrap_or_default();
        let step = rest.chars().next().filter(|_| found.is_empty()).map_or(0, char::len_utf8);
        found.end + step
    }

    fn line_of(&self, at: usize) -> usize {
        self.line + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_text::diff;
    use proptest::prelude::*;

    fn rule(pattern: &str, path: Option<&str>) -> CodeRule {
        let (pattern, path) = (pattern.to_owned(), path.map(str::to_owned));
        CodeRule { pattern, message: "not here".to_owned(), severity: CodeSeverity::Block, path }
    }

    fn edit(path: &str, old: &str, new: Option<&str>) -> Edit {
        let replaced = diff::changed_lines(old, new.unwrap_or_default());
        Edit { path: path.to_owned(), display_path: path.to_owned(), new: new.map(str::to_owned), replaced }
    }

    /// Returns the positions at which `pattern` matches the change from `old` to `new`.
    fn found(pattern: &str, old: &str, new: &str) -> Vec<String> {
        let rules = CodeRules::new(vec![rule(pattern, None)], "/w".to_owned()).unwrap();
        let places = rules.find(&edit("a.py", old, Some(new)));
        places.iter().map(|found| found.text.split(": not here").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn s16_only_what_is_new_is_held_against_a_rule() {
        assert_eq!(found("eval", "", "a\neval(x)\n"), ["a.py:2"]);
        assert_eq!(found("eval", "eval(x)\n", "eval(x)\nb\n"), Vec::<String>::new());
        assert_eq!(found("eval", "eval(x)\n", "eval(y)\n"), ["a.py:1"], "the line is written anew");
        assert_eq!(found("eval", "ev\n", "eval\n"), ["a.py:1"], "the line, not the letters");
        assert_eq!(found("eval", "eval\n", ""), Vec::<String>::new());
    }

    #[test]
    fn s16_a_match_may_reach_over_lines_and_into_those_around() {
        let old = "try:\n    f()\nexcept:\n    log()\n";
        let new = "try:\n    f()\nexcept:\n    pass\n";
        assert_eq!(found(r"except:\n\s*pass", old, new), ["a.py:3"]);
        assert_eq!(found("^    pass$", old, new), ["a.py:4"], "anchors are those of lines");
        assert_eq!(
            found("a\nb", "a\nx\nb\n", "a\nb\n"),
            ["a.py:1"],
            "what was taken out brought them together"
        );
        assert_eq!(found("a\nb", "a\nb\nx\n", "a\nb\n"), Vec::<String>::new());
        assert_eq!(
            found("^bad$", "", "\u{feff}bad\r\n"),
            ["a.py:1"],
            "whatever the file begins and its lines end with"
        );
        let (before, after) = ("e\n".repeat(1000), "f\n".repeat(1000));
        let text = |middle: &str| format!("{before}{middle}{after}");
        assert_eq!(found("new", &text("old\n"), &text("new\n")), ["a.py:1001"]);
    }

    #[test]
    fn s16_what_stands_before_and_behind_a_change_is_passed_over() {
        assert_eq!(found("eval", "a\neval(x)\n", "b\neval(x)\n"), Vec::<String>::new());
        assert_eq!(found("^$", "a\n", "a\n\n"), ["a.py:2"], "a match may be empty");
        assert_eq!(found("^$|old\nnew", "\nold\n", "\nold\nnew\n"), ["a.py:2"], "behind an empty one");
        let many = "AAAA\n".repeat(CONTEXT_LINES);
        assert_eq!(found("A", &format!("{many}b\nA\n"), &format!("{many}c\nA\n")), Vec::<String>::new());
        assert_eq!(found("A|c", &format!("{many}b\n"), &format!("{many}c\n")), ["a.py:21"]);
    }

    #[test]
    fn s16_what_surrounds_a_change_is_bounded_however_long_its_lines_are() {
        let around = |length: usize| {
            let line = "L".repeat(length);
            let (before, after) = (format!("{line}\nnew\n"), format!("new\n{line}\n"));
            let first = found("L\nnew", &format!("{line}\nold\n"), &before);
            (first.len(), found("new\nL", &format!("old\n{line}\n"), &after).len())
        };
        assert_eq!((around(CONTEXT_BYTES - 1), around(CONTEXT_BYTES)), ((1, 1), (0, 0)));
    }

    #[test]
    fn s16_a_rule_is_about_its_files() {
        let rules =
            CodeRules::new(vec![rule("x", Some("*.py")), rule("x", Some("src/"))], "/w".to_owned()).unwrap();
        let about = |path: &str| {
            rules.find(&edit(path, "", Some("x"))).iter().map(|found| found.index).collect::<Vec<_>>()
        };
        assert_eq!((about("a.py"), about("src/a.py"), about("a.rs")), (vec![0], vec![0, 1], vec![]));
        assert!(rules.find(&edit("a.py", "x", None)).is_empty(), "a file that goes");
    }

    #[test]
    fn s16_a_pattern_that_is_none_is_an_error() {
        assert!(CodeRules::new(vec![rule("(", None)], String::new()).is_err());
        assert!(CodeRules::new(vec![rule("x{1000}{1000}{1000}", None)], String::new()).is_err(), "too large");
        assert!(CodeRules::new(vec![rule("x", Some("["))], String::new()).is_err());
    }

    #[test]
    fn s16_a_pattern_that_looks_far_for_every_match_takes_no_longer_than_others() {
        let new = format!("{}\n{}", "A".repeat(4000), "A".repeat(1 << 20));
        let old = format!("{}\n", "A".repeat(4000));
        assert_eq!(found(".*[^A-Z]z|B", &old, &new), Vec::<String>::new());
        assert_eq!(found("[^A]*?z|A", &old, &new), ["a.py:2"], "behind many that are old");
    }

    proptest! {
        #[test]
        fn s16_a_new_line_that_matches_is_found_wherever_it_is_put(
            lines in prop::collection::vec("[a-c]{0,3}\n", 0..30), at in 0usize..30,
        ) {
            let at = at.min(lines.len());
            let (before, after) = lines.split_at(at);
            let (before, after) = (before.concat(), after.concat());
            let (old, new) = (format!("{before}{after}"), format!("{before}bad\n{after}"));
            prop_assert_eq!(found("^bad$", &old, &new), [format!("a.py:{}", at + 1)]);
            prop_assert_eq!(found("^bad$", &new, &old), Vec::<String>::new());
        }

        #[test]
        fn s16_what_is_found_is_a_match_of_the_new_text(
            old in "([a-c]{0,3}\n){0,8}", new in "([a-c]{0,3}\n?){0,8}", pattern in prop::sample::select(vec!["a", "bc", "a\nb", "c*", "^", "$", "", "b+\n?", "(a|c)$"]),
        ) {
            let is_there = Regex::new(&format!("(?m){pattern}")).unwrap().is_match(&new);
            prop_assert!(is_there || found(pattern, &old, &new).is_empty());
        }
    }
}
