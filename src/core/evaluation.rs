//! Self-evaluation: the model judges its own answer before a run counts as done; what is wanted of that, and what it found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What follows from an answer that was found wanting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvaluationMode {
    /// No answer is evaluated.
    #[default]
    Off,
    /// The run ends as partial.
    Basic,
    /// The model is told and goes on, some times; then the run ends as partial with the best of its answers.
    Full,
}

impl EvaluationMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Basic, Self::Full];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Basic => "basic",
            Self::Full => "full",
        }
    }
}

/// How sure somebody is, from 0 to 1, to six decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(u32);

/// A number that is no confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a confidence is a number from 0 to 1")]
pub struct InvalidConfidence;

/// Parts of one that are told apart.
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

/// What a run is held to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationLimits {
    /// What follows from an answer that was found wanting.
    pub mode: EvaluationMode,
    /// How often the model is told what is wanting.
    pub max_retries: u32,
    /// The confidence that an answer needs.
    #[schemars(with = "f64", range(min = 0.0, max = 1.0))]
    pub threshold: Confidence,
}

/// What the model says of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the task is done.
    pub completed: bool,
    /// How sure that is.
    pub confidence: Confidence,
    /// What is wanting.
    pub issues: Vec<String>,
    /// What to do about it.
    pub suggestion: String,
}

/// Why nobody knows what an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationErrorKind {
    /// The model could not be asked, or gave no reply.
    NotMade,
    /// Its reply is not what was asked for.
    Unreadable,
}

/// Why nobody knows what an answer is worth, in words too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationError {
    /// The class.
    pub kind: EvaluationErrorKind,
    /// In words.
    pub message: String,
}

/// What an evaluation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// What follows from an answer that was found wanting.
    pub mode: EvaluationMode,
    /// Whether the run counts as done: the task is, with confidence enough.
    pub passed: bool,
    /// Whether the task is done; false when nobody knows.
    pub completed: bool,
    /// How sure that is, from 0 to 1; 0 when nobody knows.
    #[schemars(with = "f64", range(min = 0.0, max = 1.0))]
    pub confidence: Confidence,
    /// What is wanting.
    pub issues: Vec<String>,
    /// What to do about it; empty where nothing was suggested.
    pub suggestion: String,
    /// Which answer of the run was evaluated, from 1; in the result of a run that whose answer is its output.
    pub round: u32,
    /// How many answers of the run were, this one included.
    pub rounds: u32,
    /// Why nobody knows what the answer is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
}

impl Evaluation {
    /// What an answer is worth beside others of the run.
    pub fn rank(&self) -> impl Ord {
        (self.was_performed(), self.completed, self.confidence)
    }

    /// Whether the model can be told what is wanting.
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
