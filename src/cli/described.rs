//! Arguments and subcommands of a command that keeps its own description.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::ops::Deref;

/// Arguments or subcommands of a command that are built when it is chosen (`defer`). By itself clap would then replace the description of the command,
/// which the help shows, by that of the type `T`.
#[derive(Debug)]
pub struct Described<T>(pub T);

impl<T: Args> Args for Described<T> {
    fn augment_args(command: Command) -> Command {
        with_own_description(command, T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_own_description(command, T::augment_args_for_update)
    }
}

impl<T: Subcommand> Subcommand for Described<T> {
    fn augment_subcommands(command: Command) -> Command {
        with_own_description(command, T::augment_subcommands)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        with_own_description(command, T::augment_subcommands_for_update)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

fn with_own_description(command: Command, augment: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    augment(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}

impl<T: FromArgMatches> FromArgMatches for Described<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Described<T> {
    /// Returns the arguments or the subcommand.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Described<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
