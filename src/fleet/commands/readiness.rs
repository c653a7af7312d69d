//! What `agent doctor` prints about the queue, the executors, the port of figures and the Hub.

use crate::commands::executor::program_of;
use crate::commands::hub::readiness::hub_readiness;
use crate::commands::monitor::Listening;
use crate::commands::records::{directories, open_queue};
use crate::location::Location;
use agent_cli::commands::common_args::CommonArgs;
use agent_config::executors::executor;
use agent_config::settings::Settings;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use clap::Args;
use std::fmt::Write as _;

/// Arguments of `agent-fleet readiness`.
#[derive(Debug, Args)]
pub struct ReadinessArgs {
    /// Ask the Hub
    #[arg(long)]
    pub online: bool,
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Prints the lines, and returns the exit code.
///
/// # Errors
/// Fails for an invalid configuration, and when standard output cannot be written.
pub fn readiness(app: &App, args: &ReadinessArgs) -> AppResult<u8> {
    let settings = app.load(&args.common.overrides())?.settings;
    let text = app.block_on(async {
        let hub = hub_readiness(app, &settings, args.online).await;
        Ok(queue_readiness(app, &settings).await + &hub)
    })?;
    print(&app.terminal, &text)?;
    Ok(ExitCode::Success.code())
}

/// Returns a line about the queue, if there is one, one about each executor that the user allows, and one about `fleet.listen`.
async fn queue_readiness(app: &App, settings: &Settings) -> String {
    let queue = match queue(app, settings).await {
        Ok(Some(text)) => format!("queue          {text}\n"),
        Ok(None) => String::new(),
        Err(error) => format!("queue          not usable: {}\n", app.redact(&error.to_string())),
    };
    let executors = settings.fleet.executors.keys().fold(String::new(), |mut text, name| {
        let found = executor(&settings.fleet.executors, name)
            .and_then(|executor| program_of(app, &executor, name, &settings.workspace));
        let found = found.map_or_else(|why| why, |program| format!("ok: {program}"));
        let _infallible = writeln!(text, "executor       {name}: {found}");
        text
    });
    let port = match Listening::open(app, &settings.fleet, None).await {
        Ok(None) => String::new(),
        Ok(Some(port)) => format!("port           ok: {} can be opened\n", port.address()),
        Err(error) => format!("port           not usable: {error}\n"),
    };
    queue + &executors + &port
}

/// Returns the tasks in each state; `None` if there is no database yet, which is not created.
async fn queue(app: &App, settings: &Settings) -> AppResult<Option<String>> {
    let location = Location::parse(settings.fleet.queue.as_deref(), &directories(app)?.state);
    let place = match location {
        Ok(Location::Sqlite(path)) if !path.exists() => return Ok(None),
        Ok(Location::Sqlite(path)) => path.display().to_string(),
        Ok(Location::Nats(url)) => url.unwrap_or_else(|| settings.fleet.nats.url.clone()),
        Err(why) => return Ok(Some(why)),
    };
    let counts = open_queue(app, settings, None).await?.counts().await?;
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {}", state.name()))
        .collect();
    let counts = if counts.is_empty() { "no tasks".to_owned() } else { counts.join(", ") };
    Ok(Some(format!("ok: {counts} in {place}")))
}
