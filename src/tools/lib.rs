//! The tools that the model can call, and the traits and types that each tool implements and uses.

pub mod apply_patch;
pub mod argument_conversion;
pub mod arguments;
pub mod ask_user;
pub mod background;
pub mod command_output;
pub mod delete_file;
pub mod edit_file;
pub mod file_change;
pub mod find_files;
pub mod foreground;
pub mod grep;
pub mod list_files;
pub mod observed_files;
pub mod outputs;
pub mod page;
pub mod read_file;
pub mod remember;
pub mod rewrite;
pub mod run_command;
pub mod sandbox_messages;
pub mod search_code;
pub mod search_support;
pub mod stop_command;
#[cfg(test)]
mod test_fixture;
pub mod todo;
pub mod toolbox;
pub mod use_skill;
pub mod web_fetch;
pub mod web_search;
pub mod write_file;

use crate::rewrite::Rewrite;
use agent_core::file_change::{Change, ObservedFile};
use agent_core::image::{Image, ImageStore};
use agent_process::launch::Launcher;
use agent_runtime::emitter::EmitError;
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_workspace::Workspace;
use agent_workspace::search::PathFilter;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Kind of effect of a tool, on which the permission mode and the parallel execution depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only reads the workspace.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Sends requests to a server.
    Network,
    /// Runs a program.
    Execute,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Calls a tool of an MCP server that may change files of the workspace.
    McpWrite {
        /// Whether the user knows this tool to change nothing, so that it needs no approval.
        is_read_only: bool,
    },
}

/// A file that a call reads or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    /// The path as the model wrote it.
    pub path: String,
    /// Whether the call would change it.
    pub write: bool,
}

/// Effects of a call, determined before it runs: for the log, the permission decision and the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// One-line summary for the user: path, pattern or command.
    pub summary: String,
    /// The files that the call names.
    pub touched_files: Vec<TouchedFile>,
    /// The shell command it would run.
    pub command: Option<String>,
    /// The directory it would run in, as the model wrote it; absent: the workspace root.
    pub directory: Option<String>,
    /// The web host it would send a request to.
    pub host: Option<String>,
}

/// Records intended file changes before they are made; fails when they cannot be recorded.
pub type ChangeAnnouncer = Box<dyn Fn(Vec<Change>) -> Result<(), EmitError>>;

/// Services and state available to every tool.
pub struct ToolContext {
    /// The project directory, held open.
    pub workspace: Rc<Workspace>,
    /// Starts child processes.
    pub launcher: Rc<Launcher>,
    /// Content hashes of the files the model has seen in this session.
    pub observed_files: Rc<observed_files::ObservedFiles>,
    /// Commands that run in the background.
    pub background: Rc<background::BackgroundCommands>,
    /// Commands that calls wait for while a user follows them.
    pub foreground: foreground::ForegroundCommands,
    /// Long outputs, by call id.
    pub outputs: Rc<outputs::Outputs>,
    /// Stores images for the conversation; absent outside a session.
    pub images: Option<Rc<dyn ImageStore>>,
    /// Checks whether a path is sensitive; no tool shows the content of a sensitive file.
    pub hidden: PathFilter,
    /// Cancelled on interrupt, time limit and the end of the run.
    pub cancel: CancellationToken,
    /// Id of the call.
    pub call_id: String,
    /// Records the call's file changes before it makes them.
    pub announce: ChangeAnnouncer,
}

/// Result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// Text for the model.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Images for the model, from [`ToolContext::store_image`]; the text describes them. A failed call has none.
    pub images: Vec<Image>,
    /// Files that the call changed; hooks are run for these.
    pub changed: Vec<Change>,
    /// Whether it may have changed files that are not in the list.
    pub is_unlisted: bool,
    /// Files that the call showed to the model, with their hashes.
    pub seen: Vec<ObservedFile>,
    /// Warning for the user and the journal.
    pub warning: Option<String>,
    /// Status of the command that the call started.
    pub command_outcome: Option<CommandStatus>,
}

/// Status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It ended with exit code 0 and changed no protected file.
    Succeeded,
    /// It ended in any other way.
    Failed,
    /// It is running in the background.
    Running,
}

impl ToolContext {
    /// Checks an image that a tool read or received under `name`, and stores it for the conversation. Outside a session, it is only
    /// checked.
    ///
    /// # Errors
    /// A message for the model: why it is no image, exceeds a limit, or could not be stored.
    pub fn store_image(&self, name: &str, bytes: &[u8]) -> Result<Image, String> {
        let image = Image::check(name, bytes).map_err(|error| error.to_string())?;
        let stored = self.images.as_ref().map_or(Ok(()), |images| images.store(&image, bytes));
        stored.map_err(|error| format!("it could not be stored: {error}")).map(|()| image)
    }
}

