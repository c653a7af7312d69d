//! Texts of `agent init`, and those about the files that it and `agent import` write.

/// Usage error for an unknown preset.
pub fn unknown_preset(name: &str, names: &str) -> String {
    format!("there is no preset `{name}`; the presets are {names}")
}

/// Usage error without a preset where no file suggests one.
pub fn no_preset_fits(names: &str) -> String {
    format!("no file here suggests a preset: agent init --preset NAME, with one of {names}")
}

/// Usage error without a preset and without a terminal, where `file` suggests `preset`.
pub fn preset_proposal(preset: &str, file: &str) -> String {
    format!("{file} suggests the preset `{preset}`: agent init --preset {preset} (agent init --list-presets)")
}

/// The question whether to write a preset.
pub fn preset_question(preset: &str) -> String {
    format!("May I write the files of the preset `{preset}`?")
}

/// Reason of that question.
pub fn preset_reason(file: &str, about: &str) -> String {
    format!("found {file} ({about}); agent init --list-presets lists all")
}

/// Error when the user declines.
pub const NOTHING_WRITTEN: &str = "nothing was written; agent init --list-presets lists the presets";

/// Line about instructions that are not written, because they would replace those in `file`.
pub fn instructions_exist(file: &str) -> String {
    format!("not written  .agent.md ({file} has the instructions; a .agent.md would be read in its place)")
}

/// Line about a file that was created.
pub fn file_created(path: &str) -> String {
    format!("created      {path}")
}

/// Line about a file that was replaced.
pub fn file_replaced(path: &str) -> String {
    format!("replaced     {path}")
}

/// Line about a file that has the wanted content already.
pub fn file_unchanged(path: &str) -> String {
    format!("unchanged    {path}")
}

/// Line about a file that is kept.
pub fn file_kept(path: &str) -> String {
    format!(
        "kept         {path} (it exists and differs; --overwrite replaces it, --dry-run shows the new text)"
    )
}

/// Heading above the text of a file in a dry run.
pub fn file_preview(path: &str, exists: bool, overwrite: bool) -> String {
    let what = match (exists, overwrite) {
        (false, _) => "would be created",
        (true, true) => "would be replaced",
        (true, false) => "exists and would be kept; with --overwrite it becomes",
    };
    format!("--- {path} ({what})")
}

/// Line after a listing of settings that need trust, without a terminal or after a refusal.
pub const TRUST_LATER: &str =
    "these settings have no effect until you trust them: agent trust (without a terminal: agent trust --yes)";

/// Error of `--trust` when the trust would cover files that the command has not written.
pub fn trust_covers_more(file: &str) -> String {
    format!(
        "not trusted: the trust would cover {file}, which is not what this command writes; read it, then `agent trust`"
    )
}
