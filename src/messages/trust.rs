//! Messages about trust in a project's configuration.

/// Notice that `--trust-workspace` trusts the configuration with this hash for one run.
pub fn trusted_this_run(hash: &str) -> String {
    format!("this run trusts the project's configuration as it is: --trust-workspace={hash}")
}

/// Error for `--trust-workspace=HASH` whose hash differs from `hash`, that of the configuration.
pub fn trust_hash_mismatch(hash: &str) -> String {
    format!(
        "the hash of the project's configuration is {hash}, not the one given: review the configuration \
         with `agent trust --show`"
    )
}

/// Notice that trust has ended because the configuration changed.
pub fn trust_ended(changes: &str) -> String {
    format!(
        "the project's configuration is no longer trusted: {changes} (run `agent trust` to review it and trust it again)"
    )
}

/// Notice that a trust record is ignored because the user may not have written it.
pub fn trust_record_rejected(why: &str) -> String {
    format!("the trust record of this project is ignored: {why}")
}

/// Warning in the trust listing about a pattern in a command.
pub fn trust_pattern_uncovered(pattern: &str, key: &str) -> String {
    format!(
        "not covered: {key} names files by the pattern {pattern}; those that are no scripts may change without ending the trust"
    )
}

/// Totals of the trust listing, printed last because the listing may have scrolled away.
pub fn trust_totals(settings: usize, files: usize, named: usize) -> String {
    format!("total   {settings} settings in {files} configuration files, which name {named} other files")
}

/// The trust question.
pub const TRUST_QUESTION: &str = "May I run with this project's configuration?";

/// Reason of the trust question.
pub const TRUST_REASON: &str = "it takes effect in every run here, until one of these files changes";

/// Error of `agent trust` without a terminal.
pub const TRUST_NEEDS_TERMINAL: &str = "no terminal to ask at: `agent trust --show` lists what would be trusted, \
     `agent trust --yes` trusts it, `agent run --trust-workspace=HASH` trusts exactly that for one run";

/// Result of declining the trust question.
pub const NOT_TRUSTED: &str = "not trusted; nothing was changed";

/// Result of accepting the trust question.
pub const TRUSTED: &str = "trusted, until one of these files changes; agent trust --revoke ends it";

/// Result of `agent trust --revoke`.
pub const TRUST_REVOKED: &str = "this workspace is no longer trusted";

/// Result of `agent trust --revoke` without a trust record.
pub const NO_TRUST_TO_REVOKE: &str = "this workspace was not trusted";

/// Error for a trust record that cannot be written.
pub fn trust_not_stored(why: &str) -> String {
    format!("cannot save the trust record: {why}; use `agent run --trust-workspace` to trust for one run")
}
