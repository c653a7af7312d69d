//! `agent doctor`: what this machine and configuration offer, each line with what to do when it is wanting.

use crate::cli::app::{App, flags_of};
use crate::cli::args::DoctorArgs;
use crate::cli::chain::falling_back;
use crate::cli::compose;
use crate::cli::costs::{Prices, own_prices};
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::home;
use crate::cli::output::print;
use crate::cli::readiness::{self, Readiness};
use crate::cli::trust;
use crate::config::flags::Flags;
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::messages;
use crate::process::launch::Tier;
use crate::process::trying::Untried;
use std::fmt::Write;

/// The model and those that take over, each with what it needs.
async fn models(app: &App, settings: &Settings, prices: &Prices, online: bool) -> Readiness {
    let Readiness { mut ready, text } = readiness::model(app, settings, prices, online).await;
    let mut text = format!("model          {text}");
    for name in &settings.llm.fallback {
        let next = match falling_back(settings, name, prices) {
            Ok(settings) => readiness::model(app, &settings, prices, online).await,
            Err(error) => Readiness::not(&error),
        };
        ready &= next.ready;
        // Writing to a string does not fail.
        let _ = write!(text, "fallback       {}", next.text);
    }
    Readiness { ready, text }
}

/// Prints the findings.
///
/// # Errors
/// When the configuration is wrong, a model that it names cannot be used, or standard output cannot be written.
pub fn doctor(app: &App, args: DoctorArgs) -> CliResult<()> {
    let flags = Flags { model: args.model, api_base: args.api_base, ..flags_of(&args.place) };
    let loaded = app.load_and_tell(&flags)?;
    let settings = &loaded.settings;
    home::prepare(settings)?;
    let launcher = compose::launcher_as_tried(app, settings)?;
    let prices = own_prices(&settings.costs)?;
    let models = app.block_on(async { Ok(models(app, settings, &prices, args.online).await) })?;
    let store = store(settings);
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
    let _ = writeln!(text, "project        {}", trust::in_words(&loaded.trust.standing));
    text.push_str(&models.text);
    let _ = writeln!(text, "keys           {}", readiness::keys(app, settings));
    let _ = writeln!(text, "sessions       {sessions}");
    let _ = writeln!(text, "sandbox        {}", in_force(settings, launcher.tier()));
    for tried in launcher.tiers() {
        let found = match launcher.try_out(tried) {
            Ok(breaches) if breaches.none() => "works".to_owned(),
            Ok(breaches) => format!("leaks: a command {}", breaches.names().collect::<Vec<_>>().join(", ")),
            Err(Untried::NotHere(error)) => format!("not here: {error}"),
            Err(error @ Untried::NotDone(_)) => error.to_string(),
        };
        let _ = writeln!(text, "  {:<12} {found}", format!("{tried:?}").to_lowercase());
    }
    print(&app.terminal, &text)?;
    if models.ready { Ok(()) } else { Err(CliError::new(ErrorKind::Config, messages::MODEL_NOT_READY)) }
}

/// What holds commands, in words.
fn in_force(settings: &Settings, tier: Tier) -> String {
    let network = if settings.sandbox.network { "; they reach the network" } else { "" };
    match (settings.sandbox_off, tier.confines()) {
        (true, _) => messages::SANDBOX_OFF.to_owned(),
        (false, true) => format!("{}: {}{network}", tier.name(), tier.meaning()),
        (false, false) => messages::nothing_confines(tier.meaning()),
    }
}
