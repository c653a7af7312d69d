//! Definitions of the agents of a Hub: `ID/config.yaml` and `ID/system-prompt.md` in the directory `hub.agents`.
//!
//! A definition chooses a prompt and a model, and narrows what the worker allows; it never allows more.

use super::error::ConfigError;
use super::text_file::{is_absent, read_text, resolve_inside};
use super::yaml::{self, Content, Node};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// How much an agent may post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostLimits {
    /// Posts of a day.
    pub daily_posts: u32,
    /// Comments of a day.
    pub daily_comments: u32,
    /// Comments in one thread.
    pub per_thread: u32,
    /// Least time between two posts or comments, in seconds.
    pub min_interval: u64,
}

impl Default for PostLimits {
    fn default() -> Self {
        Self { daily_posts: 5, daily_comments: 50, per_thread: 3, min_interval: 60 }
    }
}

/// Maximum bytes of each of the two files.
const MAX_FILE_BYTES: u64 = 128 << 10;
/// The files of an agent.
const CONFIG_FILE: &str = "config.yaml";
const PROMPT_FILE: &str = "system-prompt.md";
/// Time for which a definition is kept in memory unless it says otherwise, in seconds.
const CACHE_SECONDS: u64 = 300;
/// The value of `executor` for the agent itself.
pub const OWN: &str = "own";
/// Model calls of an activation.
pub const MAX_ITERATIONS: u32 = 10;

/// Keys without effect here: they were read by the system that the format is from. Where a key of the worker is sent only its user says
/// (`llm.providers`).
const WITHOUT_EFFECT: [&str; 14] = [
    "brain.api_base",
    "brain.api_key_env",
    "capabilities.mcp_servers",
    "capabilities.spawning",
    "capabilities.shell.allowed_commands",
    "interests.topics",
    "interests.follow_agents",
    "behavior.respond_to_dms",
    "behavior.discovery.frequency",
    "behavior.discovery.respond_to_questions",
    "behavior.discovery.respond_to_discussions",
    "behavior.discovery.min_confidence",
    "memory",
    "network.blocked_hosts",
];

/// The setting for `brain.max_tokens`.
pub const MAX_OUTPUT_TOKENS: &str = "llm.max_output_tokens";
/// The setting for `capabilities.shell.timeout_seconds`.
pub const COMMAND_TIMEOUT: &str = "commands.default_timeout";

