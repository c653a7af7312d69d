//! Tools: what the model may ask for, and the seam every tool is written against.

pub mod apply_patch;
pub mod arguments;
pub mod background;
pub mod command_output;
pub mod delete_file;
pub mod edit_file;
pub mod file_change;
pub mod find_files;
pub mod grep;
pub mod list_files;
pub mod observed_files;
pub mod outputs;
pub mod page;
pub mod read_file;
pub mod rewrite;
pub mod run_command;
pub mod sandbox_messages;
pub mod search_code;
pub mod search_support;
pub mod stop_command;
#[cfg(test)]
mod test_fixture;
pub mod toolbox;
pub mod web_fetch;
pub mod write_file;

use crate::core::file_change::{Change, ObservedFile};
use crate::process::launch::Launcher;
use crate::runtime::emitter::EmitError;
use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::rewrite::Rewrite;
use crate::workspace::Workspace;
use crate::workspace::search::PathFilter;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// What kind of effect a tool has; modes and batches decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks at the workspace only.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Asks a server for something.
    Network,
    /// Runs a program.
    Execute,
}

/// A file a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    /// The path as the model gave it.
    pub path: String,
    /// Whether the call would change it.
    pub write: bool,
}

/// What a call would do, known before anything happens: for the log, the decision and the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// One line for people: path, pattern or command.
    pub summary: String,
    /// The files it names.
    pub touched_files: Vec<TouchedFile>,
    /// The shell command it would run.
    pub command: Option<String>,
    /// The directory it would run in, as the model gave it; absent: the root.
    pub directory: Option<String>,
    /// The host of the web that it would ask.
    pub host: Option<String>,
}

/// Tells what is about to happen to files, or says why it cannot be told.
pub type ChangeAnnouncer = Box<dyn Fn(Vec<Change>) -> Result<(), EmitError>>;

/// What every tool may use.
pub struct ToolContext {
    /// The project directory, held open.
    pub workspace: Rc<Workspace>,
    /// Starts children.
    pub launcher: Rc<Launcher>,
    /// Content hashes of the files the model has seen in this session.
    pub observed_files: Rc<observed_files::ObservedFiles>,
    /// Commands that run in the background.
    pub background: Rc<background::BackgroundCommands>,
    /// Long outputs, by call id.
    pub outputs: Rc<outputs::Outputs>,
    /// Tells whether a path is sensitive: its content is never shown, by no tool.
    pub hidden: PathFilter,
    /// Fires on interrupt, time limit and the end of the run.
    pub cancel: CancellationToken,
    /// The call being run.
    pub call_id: String,
    /// Tells what the call is about to do to files, before it does it.
    pub announce: ChangeAnnouncer,
}

/// What a tool answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Files it changed; hooks are driven by this.
    pub changed: Vec<Change>,
    /// Files it showed to the model, with their hashes.
    pub seen: Vec<ObservedFile>,
    /// What the person and the journal are told besides.
    pub warning: Option<String>,
    /// What became of the command that it started.
    pub command_outcome: Option<CommandStatus>,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It ended with exit code 0 and disturbed nothing.
    Succeeded,
    /// It ended otherwise.
    Failed,
    /// It goes on in the background.
    Running,
}

impl Plan {
    /// The plan of a call about one file.
    pub fn file(path: &str, write: bool) -> Self {
        Self {
            summary: one_line(path, QUOTE_CHARS),
            touched_files: vec![TouchedFile { path: path.to_owned(), write }],
            ..Self::default()
        }
    }
}

impl Plan {
    /// The plan of a call that changes one file, with how much it changes.
    pub fn change(path: &str, extent: &str) -> Self {
        Self { summary: format!("{} ({extent})", one_line(path, QUOTE_CHARS)), ..Self::file(path, true) }
    }

