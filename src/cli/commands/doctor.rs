//! `agent doctor`: checks machine and configuration, and prints for each part what is missing and how to fix it.

use crate::args::DoctorArgs;
use crate::commands::common_args::CommonArgs;
use crate::commands::mcp_readiness;
use crate::commands::model_readiness::{self, Readiness};
use crate::commands::program::{self, FLEET};
use crate::commands::trust;
use agent_config::instructions;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_engine::nested_instructions::{MAX_INSTRUCTION_BYTES, fitting};
use agent_messages as messages;
use agent_process::launch::Tier;
use agent_process::probe::ProbeError;
use agent_process::process_limit::ProcessLimit;
use agent_process::program::output_of;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::costs::{Prices, user_prices};
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::model_chain::fallback_settings;
use agent_run::output::print;
use agent_run::session::session_store;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// Checks the configured model and its fallbacks.
async fn models(app: &App, settings: &Settings, prices: &Prices, online: bool) -> Readiness {
    let Readiness { mut ready, text } = model_readiness::model(app, settings, prices, online).await;
    let mut text = format!("model          {text}");
    for name in &settings.llm.fallback {
        let next = match fallback_settings(settings, name, prices) {
            Ok(settings) => model_readiness::model(app, &settings, prices, online).await,
            Err(error) => Readiness::not_ready(&error),
        };
        ready &= next.ready;
        // Writing to a string does not fail.
        let _ = write!(text, "fallback       {}", next.text);
    }
    Readiness { ready, text }
}

/// Prints the results of all checks.
///
/// # Errors
/// Fails for an invalid configuration and an unusable model, and when standard output cannot be written.
pub fn doctor(app: &App, args: DoctorArgs) -> AppResult<()> {
    let flags = Overrides { model: args.model, api_base: args.api_base, ..args.common.overrides() };
    let loaded = app.load_and_notify(&flags)?;
    let settings = &loaded.settings;
    directories::prepare(settings)?;
    let launcher = assemble::freshly_probed_launcher(app, settings)?;
    let prices = user_prices(&settings.costs)?;
    let (models, servers) = app.block_on(async {
        let models = models(app, settings, &prices, args.online).await;
        Ok((models, mcp_readiness::servers(app, &loaded).await?))
    })?;
    let store = session_store(settings);
    let sessions = match store.list() {
        Ok(ids) => format!("ok: {} in {}", ids.count(), settings.state.display()),
        Err(error) => format!("not readable: {error}"),
    };
    let mut text = String::new();
    let _ = writeln!(text, "agent {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(
        text,
        "configuration  ok: agent {}, mode {}",
        settings.agent.name,
        settings.agent.mode.name()
    );
    let _ = writeln!(text, "workspace      ok: {}", settings.workspace.display());
    text.push_str(&instruction_status(settings));
    let _ = writeln!(text, "project        {}", trust::describe_status(&loaded.trust.status));
    text.push_str(&models.text);
    let _ = writeln!(text, "keys           {}", model_readiness::set_key_variables(app, settings));
    let _ = writeln!(text, "sessions       {sessions}");
    text.push_str(&servers);
    text.push_str(&queue_status(app, &args.common, args.online));
    let _ = writeln!(text, "sandbox        {}", sandbox_status(settings, launcher.tier()));
    for tried in launcher.tiers() {
        let found = match launcher.probe_tier(tried) {
            Ok(breaches) if breaches.is_empty() => "works".to_owned(),
            Ok(breaches) => format!("leaks: a command {}", breaches.names().collect::<Vec<_>>().join(", ")),
            Err(ProbeError::Unavailable(error)) => format!("not here: {error}"),
            Err(error @ ProbeError::Inconclusive(_)) => error.to_string(),
        };
        let _ = writeln!(text, "  {:<12} {found}", format!("{tried:?}").to_lowercase());
    }
    let most = settings.commands.max_processes;
    let held = ProcessLimit::new(launcher.tier(), most);
    let _ = writeln!(text, "processes      at most {most} per command: {}", held.meaning());
    print(&app.terminal, &text)?;
    if models.ready { Ok(()) } else { Err(AppError::new(FailureKind::Config, messages::NO_USABLE_MODEL)) }
}

/// Returns what `agent-fleet` says about the queue and the Hub; nothing where it is not installed.
fn queue_status(app: &App, common: &CommonArgs, online: bool) -> String {
    let Some(path) = program::find(app, FLEET) else { return String::new() };
    let flag = |name: &str, value: &Option<PathBuf>| {
        value.iter().map(|value| format!("--{name}={}", value.display()).into()).collect::<Vec<_>>()
    };
    let online = online.then(|| OsString::from("--online"));
    let words: Vec<OsString> = std::iter::once("readiness".into())
        .chain(flag("config", &common.config))
        .chain(flag("workspace", &common.workspace))
        .chain(online)
        .collect();
    match output_of(&path, &words, app.environment.variables()) {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => format!("queue          not usable: {} ended with {}\n", path.display(), output.status),
        Err(error) => {
            format!("queue          {}\n", messages::program_not_started(&path.to_string_lossy(), error))
        }
    }
}

/// Lists the instruction files that a session gets.
fn instruction_status(settings: &Settings) -> String {
    let found = instructions::read(&settings.workspace, &settings.directories.config);
    let mut used = 0_usize;
    let files = found.files.iter().map(|file| {
        let (all, shown) = (file.text.trim(), fitting(file.text.trim(), used));
        used = used.saturating_add(shown.len());
        messages::instruction_file(&file.path, shown.len(), all.len())
    });
    let files: Vec<String> = files.collect();
    let mut text = format!("instructions   {}\n", messages::instruction_files(&files, MAX_INSTRUCTION_BYTES));
    for warning in found.warnings {
        let _ = writeln!(text, "               {warning}");
    }
    text
}

/// Describes the confinement of commands.
fn sandbox_status(settings: &Settings, tier: Tier) -> String {
    let network = if settings.sandbox.network { "; they reach the network" } else { "" };
    match (settings.sandbox_off, tier.confines()) {
        (true, _) => messages::SANDBOX_OFF.to_owned(),
        (false, true) => format!("{}: {}{network}", tier.name(), tier.meaning()),
        (false, false) => messages::no_sandbox(tier.meaning()),
    }
}
