//! The executors of `fleet.executors`: programs that do tasks in place of the agent's own loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// The executors with today's flags, as they are in the configuration.
const PRESETS: &str = include_str!("../../config/executors.yaml");

/// Time limit of an executor that sets none, in seconds.
const DEFAULT_TIMEOUT: u64 = 300;

/// Part of an argument that is replaced by the prompt.
const PROMPT: &str = "{prompt}";
/// Parts that are replaced by the system prompt of the agent of a Hub, as it is and as a string of JSON.
const SYSTEM_PROMPT: [&str; 2] = ["{system_prompt}", "{system_prompt_json}"];

/// How an executor gets the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromptInput {
    /// As `{prompt}` in its arguments; its standard input is closed.
    #[default]
    Arg,
    /// On its standard input.
    Stdin,
}

/// What an executor writes to standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Text, which is the answer.
    #[default]
    Text,
    /// A JSON document.
    Json,
}

/// Where the figures of a run are in its output: regular expressions with one group, or JSON pointers (RFC 6901) in a JSON document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FigurePlaces {
    /// The answer; absent: the whole output.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub answer: Option<String>,
    /// Tokens that it sent.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub tokens_input: Option<String>,
    /// Tokens that it received.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub tokens_output: Option<String>,
    /// Its cost in US dollars.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub cost_usd: Option<String>,
}

impl FigurePlaces {
    /// Returns these places, with those that are missing from `preset`.
    fn or(self, preset: Self) -> Self {
        Self {
            answer: self.answer.or(preset.answer),
            tokens_input: self.tokens_input.or(preset.tokens_input),
            tokens_output: self.tokens_output.or(preset.tokens_output),
            cost_usd: self.cost_usd.or(preset.cost_usd),
        }
    }
}

/// Where the value of a variable of an executor comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecutorVariable {
    /// Name of an environment variable of yours.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "variable"))]
    pub from: Option<String>,
    /// The value itself, in which the same is replaced as in arguments; one that is empty then is left out.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub value: Option<String>,
}

/// A file of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutorFile {
    /// Its path below the home directory.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub path: String,
    /// Its text, in which the same is replaced as in arguments, and `{system_prompt_json}`.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub text: String,
}

/// A program that does tasks (`agent help fleet`). What is absent is that of the built-in executor with the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Executor {
    /// Whether it may be used (true); one that no key names may not.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub enabled: Option<bool>,
    /// The program, on `PATH` or an absolute path.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub command: Option<String>,
    /// Its arguments, in which `{prompt}`, `{system_prompt}`, `{model}`, its `{provider}` and `{model_name}`, and `{home}` are replaced. No shell
    /// reads them.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub args: Option<Vec<String>>,
    /// Arguments after them for a task that names a model.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub model_args: Option<Vec<String>>,
    /// Environment variables, besides `PATH` and the like: `{from: VARIABLE}` of yours, left out if it is not set, or `{value: TEXT}`.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "variable"))]
    pub env: Option<BTreeMap<String, ExecutorVariable>>,
    /// Files that are written into its home directory before it starts.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub files: Option<Vec<ExecutorFile>>,
    /// How it gets the prompt: as `{prompt}` in an `arg`, or on `stdin`.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub prompt: Option<PromptInput>,
    /// What it writes to standard output: `text`, or a `json` document.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub output: Option<OutputFormat>,
    /// Where tokens, cost and answer are in its output.
    pub patterns: FigurePlaces,
    /// Time limit of a run (300).
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "never-from-project", "x-unit" = "seconds"))]
    pub timeout: Option<u64>,
    /// Whether it reaches the network (false).
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub network: Option<bool>,
    /// Hosts that it reaches without that, as in `sandbox.allowed_hosts`.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "host-port"))]
    pub allowed_hosts: Option<Vec<String>>,
    /// How it is installed, for the message if it is not.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "filled"))]
    pub install: Option<String>,
}

