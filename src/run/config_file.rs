//! A configuration file that a command changes: the user's, or with `--project` the project's.

use crate::app::App;
use crate::error::{AppError, AppResult};
use agent_config::environment::Directories;
use agent_config::error::ConfigError;
use agent_config::key_rules::Merge;
use agent_config::layers::LayerKind;
use agent_config::load::{self, USER_FILE};
use agent_config::overrides::Overrides;
use agent_config::project::{MAX_CONFIG_BYTES, PROJECT_FILE};
use agent_config::text_file::{check_own_directory, read_own_text, read_text, resolve_inside};
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_runtime::private_file::create_private_dir;
use agent_terminal::Style;
use agent_workspace::Workspace;
use agent_workspace::error::FileError;
use agent_workspace::path::RelPath;
use agent_workspace::replace::Expected;
use rustix::fs::Mode;
use std::path::{Path, PathBuf};

/// The mark of the byte order at the beginning of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A configuration file with its text.
pub struct ConfigFile<'a> {
    app: &'a App,
    flags: Overrides,
    is_project: bool,
    /// The directory through which the file is written, and its path from there.
    root: PathBuf,
    path: String,
    /// The path for the user.
    pub shown: String,
    /// Whether there was no file.
    is_new: bool,
    /// The text; empty if there is no file.
    pub text: String,
}

impl<'a> ConfigFile<'a> {
    /// Reads the file. A link to the user's file is followed, one that leaves the project is not.
    ///
    /// # Errors
    /// Fails for `--config`, and for a file that is unreadable or does not belong to the user or the project.
    pub fn read(app: &'a App, flags: Overrides, is_project: bool) -> AppResult<Self> {
        if flags.config.is_some() {
            return Err(AppError::new(FailureKind::Usage, messages::CONFIG_FILE_NAMED));
        }
        if is_project { Self::read_project(app, flags) } else { Self::read_user(app, flags) }.map_err(wrong)
    }

    fn read_user(app: &'a App, flags: Overrides) -> Result<Self, ConfigError> {
        let directory = Directories::from_environment(&app.environment)?.config;
        check_own_directory(&directory)?;
        let file = directory.join(USER_FILE);
        let at = |error: ConfigError| error.path(&file);
        let text = read_own_text(&file, MAX_CONFIG_BYTES).map_err(at)?;
        let real = match file.canonicalize() {
            Ok(real) => real,
            Err(_) if file.symlink_metadata().is_ok() => {
                return Err(at(ConfigError::new("is a broken link: remove it first")));
            }
            Err(_) => file.clone(),
        };
        let name = real.file_name().and_then(|name| name.to_str()).unwrap_or(USER_FILE).to_owned();
        Ok(Self {
            app,
            flags,
            is_project: false,
            root: real.parent().map_or(directory, Path::to_owned),
            path: name,
            shown: file.display().to_string(),
            is_new: text.is_none(),
            text: text.unwrap_or_default(),
        })
    }

    fn read_project(app: &'a App, flags: Overrides) -> Result<Self, ConfigError> {
        let (_, root) = load::state_and_workspace(&flags, &app.environment)?;
        let file = resolve_inside(&root, PROJECT_FILE.as_ref());
        let text = file.and_then(|file| file.map_or(Ok(None), |file| read_text(&file, MAX_CONFIG_BYTES)));
        let text = text.map_err(|error| error.file(PROJECT_FILE))?;
        Ok(Self {
            app,
            flags,
            is_project: true,
            root,
            path: PROJECT_FILE.to_owned(),
            shown: PROJECT_FILE.to_owned(),
            is_new: text.is_none(),
            text: text.unwrap_or_default(),
        })
    }

    /// Adds the file to an error.
    pub fn refused(&self, error: ConfigError) -> AppError {
        wrong(error.file(&self.shown))
    }

