//! Outputs too long for the model, kept under the name `output:CALL_ID`.

use std::path::PathBuf;

/// The directory of one session's long outputs.
#[derive(Debug)]
pub struct Outputs {
    /// Made with mode 0700 when the first output is kept.
    pub dir: PathBuf,
}
