//! The table of models: what each costs, how long its prompts and answers may be, what it can do.

use crate::core::price::{InvalidAmount, Price, PriceQuote, TokenRates};
use crate::llm::provider_table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The table as data, made by `config/refresh-prices.py`: one model a line, sorted, so that one can be found without
/// reading the others.
const TABLE: &str = include_str!("../../config/prices.json");

/// What stands before the name of a model at the beginning of its line.
const INDENT: &str = "    \"";

/// What a provider calls the newest of a model.
const LATEST: &str = "-latest";

/// The provider whose model plays a script.
const SCRIPTED: &str = "scripted:";

/// What a model can do, as far as an agent cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Calls tools.
    Tools,
    /// Calls several tools at once.
    ParallelTools,
    /// Answers in the form of a schema.
    Schema,
    /// Its provider caches prompts.
    Cache,
    /// Reasons before it answers.
    Reasoning,
    /// Looks at images.
    Vision,
}

impl Capability {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::ParallelTools => "parallel_tools",
            Self::Schema => "schema",
            Self::Cache => "cache",
            Self::Reasoning => "reasoning",
            Self::Vision => "vision",
        }
    }
}

/// The prices of long prompts; what is absent is as for short ones.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrices {
    /// They hold for prompts of more tokens than this.
    pub above: u64,
    /// US dollars per million prompt tokens.
    pub input: Option<f64>,
    /// US dollars per million generated tokens.
    pub output: Option<f64>,
    /// US dollars per million prompt tokens read from the cache.
    pub cached_read: Option<f64>,
    /// US dollars per million prompt tokens written to the cache.
    pub cached_write: Option<f64>,
}

/// A model as the table, or a file of the user, has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// US dollars per million prompt tokens.
    pub input: f64,
    /// US dollars per million generated tokens, reasoning included.
    pub output: f64,
    /// US dollars per million prompt tokens read from the cache; absent: as `input`.
    #[serde(default)]
    pub cached_read: Option<f64>,
    /// US dollars per million prompt tokens written to the cache; absent: as `input`.
    #[serde(default)]
    pub cached_write: Option<f64>,
    /// Other prices for long prompts.
    #[serde(default)]
    pub long: Option<LongPromptPrices>,
    /// Tokens of prompt and answer that fit.
    #[serde(default)]
    pub window: Option<u64>,
    /// Tokens of the longest answer.
    #[serde(default)]
    pub output_limit: Option<u64>,
    /// What it can do.
    #[serde(default)]
    pub can: Vec<Capability>,
}

impl Model {
    /// Its prices per token.
    ///
    /// # Errors
    /// When a price is negative or absurd.
    pub fn price(&self) -> Result<Price, InvalidAmount> {
        let quote = PriceQuote {
            input: self.input,
            output: self.output,
            cached_read: self.cached_read,
            cached_write: self.cached_write,
        };
        let long = self.long.map(|long| {
            let quote = PriceQuote {
                input: long.input.unwrap_or(self.input),
                output: long.output.unwrap_or(self.output),
                cached_read: long.cached_read.or(long.input).or(self.cached_read),
                cached_write: long.cached_write.or(long.input).or(self.cached_write),
            };
            TokenRates::try_from(quote).map(|rates| (long.above, rates))
        });
        Ok(Price { rates: TokenRates::try_from(quote)?, long: long.transpose()? })
    }
}

/// What is known about a model of a name.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelInfo {
    /// A row of a table, under this name.
    Listed(String, Model),
    /// A model that nobody is paid for: on this machine, or a script.
    Free,
}

impl ModelInfo {
    /// Its prices per token.
    ///
    /// # Errors
    /// When a price of the user's table is negative or absurd.
    pub fn price(&self) -> Result<Price, InvalidAmount> {
        match self {
            Self::Listed(_, model) => model.price(),
            Self::Free => Ok(Price::FREE),
        }
    }

    /// Tokens of prompt and answer that fit, where known.
    pub fn window(&self) -> Option<u64> {
        match self {
            Self::Listed(_, model) => model.window,
            Self::Free => None,
        }
    }

    /// Tokens of its longest answer, where known.
    pub fn output_limit(&self) -> Option<u64> {
        match self {
            Self::Listed(_, model) => model.output_limit,
            Self::Free => None,
        }
    }
}

