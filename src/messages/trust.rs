//! What is said about trust in a project's configuration.

/// A run that trusts what is there.
pub fn trusted_this_run(hash: &str) -> String {
    format!("this run trusts the project's configuration as it is: --trust-workspace={hash}")
}

/// A hash on the command line that is another one.
pub fn trust_hash_mismatch(hash: &str) -> String {
    format!(
        "the project's configuration is not what you trust: the hash of its content is {hash} \
         (agent trust --show says what is in it)"
    )
}

/// What was trusted has changed.
pub fn trust_ended(changes: &str) -> String {
    format!(
        "the project's configuration is no longer trusted: {changes} (agent trust shows it and asks again)"
    )
}

/// A record of trust that may not be the user's own.
pub fn trust_record_rejected(why: &str) -> String {
    format!("the record of your trust in this project is not believed: {why}")
}

/// How much is asked for: what scrolled away is not forgotten.
pub fn trust_totals(settings: usize, files: usize, named: usize) -> String {
    format!("asks    {settings} settings in {files} files of configuration, which name {named} other files")
}

/// What is asked, after the listing.
pub const TRUST_QUESTION: &str = "what this project's configuration says";

/// Why it is asked.
pub const TRUST_REASON: &str = "it takes effect in every run here, until one of these files changes";

/// Nobody can be asked.
pub const TRUST_NEEDS_TERMINAL: &str = "nobody can be asked here: `agent trust --show` says what would be trusted, \
     `agent trust --yes` trusts it, `agent run --trust-workspace=HASH` trusts exactly that for one run";

/// The answer was no.
pub const NOT_TRUSTED: &str = "not trusted; nothing was changed";

/// The answer was yes.
pub const TRUSTED: &str = "trusted, until one of these files changes; agent trust --revoke ends it";

/// Trust has ended by will.
pub const TRUST_REVOKED: &str = "this workspace is no longer trusted";

/// There was none.
pub const NO_TRUST_TO_REVOKE: &str = "this workspace was not trusted";

/// A record of trust that could not be written.
pub fn trust_not_stored(why: &str) -> String {
    format!("trust cannot be kept: {why}; `agent run --trust-workspace` trusts for one run")
}
