//! Prompts that are too long for the record of a task: an object of the queue has them, and the record their beginning.

use crate::queue::Queue;
use agent_core::failure::FailureKind;
use agent_core::fleet::TaskSpec;
use agent_run::error::{AppError, AppResult};

/// Maximum bytes of a prompt in a record.
const MAX_PROMPT_BYTES: usize = 128 << 10;
/// Bytes of a longer one in its record.
const BEGINNING_BYTES: usize = 1_000;

/// Stores a long prompt as an object, and leaves its beginning in `spec`.
///
/// # Errors
/// Fails when the queue cannot be used, and for a prompt that is longer than an object.
pub async fn shorten(queue: &Queue, spec: &mut TaskSpec, now: u64) -> AppResult<()> {
    if spec.prompt.len() > MAX_PROMPT_BYTES {
        spec.long_prompt = Some(queue.put_object(spec.prompt.as_bytes(), now).await?);
        spec.prompt.truncate(spec.prompt.floor_char_boundary(BEGINNING_BYTES));
        spec.prompt.push('…');
    }
    Ok(())
}

/// Returns `spec` with its prompt, which the object of these bytes has.
///
/// # Errors
/// Fails when the object is gone.
pub fn with_prompt(spec: TaskSpec, object: Option<Vec<u8>>) -> AppResult<TaskSpec> {
    let text = object.and_then(|bytes| String::from_utf8(bytes).ok());
    let gone = || {
        AppError::new(FailureKind::Config, "its prompt is no longer in the queue, which keeps it for 60 days")
    };
    Ok(TaskSpec { prompt: text.ok_or_else(gone)?, long_prompt: None, ..spec })
}
