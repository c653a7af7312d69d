//! The section `skills` of the configuration, and the skills of the user and of the project: `SKILL.md` files with front matter.

use super::error::ConfigError;
use super::front_matter;
use super::text_file::{is_absent, read_own_text, read_text, resolve_inside};
use super::yaml::{Content, Node};
use agent_core::skill::{HubSkill, Skill};
use agent_messages as messages;
use agent_text::lines::words;
use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories of skills in a workspace, the strongest last. The last two are those of other agents.
const PROJECT_DIRECTORIES: [&str; 4] =
    [".agents/skills", ".claude/skills", ".agent/installed-skills", ".agent/skills"];

/// The file of a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// Maximum bytes of the text of a skill.
const MAX_BODY_BYTES: usize = 32 << 10;

/// Maximum bytes of the file of a skill: front matter and text.
const MAX_FILE_BYTES: u64 = 48 << 10;

/// Maximum length of a name and of a description in characters (agentskills.io).
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;

/// Maximum number of skills that are read from one directory.
const MAX_SKILLS: usize = 500;

/// Instructions for kinds of tasks that the model loads when it needs them (`agent help skills`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillSettings {
    /// Whether skills are offered.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Names of skills that are not offered.
    #[schemars(extend("x-merge" = "add"))]
    pub disabled: Vec<String>,
    /// Further directories of skills of yours, each with one directory per skill.
    #[schemars(extend("x-merge" = "add", "x-scope" = "never-from-project"))]
    pub dirs: Vec<String>,
    /// Maximum number of skills in the system message, in the order of their names.
    #[schemars(range(min = 1, max = 20), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "skills"))]
    pub max_listed: u32,
}

/// The skills of a run, and warnings about those that cannot be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundSkills {
    /// The skills, sorted by name.
    pub skills: Vec<Skill>,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
}

/// Finds the skills of the user, whose configuration is in `config`, and of the project in `workspace`; a project's skill
/// replaces one of the user with the same name.
pub fn find(settings: &SkillSettings, workspace: &Path, config: &Path) -> FoundSkills {
    let mut found = FoundSkills::default();
    if !settings.enabled {
        return found;
    }
    let mut by_name = BTreeMap::new();
    let own = settings.dirs.iter().map(|dir| workspace.join(dir));
    for directory in own.chain([config.join("skills")]) {
        add(&mut by_name, &mut found.warnings, &directory, &directory.to_string_lossy(), |path| {
            read_own_text(path, MAX_FILE_BYTES)
        });
    }
    let of_user: BTreeMap<String, String> =
        by_name.iter().map(|(name, skill)| (name.clone(), skill.directory.clone())).collect();
    for relative in PROJECT_DIRECTORIES {
        match resolve_inside(workspace, relative.as_ref()) {
            Ok(None) => {}
            Ok(Some(directory)) => {
                add(&mut by_name, &mut found.warnings, &directory, relative, |path| inside(workspace, path));
            }
            Err(error) => found.warnings.push(messages::skill_unusable(&error.file(relative).to_string())),
        }
    }
    by_name.retain(|name, _| !settings.disabled.contains(name));
    let replaced = by_name.iter().filter_map(|(name, skill)| {
        let own = of_user.get(name).filter(|own| **own != skill.directory)?;
        Some(messages::skill_replaced(name, &skill.directory, own))
    });
    found.warnings.extend(replaced);
    found.skills = by_name.into_values().collect();
    found
}

/// Reads a file of the project that is not behind a link out of it.
fn inside(root: &Path, path: &Path) -> Result<Option<String>, ConfigError> {
    match path.strip_prefix(root).ok().map(|relative| resolve_inside(root, relative)).transpose()?.flatten() {
        Some(path) => read_text(&path, MAX_FILE_BYTES),
        None => Ok(None),
    }
}

/// Adds the skills in the subdirectories of `directory`, which is shown as `shown`.
fn add(
    skills: &mut BTreeMap<String, Skill>,
    warnings: &mut Vec<String>,
    directory: &Path,
    shown: &str,
    read: impl Fn(&Path) -> Result<Option<String>, ConfigError>,
) {
    let entries = match directory.read_dir() {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return,
        Err(error) => return warnings.push(messages::skill_unusable(&format!("{shown}: {error}"))),
    };
    let mut names: Vec<PathBuf> = entries.flatten().take(MAX_SKILLS).map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let at = format!("{shown}/{name}");
        match read(&path.join(SKILL_FILE))
            .and_then(|text| text.map(|text| parse(&name, &at, &text)).transpose())
        {
            Ok(None) => {}
            Ok(Some(skill)) => drop(skills.insert(name, skill)),
            Err(error) => {
                let file = format!("{at}/{SKILL_FILE}");
                warnings.push(messages::skill_unusable(&error.file(&file).to_string()));
            }
        }
    }
}

