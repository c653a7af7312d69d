//! The skills that a run offers, and those that its session has loaded.

use agent_core::skill::Skill;
use agent_text::delimiter::Delimiter;
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The skills that a run offers, and those that its session has loaded.
#[derive(Debug)]
pub struct SkillSet {
    skills: Vec<(Skill, GlobSet)>,
    delimiter: Delimiter,
    loaded: RefCell<BTreeSet<String>>,
    /// Files that calls have read or changed since skills were last loaded.
    touched: RefCell<Vec<String>>,
}

impl Default for SkillSet {
    /// Creates an empty set.
    fn default() -> Self {
        Self::new(Vec::new(), Delimiter::for_session(""))
    }
}

impl SkillSet {
    /// Creates the offer of `skills`; globs that are invalid match nothing, which reading the skill has reported.
    pub fn new(skills: Vec<Skill>, delimiter: Delimiter) -> Self {
        let matcher = |skill: &Skill| {
            let mut globs = GlobSetBuilder::new();
            skill.globs.iter().filter_map(|glob| Glob::new(glob).ok()).for_each(|glob| {
                globs.add(glob);
            });
            globs.build().unwrap_or_default()
        };
        let skills = skills.into_iter().map(|skill| (matcher(&skill), skill));
        Self {
            skills: skills.map(|(globs, skill)| (skill, globs)).collect(),
            delimiter,
            loaded: RefCell::default(),
            touched: RefCell::default(),
        }
    }

    /// Returns the names of the skills.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.skills.iter().map(|(skill, _)| skill.name.as_str())
    }

    /// Records that the session has the text of a skill.
    pub fn mark_loaded(&self, name: &str) {
        self.loaded.borrow_mut().insert(name.to_owned());
    }

    /// Records that a call has read or changed the file `path`.
    pub fn touch(&self, path: &str) {
        if !self.skills.is_empty() {
            self.touched.borrow_mut().push(path.to_owned());
        }
    }

    /// Returns the files that were touched since the last call of this function.
    pub fn take_touched(&self) -> Vec<String> {
        self.touched.take()
    }

    /// Returns the delimiters of the session.
    pub fn delimiter(&self) -> &Delimiter {
        &self.delimiter
    }

    /// Returns `text` between the delimiters of the session.
    pub fn wrap(&self, text: &str) -> String {
        self.delimiter.wrap(text)
    }

    /// Returns the skills that fit and are not loaded yet, and records them as loaded.
    pub fn take(&self, fits: impl Fn(&Skill, &GlobSet) -> bool) -> Vec<&Skill> {
        let wanted = self.skills.iter().filter(|(skill, globs)| fits(skill, globs)).map(|(skill, _)| skill);
        wanted.filter(|skill| self.loaded.borrow_mut().insert(skill.name.clone())).collect()
    }
}