impl Plan {
    /// Creates the plan of a call that reads or changes one file.
    pub fn file(path: &str, write: bool) -> Self {
        Self {
            summary: one_line(path, QUOTE_CHARS),
            touched_files: vec![TouchedFile { path: path.to_owned(), write }],
            ..Self::default()
        }
    }

    /// Creates the plan of a call that changes one file; `extent` describes how much.
    pub fn change(path: &str, extent: &str) -> Self {
        Self { summary: format!("{} ({extent})", one_line(path, QUOTE_CHARS)), ..Self::file(path, true) }
    }

    /// Converts `path`, relative to the command's directory, to a path relative to the workspace root.
    pub fn path_from_root(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// Creates the plan of a call that searches below a path.
    pub fn search(wanted: &str, path: &str) -> Self {
        Self { summary: one_line(&format!("\"{wanted}\" in {path}"), QUOTE_CHARS), ..Self::file(path, false) }
    }
}

impl ToolOutput {
    /// Creates a successful result.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the text after a tag with tool and outcome, `[read_file] Success:` and a line break or `[read_file] Error: `
    /// (`tools.result_format: tagged`).
    pub fn tagged(&self, tool: &str) -> String {
        let outcome = if self.is_error { "Error: " } else { "Success:\n" };
        format!("[{tool}] {outcome}{}", self.text)
    }

    /// Creates a failed result. `text` is for the model: what was wrong and what to try.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }
}

/// A tool with typed arguments. The doc comments of `Args` are sent to the model as descriptions.
pub trait TypedTool {
    /// The tool's name.
    const NAME: &'static str;
    /// The kind of its effect.
    const ACCESS: Access;
    /// The description sent to the model.
    const DESCRIPTION: &'static str;
    /// Type of the arguments; must deny unknown fields.
    type Args: DeserializeOwned + JsonSchema;

    /// Returns the effects of a call with `args`.
    fn plan(&self, args: &Self::Args) -> Plan;

    /// Plans the changes that the call would make to the current files, without making them.
    ///
    /// # Errors
    /// A message for the model when the call is certain to fail.
    fn rewrites(&self, _args: &Self::Args, _cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        Ok(Vec::new())
    }

    /// Returns the diff or command that the user approves. Has no effect.
    ///
    /// # Errors
    /// A message for the model when the call is certain to fail, so that no approval is needed.
    fn preview(&self, args: &Self::Args, cx: &ToolContext) -> Result<Option<String>, String> {
        let diffs: String = self.rewrites(args, cx)?.iter().map(Rewrite::diff).collect();
        Ok(Some(diffs).filter(|diffs| !diffs.is_empty()))
    }

    /// Runs the call.
    ///
    /// # Errors
    /// A message for the model when the call failed.
    fn run(&self, args: Self::Args, cx: &ToolContext) -> impl Future<Output = Result<ToolOutput, String>>;
}

/// A tool with JSON arguments, as the engine uses it; implemented by every [`TypedTool`].
pub trait Tool {
    /// Returns the tool's name.
    fn name(&self) -> &str;
    /// Returns the kind of its effect.
    fn access(&self) -> Access;
    /// Returns the description sent to the model.
    fn description(&self) -> &str;
    /// Returns the JSON Schema of its arguments.
    fn parameters(&self) -> Value;

    /// Returns the effects of a call with `args`.
    ///
    /// # Errors
    /// A message for the model when the arguments are invalid, which names the argument and lists the tool's arguments.
    fn plan(&self, args: &Value) -> Result<Plan, String>;

    /// Plans the changes that the call would make to the current files.
    ///
    /// # Errors
    /// A message for the model when the call is certain to fail.
    fn rewrites(&self, args: &Value, cx: &ToolContext) -> Result<Vec<Rewrite>, String>;

    /// Returns the diff or command that the user approves.
    ///
    /// # Errors
    /// A message for the model when the call is certain to fail.
    fn preview(&self, args: &Value, cx: &ToolContext) -> Result<Option<String>, String>;

    /// Runs the call.
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
        arguments::model_schema::<T::Args>()
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
        Box::pin(async move {
            let outcome = match arguments::parse::<T::Args>(T::NAME, args) {
                Ok(args) => self.run(args, cx).await,
                Err(text) => Err(text),
            };
            outcome.unwrap_or_else(ToolOutput::error)
        })
    }
}

#[cfg(test)]
mod file_change_tests;
#[cfg(test)]
mod tools_tests;