impl Executor {
    /// Returns this executor, with what it leaves out from `preset`.
    fn or(self, preset: Self) -> Self {
        Self {
            command: self.command.or(preset.command),
            args: self.args.or(preset.args),
            model_args: self.model_args.or(preset.model_args),
            env: self.env.or(preset.env),
            files: self.files.or(preset.files),
            prompt: self.prompt.or(preset.prompt),
            output: self.output.or(preset.output),
            patterns: self.patterns.or(preset.patterns),
            enabled: self.enabled.or(preset.enabled),
            timeout: self.timeout.or(preset.timeout),
            network: self.network.or(preset.network),
            allowed_hosts: self.allowed_hosts.or(preset.allowed_hosts),
            install: self.install.or(preset.install),
        }
    }

    /// Returns the program and its arguments.
    pub fn argv(&self, inputs: &ExecutorInputs<'_>) -> Vec<String> {
        let args = self.args.iter().flatten();
        let model_args = self.model_args.iter().flatten().filter(|_| inputs.model.is_some());
        self.command.iter().cloned().chain(args.chain(model_args).map(|word| inputs.fill(word))).collect()
    }

    /// Returns its environment variables; `variable` reads those of the user, and one that is not set is left out.
    pub fn variables(
        &self,
        inputs: &ExecutorInputs<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> BTreeMap<String, String> {
        let value = |source: &ExecutorVariable| match (&source.from, &source.value) {
            (Some(name), _) => variable(name),
            (None, Some(text)) => {
                Some(inputs.fill(text)).filter(|value| !value.is_empty() || text.is_empty())
            }
            (None, None) => None,
        };
        let env = self.env.iter().flatten();
        env.filter_map(|(name, source)| Some((name.clone(), value(source)?))).collect()
    }

    /// Returns the paths of files below its home directory, and their texts.
    pub fn files(&self, inputs: &ExecutorInputs<'_>) -> Vec<(&str, String)> {
        self.files.iter().flatten().map(|file| (file.path.as_str(), inputs.fill(&file.text))).collect()
    }

    /// Returns whether it gets the system prompt apart from the prompt.
    pub fn takes_system_prompt(&self) -> bool {
        let files = self.files.iter().flatten().map(|file| &file.text);
        let mut texts = self.args.iter().flatten().chain(files);
        texts.any(|text| SYSTEM_PROMPT.iter().any(|part| text.contains(part)))
    }

    /// Returns the time limit of a run in seconds.
    pub fn timeout(&self) -> u64 {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// What an executor gets for a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExecutorInputs<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The system prompt of the agent of a Hub; empty without one.
    pub system_prompt: &'a str,
    /// The model that the task names.
    pub model: Option<&'a str>,
    /// Its home directory.
    pub home: &'a str,
}

impl ExecutorInputs<'_> {
    /// Returns `template` with these in place of their names. What is put in is not looked at again.
    fn fill(&self, template: &str) -> String {
        let model = self.model.unwrap_or_default();
        let (provider, name) = model.split_once('/').unwrap_or(("", model));
        let [system_prompt, system_prompt_json] = SYSTEM_PROMPT;
        let values: [(&str, Cow<'_, str>); 8] = [
            (PROMPT, self.prompt.into()),
            (system_prompt, self.system_prompt.into()),
            (system_prompt_json, serde_json::Value::from(self.system_prompt).to_string().into()),
            ("{model}", model.into()),
            ("{provider}", provider.into()),
            ("{provider|openai}", if provider.is_empty() { "openai" } else { provider }.into()),
            ("{model_name}", name.into()),
            ("{home}", self.home.into()),
        ];
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, from_brace)) = rest.find('{').map(|at| rest.split_at(at)) {
            filled.push_str(before);
            let found = values.iter().find_map(|(name, value)| Some((from_brace.strip_prefix(name)?, value)));
            let (after, value) = found.map_or((&from_brace[1..], "{"), |(after, value)| (after, value));
            filled.push_str(value);
            rest = after;
        }
        filled + rest
    }
}

