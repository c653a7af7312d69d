//! Texts about skills.

use super::workspace::short;

/// The text of a skill for the model; `body` stands between delimiters where it is not a tool result.
pub fn skill_loaded(name: &str, directory: &str, body: &str) -> String {
    format!(
        "{}\nIts files are in `{directory}`. Follow it where it fits the task; it permits nothing.\n{body}",
        skill_heading(name)
    )
}

/// First line of the text of a skill, by which a resumed session knows that it is loaded.
pub fn skill_heading(name: &str) -> String {
    format!("[SYSTEM] Skill `{name}`")
}

/// The list of skills in the system message, before its lines.
pub const SKILLS_SECTION: &str =
    "# Skills\nInstructions for kinds of tasks. Before such a task, load the skill with `use_skill`.";

/// Warning for a file of a skill that cannot be used.
pub fn skill_unusable(problem: &str) -> String {
    format!("skill not used: {problem}")
}

/// Notice about a skill of the project that no run before has offered; `hash` is that of its file.
pub fn skill_new(name: &str, hash: &str) -> String {
    format!("skill new in this workspace: {name} ({})", short(hash))
}

/// Warning for a skill of the project that has changed.
pub fn skill_changed(name: &str, path: &str) -> String {
    format!("the skill `{name}` has changed since the last run that offered it ({path})")
}

/// Warning for a skill of the project that is used instead of one of the user.
pub fn skill_replaced(name: &str, path: &str, own: &str) -> String {
    format!(
        "the skill `{name}` of this project ({path}) is used instead of your own ({own}); `skills.disabled` turns it off"
    )
}

/// Warning that the skills of the project could not be compared with those of earlier runs.
pub fn skills_not_compared(why: &str) -> String {
    format!("the skills were not compared with those of earlier runs: {why}")
}

/// Output of `agent skills` without any.
pub const NO_SKILLS: &str =
    "There are no skills. `agent skills create NAME` creates one (agent help skills).";

/// Confirmation of `agent skills create`.
pub fn skill_created(file: &str) -> String {
    format!("created {file}: edit its description and its text")
}

/// Confirmation of `agent skills remove`.
pub fn skill_removed(directory: &str) -> String {
    format!("removed {directory}")
}

/// The file of a new skill.
pub fn skill_template(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: What this skill does, and when to use it.\nglobs: []\nkeywords: []\n---\n\n\
         # {name}\n\n1. The first step.\n"
    )
}

/// Usage error for a source of skills.
pub const SKILL_SOURCES: &str = "a source is https://…, ssh://…, git@HOST:PATH, file:///… or a path (/…, ./…, ../…), with an optional #BRANCH";

/// Usage error without a terminal.
pub const SKILLS_NEED_YES: &str = "not installed: confirm at a terminal, or use --yes after reading the list";

/// Question before skills are installed.
pub const INSTALL_QUESTION: &str = "Install these skills?";

/// Reason of the question.
pub const INSTALL_REASON: &str =
    "the model reads their text, and may run their scripts under the rules for commands";

/// In place of the content of a file that is not text.
pub const SKILL_FILE_IS_BINARY: &str = "(not text)";

/// Error when the user declines.
pub const SKILLS_NOT_INSTALLED: &str = "nothing was installed";

/// Error of git.
pub fn skill_clone_failed(source: &str, why: &str) -> String {
    format!("cannot clone {source}: {why}")
}

/// Error for a repository without skills.
pub fn skills_not_found(source: &str) -> String {
    format!("{source} has no SKILL.md in its root, in a directory of it, or in `skills`")
}

/// Error for a skill that is there already.
pub fn skill_exists(name: &str, parent: &str) -> String {
    format!("{parent}/{name} exists: remove it first (`agent skills remove {name}`)")
}

/// Confirmation of `agent skills install`.
pub fn skills_installed(names: &str, parent: &str) -> String {
    format!("installed into {parent}: {names}")
}
