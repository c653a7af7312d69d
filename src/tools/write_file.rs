//! `write_file`: makes a file, overwrites one the model has read, or appends to one.

use crate::text::lines::{counted, quoted};
use crate::text::placeholder::placeholder;
use crate::tools::guarded;
use crate::tools::rewrite::{Loaded, Rewrite};
use crate::tools::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use crate::workspace::error::FileError;
use crate::workspace::path::RelPath;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

/// Writes whole files.
#[derive(Debug)]
pub struct WriteFile;

/// The arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// File to write; directories are made.
    path: String,
    /// The text.
    content: String,
    /// Default overwrite.
    mode: Option<Mode>,
}

/// What happens to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Overwrite,
    Append,
}

impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Create a file, replace all of a file you have read, or append to one. To change a part use edit_file.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let lines = counted(args.content.lines().count(), "line");
        match args.mode {
            Some(Mode::Append) => Plan::change(&args.path, &format!("+{lines}")),
            Some(Mode::Overwrite) | None => Plan::change(&args.path, &lines),
        }
    }

    fn rewrites(&self, args: &Args, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let (path, old) = writable(args, cx)?;
        let new = args.written(old.as_ref());
        Ok(vec![Rewrite::to(path, old, new)])
    }

    fn run<'a>(&'a self, args: Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(async move { write(&args, cx).unwrap_or_else(ToolOutput::error) })
    }
}

impl Args {
    fn appends(&self) -> bool {
        self.mode == Some(Mode::Append)
    }

    /// The whole text the file is to have.
    fn written(&self, old: Option<&Loaded>) -> String {
        match old {
            None => self.content.clone(),
            Some(old) if self.appends() => {
                let added = guarded::in_the_manner_of(guarded::without_bom(&old.text), &self.content);
                format!("{}{added}", old.text)
            }
            Some(old) => guarded::in_the_manner_of(&old.text, &self.content),
        }
    }
}

/// The file as it is now, if it is there and may be written.
fn writable(args: &Args, cx: &ToolContext) -> Result<(RelPath, Option<Loaded>), String> {
    let path = guarded::path(cx, &args.path)?;
    let old = guarded::load(cx, &path)?;
    if let Some(old) = &old
        && !args.appends()
    {
        match cx.ledger.seen(old.path.as_str()) {
            Some(seen) if seen == old.hash => whole(args, old)?,
            Some(_) => return Err(FileError::Changed { path, kept: None }.to_string()),
            None => {
                return Err(format!(
                    "File {path} exists and you have not read it: read_file it first, or change a part with edit_file."
                ));
            }
        }
    }
    Ok((path, old))
}

/// A text that takes the place of another must not leave out what that has.
fn whole(args: &Args, old: &Loaded) -> Result<(), String> {
    let left_out = placeholder(args.content.lines(), &old.text);
    left_out.map_or(Ok(()), |line| {
        Err(format!(
            "File {} is untouched: content leaves out what the file has, the line {} would stand there as it is. Write every line, or change a part with edit_file.",
            old.path,
            quoted(line)
        ))
    })
}

fn write(args: &Args, cx: &ToolContext) -> Result<ToolOutput, String> {
    let (path, old) = writable(args, cx)?;
    let count = args.content.chars().count();
    let said = match (&old, args.appends()) {
        (None, _) => format!("File {path} created successfully ({count} characters)"),
        (Some(_), true) => format!("File {path}: appended content to it successfully ({count} characters)"),
        (Some(_), false) => format!("File {path} overwritten successfully ({count} characters)"),
    };
    guarded::store(cx, &path, old.as_ref(), &args.written(old.as_ref()), said)
}
