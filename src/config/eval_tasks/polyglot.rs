//! Exercises of the polyglot benchmark of Aider: `LANGUAGE/exercises/practice/NAME/`, in the format of the tracks of Exercism
//! (<https://exercism.org/docs/building/tracks/practice-exercises>).

use super::{EvalTask, MAX_FILE_BYTES, TaskFiles, TaskReader, is_below, name_of};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The instructions, in the order in which they are shown; only the second must exist.
const INSTRUCTIONS: [(&str, bool); 3] =
    [("introduction.md", true), ("instructions.md", false), ("instructions.append.md", true)];
/// Directories that a run must not see: `.meta` has the example solution.
const UNSEEN: [&str; 2] = [".meta", ".docs"];

/// `.meta/config.json`.
#[derive(Deserialize)]
struct Config {
    files: Files,
}

#[derive(Deserialize)]
struct Files {
    #[serde(default)]
    solution: Vec<String>,
    #[serde(default)]
    test: Vec<String>,
    #[serde(default)]
    example: Vec<String>,
}

/// Returns the directory of the exercises of a language, if the language has it.
pub(super) fn practice(language: &Path) -> Option<PathBuf> {
    Some(language.join("exercises/practice")).filter(|practice| practice.is_dir())
}

impl TaskReader {
    /// Reads the exercises of a language.
    pub(super) fn language(&mut self, language: &Path) {
        match practice(language) {
            Some(practice) => self.exercises(language, &practice),
            None => self.error(language, "has no exercises/practice"),
        }
    }

    /// Reads the exercises in the directory `practice` of a language.
    pub(super) fn exercises(&mut self, language: &Path, practice: &Path) {
        let language = name_of(language);
        for exercise in self.entries(practice, Path::is_dir) {
            self.exercise(&language, &exercise);
        }
    }

    fn exercise(&mut self, language: &str, exercise: &Path) {
        let config = exercise.join(".meta/config.json");
        let Some(text) = self.text(&config, MAX_FILE_BYTES, false) else { return };
        let files = match serde_json::from_str::<Config>(&text) {
            Ok(Config { files }) => files,
            Err(error) => return self.error(&config, error.to_string()),
        };
        let mut named = files.solution.iter().chain(&files.test).chain(&files.example);
        if let Some(outside) = named.find(|path| !is_below(path)) {
            return self.error(&config, format!("{outside} is no path below the exercise"));
        }
        if let Some((list, _)) =
            [("solution", &files.solution), ("test", &files.test), ("example", &files.example)]
                .into_iter()
                .find(|(_, paths)| paths.is_empty())
        {
            return self.error(&config, format!("files.{list} is empty"));
        }
        let errors = self.errors.len();
        let texts: Vec<String> = INSTRUCTIONS
            .iter()
            .filter_map(|(name, optional)| {
                self.text(&exercise.join(".docs").join(name), MAX_FILE_BYTES, *optional)
            })
            .collect();
        if self.errors.len() > errors {
            return;
        }
        let prompt = format!(
            "{}\n\nSolve this exercise in {language} by changing {}. Keep the names of existing functions, types and files: tests use them.",
            texts.join("\n\n"),
            files.solution.join(", ")
        );
        let unseen: BTreeSet<String> = UNSEEN.map(str::to_owned).into_iter().chain(files.example).collect();
        let own_files = TaskFiles::Directory { path: exercise.to_owned(), unseen };
        let name = format!("{language}/{}", name_of(exercise));
        let mut task = EvalTask { tests: files.test, ..EvalTask::new(name, prompt, own_files) };
        task.variables.insert("AGENT_VAR_LANGUAGE".to_owned(), language.to_owned());
        self.add(&config, task);
    }
}
