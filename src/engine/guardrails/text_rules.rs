//! `guardrails.text_rules`: regular expressions matched against the model's input and output.

use agent_core::guardrail::{ConversationSide, GuardrailAction, Severity, TriggeredGuardrail};
use agent_text::pattern;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A configured rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextRule {
    /// Name in the log and the result.
    #[schemars(extend("x-format" = "filled"))]
    pub name: String,
    /// Side of the conversation that it checks.
    pub on: ConversationSide,
    /// Regular expression of text that must not occur.
    #[schemars(extend("x-format" = "regex"))]
    pub pattern: String,
    /// Reason: sent to the model, or the answer of a run that the rule ends.
    #[schemars(extend("x-format" = "filled"))]
    pub message: String,
    /// Severity; it is only reported and has no other effect.
    #[serde(default)]
    pub severity: Severity,
    /// Action on a match.
    pub action: GuardrailAction,
}

/// The compiled rules.
#[derive(Debug, Clone)]
pub struct TextRules(Vec<(Regex, TriggeredGuardrail)>);

impl TextRules {
    /// Compiles `rules`.
    ///
    /// # Errors
    /// When a pattern is not a valid regular expression.
    pub fn new(rules: Vec<TextRule>) -> Result<Self, regex::Error> {
        let compile = |rule: TextRule| {
            let TextRule { name, on, pattern, message, severity, action } = rule;
            Ok((
                pattern::case_sensitive(&pattern)?,
                TriggeredGuardrail { name, on, severity, action, message },
            ))
        };
        rules.into_iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Checks whether any rule applies to `side`.
    pub fn checks_side(&self, side: ConversationSide) -> bool {
        self.0.iter().any(|(_, rule)| rule.on == side)
    }

    /// Returns the first rule that matches `text`.
    pub fn find(&self, side: ConversationSide, text: &str) -> Option<&TriggeredGuardrail> {
        let fits = |(pattern, rule): &&(Regex, TriggeredGuardrail)| rule.on == side && pattern.is_match(text);
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
            rule("a", ConversationSide::Input, "^x$", GuardrailAction::Block),
            rule("b", ConversationSide::Output, "x", GuardrailAction::Halt),
            rule("c", ConversationSide::Output, "xy", GuardrailAction::Block),
        ])
        .unwrap();
        let found = |side, text| rules.find(side, text).map(|rule| rule.name.as_str());
        assert_eq!(found(ConversationSide::Input, "y\nx\n"), Some("a"));
        assert_eq!(
            (found(ConversationSide::Input, "xy"), found(ConversationSide::Output, "wxyz")),
            (None, Some("b"))
        );
        assert!(
            rules.checks_side(ConversationSide::Input)
                && !TextRules::new(Vec::new()).unwrap().checks_side(ConversationSide::Output)
        );
        assert!(
            TextRules::new(vec![rule("d", ConversationSide::Input, "(", GuardrailAction::Halt)]).is_err()
        );
    }
}
