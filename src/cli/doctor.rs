//! `agent doctor`: what this machine and configuration offer, each line with what to do when it is wanting.

use crate::cli::app::{App, flags_of};
use crate::cli::args::DoctorArgs;
use crate::cli::chain::falling_back;
use crate::cli::compose;
use crate::cli::costs::{Prices, own_prices};
use crate::cli::error::CliResult;
use crate::cli::output::print;
use crate::cli::readiness;
use crate::config::flags::Flags;
use crate::config::settings::Settings;
use crate::journal::store::Store;
use std::fmt::Write;

/// The model and those that take over, each with what it needs.
async fn models(app: &App, settings: &Settings, prices: &Prices, online: bool) -> String {
    let mut text = format!("model          {}", readiness::model(app, settings, prices, online).await);
    for name in &settings.llm.fallback {
        let said = match falling_back(settings, name, prices) {
            Ok(settings) => readiness::model(app, &settings, prices, online).await,
            Err(error) => format!("not ready: {error}\n"),
        };
        // Writing to a string does not fail.
        let _ = write!(text, "fallback       {said}");
    }
    text
}

/// Prints the findings.
///
/// # Errors
/// When the configuration is wrong, or standard output cannot be written.
pub fn doctor(app: &App, args: DoctorArgs) -> CliResult<()> {
    let flags = Flags { model: args.model, api_base: args.api_base, ..flags_of(&args.place) };
    let loaded = app.load_and_tell(&flags)?;
    let settings = &loaded.settings;
    let launcher = compose::launcher(app, settings);
    let prices = own_prices(&settings.costs)?;
    let (tier, models) =
        app.block_on(async { Ok((launcher.tier(), models(app, settings, &prices, args.online).await)) })?;
    let store = Store::new(settings.state.join("sessions"));
    let sessions = match store.list() {
        Ok(ids) => format!("ok: {} in {}", ids.len(), settings.state.display()),
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
    text.push_str(&models);
    let _ = writeln!(text, "keys           {}", readiness::keys(app, settings));
    let _ = writeln!(text, "sessions       {sessions}");
    let _ = writeln!(text, "commands       {tier}");
    let _ =
        writeln!(text, "sandbox        none: commands run with your rights; the mode decides what is asked");
    print(&app.terminal, &text)
}