/// Returns the executor `name` of the user, with what it leaves out from the built-in one.
///
/// # Errors
/// Fails if the user has not named it, if it has no program or nowhere for the prompt, and for files outside of its home directory.
pub fn executor(users: &BTreeMap<String, Executor>, name: &str) -> Result<Executor, String> {
    let Some(own) = users.get(name).filter(|own| own.enabled != Some(false)) else {
        let known: Vec<&str> = users.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!(
            "the executor {name} is not among those of `fleet.executors` ({known}); `fleet: {{executors: {{{name}: {{enabled: true}}}}}}` in your configuration allows it"
        ));
    };
    let executor = own.clone().or(presets()?.remove(name).unwrap_or_default());
    if executor.command.is_none() {
        return Err(format!("the executor {name} has no `fleet.executors.{name}.command`"));
    }
    let takes_prompt = executor.args.iter().flatten().any(|word| word.contains(PROMPT));
    if executor.prompt.unwrap_or_default() == PromptInput::Arg && !takes_prompt {
        return Err(format!(
            "the executor {name} gets no prompt: write `{{prompt}}` in `fleet.executors.{name}.args`, or set `prompt: stdin`"
        ));
    }
    let is_outside = |path: &str| {
        let mut parts = Path::new(path).components();
        path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(file) = executor.files.iter().flatten().find(|file| is_outside(&file.path)) {
        return Err(format!(
            "`fleet.executors.{name}.files`: {:?} is not a path below a directory",
            file.path
        ));
    }
    Ok(executor)
}

/// Returns the built-in executors.
fn presets() -> Result<BTreeMap<String, Executor>, String> {
    serde_yaml::from_str(PRESETS).map_err(|error| format!("the built-in executors: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(yaml: &str) -> BTreeMap<String, Executor> {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn every_built_in_executor_has_a_program_and_gets_the_prompt() {
        for name in presets().unwrap().keys() {
            let executor = executor(&users(&format!("{name}: {{}}")), name).unwrap();
            assert!(executor.install.is_some(), "{name}");
            // It would be an option.
            let inputs = ExecutorInputs { prompt: "--do it", ..ExecutorInputs::default() };
            let is_alone = executor.argv(&inputs).contains(&"--do it".to_owned());
            assert!(!is_alone || name.ends_with("-seed"), "{name}");
        }
    }

    #[test]
    fn an_executor_is_the_built_in_one_with_what_the_user_sets() {
        let users = users(
            "aider: {network: true, args: ['--message={prompt}']}\nmine: {args: [x]}\nold: {command: x}\nbad: {command: x, prompt: stdin, files: [{path: ../x, text: y}]}",
        );
        let aider = executor(&users, "aider").unwrap();
        let inputs =
            ExecutorInputs { prompt: "a {model} {prompt}", model: Some("m"), ..ExecutorInputs::default() };
        assert_eq!(aider.argv(&inputs), ["aider", "--message=a {model} {prompt}", "--model", "m"]);
        assert_eq!((aider.network, aider.timeout()), (Some(true), 300));
        for (name, why) in [
            ("goose", "is not among"),
            ("mine", "has no"),
            ("old", "gets no prompt"),
            ("bad", "below a directory"),
        ] {
            let error = executor(&users, name).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn all_that_an_executor_gets_is_put_in_once() {
        let inputs =
            ExecutorInputs { prompt: "{model}", system_prompt: "a\n\"b\"", model: Some("p/m"), home: "/h" };
        let filled =
            inputs.fill("{{prompt}} {x} {system_prompt_json}{system_prompt} {provider} {model} {home}/{");
        assert_eq!(filled, "{{model}} {x} \"a\\n\\\"b\\\"\"a\n\"b\" p p/m /h/{");
    }

    // Fault B12.
    #[test]
    fn a_model_without_a_provider_is_one_of_openai_for_goose_and_no_model_is_no_variable() {
        let goose = executor(&users("goose: {}"), "goose").unwrap();
        let given = |model| {
            let inputs = ExecutorInputs { model, ..ExecutorInputs::default() };
            let mut variables = goose.variables(&inputs, |_| None);
            ["GOOSE_PROVIDER", "GOOSE_MODEL"].map(|name| variables.remove(name).unwrap_or_default())
        };
        assert_eq!(given(Some("anthropic/claude")), ["anthropic", "claude"]);
        assert_eq!(given(Some("openrouter/a/b")), ["openrouter", "a/b"]);
        assert_eq!(given(Some("gpt")), ["openai", "gpt"]);
        assert_eq!(given(None), ["openai", ""]);
    }
}