/// What is wrong with a table of prices.
#[derive(Debug, thiserror::Error)]
pub enum ModelTableError {
    /// It is not of the form of the table.
    #[error("is not a table of models: {0}")]
    Form(String),
    /// One of its prices is none.
    #[error("{0}: {1}")]
    Price(String, InvalidAmount),
}

/// Reads a table of the user: `models:` with one row a name, as JSON or YAML, the form of `config/prices.json`.
///
/// # Errors
/// When it has another form, or holds a price that is none.
pub fn parse(text: &str) -> Result<BTreeMap<String, Model>, ModelTableError> {
    #[derive(Deserialize)]
    struct Table {
        models: BTreeMap<String, Model>,
    }
    let table: Table =
        serde_yaml::from_str(text).map_err(|error| ModelTableError::Form(error.to_string()))?;
    for (name, model) in &table.models {
        model.price().map_err(|error| ModelTableError::Price(name.clone(), error))?;
    }
    Ok(table.models)
}

/// What is known about `name`: first from `own`, then from the table, then because nobody is paid for it; nothing when
/// it is not known, which is not the same as free.
///
/// A name is looked for as it is, without its provider where that provider only passes requests on, and each of these
/// without the date at its end, and with the provider's own name where others call it differently; in the table also where it
/// has dashes for points or points for dashes.
pub fn look_up(name: &str, own: &BTreeMap<String, Model>) -> Option<ModelInfo> {
    let names = names(name);
    let listed = |name: &String| own.get(name).map(|model| ModelInfo::Listed(name.clone(), model.clone()));
    names
        .iter()
        .find_map(listed)
        .or_else(|| names.iter().find_map(|name| built_in(name)))
        .or_else(|| is_free(name).then_some(ModelInfo::Free))
}

/// The names under which a model may be listed, in the order in which they are tried.
fn names(name: &str) -> Vec<String> {
    let passed_on = name.split_once('/').filter(|(provider, _)| !is_priced(provider)).map(|(_, model)| model);
    let both = [Some(name), passed_on].into_iter().flatten();
    let mut names = Vec::new();
    for name in both.flat_map(|name| [Some(name.to_owned()), by_its_own_name(name)]).flatten() {
        let undated = undated(&name).map(str::to_owned);
        names.push(name);
        names.extend(undated);
    }
    names
}

/// `gemini/x` for `google/x`, as `OpenRouter` calls that provider.
fn by_its_own_name(name: &str) -> Option<String> {
    let (provider, model) = name.split_once('/')?;
    let table = provider_table::built_in_providers().ok()?;
    let known = provider_table::find(&table, provider)?;
    (known.name != provider).then(|| format!("{}/{model}", known.name))
}

/// `gpt-4o` for `gpt-4o-2024-08-06`, `claude-haiku-4-5` for `claude-haiku-4-5-20251001`, `x` for `x-latest`.
fn undated(name: &str) -> Option<&str> {
    let bytes = |pattern: &str, text: &str| {
        text.len() == pattern.len()
            && pattern
                .bytes()
                .zip(text.bytes())
                .all(|(p, t)| if p == b'0' { t.is_ascii_digit() } else { p == t })
    };
    let cut = |pattern: &str| {
        let (head, tail) = name.split_at_checked(name.len().checked_sub(pattern.len())?)?;
        (bytes(pattern, tail) && !head.is_empty()).then_some(head)
    };
    cut("-0000-00-00").or_else(|| cut("-00000000")).or_else(|| name.strip_suffix(LATEST))
}

/// The row of the built-in table of this name; a name without a provider means the one model that is called so.
fn built_in(name: &str) -> Option<ModelInfo> {
    let called = |listed: &str| listed == name;
    let spelt = |listed: &str| spelt_alike(listed, name);
    let (listed, model) = row(&called).or_else(|| row(&spelt))?;
    Some(ModelInfo::Listed(listed.to_owned(), model?))
}

/// Whether two names differ at most in points and dashes, as those of Anthropic's models do from provider to provider:
/// `claude-sonnet-4-5`, `claude-sonnet-4.5`.
fn spelt_alike(one: &str, other: &str) -> bool {
    let dashed = |byte: u8| if byte == b'.' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(dashed).eq(other.bytes().map(dashed))
}

/// The row with a name that `is` the wanted one, with its provider or else without.
fn row(is: &dyn Fn(&str) -> bool) -> Option<(&'static str, Option<Model>)> {
    let whole = lines().find(|(listed, _)| is(listed)).map(|(listed, row)| (listed, read(row)));
    whole.or_else(|| unique_row(is))
}