/// A definition.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct AgentDefinition {
    /// The system prompt.
    pub prompt: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Further settings of its runs, by key.
    pub settings: Vec<(String, Value)>,
    /// The program that answers, of `fleet.executors` of the worker; absent: the agent itself.
    pub executor: Option<String>,
    /// Maximum number of model calls.
    pub max_steps: u32,
    /// Whether it may run commands, if the worker allows them.
    pub has_commands: bool,
    /// Regular expressions of commands that it may not run.
    pub blocked_commands: Vec<String>,
    /// Whether it has a network, if the worker allows it.
    pub has_network: bool,
    /// Whether it answers mentions, and replies.
    pub answers: (bool, bool),
    /// Whether it may create posts of its own.
    pub may_post: bool,
    /// Whether it looks for posts by itself.
    pub explores: bool,
    /// How much it may post.
    pub limits: PostLimits,
    /// Communities and keywords of posts that it looks for.
    pub interests: (Vec<String>, Vec<String>),
    /// Grants that it asks for.
    pub grants: Vec<String>,
    /// Skills that it is offered besides those whose triggers match.
    pub skills: Vec<String>,
    /// Time for which it is kept in memory, in seconds.
    pub cache_seconds: u64,
    /// Keys without effect, for the user.
    pub warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    brain: Brain,
    capabilities: Capabilities,
    interests: Interests,
    behavior: Behavior,
    network: Network,
    system_prompt: Option<String>,
    cache_ttl: Option<u64>,
    executor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Brain {
    model: Option<String>,
    provider: Option<String>,
    temperature: Option<f64>,
    max_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    grants: Vec<String>,
    skills: Vec<String>,
    shell: Shell,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shell {
    enabled: bool,
    allowed_commands: Vec<String>,
    blocked_patterns: Vec<String>,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Interests {
    communities: Vec<String>,
    keywords: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct Behavior {
    respond_to_mentions: bool,
    respond_to_replies: bool,
    max_iterations: u32,
    can_create_posts: bool,
    max_daily_posts: Option<u32>,
    max_daily_comments: Option<u32>,
    discovery: Discovery,
    limits: Limits,
}

impl Default for Behavior {
    fn default() -> Self {
        Self {
            respond_to_mentions: true,
            respond_to_replies: true,
            max_iterations: MAX_ITERATIONS,
            can_create_posts: true,
            max_daily_posts: None,
            max_daily_comments: None,
            discovery: Discovery::default(),
            limits: Limits::default(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Discovery {
    enabled: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Limits {
    max_daily_posts: Option<u32>,
    max_daily_comments: Option<u32>,
    max_responses_per_thread: Option<u32>,
    min_interval_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct Network {
    enabled: bool,
    allowed_hosts: Vec<String>,
}

impl Default for Network {
    fn default() -> Self {
        Self { enabled: true, allowed_hosts: Vec::new() }
    }
}

impl Behavior {
    fn post_limits(&self) -> PostLimits {
        let (own, or) = (&self.limits, PostLimits::default());
        let daily_posts = own.max_daily_posts.or(self.max_daily_posts);
        let daily_comments = own.max_daily_comments.or(self.max_daily_comments);
        PostLimits {
            daily_posts: daily_posts.unwrap_or(or.daily_posts),
            daily_comments: daily_comments.unwrap_or(or.daily_comments),
            per_thread: own.max_responses_per_thread.unwrap_or(or.per_thread),
            min_interval: own.min_interval_seconds.unwrap_or(or.min_interval),
        }
    }
}

impl AgentDefinition {
    /// Returns what holds for all agents without `hub.agents`.
    pub fn of_worker() -> Self {
        Self {
            max_steps: MAX_ITERATIONS,
            has_commands: true,
            has_network: true,
            answers: (true, true),
            may_post: true,
            explores: true,
            grants: vec!["hub:read".to_owned(), "hub:write".to_owned()],
            cache_seconds: CACHE_SECONDS,
            ..Self::default()
        }
    }

    /// Returns the names of the directories in `directory`, each of which may have a definition, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn ids(directory: &Path) -> std::io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let name = entry?.file_name().into_string();
            ids.extend(name.into_iter().filter(|name| directory.join(name).join(CONFIG_FILE).is_file()));
        }
        ids.sort();
        Ok(ids)
    }

    /// Reads the definition of the agent `id` below `directory`; `None` if there is none.
    ///
    /// # Errors
    /// Fails for a file that cannot be read, is too large, or has a value of the wrong type. No link leads out of the directory.
    pub fn read(directory: &Path, id: &str) -> Result<Option<Self>, ConfigError> {
        let root = directory.canonicalize().map_err(|error| {
            let why = if is_absent(&error) { "does not exist".to_owned() } else { error.to_string() };
            ConfigError::new(format!("the directory {} {why}", directory.display())).key("hub.agents")
        })?;
        let text = |name: &str| {
            let relative = Path::new(id).join(name);
            let shown = directory.join(&relative).display().to_string();
            let path = resolve_inside(&root, &relative).map_err(|error| error.file(&shown))?;
            let text = path.map(|path| read_text(&path, MAX_FILE_BYTES)).transpose();
            Ok::<_, ConfigError>((text.map_err(|error| error.file(&shown))?.flatten(), shown))
        };
        let (config, shown) = text(CONFIG_FILE)?;
        let Some(config) = config else { return Ok(None) };
        let (prompt, _) = text(PROMPT_FILE)?;
        Self::parse(id, &config, prompt).map(Some).map_err(|error| error.file(&shown))
    }

    fn parse(id: &str, config: &str, prompt: Option<String>) -> Result<Self, ConfigError> {
        let value = value(&yaml::parse(config)?);
        let mut warnings = without_effect(&value);
        let file: File =
            serde_json::from_value(value).map_err(|error| ConfigError::new(error.to_string()))?;
        let File { brain, capabilities, interests, behavior, network, system_prompt, cache_ttl, executor } =
            file;
        let Capabilities { grants, skills, shell } = capabilities;
        let executor = executor.filter(|name| name != OWN);
        let is_bounded =
            !shell.enabled || !shell.allowed_commands.is_empty() || !shell.blocked_patterns.is_empty();
        if executor.is_some() && is_bounded {
            let why =
                "an executor runs any command: it needs capabilities.shell.enabled without lists of commands";
            return Err(ConfigError::new(why).key("executor"));
        }
        if executor.is_some() && behavior.discovery.enabled {
            let why = "an executor only answers: it cannot post, so behavior.discovery must not be enabled";
            return Err(ConfigError::new(why).key("executor"));
        }
        if !shell.allowed_commands.is_empty() && shell.enabled {
            warnings
                .push("capabilities.shell.allowed_commands cannot be kept to: it has no commands".to_owned());
        }
        if !network.allowed_hosts.is_empty() {
            warnings.push("network.allowed_hosts has no effect: those of the worker apply".to_owned());
        }
        let limits = behavior.post_limits();
        let prompt = prompt.or(system_prompt).filter(|prompt| !prompt.trim().is_empty());
        let own = [
            (format!("agents.{id}.system_prompt"), prompt.clone().map(Value::from)),
            ("llm.temperature".to_owned(), brain.temperature.map(Value::from)),
            (MAX_OUTPUT_TOKENS.to_owned(), brain.max_tokens.map(Value::from)),
            (COMMAND_TIMEOUT.to_owned(), shell.timeout_seconds.map(Value::from)),
        ];
        let model = brain.model.map(|model| match brain.provider {
            Some(provider) if !model.contains('/') => format!("{provider}/{model}"),
            _ => model,
        });
        Ok(Self {
            prompt,
            model,
            settings: own.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
            executor,
            max_steps: behavior.max_iterations,
            has_commands: shell.enabled && shell.allowed_commands.is_empty(),
            blocked_commands: shell.blocked_patterns,
            has_network: network.enabled,
            answers: (behavior.respond_to_mentions, behavior.respond_to_replies),
            may_post: behavior.can_create_posts,
            explores: behavior.discovery.enabled,
            limits,
            interests: (interests.communities, interests.keywords),
            grants,
            skills,
            cache_seconds: cache_ttl.unwrap_or(CACHE_SECONDS),
            warnings,
        })
    }
}

fn value(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(value) => value.clone(),
        Content::List(items) => items.iter().map(value).collect(),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.name.clone(), value(&entry.node))).collect())
        }
    }
}

/// Returns a warning for each key of the file that has no effect.
fn without_effect(file: &Value) -> Vec<String> {
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => keys.get("enabled") != Some(&Value::Bool(false)),
        _ => true,
    };
    let found = WITHOUT_EFFECT
        .iter()
        .filter(|key| file.pointer(&format!("/{}", key.replace('.', "/"))).is_some_and(is_set));
    let mut warnings: Vec<String> = found.map(|key| format!("{key} has no effect")).collect();
    for (section, known) in KEYS {
        let place = format!("{}{}", if section.is_empty() { "" } else { "/" }, section.replace('.', "/"));
        let keys = file.pointer(&place).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let unknown = keys.filter(|key| !known.split(' ').any(|known| known == *key));
        warnings.extend(unknown.map(|key| {
            let path = [section, key.as_str()].join(".");
            format!("{} is unknown", path.trim_start_matches('.'))
        }));
    }
    warnings
}

/// The keys of a file, by section.
const KEYS: [(&str, &str); 9] = [
    (
        "",
        "executor name type display_name description version brain capabilities interests behavior memory network system_prompt cache_ttl",
    ),
    ("brain", "model provider temperature max_tokens api_base api_key_env"),
    ("capabilities", "grants skills mcp_servers shell spawning"),
    ("capabilities.shell", "enabled allowed_commands blocked_patterns timeout_seconds"),
    ("interests", "topics communities keywords follow_agents"),
    (
        "behavior",
        "respond_to_mentions respond_to_replies respond_to_dms max_iterations can_create_posts max_daily_posts max_daily_comments discovery limits",
    ),
    ("behavior.discovery", "enabled frequency respond_to_questions respond_to_discussions min_confidence"),
    ("behavior.limits", "max_daily_posts max_daily_comments max_responses_per_thread min_interval_seconds"),
    ("network", "enabled allowed_hosts blocked_hosts"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b15_a_definition_has_the_values_of_its_file_and_defaults() {
        let text = "
name: a
brain: {model: claude-sonnet-4, provider: anthropic, temperature: 0.2, max_tokens: 4096}
capabilities: {grants: ['hub:read'], shell: {enabled: true, timeout_seconds: 5, blocked_patterns: [sudo]}, spawning: {can_propose: true}}
behavior: {max_iterations: 4, max_daily_posts: 2, limits: {max_responses_per_thread: 1}, discovery: {enabled: true}}
memory: {enabled: true, retrieval: {strategy: embedding_search}}
";
        let found = AgentDefinition::parse("a", text, Some("You are A.".to_owned())).unwrap();
        assert_eq!((found.model.as_deref(), found.max_steps), (Some("anthropic/claude-sonnet-4"), 4));
        assert_eq!(
            found.limits,
            PostLimits { daily_posts: 2, daily_comments: 50, per_thread: 1, min_interval: 60 }
        );
        assert!(found.has_commands && found.explores && found.may_post && found.has_network);
        assert_eq!(found.warnings, ["capabilities.spawning has no effect", "memory has no effect"]);
        let keys: Vec<&str> = found.settings.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "agents.a.system_prompt",
                "llm.temperature",
                "llm.max_output_tokens",
                "commands.default_timeout"
            ]
        );
        let text = "name: b\nmore: 1\nbehavior: {limits: {max_daily_post: 1}, discovery: {respond_to_questions: true}}\n";
        let bare = AgentDefinition::parse("b", text, None).unwrap();
        assert!(!bare.has_commands && !bare.explores && bare.answers == (true, true));
        let warnings = [
            "behavior.discovery.respond_to_questions has no effect",
            "more is unknown",
            "behavior.limits.max_daily_post is unknown",
        ];
        assert_eq!(bare.warnings, warnings);
    }

    #[test]
    fn an_executor_needs_all_commands() {
        let with = |shell: &str| {
            AgentDefinition::parse("a", &format!("executor: aider\ncapabilities: {{shell: {shell}}}"), None)
        };
        assert_eq!(with("{enabled: true}").unwrap().executor.as_deref(), Some("aider"));
        for shell in ["{enabled: false}", "{enabled: true, blocked_patterns: [sudo]}"] {
            assert!(with(shell).unwrap_err().to_string().contains("an executor runs any command"));
        }
        assert_eq!(AgentDefinition::parse("a", "executor: own", None).unwrap().executor, None);
    }

    #[test]
    fn a_definition_that_names_the_commands_it_may_run_has_none() {
        let text = "capabilities: {shell: {enabled: true, allowed_commands: [ls]}}";
        let found = AgentDefinition::parse("a", text, None).unwrap();
        assert!(!found.has_commands && found.warnings.len() == 2, "{:?}", found.warnings);
    }
}
