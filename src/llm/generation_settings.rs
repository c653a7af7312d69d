//! Thinking settings and temperature of a request, chosen by the model's name, its format and its server.

use crate::effort::{Effort, Thinking};
use crate::model_rules;
use crate::quirks::{Quirks, ThinkingField};
use crate::wire_format::WireFormat;
use serde::Deserialize;

/// Table of the thinking settings that models accept.
const TABLE: &str = include_str!("../../config/effort.json");

/// Effort levels that `OpenRouter` accepts for every model; it maps them to the levels of the model's own server
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>).
const ROUTED: [Effort; 6] =
    [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh];
/// Levels of a model whose thinking can only be switched on or off.
const SWITCH: [Effort; 2] = [Effort::None, Effort::High];

/// When a model accepts a sampling temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TemperatureSupport {
    #[default]
    Always,
    /// Only while thinking is off.
    Unthinking,
    Never,
}

/// The settings that one family of models accepts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRule {
    levels: Vec<Effort>,
    /// Smallest and largest token budget, if the model takes a budget.
    #[serde(default)]
    budget: Option<[u32; 2]>,
    #[serde(default)]
    temperature: TemperatureSupport,
    /// Whether the model can think and call tools only in the Responses format.
    #[serde(default)]
    responses: bool,
}

/// Settings for the requests to one model, and warnings for the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationSettings {
    /// Thinking setting to send.
    pub thinking: Option<Thinking>,
    /// Sampling temperature, if the model accepts one.
    pub temperature: Option<f64>,
    /// Options of the user that are not sent as requested, one sentence each.
    pub warnings: Vec<String>,
}

/// Returns the settings to send for the user's options. The table is read only if an option is set.
///
/// # Errors
/// When the embedded table is malformed, which a test rules out.
pub fn generation_settings(
    effort: Option<Effort>,
    temperature: Option<f64>,
    model: &str,
    format: WireFormat,
    quirks: Quirks,
) -> serde_json::Result<GenerationSettings> {
    if effort.is_none() && temperature.is_none() {
        return Ok(GenerationSettings::default());
    }
    let rule: Option<ModelRule> = model_rules::find(TABLE, model)?;
    let rule = rule.as_ref();
    let mut settings = GenerationSettings { temperature, ..GenerationSettings::default() };
    if let Some(effort) = effort {
        settings.thinking = thinking(effort, rule, format, quirks);
        settings.warnings.extend(warning(effort, settings.thinking, model));
    }
    let thinks = settings.thinking.is_some_and(Thinking::is_enabled);
    let refused = match rule.map(|rule| rule.temperature).unwrap_or_default() {
        TemperatureSupport::Always => false,
        TemperatureSupport::Unthinking => thinks,
        TemperatureSupport::Never => true,
    };
    if refused && settings.temperature.take().is_some() {
        let when = if thinks { " while it thinks" } else { "" };
        settings.warnings.push(format!("llm.temperature is not sent: {model} does not accept it{when}"));
    }
    Ok(settings)
}

/// Checks whether `OpenAI` refuses tool calls of `model` in Chat Completions because it thinks.
///
/// # Errors
/// As [`generation_settings`].
pub fn requires_responses_api(model: &str) -> serde_json::Result<bool> {
    Ok(model_rules::find(TABLE, model)?.is_some_and(|rule: ModelRule| rule.responses))
}

/// Checks whether `model` thinks before it answers: as set in `thinking`, or else as listed in the table.
///
/// # Errors
/// As [`generation_settings`].
pub fn thinks(model: &str, thinking: Option<Thinking>) -> serde_json::Result<bool> {
    if let Some(thinking) = thinking {
        return Ok(thinking.is_enabled());
    }
    Ok(model_rules::find::<ModelRule>(TABLE, model)?.is_some())
}

