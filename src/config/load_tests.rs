//! Tests that load whole configurations from files: precedence, errors with their lines, directories.

#[path = "load_agents_tests.rs"]
mod of_agents;
#[path = "load_project_tests.rs"]
mod of_project;

use super::*;
use crate::agents;
use crate::verbosity::Verbosity;
use agent_core::evaluation::EvaluationMode;
use agent_core::secret::Secret;
use agent_engine::Parallelism;
use agent_engine::policy::Mode;
use std::collections::BTreeMap;
use std::fs::{create_dir_all, set_permissions};
use std::os::unix::fs::PermissionsExt;

/// A home directory and a project on disk, and the environment variables of a run.
struct Fixture {
    directory: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self { directory, variables: BTreeMap::new() };
        create_dir_all(fixture.path("project")).unwrap();
        create_dir_all(fixture.path("home")).unwrap();
        let home = fixture.path("home");
        fixture.set("HOME", home.to_str().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    #[expect(clippy::disallowed_methods, reason = "test files")]
    fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    fn user(self, text: &str) -> Self {
        self.file("home/.config/agent/config.yaml", text)
    }

    fn project(self, text: &str) -> Self {
        self.file("project/.agent/config.yaml", text)
    }

    fn load(&self, flags: &Overrides) -> Result<LoadedConfig, ConfigError> {
        load(flags, &Environment::from_variables(self.variables.clone(), &self.path("project")))
    }

    fn loaded(&self) -> LoadedConfig {
        self.load(&Overrides::default()).unwrap()
    }

    fn error(&self) -> ConfigError {
        self.load(&Overrides::default()).unwrap_err()
    }
}

/// Returns file name and line of an error.
fn location(error: &ConfigError) -> (String, Option<u64>) {
    let file = error.file.clone().unwrap_or_default();
    (file.rsplit('/').next().unwrap_or_default().to_owned(), error.line)
}

#[test]
fn u18_a_duration_may_have_units() {
    let values = |text: &str| {
        let node = crate::yaml::parse(text).unwrap();
        validate::leaves(&key_rules::embedded_schema().unwrap().rules, &node)
    };
    let leaves = values(
        "timeout_seconds: 1h30m\ncommands: {default_timeout: 90s}\nllm: {timeouts: {call_seconds: 600}}\n",
    )
    .unwrap();
    let seconds: Vec<_> = leaves.iter().map(|leaf| leaf.value.as_u64().unwrap()).collect();
    assert_eq!(seconds, [5_400, 90, 600]);
    let hooks = values("hooks: {post_edit: [{command: x, timeout: 2m}]}\n").unwrap();
    assert_eq!(hooks[0].value[0]["timeout"], 120);
    for text in ["timeout_seconds: soon\n", "commands: {default_timeout: 1h}\n", "timeout_seconds: 5x\n"] {
        let error = values(text).unwrap_err().to_string();
        assert!(error.contains("seconds") && error.contains("such as 90s, 5m or 1h30m"), "{error}");
    }
    assert!(values("max_steps: 5m\n").is_err());
}

#[test]
fn without_any_file_the_defaults_hold() {
    let loaded = Fixture::new().loaded();
    let settings = loaded.settings;
    assert_eq!((settings.agent.name.as_str(), settings.agent.mode), ("build", Mode::ConfirmSensitive));
    assert_eq!(settings.agent.max_steps, 50);
    assert_eq!(settings.tools.parallel, Parallelism::Reads);
    assert_eq!(settings.logging.level, Verbosity::Human);
    assert_eq!(settings.llm.model, None);
    assert_eq!(loaded.notices, Vec::<String>::new());
}

#[test]
fn f01_the_higher_layer_wins_at_every_level() {
    let mut fixture = Fixture::new();
    let model = |fixture: &Fixture, flags: &Overrides| fixture.load(flags).unwrap().settings.llm.model;
    let none = Overrides::default();
    fixture = fixture.user("llm: {model: user}\n");
    assert_eq!(model(&fixture, &none).as_deref(), Some("user"));
    fixture = fixture.project("llm: {temperature: 1}\n").file("own.yaml", "llm:\n  model: file\n");
    let own = Overrides { config: Some(fixture.path("own.yaml")), ..Overrides::default() };
    assert_eq!(model(&fixture, &none).as_deref(), Some("user"));
    assert_eq!(model(&fixture, &own).as_deref(), Some("file"));
    fixture = fixture.set("AGENT_MODEL", "variable");
    assert_eq!(model(&fixture, &own).as_deref(), Some("variable"));
    let flags = Overrides { model: Some("flag".into()), ..own };
    assert_eq!(model(&fixture, &flags).as_deref(), Some("flag"));
    assert_eq!(fixture.load(&flags).unwrap().settings.llm.temperature, Some(1.0));
}

#[test]
fn f01_every_value_knows_where_it_came_from() {
    let fixture = Fixture::new()
        .user("llm:\n  retries: 5\ncommands:\n  env:\n    API_TOKEN: hunter2\n    MODE: x\n")
        .project("guardrails:\n  protected_files: [a]\n")
        .set("AGENT_LOG_LEVEL", "DEBUG");
    let flags = Overrides { max_steps: Some(7), ..Overrides::default() };
    let entries = fixture.load(&flags).unwrap().layers.entries();
    let find = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key).unwrap();
        (entry.value.as_str(), entry.origin.rsplit('/').next().unwrap())
    };
    assert_eq!(find("llm.retries"), ("5", "config.yaml:2"));
    assert_eq!(find("llm.stream"), ("true", "built-in"));
    assert_eq!(find("logging.level"), ("\"debug\"", "AGENT_LOG_LEVEL"));
    assert_eq!(find("max_steps"), ("7", "--max-steps"));
    assert_eq!(find("guardrails.protected_files"), ("[\"a\"]", "config.yaml:2"));
    assert_eq!(find("commands.env.API_TOKEN"), ("[secret]", "config.yaml:5"));
    assert_eq!(find("commands.env.MODE"), ("\"x\"", "config.yaml:6"));
    assert_eq!(find("agents.plan.mode"), ("\"yolo\"", "built-in plan.md:4"));
}

