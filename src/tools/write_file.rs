//! The `write_file` tool: creates a file, overwrites a file that the model has read, or appends to one.

use crate::file_change;
use crate::rewrite::{LoadedFile, Rewrite};
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::lines::{pluralize, quoted};
use agent_text::placeholder::find_placeholder;
use agent_workspace::error::FileError;
use agent_workspace::path::RelPath;
use schemars::JsonSchema;
use serde::Deserialize;

/// The `write_file` tool.
#[derive(Debug)]
pub struct WriteFile;

/// The arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Missing directories are created.
    path: String,
    content: String,
    /// Default: overwrite.
    mode: Option<Mode>,
}

// A doc comment here would be sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Overwrite,
    Append,
}

impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str =
        "Create a file, overwrite a file you have read, or append to one. To change a part use edit_file.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let lines = pluralize(args.content.lines().count(), "line");
        match args.mode {
            Some(Mode::Append) => Plan::change(&args.path, &format!("+{lines}")),
            Some(Mode::Overwrite) | None => Plan::change(&args.path, &lines),
        }
    }

    fn rewrites(&self, args: &Args, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let (path, old) = load_target(args, cx)?;
        let new = args.new_text(old.as_ref());
        Ok(vec![Rewrite::to(path, old, new)])
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let (path, old) = load_target(&args, cx)?;
        let count = args.content.chars().count();
        let message = match (&old, args.appends()) {
            (None, _) => format!("File {path} created successfully ({count} characters)"),
            (Some(_), true) => {
                format!("File {path}: appended content to it successfully ({count} characters)")
            }
            (Some(_), false) => format!("File {path} overwritten successfully ({count} characters)"),
        };
        file_change::store(cx, &path, old.as_ref(), &args.new_text(old.as_ref()), message)
    }
}

impl Args {
    fn appends(&self) -> bool {
        self.mode == Some(Mode::Append)
    }

    /// Returns the full text of the file after the call.
    fn new_text(&self, old: Option<&LoadedFile>) -> String {
        match old {
            None => self.content.clone(),
            Some(old) if self.appends() => {
                let added =
                    file_change::match_file_format(file_change::without_bom(&old.text), &self.content);
                format!("{}{added}", old.text)
            }
            Some(old) => file_change::match_file_format(&old.text, &self.content),
        }
    }
}

/// Loads the current file, if it exists, and checks that the call may write it.
fn load_target(args: &Args, cx: &ToolContext) -> Result<(RelPath, Option<LoadedFile>), String> {
    let path = file_change::checked_path(cx, &args.path)?;
    let old = file_change::load(cx, &path)?;
    if let Some(old) = &old
        && !args.appends()
    {
        match cx.observed_files.hash(old.path.as_str()) {
            Some(seen) if seen == old.hash => check_nothing_left_out(args, old)?,
            Some(_) => return Err(FileError::Changed { path, other_version: None }.to_string()),
            None => {
                return Err(format!(
                    "File {path} exists and you have not read it: read_file it first, or change a part with edit_file."
                ));
            }
        }
    }
    Ok((path, old))
}

/// Checks that an overwriting text contains no placeholder for omitted lines, such as `// ... rest of the file ...`.
fn check_nothing_left_out(args: &Args, old: &LoadedFile) -> Result<(), String> {
    let left_out = find_placeholder(args.content.lines(), &old.text);
    left_out.map_or(Ok(()), |line| {
        Err(format!(
            "File {} is untouched: content omits text of the file, and the line {} would be written literally. Write every line, or change a part with edit_file.",
            old.path,
            quoted(line)
        ))
    })
}
