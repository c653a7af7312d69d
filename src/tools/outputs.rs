//! Outputs too long for the model, kept under the name `output:CALL_ID`.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The directory of one session's long outputs.
#[derive(Debug)]
pub struct Outputs {
    /// Made with mode 0700 when the first output is kept.
    pub dir: PathBuf,
}

impl Outputs {
    /// The name that tools accept for the output of `call_id`.
    pub fn name(call_id: &str) -> String {
        format!("output:{call_id}")
    }

    /// An empty file for the output of `call_id`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn writer(&self, call_id: &str) -> io::Result<File> {
        File::create(self.dir.join(call_id.replace('/', "_")))
    }
}