#[test]
fn f02_an_unknown_key_names_key_file_line_and_what_was_meant() {
    let error = Fixture::new().user("llm:\n  model: x\n\n  temprature: 1\n").error();
    assert_eq!(location(&error), ("config.yaml".into(), Some(4)));
    assert!(
        error
            .to_string()
            .ends_with("/config.yaml:4: llm.temprature: unknown key (did you mean `temperature`?)"),
        "{error}"
    );
    let error = Fixture::new().project("xyz: 1\n").error();
    assert!(
        error.to_string().starts_with(".agent/config.yaml:1: xyz: unknown key (known keys here: agents, ")
    );
    let error = Fixture::new().user("hooks:\n  post_edit:\n    - command: x\n      comand: y\n").error();
    assert_eq!(location(&error).1, Some(4));
    assert_eq!(error.key.as_deref(), Some("hooks.post_edit[0].comand"));
}

#[test]
fn f03_types_ranges_and_words_are_checked_with_their_line() {
    let cases = [
        ("max_steps: 0\n", 1, "max_steps: must be a whole number from 1 to 10000 steps, found `0`"),
        ("max_steps: 2.5\n", 1, "found `2.5`"),
        ("max_steps: '7'\n", 1, "found `7`"),
        ("a: 1\nmax_steps: 1\n", 1, "a: unknown key"),
        (
            "\nmode: yolko\n",
            2,
            "mode: must be one of confirm-all, confirm-sensitive, auto, yolo, found `yolko` (did you mean `yolo`?)",
        ),
        ("llm:\n  stream: yes\n", 2, "llm.stream: must be true or false, found `yes`"),
        ("llm:\n  model: 4\n", 2, "llm.model: must be text, found `4` (write \"4\")"),
        ("llm: []\n", 1, "llm: must be keys and values, found a list"),
        ("llm:\n  temperature: 2.1\n", 2, "must be a number from 0 to 2, found `2.1`"),
        ("llm:\n  api_base: localhost:1\n", 2, "must be an address that begins with http:// or https://"),
        ("llm:\n  api_base: https://me:pw@host/v1\n", 2, "must not hold a name and password"),
        ("llm:\n  api_key_env: sk-123\n", 2, "must be the name of an environment variable"),
        (
            "commands:\n  blocked_patterns:\n    - ok\n    - '('\n",
            4,
            "commands.blocked_patterns[1]: `(` is not a regular expression: unclosed group",
        ),
        ("guardrails:\n  protected_files: ['[']\n", 2, "is not a file pattern"),
        ("hooks:\n  pre_tool_use:\n    - name: x\n", 3, "hooks.pre_tool_use[0]: `command` is missing"),
        (
            "hooks:\n  pre_tool_use:\n    - command: x\n      timeout: 301\n",
            4,
            "must be a whole number from 1 to 300 seconds",
        ),
        ("hooks:\n  pre_tool_use:\n    - command: ' '\n", 3, "command: must not be empty"),
        ("hooks:\n  pre_tool_use:\n    - command: x\n      matcher: '['\n", 4, "is not a regular expression"),
        ("agents:\n  ../x:\n    mode: yolo\n", 2, "the name of an agent is"),
        ("commands:\n  env:\n    1X: y\n", 3, "must be the name of an environment variable"),
        (
            "commands:\n  env:\n    PORT: 80\n",
            3,
            "commands.env.PORT: must be text, found `80` (write \"80\")",
        ),
        ("tools:\n  parallel: offf\n", 2, "did you mean `off`?"),
    ];
    for (text, line, expected) in cases {
        let error = Fixture::new().user(text).error();
        assert_eq!(location(&error), ("config.yaml".into(), Some(line)), "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn f03_off_needs_no_quotes() {
    let settings = Fixture::new().user("tools:\n  parallel: off\n").loaded().settings;
    assert_eq!(settings.tools.parallel, Parallelism::Off);
}

#[test]
fn f03_false_is_off_where_off_is_a_word() {
    let settings =
        Fixture::new().user("tools:\n  parallel: false\nevaluation: {mode: false}\n").loaded().settings;
    assert_eq!((settings.tools.parallel, settings.evaluation.mode), (Parallelism::Off, EvaluationMode::Off));
    let error = Fixture::new().user("evaluation: {mode: true}\n").error();
    assert!(error.message.contains("must be one of off, basic, full, found `true`"), "{error}");
}

#[test]
fn f03_variables_and_flags_are_checked_by_name() {
    let error = Fixture::new().set("AGENT_LOG_LEVEL", "loud").error();
    assert!(error.to_string().starts_with("AGENT_LOG_LEVEL: logging.level: must be one of debug"), "{error}");
    let flags = Overrides { timeout: Some(0), ..Overrides::default() };
    let error = Fixture::new().load(&flags).unwrap_err();
    assert!(error.to_string().starts_with("--timeout: timeout_seconds: must be a whole number"), "{error}");
}

#[test]
fn unreadable_files_are_errors_with_a_reason() {
    let missing = Overrides { config: Some("nowhere.yaml".into()), ..Overrides::default() };
    let error = Fixture::new().load(&missing).unwrap_err().to_string();
    assert!(error.ends_with("nowhere.yaml: does not exist (named by --config)"), "{error}");
    let error = Fixture::new().set("AGENT_CONFIG", "nowhere.yaml").error().to_string();
    assert!(error.ends_with("does not exist (named by AGENT_CONFIG)"), "{error}");

    let fixture = Fixture::new();
    create_dir_all(fixture.path("home/.config/agent/config.yaml")).unwrap();
    assert!(fixture.error().to_string().ends_with("config.yaml: is a directory, not a file"));

    let error = Fixture::new().file("home/.config/agent/config.yaml", b"a: 1\nb: \xff\n").error();
    assert_eq!((location(&error).1, error.message.as_str()), (Some(2), "is not valid UTF-8"));

    let large = "#".repeat(usize::try_from(MAX_CONFIG_BYTES).unwrap() + 1);
    assert!(Fixture::new().user(&large).error().message.contains("larger than 1048576 bytes"));

    let error = Fixture::new().user("a: [1\nb: 2\n").error();
    assert!(error.message.starts_with("not valid YAML: "), "{error}");
    assert!(Fixture::new().user("mode: yolo\nmode: yolo\n").error().line == Some(2));
}

#[test]
fn a_pipe_or_device_in_place_of_a_file_is_refused_without_waiting() {
    let fixture = Fixture::new();
    let path = fixture.path("home/.config/agent/config.yaml");
    create_dir_all(path.parent().unwrap()).unwrap();
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(fixture.error().message.contains("special file"));
    assert!(read_text(Path::new("/dev/zero"), 10).unwrap_err().message.contains("special file"));
}

#[test]
fn a_file_without_permission_is_an_error_and_not_absent() {
    let fixture = Fixture::new().user("mode: yolo\n");
    let path = fixture.path("home/.config/agent/config.yaml");
    set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read every file.
    if std::fs::File::open(&path).is_err() {
        assert!(fixture.error().message.starts_with("cannot be read: "));
    }
}

#[test]
fn the_workspace_must_be_a_directory() {
    let flags = |path: &str| Overrides { workspace: Some(path.into()), ..Overrides::default() };
    let error = Fixture::new().load(&flags("none")).unwrap_err().to_string();
    assert!(error.starts_with("--workspace: workspace.root: the workspace "), "{error}");
    assert!(error.ends_with("/none does not exist"), "{error}");
    let error = Fixture::new().file("project/x", "").load(&flags("x")).unwrap_err().to_string();
    assert!(error.ends_with("is a file, not a directory"), "{error}");
    let fixture = Fixture::new().file("other/.agent/config.yaml", "llm: {retries: 3}\n");
    let fixture = fixture.set("AGENT_WORKSPACE", "../other");
    let settings = fixture.loaded().settings;
    assert_eq!((settings.llm.retries, settings.workspace), (3, fixture.path("other")));
}

#[test]
fn s10_no_commands_wins_over_allow_commands() {
    let flags =
        |allow_commands, no_commands| Overrides { allow_commands, no_commands, ..Overrides::default() };
    let enabled =
        |fixture: Fixture, flags: &Overrides| fixture.load(flags).unwrap().settings.commands.enabled;
    assert!(!enabled(Fixture::new(), &flags(true, true)));
    assert!(enabled(Fixture::new().user("commands: {enabled: false}\n"), &flags(true, false)));
}

#[test]
fn f07_the_key_of_the_command_line_is_kept_secret() {
    let flags = Overrides { api_key: Some(Secret::new("sk-secret")), ..Overrides::default() };
    let loaded = Fixture::new().load(&flags).unwrap();
    assert_eq!(loaded.settings.api_key.as_ref().map(Secret::expose), Some("sk-secret"));
    assert!(!format!("{:?}", loaded.settings).contains("sk-secret"));
    assert!(!format!("{:?}", loaded.layers.entries()).contains("sk-secret"));
}

#[test]
fn directories_follow_agent_home_then_xdg_then_home() {
    let of = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Directories::from_environment(&Environment::from_variables(variables, Path::new("/srv")))
    };
    let home = of(&[("HOME", "/h"), ("XDG_STATE_HOME", "relative"), ("XDG_CACHE_HOME", "/c")]).unwrap();
    assert_eq!(home.config, Path::new("/h/.config/agent"));
    assert_eq!(home.state, Path::new("/h/.local/state/agent"));
    assert_eq!(home.cache, Path::new("/c/agent"));
    let moved = of(&[("AGENT_HOME", "all"), ("XDG_CACHE_HOME", "/c")]).unwrap();
    assert_eq!(moved.config, Path::new("/srv/all"));
    assert_eq!((moved.state, moved.cache), ("/srv/all/state".into(), "/srv/all/cache".into()));
    assert!(of(&[]).unwrap_err().to_string().contains("AGENT_HOME=DIR"));
}

#[test]
fn each_workspace_has_a_state_directory_of_its_own() {
    let directories = Fixture::new().loaded().settings.directories;
    let one = directories.workspace_state(Path::new("/a"));
    assert_ne!(one, directories.workspace_state(Path::new("/b")));
    assert_eq!(one, directories.workspace_state(Path::new("/a")));
    assert_eq!(one.file_name().unwrap().len(), 16);
}

#[test]
fn the_users_own_directories_are_protected_where_the_workspace_holds_them() {
    let fixture = Fixture::new();
    let flags = Overrides { workspace: Some(fixture.path("home")), ..Overrides::default() };
    let patterns = fixture.load(&flags).unwrap().settings.policy.protected_files;
    assert_eq!(patterns, ["/.config/agent", "/.local/state/agent", "/.cache/agent"]);
    assert_eq!(fixture.loaded().settings.policy.protected_files, Vec::<String>::new());
}
