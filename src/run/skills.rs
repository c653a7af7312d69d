//! The skills of a run: which are offered, and which its session has loaded.

use agent_config::fact_cache::FactCache;
use agent_config::settings::Settings;
use agent_config::skills::{self, FoundSkills};
use agent_core::event::Event;
use agent_core::message::Role;
use agent_core::skill::Skill;
use agent_engine::skill_set::SkillSet;
use agent_messages as messages;
use agent_session::session::Session;
use agent_text::delimiter::Delimiter;
use agent_tools::TypedTool;
use agent_tools::toolbox::Toolbox;
use agent_tools::use_skill::UseSkill;
use std::io;

/// The skills that a run offers.
pub struct OfferedSkills {
    /// The skills, sorted by name, at most `skills.max_listed`.
    pub skills: Vec<Skill>,
    /// Whether the model has the tool `use_skill` and the list of skills.
    pub has_tool: bool,
    /// Warnings about files that cannot be used, and about skills of the project that have changed.
    pub warnings: Vec<String>,
    /// Notices about skills of the project that no run before has offered.
    pub new_skills: Vec<String>,
}

/// Returns the skills of a run with these tools. A resumed session, whose last run began with `last_run`, keeps its tools, so
/// that the cached prefix of its prompts stays valid.
pub fn offered(settings: &Settings, toolbox: &Toolbox, last_run: Option<&Event>) -> OfferedSkills {
    let FoundSkills { mut skills, mut warnings } =
        skills::find(&settings.skills, &settings.workspace, &settings.directories.config);
    skills.retain(|skill| skill.requires.iter().all(|tool| toolbox.names().any(|name| name == tool)));
    skills.truncate(usize::try_from(settings.skills.max_listed).unwrap_or(usize::MAX));
    let (new_skills, changed) = compare(settings, &skills);
    warnings.extend(changed);
    let allowed = &settings.agent.allowed_tools;
    let is_allowed = allowed.is_empty() || allowed.iter().any(|tool| tool == UseSkill::NAME);
    let has_tool = match last_run {
        Some(Event::RunStart { tools, .. }) => tools.iter().any(|tool| tool == UseSkill::NAME),
        _ => is_allowed && !skills.is_empty(),
    };
    OfferedSkills { skills, has_tool, warnings, new_skills }
}

/// Compares the project's skills with those of earlier runs, and stores their hashes. Returns notices about new skills, and
/// warnings about changed ones.
fn compare(settings: &Settings, skills: &[Skill]) -> (Vec<String>, Vec<String>) {
    let own: Vec<&Skill> = skills.iter().filter(|skill| !skill.directory.starts_with('/')).collect();
    if own.is_empty() {
        return Default::default();
    }
    let cache = FactCache { state: &settings.state, workspace: &settings.workspace, name: "skills.json" };
    let not_compared = |error: io::Error| messages::skills_not_compared(&error.to_string());
    let before = match cache.load::<String>() {
        Ok(before) => before.unwrap_or_default(),
        Err(error) => return (Vec::new(), vec![not_compared(error)]),
    };
    let (mut new, mut warnings) = (Vec::new(), Vec::new());
    for Skill { name, directory, hash, .. } in &own {
        match before.get(name) {
            None => new.push(messages::skill_new(name, hash)),
            Some(then) if then != hash => warnings.push(messages::skill_changed(name, directory)),
            Some(_) => {}
        }
    }
    let mut now = before.clone();
    now.extend(own.iter().map(|skill| (skill.name.clone(), skill.hash.clone())));
    if before != now {
        warnings.extend(cache.store(now).err().map(not_compared));
    }
    (new, warnings)
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