/// Parses the file of the skill `name` in `directory`. Keys of the common format that have no effect here are ignored.
///
/// # Errors
/// Fails with the line of the problem.
pub fn parse(name: &str, directory: &str, text: &str) -> Result<Skill, ConfigError> {
    let (head, body, _) = front_matter::split(text)?;
    let Content::Map(entries) = front_matter::parse(head)?.content else {
        return Err(ConfigError::new("has no front matter with `name` and `description`").line(1));
    };
    let value = |key: &str| entries.iter().find(|entry| entry.name == key).map(|entry| &entry.node);
    let own = value("name").map(string).transpose()?.unwrap_or_else(|| name.to_owned());
    if own != name || !is_name(name) {
        return Err(ConfigError::new(
            "`name` must be the name of its directory: a-z, 0-9 and -, at most 64 characters",
        )
        .line(value("name").map_or(1, |node| node.line)));
    }
    let description = value("description").map(string).transpose()?.unwrap_or_default();
    let description = words(&description);
    if description.is_empty() {
        let line = value("description").map_or(1, |node| node.line);
        return Err(ConfigError::new("`description` must have text").line(line));
    }
    let description = match description.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => format!("{} [... cut ...]", description.get(..end).unwrap_or_default()),
        None => description,
    };
    let list = |key: &str| value(key).map_or(Ok(Vec::new()), strings);
    let globs = list("globs")?;
    if let Some(glob) = globs.iter().find(|glob| Glob::new(glob).is_err()) {
        let line = value("globs").map_or(1, |node| node.line);
        return Err(ConfigError::new(format!("`globs` has an invalid glob: {glob}")).line(line));
    }
    let triggers = |key: &str| {
        let Some(Content::Map(entries)) = value("triggers").map(|node| &node.content) else {
            return Ok(Vec::new());
        };
        entries.iter().find(|entry| entry.name == key).map_or(Ok(Vec::new()), |entry| strings(&entry.node))
    };
    let keywords = [list("keywords")?, triggers("keywords")?].concat();
    let hub = HubSkill {
        communities: triggers("communities")?,
        grants: list("requires_grants")?,
        programs: list("requires_cli")?,
    };
    let body = Some(body.trim()).filter(|body| !body.is_empty()).unwrap_or(&description);
    let shown = body.get(..body.floor_char_boundary(MAX_BODY_BYTES)).unwrap_or(body);
    let rest = if shown.len() < body.len() {
        format!("\n[... cut: read {directory}/{SKILL_FILE} for the rest ...]")
    } else {
        String::new()
    };
    let body = format!("{shown}{rest}");
    Ok(Skill {
        name: name.to_owned(),
        description,
        globs,
        keywords,
        requires: list("requires")?,
        hub,
        directory: directory.to_owned(),
        body,
        hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
    })
}

/// Checks whether `name` can be the name of a skill.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_allowed)
}

fn string(node: &Node) -> Result<String, ConfigError> {
    match &node.content {
        Content::Scalar(serde_json::Value::String(text)) => Ok(text.clone()),
        Content::Scalar(serde_json::Value::Number(number)) => Ok(number.to_string()),
        Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
            Err(ConfigError::new("must be text").line(node.line))
        }
    }
}

/// Returns a list of texts; a single text may be separated by commas.
fn strings(node: &Node) -> Result<Vec<String>, ConfigError> {
    match &node.content {
        Content::List(items) => items.iter().map(string).collect(),
        Content::Scalar(serde_json::Value::Null) => Ok(Vec::new()),
        Content::Scalar(_) | Content::Map(_) => Ok(string(node)?
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k09_a_skill_is_read_with_lists_and_unknown_keys() {
        let text = "---\nname: sql\ndescription: >\n  Writes\n  queries\nglobs: ['*.sql', 'db/**']\nkeywords: query, table\n\
                    license: MIT\nallowed-tools: Bash(*)\nmetadata: {author: x}\n---\n\n# Body\n";
        let skill = parse("sql", ".agent/skills/sql", text).unwrap();
        assert_eq!((skill.description.as_str(), skill.body.as_str()), ("Writes queries", "# Body"));
        assert_eq!((skill.globs.len(), skill.keywords), (2, vec!["query".to_owned(), "table".to_owned()]));
    }

    #[test]
    fn k09_a_bad_file_is_an_error_with_its_line() {
        for (text, line) in [
            ("no front matter", "1"),
            ("---\nname: other\ndescription: d\n---\nbody", "2"),
            ("---\nname: sql\n---\nbody", "1"),
            ("---\nname: sql\ndescription: d\nglobs: ['a{']\n---\nbody", "4"),
        ] {
            let error = parse("sql", "d", text).unwrap_err();
            assert_eq!(error.line.map(|line| line.to_string()).as_deref(), Some(line), "{text}: {error}");
        }
    }

    // Fault A16: other clients read these files.
    #[test]
    fn a_description_without_quotes_a_long_one_and_a_file_without_text_are_read() {
        let read = |description: &str, body: &str| {
            parse("sql", "d", &format!("---\nname: sql\ndescription: {description}\n---\n{body}")).unwrap()
        };
        for text in [
            "Use it for: queries",
            "[SQL] queries",
            "*all* queries",
            "@db: queries",
            "`sql` queries",
            "a \"b\": c",
        ] {
            assert_eq!(read(text, "body").description, text);
        }
        assert_eq!(read("'quoted: once'", "body").description, "quoted: once");
        let long = read(&"ä".repeat(1_100), "body").description;
        assert_eq!(long, format!("{} [... cut ...]", "ä".repeat(1_024)));
        assert_eq!(read("d", "").body, "d");
    }

    #[test]
    fn k09_a_long_body_is_cut_with_a_note() {
        let text = format!("---\nname: sql\ndescription: d\n---\n{}", "ä".repeat(20_000));
        let skill = parse("sql", "dir", &text).unwrap();
        assert!(skill.body.len() < MAX_BODY_BYTES + 100 && skill.body.contains("read dir/SKILL.md"));
    }
}
