//! The arguments of `agent exec`, which are those of `codex exec` as far as `@openai/codex-sdk` 0.163.0 uses them.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use strum::{IntoStaticStr, VariantArray};

/// Arguments of `agent exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The task, or `resume`, the id of a session and a further task; without a task, or for `-`, it is read from standard input
    #[arg(value_name = "TASK | resume ID [TASK]", num_args = 0..=3)]
    pub words: Vec<String>,
    /// Print Codex's events as JSON lines; without it the answer
    #[arg(long, visible_alias = "experimental-json")]
    pub json: bool,
    /// Model; a name without a provider is one of the provider `openai-responses`
    #[arg(short, long)]
    pub model: Option<String>,
    /// What commands and tools may change (`agent help serve`)
    #[arg(short, long)]
    pub sandbox: Option<CodexSandbox>,
    /// Workspace
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<PathBuf>,
    /// Allow commands to write to this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// Has no effect: no repository is needed
    #[arg(long)]
    pub skip_git_repo_check: bool,
    /// JSON Schema that the answer must match
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Image for the model (repeatable)
    #[arg(short, long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Has no effect except a warning
    #[arg(long, value_name = "NAME")]
    pub thread_source: Option<String>,
    /// Has no effect except a warning
    #[arg(long, value_name = "NAME")]
    pub cyber_access_program: Option<String>,
    /// A key of Codex's configuration with its value as TOML (repeatable)
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// Permit `--sandbox danger-full-access`
    #[arg(long)]
    pub allow_danger_full_access: bool,
}

/// Sandbox modes of Codex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CodexSandbox {
    /// Nothing in the workspace changes.
    ReadOnly,
    /// Tools and commands change the workspace.
    WorkspaceWrite,
    /// Commands are not confined, if that is permitted.
    DangerFullAccess,
}
