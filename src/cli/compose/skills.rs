//! The skills of a run: which are offered, and which its session has loaded.

use crate::agent::session::Session;
use crate::config::fact_cache::FactCache;
use crate::config::settings::Settings;
use crate::config::skills::{self, FoundSkills};
use crate::core::event::Event;
use crate::core::message::Role;
use crate::core::skill::Skill;
use crate::engine::skill_set::SkillSet;
use crate::messages;
use crate::text::delimiter::Delimiter;
use crate::tools::TypedTool;
use crate::tools::toolbox::Toolbox;
use crate::tools::use_skill::UseSkill;
use std::collections::BTreeMap;

/// The skills that a run offers.
pub struct OfferedSkills {
    /// The skills, sorted by name, at most `skills.max_listed`.
    pub skills: Vec<Skill>,
    /// Whether the model has the tool `use_skill` and the list of skills.
    pub has_tool: bool,
    /// Warnings about files that cannot be used, and about skills of the project that have changed.
    pub warnings: Vec<String>,
}

/// Returns the skills of a run with these tools. A resumed session, whose last run began with `last_run`, keeps its tools, so
/// that the cached prefix of its prompts stays valid.
pub fn offered(settings: &Settings, toolbox: &Toolbox, last_run: Option<&Event>) -> OfferedSkills {
    let FoundSkills { mut skills, mut warnings } =
        skills::find(&settings.skills, &settings.workspace, &settings.directories.config);
    skills.retain(|skill| skill.requires.iter().all(|tool| toolbox.names().any(|name| name == tool)));
    skills.truncate(usize::try_from(settings.skills.max_listed).unwrap_or(usize::MAX));
    warnings.extend(changed(settings, &skills));
    let allowed = &settings.agent.allowed_tools;
    let is_allowed = allowed.is_empty() || allowed.iter().any(|tool| tool == UseSkill::NAME);
    let has_tool = match last_run {
        Some(Event::RunStart { tools, .. }) => tools.iter().any(|tool| tool == UseSkill::NAME),
        _ => is_allowed && !skills.is_empty(),
    };
    OfferedSkills { skills, has_tool, warnings }
}

/// Compares the project's skills with those of the last run that offered any, and stores their hashes; returns warnings.
fn changed(settings: &Settings, skills: &[Skill]) -> Vec<String> {
    let own = skills.iter().filter(|skill| !skill.directory.starts_with('/'));
    let now: BTreeMap<String, String> = own
        .map(|skill| (skill.name.clone(), blake3::hash(skill.body.as_bytes()).to_hex().to_string()))
        .collect();
    if now.is_empty() {
        return Vec::new();
    }
    let cache = FactCache { state: &settings.state, workspace: &settings.workspace, name: "skills.json" };
    let before = match cache.load::<String>() {
        Ok(before) => before.unwrap_or_default(),
        Err(error) => return vec![messages::skills_not_compared(&error.to_string())],
    };
    let differs = |skill: &&Skill| {
        let then = before.get(&skill.name);
        now.get(&skill.name).is_some_and(|hash| then.is_some_and(|then| then != hash))
    };
    let mut warnings: Vec<String> = skills
        .iter()
        .filter(differs)
        .map(|skill| messages::skill_changed(&skill.name, &skill.directory))
        .collect();
    if before != now
        && let Err(error) = cache.store(now)
    {
        warnings.push(messages::skills_not_compared(&error.to_string()));
    }
    warnings
}

/// Returns the skills for session `id`; those whose text is in the conversation count as loaded.
pub fn restore(skills: &[Skill], id: &str, session: &Session) -> SkillSet {
    let set = SkillSet::new(skills.to_vec(), Delimiter::for_session(id));
    let users = session.messages().iter().filter(|message| message.role == Role::User);
    let texts: Vec<String> = users.map(|message| message.joined_text()).collect();
    for name in set.names() {
        let heading = messages::skill_heading(name);
        let is_loaded = |text: &str| text.contains(&heading);
        if texts.iter().any(|text| is_loaded(text)) || session.results().any(is_loaded) {
            set.mark_loaded(name);
        }
    }
    set
}
