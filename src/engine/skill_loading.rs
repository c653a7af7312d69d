//! Loads skills into the conversation: by a keyword in the prompt, and when a file matches a glob.

use crate::Engine;
use agent_core::event::{Event, MessageOrigin};
use agent_core::skill::Skill;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;

impl Engine {
    /// Adds the skills with a keyword in `prompt` to the conversation.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn load_skills_for_prompt(&self, prompt: &str) -> Result<(), EmitError> {
        self.load_skills(&self.skills.take(|skill, _| skill.is_in_prompt(prompt)))
    }

    /// Adds the skills to the conversation of which a glob matches a file that calls have read or changed.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn load_skills_for_files(&self) -> Result<(), EmitError> {
        let touched = self.skills.take_touched();
        if touched.is_empty() {
            return Ok(());
        }
        self.load_skills(&self.skills.take(|_, globs| touched.iter().any(|path| globs.is_match(path))))
    }

    fn load_skills(&self, skills: &[&Skill]) -> Result<(), EmitError> {
        for skill in skills {
            let body = self.skills.wrap(&skill.body);
            let text = messages::skill_loaded(&skill.name, &skill.directory, &body);
            self.emitter.emit(Event::user_message(text, MessageOrigin::Skill))?;
        }
        Ok(())
    }
}
