//! `agent hub dev`: a Hub to try agents on, on this machine, in a database of `SQLite`.

mod page;
mod routes;
mod store;

use crate::commands::hub::dev::routes::DevHub;
use crate::commands::hub::dev::store::DevStore;
use crate::commands::records::directories;
use agent_cli::commands::common_args::CommonArgs;
use agent_core::failure::FailureKind;
use agent_core::fleet::check_id;
use agent_http::server::serve;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_runtime::private_file::{create_new, create_private_dir};
use clap::Args;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::net::TcpListener;

/// Arguments of `agent hub dev`.
#[derive(Debug, Clone, Args)]
pub struct DevArgs {
    /// Port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub port: u16,
    /// Create this agent, if it does not exist (repeatable)
    #[arg(long, value_name = "ID")]
    pub agent: Vec<String>,
    /// The database; by default a file in the state directory
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Serves the Hub until a signal.
///
/// # Errors
/// Fails when the port or the database cannot be used.
pub fn dev(app: &App, args: &DevArgs) -> AppResult<u8> {
    let settings = app.load_and_notify(&args.common.overrides())?.settings;
    app.redactor(&settings);
    for id in &args.agent {
        check_id(id).map_err(|why| AppError::new(FailureKind::Usage, format!("--agent {id}: {why}")))?;
    }
    let path = match &args.db {
        Some(path) => path.clone(),
        None => directories(app)?.state.join("hub").join("dev.sqlite"),
    };
    let unusable =
        |error: std::io::Error| AppError::new(FailureKind::Session, format!("{}: {error}", path.display()));
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        create_private_dir(directory).map_err(unusable)?;
    }
    match create_new(&path, true) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unusable(error)),
        _ => {}
    }
    let store = DevStore::open(&path)?;
    let known = app.environment.get(&settings.hub.key_env).map(str::to_owned);
    let key = known.clone().unwrap_or_else(|| app.source.uuid());
    app.block_on(async {
        let interrupt = assemble::arm_interrupt(app, None, settings.language)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
        let busy = |error| {
            let why = format!("the port {} cannot be used: {error}; `--port 0` takes a free one", args.port);
            AppError::new(FailureKind::Usage, why)
        };
        let listener = listener.map_err(busy)?;
        let url = format!("http://{}", listener.local_addr().map_err(unusable)?);
        let hub = DevHub::new(store, key.clone(), Rc::clone(&app.source));
        for id in &args.agent {
            hub.register(id)?;
        }
        let shown = known.is_none().then_some((settings.hub.key_env.as_str(), key.as_str()));
        print(&app.terminal, &messages::hub_dev_started(&url, shown))?;
        tokio::select! {
            never = serve(listener, &hub) => match never {},
            () = interrupt.cancelled() => Ok(0),
        }
    })
}