    /// Checks the configuration with the new `text`, in which `keys` have changed, and replaces the file. Reports when a key has no effect.
    ///
    /// # Errors
    /// Fails for an invalid configuration, a key that a project may not set, a file that has changed meanwhile, and when it cannot be written.
    pub fn replace(&self, text: &str, keys: &[&str]) -> AppResult<()> {
        if text.len() as u64 > MAX_CONFIG_BYTES {
            return Err(self.refused(ConfigError::new(format!("is larger than {MAX_CONFIG_BYTES} bytes"))));
        }
        let mut needs_trust = Vec::new();
        if self.is_project {
            let restricted =
                load::check_project_text(text, &self.flags, &self.app.environment).map_err(wrong)?;
            if let Some(key) = keys.iter().find(|key| restricted.never_from_project.get(key).is_some()) {
                return Err(wrong(ConfigError::new(messages::CONFIG_NOT_FROM_PROJECT).key(*key)));
            }
            needs_trust.extend(keys.iter().filter(|key| restricted.needs_trust.get(key).is_some()));
        } else {
            load::check_user_text(text, &self.app.environment).map_err(wrong)?;
        }
        self.write(text)?;
        self.report_effect(keys, &needs_trust);
        Ok(())
    }

    fn write(&self, text: &str) -> AppResult<()> {
        let failed = |why: &dyn std::fmt::Display| {
            AppError::new(FailureKind::Request, format!("cannot write {}: {why}", self.shown))
        };
        if !self.is_project {
            create_private_dir(&self.root).map_err(|error| failed(&error))?;
        }
        let root = Workspace::open(&self.root)
            .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
        let path = path_inside(&root, &self.path, &self.shown)?;
        let read = root.read(&path, MAX_CONFIG_BYTES);
        let expected = match &read {
            // Without the mark of its byte order, which the text does not have.
            Ok(content)
                if content.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&content.bytes)
                    == self.text.as_bytes()
                    && !self.is_new =>
            {
                Expected::Hash(content.hash.clone())
            }
            Err(FileError::Missing(_)) if self.is_new => Expected::Absent,
            Ok(_) | Err(FileError::Missing(_)) => return Err(failed(&messages::CONFIG_CHANGED_MEANWHILE)),
            Err(error) => return Err(failed(error)),
        };
        let mode = (!self.is_project && read.is_err()).then_some(Mode::RUSR | Mode::WUSR);
        let written = root.replace_with_mode(&path, &expected, text.as_bytes(), mode);
        written.map(drop).map_err(|error| failed(&error))
    }

    /// Reports which of the changed keys have no effect here, and that the trust in the project has ended.
    fn report_effect(&self, keys: &[&str], needs_trust: &[&str]) {
        // The file itself is valid; a problem of another one is reported by the commands that need it.
        let Ok(loaded) = self.app.load(&self.flags) else { return };
        let report = |text: &str| self.app.notify(Style::Warning, &self.app.redact(text));
        if self.is_project {
            loaded.trust.notices.iter().for_each(|notice| report(notice));
        }
        let is_trusted = loaded.trust.status.is_trusted();
        for key in keys {
            let in_force = loaded.layers.get(key).filter(|value| value.merge == Merge::Replace);
            let higher = in_force.filter(|value| value.origin.level > self.level());
            if needs_trust.contains(key) && !is_trusted {
                report(&messages::config_needs_trust(key));
            } else if let Some(value) = higher {
                report(&messages::config_overridden(key, &value.origin.to_string()));
            }
        }
    }

    fn level(&self) -> LayerKind {
        if self.is_project { LayerKind::Project } else { LayerKind::User }
    }
}

/// Returns the path of a file in `workspace`.
///
/// # Errors
/// Fails for a link that leaves the directory or is broken. `shown` is the path for the user.
pub fn path_inside(workspace: &Workspace, path: &str, shown: &str) -> AppResult<RelPath> {
    for part in Path::new(path).ancestors().filter(|part| !part.as_os_str().is_empty()) {
        let shown = || part.to_string_lossy().into_owned();
        let real = resolve_inside(workspace.root(), part).map_err(|error| wrong(error.file(shown())))?;
        if real.is_none() && workspace.root().join(part).symlink_metadata().is_ok() {
            return Err(wrong(ConfigError::new("is a broken link: remove it first").file(shown())));
        }
    }
    workspace
        .path(path)
        .map_err(|error| AppError::new(FailureKind::Request, format!("cannot write {shown}: {error}")))
}

fn wrong(error: ConfigError) -> AppError {
    AppError { kind: FailureKind::Config, cause: error.into() }
}
