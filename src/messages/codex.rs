//! Messages of `agent exec`.

use super::stop_reason::stop_reason_text;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};

/// The result of a call that was running when the run ended.
pub const CODEX_CALL_NOT_ENDED: &str = "the run ended before this call";
/// `danger-full-access` without the flag that permits it.
pub const CODEX_NO_FULL_ACCESS: &str = "danger-full-access is not permitted here, so commands stay in the sandbox of workspace-write: start with \
     `agent exec --allow-danger-full-access` to permit it";
/// `--add-dir`, of which only a part is possible.
pub const ADD_DIR: &str = "--add-dir: commands can write there; the file tools stay in the workspace";
/// `--add-dir` where the configuration lists the directories.
pub const ADD_DIR_CONFIGURED: &str = "--add-dir has no effect: the configuration sets `sandbox.writable`";
/// `network_access=true` where the configuration leaves the network off.
pub const CODEX_NETWORK_CONFIGURED: &str = "sandbox_workspace_write.network_access=true has no effect: the configuration sets `sandbox.network` or \
     `sandbox.allowed_hosts`";
/// `web_search = "cached"`, which does not exist here.
pub const CODEX_NO_CACHED_SEARCH: &str =
    "web_search=\"cached\": there is no cached search here, so web_search is off";
/// `web_search = "live"` without a service.
pub const CODEX_NO_SEARCH_SERVICE: &str =
    "web_search=\"live\" has no effect: no service is configured (`web.search.provider`)";
/// The server or the key of a client whose model is another provider's.
pub const CODEX_OTHER_PROVIDER: &str = "openai_base_url and CODEX_API_KEY are not used: the model is not one of the provider openai or openai-responses";

/// `--sandbox` where the configuration sets a mode.
pub fn codex_mode_configured(mode: &str) -> String {
    format!("the configuration sets the mode {mode}, so --sandbox permits no more than that")
}

/// A flag of Codex that has no counterpart.
pub fn codex_flag_ignored(flag: &str) -> String {
    format!("{flag} has no effect here")
}

/// A key of Codex's configuration that has no counterpart.
pub fn codex_key_ignored(key: &str) -> String {
    format!("unknown configuration key `{key}`: it has no effect here")
}

/// A value of Codex's configuration that has no counterpart.
pub fn codex_value_ignored(key: &str, value: &str) -> String {
    format!("{key}={value} is not known here and has no effect")
}

/// A fallback model that took over.
pub fn codex_model_switched(from: &str, to: &str, why: &str) -> String {
    format!("{from} failed ({why}); {to} continues")
}

/// Lines that a slow reader did not get.
pub fn codex_lines_missed(number: u64) -> String {
    format!("{number} events are missing here: they were not read in time")
}

/// Why a run is no success.
pub fn run_not_successful(result: &RunResult, language: Language) -> String {
    if let Some(failure) = &result.error {
        return failure.message.clone();
    }
    match (result.status, result.stop_reason) {
        (Status::Partial, Some(StopReason::LlmDone)) => language
            .pick(
                "the model is done, but not all checks passed",
                "el modelo terminó, pero no pasó todas las comprobaciones",
            )
            .to_owned(),
        (_, Some(reason)) => {
            format!("{reason}: {}", stop_reason_text(reason, result.limit_reached(), language))
        }
        (_, None) => language.pick("the run did not start", "la ejecución no comenzó").to_owned(),
    }
}
