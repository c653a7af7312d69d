//! Which skills an activation offers: those that its definition names, and those that its text or community triggers, if the agent has the
//! grants and the machine the programs.

use agent_config::agent_definition::AgentDefinition;
use agent_config::grants::Grants;
use agent_config::settings::Settings;
use agent_config::skills::find;
use agent_core::skill::Skill;
use agent_process::exec::find_in_path;
use agent_run::app::App;

/// Returns the names of the skills that are not offered for `text`, from a post of `community`. Without `hub.agents` the definition names none,
/// and all are offered that the agent may use.
pub fn withheld(
    app: &App,
    settings: &Settings,
    definition: &AgentDefinition,
    grants: &Grants,
    text: &str,
    community: &str,
) -> Vec<String> {
    let path = app.environment.get("PATH").unwrap_or_default();
    let is_usable = |skill: &Skill| {
        skill.hub.grants.iter().all(|grant| grants.has(grant))
            && skill.hub.programs.iter().all(|program| find_in_path(program, path).is_some())
    };
    let is_wanted = |skill: &Skill| {
        settings.hub.agents.is_none()
            || definition.skills.contains(&skill.name)
            || skill.is_triggered(text, community)
    };
    let found = find(&settings.skills, &settings.workspace, &settings.directories.config).skills;
    let withheld = found.into_iter().filter(|skill| !is_usable(skill) || !is_wanted(skill));
    withheld.map(|skill| skill.name).collect()
}
