//! `agent doctor`: what this machine and configuration offer, each line with what to do when it is wanting.

use crate::cli::app::App;
use crate::cli::args::PlaceArgs;
use crate::cli::chain::Models;
use crate::cli::compose;
use crate::cli::costs;
use crate::cli::error::CliResult;
use crate::cli::output::print;
use crate::config::settings::Settings;
use crate::journal::store::Store;
use crate::messages::thousands;
use std::fmt::Write;

/// The model and those that take over, each with what it may hold.
async fn models(app: &App, settings: &Settings) -> CliResult<String> {
    let prices = costs::own_prices(&settings.costs)?;
    let models = Models::connect(app, settings, &costs::caps(settings)?, &prices).await?;
    let each = models.terms.iter().map(|terms| {
        let window = terms.window.map_or_else(
            || "window not known".to_owned(),
            |window| format!("window {} tokens ({})", thousands(window.tokens), window.source.name()),
        );
        format!("ok: {}, {window}", terms.model)
    });
    Ok(each.collect::<Vec<_>>().join("\nfallback       "))
}

/// Prints the findings.
///
/// # Errors
/// When the configuration is wrong, or standard output cannot be written.
pub fn doctor(app: &App, place: &PlaceArgs) -> CliResult<()> {
    let loaded = app.load_place(place)?;
    let settings = &loaded.settings;
    let launcher = compose::launcher(app, settings);
    let (tier, model) = app.block_on(async {
        let tier = launcher.tier();
        Ok((tier, models(app, settings).await.unwrap_or_else(|error| format!("not ready: {error}"))))
    })?;
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
    let _ = writeln!(text, "model          {model}");
    let _ = writeln!(text, "sessions       {sessions}");
    let _ = writeln!(text, "commands       {tier}");
    let _ =
        writeln!(text, "sandbox        none: commands run with your rights; the mode decides what is asked");
    print(&app.terminal, &text)
}