fn thinking(
    effort: Effort,
    rule: Option<&ModelRule>,
    format: WireFormat,
    quirks: Quirks,
) -> Option<Thinking> {
    let level = |levels: &[Effort]| effort.closest(levels);
    let word = || rule.and_then(|rule| level(&rule.levels)).map(Thinking::Effort);
    let number = |rule: &ModelRule| {
        let [least, most] = rule.budget?;
        let tokens = level(&rule.levels)?.tokens();
        Some(Thinking::Budget(if tokens == 0 { 0 } else { tokens.clamp(least, most) }))
    };
    let switch_or_word = || match rule {
        Some(rule) if rule.levels == SWITCH => {
            level(&SWITCH).map(|level| Thinking::Switch(level == Effort::High))
        }
        _ => word(),
    };
    match format {
        WireFormat::Responses => word(),
        WireFormat::Messages | WireFormat::Gemini => rule.and_then(number).or_else(word),
        WireFormat::Ollama => switch_or_word(),
        WireFormat::ChatCompletions => match quirks.thinking? {
            ThinkingField::ReasoningEffort => word(),
            ThinkingField::Reasoning => level(&ROUTED).map(Thinking::Effort),
            ThinkingField::Thinking | ThinkingField::EnableThinking => {
                Some(Thinking::Switch(effort != Effort::None))
            }
            ThinkingField::ChatTemplate => switch_or_word(),
        },
    }
}

