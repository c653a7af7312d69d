//! `agent init`: writes the instructions and the configuration of a preset, and offers to trust them.

use crate::commands::common_args::CommonArgs;
use crate::commands::project_files::{self, NewFile, WriteOptions};
use crate::commands::trust;
use agent_config::error::ConfigError;
use agent_config::load;
use agent_config::presets::{self, Preset};
use agent_config::project::PROJECT_FILE;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_engine::nested_instructions::INSTRUCTION_FILES;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::{PromptAnswer, PromptQuestion, one_line};
use agent_workspace::Workspace;
use clap::Args;
use std::fmt::Write as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The file with the instructions.
const INSTRUCTIONS: &str = ".agent.md";

/// Characters shown of an unknown name.
const NAME_CHARS: usize = 60;

/// `agent init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The preset; without it, one that fits the files here is proposed
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Only list the presets
    #[arg(long, conflicts_with_all = ["preset", "overwrite", "dry_run", "trust"])]
    pub list_presets: bool,
    /// How the files are written.
    #[command(flatten)]
    pub write: WriteOptions,
    /// Trust the written configuration without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub trust: bool,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Writes the files of a preset; with `list_presets`, lists the presets.
///
/// # Errors
/// Fails for an unknown or missing preset, an invalid configuration, a link that leaves the workspace, and when a file cannot
/// be written.
pub fn init(app: &App, args: &InitArgs) -> AppResult<()> {
    let wrong = |error: ConfigError| AppError { kind: FailureKind::Config, cause: error.into() };
    let presets = presets::all().map_err(wrong)?;
    if args.list_presets {
        return print(&app.terminal, &list(&presets));
    }
    let (_, root) = load::state_and_workspace(&args.common.overrides(), &app.environment).map_err(wrong)?;
    let preset = match &args.preset {
        Some(name) => find(&presets, name)?,
        None => propose(app, &presets, &root)?,
    };
    let workspace = Workspace::open(&root)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    let files = files(app, preset, &root)?;
    project_files::write(app, &workspace, &files, args.write)?;
    if args.write.dry_run {
        return Ok(());
    }
    trust::offer(app, &args.common, args.trust.then_some(&files))
}

fn list(presets: &[Preset]) -> String {
    let mut text = String::new();
    for preset in presets {
        let _infallible = writeln!(text, "{:<12} {}", preset.name, preset.about);
    }
    text
}

fn names(presets: &[Preset]) -> String {
    presets.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

fn find<'a>(presets: &'a [Preset], name: &str) -> AppResult<&'a Preset> {
    let unknown = || messages::unknown_preset(&one_line(name, NAME_CHARS), &names(presets));
    let found = presets.iter().find(|preset| preset.name == name);
    found.ok_or_else(|| AppError::new(FailureKind::Usage, unknown()))
}

/// Asks whether to write the first preset that fits the files in `root`. Without a terminal, the error names it.
fn propose<'a>(app: &App, presets: &'a [Preset], root: &Path) -> AppResult<&'a Preset> {
    let Some((preset, file)) = presets::fitting(presets, root) else {
        return Err(AppError::new(FailureKind::Usage, messages::no_preset_fits(&names(presets))));
    };
    if !app.terminal.can_ask() {
        return Err(AppError::new(FailureKind::Usage, messages::preset_proposal(preset.name, &file)));
    }
    let question = PromptQuestion {
        language: Language::En,
        title: &messages::preset_question(preset.name),
        reason: &messages::preset_reason(&file, &preset.about),
        notes: &[],
        preview: None,
        lasting: None,
        saved: None,
    };
    match app.block_on(async { Ok(app.terminal.ask(&question, &CancellationToken::new()).await) })? {
        PromptAnswer::Yes => Ok(preset),
        PromptAnswer::Always | PromptAnswer::Save | PromptAnswer::No(_) | PromptAnswer::Abort => {
            Err(AppError::new(FailureKind::Request, messages::NOTHING_WRITTEN))
        }
    }
}

/// Returns the files of `preset`. Instructions that the project has under another name are not displaced by a `.agent.md`.
fn files(app: &App, preset: &Preset, root: &Path) -> AppResult<Vec<NewFile>> {
    let new = |path: &'static str, text: &str| NewFile {
        path,
        shown: path.to_owned(),
        text: text.to_owned(),
        mode: None,
    };
    let exists = |name: &&&str| root.join(name).symlink_metadata().is_ok();
    let config = new(PROJECT_FILE, &preset.config);
    match INSTRUCTION_FILES.iter().find(exists) {
        Some(&other) if other != INSTRUCTIONS => {
            print(&app.terminal, &format!("{}\n", messages::instructions_exist(other)))?;
            Ok(vec![config])
        }
        _ => Ok(vec![new(INSTRUCTIONS, &preset.instructions), config]),
    }
}
