//! Presets of `agent init`: instructions and a configuration for a kind of project.

use super::error::ConfigError;
use serde::Deserialize;
use std::path::Path;

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
    /// Text of `.agent.md`.
    pub instructions: String,
    /// Text of `.agent/config.yaml`.
    pub config: String,
}

impl Preset {
    /// Returns the file in `root` because of which the preset fits.
    pub fn suggesting_file(&self, root: &Path) -> Option<&str> {
        let exists = |name: &&String| root.join(name).symlink_metadata().is_ok();
        self.suggested_by.iter().find(exists).map(String::as_str)
    }
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
    use crate::config::key_rules::embedded_schema;
    use crate::config::layers::{LayerKind, Layers};
    use crate::config::project::text_layer;

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
