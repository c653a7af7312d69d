//! The request of a run for the command line of Codex. The table in `agent help serve` describes what becomes of the permissions.

use crate::client_model::{added_directories, is_of, model_name};
use crate::exec::args::{CodexSandbox, ExecArgs};
use crate::exec::codex_config::{ApprovalPolicy, CodexConfig, WebSearchMode};
use agent_config::layers::{LayerKind, Layers};
use agent_config::load::LoadedConfig;
use agent_config::overrides::Overrides;
use agent_config::schema::SandboxMode;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::secret::Secret;
use agent_engine::policy::Mode;
use agent_llm::provider_table;
use agent_messages as messages;
use agent_report::OutputFormat;
use agent_run::app::App;
use agent_run::client::RunBounds;
use agent_run::error::{AppError, AppResult};
use agent_run::request::{AnswerSchema, RunRequest};

/// Variable with the key that a client of Codex passes.
const KEY_VARIABLE: &str = "CODEX_API_KEY";
/// Provider of a model whose name has none: Codex speaks this format only.
const DEFAULT_PROVIDER: &str = "openai-responses";
/// The providers to which the server and the key of a client belong.
const OPENAI_PROVIDERS: [&str; 2] = [DEFAULT_PROVIDER, "openai"];

/// Returns the request for `args`, and what of them has no effect.
///
/// # Errors
/// For an invalid value, and for an invalid configuration.
pub fn run_request(app: &App, args: &ExecArgs) -> AppResult<(RunRequest, Vec<String>)> {
    let config = CodexConfig::parse(&args.config)?;
    let place = Overrides { workspace: args.cd.clone(), ..Overrides::default() };
    let LoadedConfig { settings, layers, .. } = app.load(&place)?;
    let own = OwnBounds::new(&settings, &layers);
    let mut request = RunRequest {
        images: args.image.clone(),
        schema: args.output_schema.clone().map(AnswerSchema::File),
        format: if args.json { OutputFormat::Json } else { OutputFormat::Text },
        ..permissions(args, &config, &own)
    };
    (request.overrides.workspace, request.overrides.effort) = (args.cd.clone(), config.effort);
    let table = provider_table::load(&settings.llm.providers)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    request.overrides.model = args
        .model
        .as_deref()
        .or(config.model.as_deref())
        .map(|name| model_name(name, DEFAULT_PROVIDER, &table));
    let key = app.environment.get(KEY_VARIABLE);
    let is_openai =
        is_of(request.overrides.model.as_deref().or(settings.llm.model.as_deref()), &OPENAI_PROVIDERS);
    if is_openai {
        request.overrides.api_base.clone_from(&config.base_url);
        request.overrides.api_key = key.map(Secret::new);
    }
    let mut warnings = warnings(args, &config, &settings);
    warnings.extend(own.warnings(args, &config));
    if !is_openai && (key.is_some() || config.base_url.is_some()) {
        warnings.push(messages::CODEX_OTHER_PROVIDER.to_owned());
    }
    Ok((request, warnings))
}

/// What the configuration sets itself, so that the command line of a client does not widen it.
struct OwnBounds {
    /// The most permissive mode.
    mode: Option<Mode>,
    /// Whether commands reach the network; absent if the configuration does not say it.
    network: Option<bool>,
    /// Whether it lists the directories outside of the workspace that commands can write to.
    writable: bool,
}

impl OwnBounds {
    fn new(settings: &Settings, layers: &Layers) -> Self {
        let mode = layers.for_agent(&settings.agent.name, "mode");
        let is_set = mode.is_some_and(|value| value.origin.level > LayerKind::BuiltIn);
        let network =
            layers.is_overridden("sandbox.network") || layers.is_overridden("sandbox.allowed_hosts");
        Self {
            mode: is_set.then_some(settings.policy.mode),
            network: network.then_some(settings.sandbox.network),
            writable: layers.is_overridden("sandbox.writable"),
        }
    }

    /// Returns what these bounds refuse of the command line.
    fn warnings(&self, args: &ExecArgs, config: &CodexConfig) -> Vec<String> {
        let sandbox = args.sandbox.or(config.sandbox);
        let permits_all = !matches!(sandbox, None | Some(CodexSandbox::ReadOnly));
        let mode = self
            .mode
            .filter(|mode| permits_all && *mode < Mode::Yolo)
            .map(|mode| messages::codex_mode_configured(mode.name()));
        let no_network = config.network == Some(true) && self.network == Some(false);
        let network = no_network.then(|| messages::CODEX_NETWORK_CONFIGURED.to_owned());
        let (_, directories) = added_directories(&args.add_dir, self.writable);
        [mode, network, directories.map(str::to_owned)].into_iter().flatten().collect()
    }
}

/// Returns the request with what decides which calls run and what they reach.
fn permissions(args: &ExecArgs, config: &CodexConfig, own: &OwnBounds) -> RunRequest {
    let sandbox = args.sandbox.or(config.sandbox);
    let is_untrusted = config.approvals == Some(ApprovalPolicy::Untrusted);
    let read_only = sandbox == Some(CodexSandbox::ReadOnly);
    let full_access = sandbox == Some(CodexSandbox::DangerFullAccess) && args.allow_danger_full_access;
    RunRequest {
        overrides: Overrides {
            // Codex runs in its sandbox what it need not ask about; without a full sandbox no run begins.
            sandbox: sandbox.filter(|_| !full_access).map(|_| SandboxMode::Require),
            sandbox_off: full_access,
            mode: sandbox.map(|_| Mode::Yolo),
            allow_net: config.network == Some(true) && !read_only && own.network.is_none(),
            allow_write: added_directories(&args.add_dir, own.writable).0,
            ..Overrides::default()
        },
        bounds: RunBounds {
            mode: own.mode.into_iter().chain(is_untrusted.then_some(Mode::ConfirmSensitive)).min(),
            read_only,
            no_network: read_only || config.network == Some(false) && !full_access,
            no_web_search: matches!(config.web_search, Some(WebSearchMode::Disabled | WebSearchMode::Cached)),
            ..RunBounds::default()
        },
        ..RunRequest::default()
    }
}

/// Returns what has no effect.
fn warnings(args: &ExecArgs, config: &CodexConfig, settings: &Settings) -> Vec<String> {
    let mut warnings = config.warnings.clone();
    let ignored =
        [("--thread-source", &args.thread_source), ("--cyber-access-program", &args.cyber_access_program)];
    let ignored = ignored.into_iter().filter(|(_, value)| value.is_some());
    warnings.extend(ignored.map(|(flag, _)| messages::codex_flag_ignored(flag)));
    let full_access = args.sandbox.or(config.sandbox) == Some(CodexSandbox::DangerFullAccess);
    let has_service = settings.web.search.provider.is_some();
    let texts = [
        (full_access && !args.allow_danger_full_access, messages::CODEX_NO_FULL_ACCESS),
        (config.web_search == Some(WebSearchMode::Cached), messages::CODEX_NO_CACHED_SEARCH),
        (config.web_search == Some(WebSearchMode::Live) && !has_service, messages::CODEX_NO_SEARCH_SERVICE),
    ];
    warnings.extend(texts.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()));
    warnings
}