/// The row of the model whose name without its provider `is` the wanted one, whoever provides it; nothing where their
/// prices differ.
fn unique_row(is: &dyn Fn(&str) -> bool) -> Option<(&'static str, Option<Model>)> {
    let mut rows = lines()
        .filter(|(listed, _)| listed.split_once('/').is_some_and(|(_, model)| is(model)))
        .map(|(listed, row)| (listed, read(row)));
    let first = rows.next()?;
    let price = |model: &Option<Model>| model.as_ref().and_then(|model| model.price().ok());
    rows.all(|(_, model)| price(&model) == price(&first.1)).then_some(first)
}

/// Whether the built-in table has prices of this provider: then it is not guessed from another's.
fn is_priced(provider: &str) -> bool {
    lines().any(|(listed, _)| listed.split_once('/').is_some_and(|(listed, _)| listed == provider))
}

/// Whether nobody is paid for the model: it runs on this machine, or it is a script.
fn is_free(name: &str) -> bool {
    let local = |provider: &str| {
        let table = provider_table::built_in_providers().unwrap_or_default();
        table.iter().any(|row| row.local && row.name == provider)
    };
    name.starts_with(SCRIPTED) || name.split_once('/').is_some_and(|(provider, _)| local(provider))
}

/// Name and row of each model, in order; a row is not read before it is asked for.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    static LINES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| TABLE.lines().filter_map(line).collect());
    LINES.iter().copied()
}

/// Name and row on a line of the table, where it is one of a model.
fn line(line: &'static str) -> Option<(&'static str, &'static str)> {
    let (name, row) = line.strip_prefix(INDENT)?.split_once('"')?;
    Some((name, row.strip_prefix(": ")?.trim_end_matches(',')))
}

/// A row; the tests read every one.
fn read(row: &str) -> Option<Model> {
    serde_json::from_str(row).ok()
}

/// Whether `name` contains `filter`, in capitals or not.
pub fn matches_filter(name: &str, filter: &str) -> bool {
    name.to_lowercase().contains(&filter.to_lowercase())
}

/// Every model of the built-in table that `filter` means, in order.
pub fn built_in_models(filter: &str) -> Vec<(&'static str, Model)> {
    lines()
        .filter(|(name, _)| matches_filter(name, filter))
        .filter_map(|(name, row)| Some((name, read(row)?)))
        .collect()
}

