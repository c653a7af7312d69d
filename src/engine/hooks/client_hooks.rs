//! Hooks of the program that drives the run.

use super::{HookEvent, HookInput};
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// Asks the hooks of a client. Those of the configuration run first.
pub trait ClientHooks: Debug {
    /// Checks whether there are hooks for `event`.
    fn has(&self, event: HookEvent) -> bool;

    /// Runs the hooks of `event` that match `input`; dropped when the run is interrupted.
    fn call<'a>(&'a self, event: HookEvent, input: &'a HookInput) -> LocalBoxFuture<'a, ClientHookAnswer>;
}

/// The combined answer of a client's hooks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClientHookAnswer {
    /// Reason to end the run.
    pub stop: Option<String>,
    /// Reason to block the action.
    pub block: Option<String>,
    /// Whether the call may run with the arguments of this answer, although the mode requires approval (`pre_tool_use` only).
    pub is_approved: bool,
    /// Text for the model.
    pub context: Option<String>,
    /// New arguments for the tool (`pre_tool_use` only).
    pub updated_input: Option<Value>,
    /// Time until the answer.
    pub duration: Duration,
}
