//! `agent apply-patch`: applies a patch like the tool of that name, with all rules and hooks.

use crate::args::PatchArgs;
use crate::commands::tools::call;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_tools::TypedTool;
use agent_tools::apply_patch::ApplyPatch;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a patch in bytes; equal to that of the largest file that can be edited.
const MAX_PATCH_BYTES: u64 = 16 << 20;

/// Applies the patch in a file or on standard input.
///
/// # Errors
/// Fails for an unreadable patch, and as [`call`] does.
pub fn apply_patch(app: &App, args: &PatchArgs) -> AppResult<()> {
    let patch = match args.file.as_deref() {
        Some(path) if path != Path::new("-") => read(File::open(path), &path.display().to_string())?,
        None if app.terminal.stream_info().stdin => {
            return Err(usage("no patch: `agent apply-patch FILE`, or `-` to read it from standard input"));
        }
        Some(_) | None => read(Ok(io::stdin()), "standard input")?,
    };
    call(app, args.mode, &args.common, ApplyPatch::NAME.to_owned(), json!({"patch": patch}).to_string())
}

fn read(source: io::Result<impl Read>, name: &str) -> AppResult<String> {
    let mut bytes = Vec::new();
    source
        .and_then(|source| source.take(MAX_PATCH_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_PATCH_BYTES {
        return Err(usage(format!("the patch in {name} is over 16 MiB")));
    }
    String::from_utf8(bytes).map_err(|_| usage(format!("the patch in {name} is not UTF-8 text")))
}

fn usage(message: impl Into<String>) -> AppError {
    AppError::new(FailureKind::Usage, message)
}