/// Where the built-in table comes from, and of when it is.
pub fn table_origin() -> String {
    let field = |name: &str| {
        let start = format!("  \"{name}\": \"");
        let line = TABLE.lines().find_map(|line| line.strip_prefix(start.as_str()));
        line.map(|rest| rest.trim_end_matches("\",")).unwrap_or_default()
    };
    format!("{} ({}; {})", field("date"), field("source"), field("licence"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(name: &str) -> Option<String> {
        match look_up(name, &BTreeMap::new())? {
            ModelInfo::Listed(name, _) => Some(name),
            ModelInfo::Free => Some("free".to_owned()),
        }
    }

    #[test]
    fn the_table_is_well_formed_sorted_and_of_providers_that_exist() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            about: String,
            date: String,
            source: String,
            licence: String,
            models: BTreeMap<String, Model>,
        }
        let table: Table = serde_json::from_str(TABLE).unwrap();
        assert!(
            ![&table.about, &table.date, &table.source, &table.licence].iter().any(|text| text.is_empty())
        );
        let names: Vec<&str> = lines().map(|(name, _)| name).collect();
        assert!(names.is_sorted() && names.len() > 200, "{}", names.len());
        assert_eq!(names, table.models.keys().map(String::as_str).collect::<Vec<_>>());
        for (name, row) in lines() {
            assert_eq!(read(row).as_ref(), table.models.get(name), "{name}");
            let model = read(row).unwrap();
            assert_ne!(model.price().unwrap(), Price::FREE, "{name}");
        }
        assert!(table_origin().starts_with(&table.date) && table_origin().contains("MIT"));
    }

    #[test]
    fn o26_a_model_costs_the_same_in_both_of_openais_formats() {
        for (name, _) in lines().filter(|(name, _)| name.starts_with("openai/")) {
            let newer = name.replace("openai/", "openai-responses/");
            assert_eq!(listed(&newer).as_deref(), Some(name));
        }
    }

    #[test]
    fn o26_a_model_is_found_exactly_then_without_its_provider_then_without_its_date() {
        assert_eq!(listed("openai/gpt-4o").as_deref(), Some("openai/gpt-4o"));
        assert_eq!(listed("gpt-4o").as_deref(), Some("openai/gpt-4o"));
        assert_eq!(listed("openrouter/openai/gpt-4o").as_deref(), Some("openai/gpt-4o"));
        assert_eq!(listed("litellm/gpt-4o").as_deref(), Some("openai/gpt-4o"));
        assert_eq!(listed("openai/gpt-4o-2024-08-06").as_deref(), Some("openai/gpt-4o"));
        assert_eq!(
            listed("anthropic/claude-haiku-4-5-20251001").as_deref(),
            Some("anthropic/claude-haiku-4-5")
        );
        assert_eq!(listed("claude-haiku-4-5-20251001").as_deref(), Some("anthropic/claude-haiku-4-5"));
        assert_eq!(listed("openai/mock"), None);
        for (name, found) in [
            ("openrouter/google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
            ("openrouter/x-ai/grok-4.5", "xai/grok-4.5"),
            ("litellm/mistralai/codestral-latest", "mistral/codestral-latest"),
            ("google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ] {
            assert_eq!(listed(name).as_deref(), Some(found), "{name}");
        }
    }

    #[test]
    fn o26_points_and_dashes_in_a_name_are_one_and_make_no_two_models_one() {
        for name in ["openrouter/anthropic/claude-sonnet-4.5", "litellm/claude-sonnet-4.5-20250929"] {
            assert_eq!(listed(name).as_deref(), Some("anthropic/claude-sonnet-4-5"), "{name}");
        }
        assert_eq!(listed("openrouter/openai/gpt-4-1").as_deref(), Some("openai/gpt-4.1"));
        for (name, row) in lines() {
            assert_eq!(listed(name).as_deref(), Some(name));
            // A model may be listed in both spellings.
            for (other, its) in lines().filter(|(other, _)| spelt_alike(name, other)) {
                assert_eq!(row, its, "{name}, {other}");
            }
            let model = name.split_once('/').map_or(name, |(_, model)| model);
            let alike = |other: &str| spelt_alike(name, other) || other.ends_with(&format!("/{model}"));
            for other in [name.replace('.', "-"), name.replace('-', ".")] {
                let found = listed(&other);
                assert!(found.as_deref().is_none_or(alike), "{other}: {found:?}");
            }
        }
    }

    #[test]
    fn a_price_is_not_taken_from_another_provider_that_has_its_own() {
        assert_eq!(listed("groq/gpt-4o"), None);
        assert_eq!(listed("together/kimi-k3"), None);
    }

    #[test]
    fn what_runs_here_is_free_and_the_users_own_price_wins() {
        assert_eq!(listed("ollama/qwen3:8b").as_deref(), Some("free"));
        assert_eq!(listed("scripted:demo.yaml").as_deref(), Some("free"));
        let own = parse("models:\n  ollama/qwen3: {input: 1, output: 2}\n  gpt-4o: {input: 3, output: 4}\n")
            .unwrap();
        for name in ["ollama/qwen3", "gpt-4o-2024-08-06"] {
            let Some(ModelInfo::Listed(_, model)) = look_up(name, &own) else { panic!("{name}") };
            assert!(model.input >= 1.0 && model.input <= 3.0);
        }
    }

    #[test]
    fn o26_the_example_of_the_manual_is_a_table() {
        let page = include_str!("../../config/help/costs.md");
        let lines =
            page.lines().skip_while(|line| *line != "    models:").take_while(|line| !line.is_empty());
        let example: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap()).collect();
        let table = parse(&example.join("\n")).unwrap();
        assert!(table["mycompany/coder"].price().unwrap().long.is_some());
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        for wrong in ["", "models: 3", "gpt: {input: 1, output: 2}", "models: {x: {input: 1}}"] {
            assert!(matches!(parse(wrong), Err(ModelTableError::Form(_))), "{wrong}");
        }
        let wrong = parse("models: {x: {input: -1, output: 2}}");
        assert!(matches!(wrong, Err(ModelTableError::Price(name, _)) if name == "x"));
    }

    proptest! {
        #[test]
        fn any_name_can_be_looked_up(name in "[a-z0-9/:é.-]{0,30}", table in any::<String>()) {
            let _ = look_up(&name, &parse(&table).unwrap_or_default());
        }
    }
}
