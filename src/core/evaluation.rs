//! Self-evaluation of an answer by the model before a run counts as done: its limits and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens when an answer does not pass its evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum EvaluationMode {
    /// No answer is evaluated.
    #[default]
    Off,
    /// The run ends as partial.
    Basic,
    /// The shortcomings are sent to the model, which tries again, a limited number of times. Then the run ends as partial
    /// with the best answer.
    Full,
}

crate::impl_name!(EvaluationMode);

/// A confidence from 0 to 1, with six decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(u32);

/// A number that is not a confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a confidence is a number from 0 to 1")]
pub struct InvalidConfidence;

/// Units in a confidence of 1.
const MILLIONTHS: f64 = 1_000_000.0;

impl TryFrom<f64> for Confidence {
    type Error = InvalidConfidence;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and a million"
    )]
    fn try_from(number: f64) -> Result<Self, InvalidConfidence> {
        (0.0..=1.0)
            .contains(&number)
            .then(|| Self((number * MILLIONTHS).round() as u32))
            .ok_or(InvalidConfidence)
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        Self::from(confidence.0) / MILLIONTHS
    }
}

/// Limits of the evaluation in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationLimits {
    /// What happens when an answer does not pass.
    pub mode: EvaluationMode,
    /// How often the shortcomings are sent to the model.
    pub max_retries: u32,
    /// The confidence that an answer needs to pass.
    #[schemars(with = "f64", range(min = 0.0, max = 1.0))]
    pub threshold: Confidence,
}

/// The model's assessment of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the task is done.
    pub completed: bool,
    /// Confidence of the assessment.
    pub confidence: Confidence,
    /// Shortcomings of the answer.
    pub issues: Vec<String>,
    /// How to fix them.
    pub suggestion: String,
}

/// Class of an evaluation error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationErrorKind {
    /// The model could not be called, or gave no reply.
    NotMade,
    /// The reply does not have the requested form.
    Unreadable,
}

/// Why an answer could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationError {
    /// Class of the error.
    pub kind: EvaluationErrorKind,
    /// Description of the error.
    pub message: String,
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// What happens when an answer does not pass.
    pub mode: EvaluationMode,
    /// Whether the run counts as done: the task is done, with enough confidence.
    pub passed: bool,
    /// Whether the task is done; false if unknown.
    pub completed: bool,
    /// Confidence of the assessment, from 0 to 1; 0 if unknown.
    #[schemars(with = "f64", range(min = 0.0, max = 1.0))]
    pub confidence: Confidence,
    /// Shortcomings of the answer.
    pub issues: Vec<String>,
    /// How to fix them; empty without a suggestion.
    pub suggestion: String,
    /// Number of the evaluated answer in the run, from 1; in the result of a run, the number of the answer in `output`.
    pub round: u32,
    /// Number of answers evaluated in the run, including this one.
    pub rounds: u32,
    /// Why the answer could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
}

impl Evaluation {
    /// Returns a key that orders the answers of a run by quality.
    pub fn rank(&self) -> impl Ord {
        (self.was_performed(), self.completed, self.confidence)
    }

    /// Checks whether the model replied to the request for an evaluation.
    pub fn was_performed(&self) -> bool {
        self.error.as_ref().is_none_or(|error| error.kind != EvaluationErrorKind::NotMade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_a_number_from_0_to_1_and_stays_what_it_is() {
        for text in ["0.0", "0.1", "0.29", "0.333333", "0.8", "1.0"] {
            let confidence: Confidence = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&confidence).unwrap(), text);
        }
        for number in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::try_from(number), Err(InvalidConfidence), "{number}");
        }
    }
}