/// Returns a warning if the setting that is sent differs from the requested level.
fn warning(effort: Effort, thinking: Option<Thinking>, model: &str) -> Option<String> {
    let requested = effort.name();
    match thinking {
        None => Some(format!(
            "llm.effort is not sent: it is not known how to set the thinking of {model} ({requested}); see `agent help thinking`"
        )),
        Some(Thinking::Effort(sent)) if sent != effort => {
            Some(format!("llm.effort: {model} does not support `{requested}`, so `{}` is sent", sent.name()))
        }
        Some(Thinking::Budget(tokens)) if (tokens == 0) != (effort == Effort::None) => {
            Some(format!("llm.effort: {model} cannot disable thinking, so {tokens} tokens of it are allowed"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effort::{High, Low, Max, Medium, Minimal, None as Off, Xhigh};
    use serde_json::Value;
    use std::collections::BTreeMap;
    use strum::VariantArray;

    fn settings_for(
        model: &str,
        format: WireFormat,
        field: Option<ThinkingField>,
        effort: Effort,
    ) -> GenerationSettings {
        let quirks = Quirks { thinking: field, ..Quirks::default() };
        generation_settings(Some(effort), None, model, format, quirks).unwrap()
    }

    fn sent(model: &str, format: WireFormat, effort: Effort) -> Option<Thinking> {
        settings_for(model, format, Some(ThinkingField::ReasoningEffort), effort).thinking
    }

    #[test]
    fn the_table_is_sorted_and_its_levels_go_from_weak_to_strong() {
        let table: BTreeMap<String, Value> = serde_json::from_str(TABLE).unwrap();
        let models = BTreeMap::<String, ModelRule>::deserialize(&table["models"]).unwrap();
        let lines: Vec<&str> = TABLE.lines().filter(|line| line.starts_with("    \"")).collect();
        assert!(lines.is_sorted() && lines.len() == models.len());
        for (name, rule) in &models {
            assert!(rule.levels.is_sorted_by(|a, b| a < b), "{name}");
            assert!(rule.budget.is_none_or(|[least, most]| least < most), "{name}");
        }
        assert!(Effort::VARIANTS.is_sorted_by(|a, b| a < b && a.tokens() < b.tokens()));
    }

    #[test]
    fn each_generation_of_models_gets_its_own_thinking_setting() {
        let cases = [
            ("claude-opus-4-7", WireFormat::Messages, Xhigh, Thinking::Effort(Xhigh)),
            ("claude-opus-4-6-20260205", WireFormat::Messages, Off, Thinking::Effort(Off)),
            ("claude-haiku-4-5", WireFormat::Messages, Medium, Thinking::Budget(8_192)),
            ("claude-haiku-4-5", WireFormat::Messages, Off, Thinking::Budget(0)),
            ("gemini-3.8-flash", WireFormat::Gemini, High, Thinking::Effort(High)),
            ("models/gemini-2.5-pro", WireFormat::Gemini, Max, Thinking::Budget(32_000)),
            ("gemini-2.5-flash-lite", WireFormat::Gemini, Off, Thinking::Budget(0)),
            ("gpt-5.2", WireFormat::Responses, Xhigh, Thinking::Effort(Xhigh)),
            ("openai/gpt-oss-120b", WireFormat::ChatCompletions, Low, Thinking::Effort(Low)),
            ("gpt-oss:20b", WireFormat::Ollama, High, Thinking::Effort(High)),
            ("qwen3:8b", WireFormat::Ollama, Low, Thinking::Switch(false)),
            ("qwen3:8b", WireFormat::Ollama, Max, Thinking::Switch(true)),
        ];
        for (model, format, effort, expected) in cases {
            assert_eq!(sent(model, format, effort), Some(expected), "{model} {effort:?}");
        }
    }

    #[test]
    fn an_unsupported_level_becomes_the_next_weaker_one_with_a_warning() {
        let settings = settings_for("gpt-5.1", WireFormat::Responses, None, Max);
        assert_eq!(settings.thinking, Some(Thinking::Effort(High)));
        assert!(
            settings.warnings[0].contains("does not support `max`, so `high` is sent"),
            "{:?}",
            settings.warnings
        );
        let settings = settings_for("gemini-2.5-pro", WireFormat::Gemini, None, Off);
        assert_eq!(settings.thinking, Some(Thinking::Budget(1_024)));
        assert!(settings.warnings[0].contains("cannot disable thinking"), "{:?}", settings.warnings);
        assert_eq!(sent("o3", WireFormat::Responses, Minimal), Some(Thinking::Effort(Low)));
    }

    #[test]
    fn an_unknown_setting_is_not_sent_and_gives_a_warning() {
        for (model, format) in [
            ("gpt-4o", WireFormat::ChatCompletions),
            ("gpt-5-chat-latest", WireFormat::Responses),
            ("llama3.3", WireFormat::Ollama),
            ("some-proxy-model", WireFormat::Messages),
        ] {
            let settings = settings_for(model, format, Some(ThinkingField::ReasoningEffort), High);
            assert_eq!((settings.thinking, settings.warnings.len()), (None, 1), "{model}");
        }
        assert_eq!(settings_for("gpt-oss", WireFormat::ChatCompletions, None, High).thinking, None);
    }

    #[test]
    fn compatible_servers_get_the_thinking_setting_in_their_own_field() {
        let chat =
            |field, effort| settings_for("x", WireFormat::ChatCompletions, Some(field), effort).thinking;
        assert_eq!(chat(ThinkingField::Reasoning, Max), Some(Thinking::Effort(Xhigh)));
        assert_eq!(chat(ThinkingField::Thinking, Off), Some(Thinking::Switch(false)));
        assert_eq!(chat(ThinkingField::EnableThinking, Low), Some(Thinking::Switch(true)));
    }

    #[test]
    fn newer_models_of_openai_demand_their_newer_format() {
        let demands = |model| requires_responses_api(model).unwrap();
        assert!(demands("gpt-5.6-terra") && demands("gpt-5.4-2026-03-05") && demands("gpt-6-sol"));
        assert!(!demands("gpt-5.2") && !demands("gpt-4o") && !demands("mock"));
    }

    #[test]
    fn a_temperature_is_not_sent_to_models_that_refuse_it() {
        let settings_of = |model, effort| {
            generation_settings(effort, Some(0.5), model, WireFormat::Messages, Quirks::default()).unwrap()
        };
        assert_eq!(settings_of("claude-opus-4-6", None).temperature, Some(0.5));
        assert_eq!(settings_of("claude-opus-4-6", Some(High)).temperature, None);
        assert_eq!(settings_of("claude-opus-4-6", Some(Off)).temperature, Some(0.5));
        let refused = settings_of("claude-opus-4-7", None);
        assert_eq!(refused.temperature, None);
        assert!(refused.warnings[0].contains("llm.temperature is not sent"), "{:?}", refused.warnings);
        assert_eq!(settings_of("anything", Some(High)).temperature, Some(0.5));
    }
}
