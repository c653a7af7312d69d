//! Arguments of `agent worker`. With `--hub`, `--mode` may name the activations that it performs instead of a permission mode.

use agent_cli::commands::client_run::ClientArgs;
use agent_config::flag_values::{parse_mode, parse_seconds};
use agent_core::hub::{ActivationKind, Lane};
use agent_engine::policy::Mode;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The values of `--mode` for a Hub.
const NOTIFICATION: &str = "notification";
const EXPLORATION: &str = "exploration";
const HYBRID: &str = "hybrid";
/// Id of the argument `--mode`.
const MODE: &str = "mode";

/// Options of `agent worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerOptions {
    /// Number of tasks at the same time, 1 to 10
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    pub jobs: u8,
    /// Do one task, and end
    #[arg(long)]
    pub once: bool,
    /// End when the queue is empty
    #[arg(long, conflicts_with = "once")]
    pub drain: bool,
    /// Activate the agents of the Hub (`hub.url`) instead: all, or that of `--agent`
    #[arg(long)]
    pub hub: bool,
    /// After SIGTERM or Ctrl+C: time for the tasks under way to end before they are given back
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_seconds)]
    pub grace: u64,
    /// The queue: `sqlite:/absolute/path`, `nats://HOST:PORT` or `nats:` for the configured server
    #[arg(long, value_name = "URL")]
    pub queue: Option<String>,
    /// Serve figures on this address and port (`fleet.listen`)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Options of all runs; a task never exceeds them.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Arguments of `agent worker`.
#[derive(Debug, Clone)]
pub struct WorkerArgs {
    /// Its options.
    pub options: WorkerOptions,
    /// The tasks that it does.
    pub lane: Lane,
}

impl Args for WorkerArgs {
    fn augment_args(command: Command) -> Command {
        let help = "Which calls run without asking; with `--hub` also which activations are performed: notification, exploration or hybrid";
        WorkerOptions::augment_args(command).mut_arg(MODE, |arg| arg.value_parser(parse_either).help(help))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkerArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let given =
            matches.get_raw(MODE).and_then(|mut values| values.next()).and_then(|value| value.to_str());
        let kind = match given {
            Some(NOTIFICATION) => Some(Some(ActivationKind::Notification)),
            Some(EXPLORATION) => Some(Some(ActivationKind::Exploration)),
            Some(HYBRID) => Some(None),
            _ => None,
        };
        let mut options = WorkerOptions::from_arg_matches_mut(matches)?;
        if kind.is_some() {
            if !options.hub {
                let why = "notification, exploration and hybrid are modes of `--hub`\n";
                return Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, why));
            }
            options.client.options.mode = None;
        }
        let lane = if options.hub { Lane::Hub(kind.flatten()) } else { Lane::Submitted };
        Ok(Self { options, lane })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parses a permission mode. The modes of a Hub are read from the matches.
fn parse_either(text: &str) -> Result<Mode, String> {
    match text {
        NOTIFICATION | EXPLORATION | HYBRID => Ok(Mode::ConfirmAll),
        mode => parse_mode(mode),
    }
}
