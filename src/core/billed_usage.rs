//! Usage of a request that gave no response, if the provider bills it.

use crate::price::Usd;
use crate::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Usage of a request that gave no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BilledUsage {
    /// Tokens.
    pub usage: Usage,
    /// US dollars; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}
