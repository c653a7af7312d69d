//! `guardrails.text_rules`: regular expressions held against what the model is about to read and what it has written.

use crate::guardrail::{Reaction, Severity, Side, Triggered};
use crate::text::pattern;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One rule as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextRule {
    /// What it is called in the log and the result.
    #[schemars(extend("x-format" = "filled"))]
    pub name: String,
    /// Which side of the conversation it looks at.
    pub on: Side,
    /// A regular expression of what is not to stand there.
    #[schemars(extend("x-format" = "regex"))]
    pub pattern: String,
    /// Why: read by the model, or the answer of a run that it ends.
    #[schemars(extend("x-format" = "filled"))]
    pub message: String,
    /// How grave it is; it changes nothing but what is told.
    #[serde(default)]
    pub severity: Severity,
    /// What happens.
    pub action: Reaction,
}

/// The rules, compiled.
#[derive(Debug, Clone)]
pub struct TextRules(Vec<(Regex, Triggered)>);

impl TextRules {
    /// Compiles `rules`.
    ///
    /// # Errors
    /// A pattern that is no regular expression.
    pub fn new(rules: Vec<TextRule>) -> Result<Self, regex::Error> {
        let compile = |rule: TextRule| {
            let TextRule { name, on, pattern, message, severity, action } = rule;
            Ok((pattern::exact(&pattern)?, Triggered { name, on, severity, action, message }))
        };
        rules.into_iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Whether some of them look at `side`.
    pub fn look_at(&self, side: Side) -> bool {
        self.0.iter().any(|(_, rule)| rule.on == side)
    }

    /// What the first of them says that finds something in `text`.
    pub fn find(&self, side: Side, text: &str) -> Option<&Triggered> {
        let fits = |(pattern, rule): &&(Regex, Triggered)| rule.on == side && pattern.is_match(text);
        self.0.iter().find(fits).map(|(_, rule)| rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s19_the_first_rule_of_a_side_that_matches_counts() {
        let rule = |name: &str, on, pattern: &str, action| TextRule {
            name: name.to_owned(),
            on,
            pattern: pattern.to_owned(),
            message: "no".to_owned(),
            severity: Severity::High,
            action,
        };
        let rules = TextRules::new(vec![
            rule("a", Side::Input, "^x$", Reaction::Block),
            rule("b", Side::Output, "x", Reaction::Halt),
            rule("c", Side::Output, "xy", Reaction::Block),
        ])
        .unwrap();
        let found = |side, text| rules.find(side, text).map(|rule| rule.name.as_str());
        assert_eq!(found(Side::Input, "y\nx\n"), Some("a"));
        assert_eq!((found(Side::Input, "xy"), found(Side::Output, "wxyz")), (None, Some("b")));
        assert!(rules.look_at(Side::Input) && !TextRules::new(Vec::new()).unwrap().look_at(Side::Output));
        assert!(TextRules::new(vec![rule("d", Side::Input, "(", Reaction::Halt)]).is_err());
    }
}