    /// `path`, which a command names from where it runs, named from the root.
    pub fn path_from_root(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// The plan of a call that looks for something below a path.
    pub fn search(wanted: &str, path: &str) -> Self {
        Self { summary: one_line(&format!("\"{wanted}\" in {path}"), QUOTE_CHARS), ..Self::file(path, false) }
    }
}

impl ToolOutput {
    /// A success.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The text with its tool and outcome in front, `[read_file] Success:` and the text from the next line on
    /// (`tools.result_format: tagged`, spec.md 3.3).
    pub fn tagged(&self, tool: &str) -> String {
        let outcome = if self.is_error { "Error: " } else { "Success:\n" };
        format!("[{tool}] {outcome}{}", self.text)
    }

    /// A failure: says what was wrong and what to try, because the reader is a model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }
}

/// A tool with typed arguments. The doc comments of `Args` are what the model reads about them.
pub trait TypedTool {
    /// The name the model calls it by.
    const NAME: &'static str;
    /// What kind of effect it has.
    const ACCESS: Access;
    /// What the model is told the tool does.
    const DESCRIPTION: &'static str;
    /// The arguments; must deny unknown fields.
    type Args: DeserializeOwned + JsonSchema;

    /// What a call with `args` would do.
    fn plan(&self, args: &Self::Args) -> Plan;

    /// What would become of files, as they are now. Has no effect.
    ///
    /// # Errors
    /// A text for the model when the call could only fail.
    fn rewrites(&self, _args: &Self::Args, _cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        Ok(Vec::new())
    }

    /// What a person is shown before it happens: a diff or the command. Has no effect.
    ///
    /// # Errors
    /// A text for the model when the call could only fail: nobody needs to be asked about it.
    fn preview(&self, args: &Self::Args, cx: &ToolContext) -> Result<Option<String>, String> {
        let diffs: String = self.rewrites(args, cx)?.iter().map(Rewrite::diff).collect();
        Ok(Some(diffs).filter(|diffs| !diffs.is_empty()))
    }

    /// Does it.
    fn run<'a>(&'a self, args: Self::Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput>;
}

/// A tool as the engine sees it; every [`TypedTool`] is one.
pub trait Tool {
    /// The name the model calls it by.
    fn name(&self) -> &str;
    /// What kind of effect it has.
    fn access(&self) -> Access;
    /// What the model is told it does.
    fn description(&self) -> &str;
    /// JSON Schema of its arguments.
    fn parameters(&self) -> Value;

    /// What a call with `args` would do.
    ///
    /// # Errors
    /// A text for the model when the arguments do not fit: names the argument and the tool's arguments.
    fn plan(&self, args: &Value) -> Result<Plan, String>;

    /// What would become of files, as they are now.
    ///
    /// # Errors
    /// A text for the model when the call could only fail.
    fn rewrites(&self, args: &Value, cx: &ToolContext) -> Result<Vec<Rewrite>, String>;

    /// What a person is shown before it happens.
    ///
    /// # Errors
    /// A text for the model when the call could only fail.
    fn preview(&self, args: &Value, cx: &ToolContext) -> Result<Option<String>, String>;

    /// Does it.
    fn call<'a>(&'a self, args: &'a Value, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput>;
}

impl<T: TypedTool> Tool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn access(&self) -> Access {
        T::ACCESS
    }

    fn description(&self) -> &str {
        T::DESCRIPTION
    }

    fn parameters(&self) -> Value {
        arguments::schema::<T::Args>()
    }

    fn plan(&self, args: &Value) -> Result<Plan, String> {
        arguments::parse::<T::Args>(T::NAME, args).map(|args| TypedTool::plan(self, &args))
    }

    fn rewrites(&self, args: &Value, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let args = arguments::parse::<T::Args>(T::NAME, args)?;
        TypedTool::rewrites(self, &args, cx)
    }

    fn preview(&self, args: &Value, cx: &ToolContext) -> Result<Option<String>, String> {
        let args = arguments::parse::<T::Args>(T::NAME, args)?;
        TypedTool::preview(self, &args, cx)
    }

    fn call<'a>(&'a self, args: &'a Value, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        match arguments::parse::<T::Args>(T::NAME, args) {
            Ok(args) => self.run(args, cx),
            Err(text) => Box::pin(std::future::ready(ToolOutput::error(text))),
        }
    }
}

#[cfg(test)]
mod file_change_tests;
#[cfg(test)]
mod tools_tests;
