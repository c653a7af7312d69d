//! Skills: instructions for a kind of task, which the model loads when it needs them.

/// A skill, read from the file `SKILL.md` of its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name: `[a-z0-9-]`, at most 64 characters.
    pub name: String,
    /// When to use it, one line.
    pub description: String,
    /// Globs on workspace paths; a file that matches loads the skill.
    pub globs: Vec<String>,
    /// Words in a prompt that load the skill.
    pub keywords: Vec<String>,
    /// Tools that the agent must have; otherwise the skill is not offered.
    pub requires: Vec<String>,
    /// What an activation of an agent of a Hub needs for it.
    pub hub: HubSkill,
    /// Its directory: relative to the workspace, or absolute for one of the user.
    pub directory: String,
    /// The instructions.
    pub body: String,
    /// Hash of the whole file, in hex.
    pub hash: String,
}

/// When a skill is offered in an activation of an agent of a Hub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubSkill {
    /// Communities of posts for which it is offered.
    pub communities: Vec<String>,
    /// Grants that the agent must have.
    pub grants: Vec<String>,
    /// Programs that must be on the `PATH`.
    pub programs: Vec<String>,
}

impl Skill {
    /// Checks whether a text, or the community of its post, triggers the skill.
    pub fn is_triggered(&self, text: &str, community: &str) -> bool {
        let community = |known: &String| !community.is_empty() && known.eq_ignore_ascii_case(community);
        self.is_in_prompt(text) || self.hub.communities.iter().any(community)
    }

    /// Checks whether `prompt` contains one of the keywords as whole words, in any case.
    pub fn is_in_prompt(&self, prompt: &str) -> bool {
        let prompt = words(prompt);
        self.keywords.iter().map(|keyword| words(keyword)).any(|keyword| {
            !keyword.is_empty() && prompt.windows(keyword.len()).any(|found| found == keyword.as_slice())
        })
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k09_a_keyword_is_found_as_whole_words_in_any_case() {
        let skill = Skill {
            name: "db".into(),
            description: String::new(),
            globs: Vec::new(),
            keywords: vec!["Database migration".into(), "sql".into(), String::new()],
            requires: Vec::new(),
            hub: HubSkill::default(),
            directory: String::new(),
            body: String::new(),
            hash: String::new(),
        };
        for prompt in ["Write a database-migration!", "run SQL", "(sql)"] {
            assert!(skill.is_in_prompt(prompt), "{prompt}");
        }
        for prompt in ["", "mysql", "database and migration", "sqlite"] {
            assert!(!skill.is_in_prompt(prompt), "{prompt}");
        }
    }
}
