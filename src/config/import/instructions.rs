//! Instructions of other agents: which are read here as they are, and what else of these agents is not read.

use super::ForeignSetting;
use crate::error::ConfigError;
use crate::text_file::{read_text, resolve_inside};
use agent_engine::nested_instructions::INSTRUCTION_FILES;
use agent_messages as messages;
use std::path::Path;

/// Maximum bytes of an instructions file that is searched for imports.
const MAX_BYTES: u64 = 1 << 20;

/// Files and directories of Claude Code that are not read, each with the reason.
const CLAUDE: [(&str, &str); 5] = [
    (".claude/CLAUDE.md", messages::IMPORT_LOCAL_INSTRUCTIONS),
    ("CLAUDE.local.md", messages::IMPORT_LOCAL_INSTRUCTIONS),
    (".claude/rules", messages::IMPORT_LOCAL_INSTRUCTIONS),
    (".claude/agents", messages::IMPORT_AGENTS),
    (".claude/commands", messages::IMPORT_AGENTS),
];

/// Files and directories of Codex that are not read, each with the reason.
const CODEX: [(&str, &str); 3] = [
    ("AGENTS.override.md", messages::IMPORT_LOCAL_INSTRUCTIONS),
    (".codex/rules", messages::IMPORT_NO_KEY),
    (".codex/hooks.json", messages::IMPORT_CODEX_HOOKS),
];

/// Returns what is not carried over of the instructions `file` (`CLAUDE.md` or `AGENTS.md`) and of the other files of its
/// agent in `root`; the second value is true if the instructions are read as they are.
pub fn settings(root: &Path, file: &str) -> (Vec<ForeignSetting>, bool) {
    let exists = |name: &str| root.join(name).symlink_metadata().is_ok();
    let others: &[(&str, &str)] = if file == "CLAUDE.md" { &CLAUDE } else { &CODEX };
    let mut found: Vec<ForeignSetting> =
        others.iter().filter(|(name, _)| exists(name)).map(|(name, why)| skipped(name, why)).collect();
    if !exists(file) {
        return (found, false);
    }
    let used = INSTRUCTION_FILES.iter().find(|name| exists(name)).copied().unwrap_or(file);
    if used != file {
        found.push(skipped(file, &messages::import_displaced(used)));
        return (found, false);
    }
    let broken = || ConfigError::new("is a broken link");
    let text = resolve_inside(root, file.as_ref())
        .and_then(|path| read_text(&path.ok_or_else(broken)?, MAX_BYTES))
        .map(Option::unwrap_or_default);
    match &text {
        Ok(text) if file == "CLAUDE.md" && text.lines().any(is_import) => {
            found.push(skipped(&format!("{file}: imports (@path)"), messages::IMPORT_IMPORTS));
        }
        Ok(_) => {}
        Err(error) => found.push(skipped(file, &error.message)),
    }
    (found, text.is_ok())
}

/// Checks whether a line begins with the import of another file.
fn is_import(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['-', '*', ' ']);
    line.strip_prefix('@').is_some_and(|path| path.contains(['/', '.']))
}

fn skipped(name: &str, why: &str) -> ForeignSetting {
    ForeignSetting::new(name.to_owned(), Err(why.to_owned()))
}
