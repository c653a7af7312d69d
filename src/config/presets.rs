//! Presets of `agent init`: instructions and a configuration for a kind of project.

use super::error::ConfigError;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The embedded presets by name. Of several that fit a project, the first is proposed: many projects of another kind have a
/// `package.json` too.
const PRESETS: [(&str, &str); 7] = [
    ("python", include_str!("../../config/presets/python.yaml")),
    ("rust", include_str!("../../config/presets/rust.yaml")),
    ("go", include_str!("../../config/presets/go.yaml")),
    ("node-react", include_str!("../../config/presets/node-react.yaml")),
    ("ci", include_str!("../../config/presets/ci.yaml")),
    ("paranoid", include_str!("../../config/presets/paranoid.yaml")),
    ("yolo", include_str!("../../config/presets/yolo.yaml")),
];

/// Maximum number of entries of a project that are searched for source files.
const MAX_FILES: usize = 5_000;

/// A preset.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name.
    #[serde(skip)]
    pub name: &'static str,
    /// One line for lists.
    pub about: String,
    /// Files in the root of a project that this preset fits.
    pub suggested_by: Vec<String>,
    /// Extension of the source files of such a project.
    #[serde(default)]
    pub extension: Option<String>,
    /// Text of `.agent.md`.
    pub instructions: String,
    /// Text of `.agent/config.yaml`.
    pub config: String,
}

/// Returns the preset that fits the files in `root`, and why: the first that a file there suggests, else the one with the most source
/// files there and in the directories below.
pub fn fitting<'a>(presets: &'a [Preset], root: &Path) -> Option<(&'a Preset, String)> {
    let exists = |name: &&String| root.join(name).symlink_metadata().is_ok();
    let mut suggested =
        presets.iter().filter_map(|preset| Some((preset, preset.suggested_by.iter().find(exists)?.clone())));
    suggested.next().or_else(|| {
        let files = source_files(root);
        let counted = presets.iter().filter_map(|preset| {
            let extension = preset.extension.as_deref()?;
            let count =
                files.iter().filter(|file| file.extension().is_some_and(|it| it == extension)).count();
            (count > 0).then(|| (count, preset, format!("*.{extension}")))
        });
        counted.max_by_key(|(count, ..)| *count).map(|(_, preset, pattern)| (preset, pattern))
    })
}

/// Returns the first [`MAX_FILES`] entries in `root` and in its visible directories.
fn source_files(root: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let below = entries(root).filter(|path| path.is_dir() && !path.is_symlink() && !is_hidden(path));
    entries(root).chain(below.flat_map(|dir| entries(&dir))).take(MAX_FILES).collect()
}

/// Returns all presets.
///
/// # Errors
/// Fails when an embedded preset is invalid, which a test excludes.
pub fn all() -> Result<Vec<Preset>, ConfigError> {
    let parse = |(name, text): (&'static str, &str)| {
        let preset: Preset = serde_yaml::from_str(text)
            .map_err(|error| ConfigError::new(error.to_string()).file(format!("preset {name}")))?;
        Ok(Preset { name, ..preset })
    };
    PRESETS.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_rules::embedded_schema;
    use crate::layers::{LayerKind, Layers};
    use crate::project::text_layer;

    #[test]
    fn f08_each_preset_has_instructions_and_settings_that_a_project_may_set_and_no_model() {
        let rules = &embedded_schema().unwrap().rules;
        for preset in all().unwrap() {
            let mut layer = text_layer(rules, LayerKind::Project, preset.name, &preset.config).unwrap();
            assert!(layer.get("llm.model").is_none() && !layer.is_empty(), "{}", preset.name);
            let restricted = layer.take_restricted(rules, &Layers::default());
            assert!(restricted.never_from_project.is_empty(), "{}", preset.name);
            assert!(preset.instructions.starts_with("# ") && !preset.about.is_empty(), "{}", preset.name);
            assert!(preset.config.contains(&format!("--preset {}", preset.name)), "{}", preset.name);
        }
    }
}
