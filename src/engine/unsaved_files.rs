//! Files that the user is editing: a call must not overwrite what is only in the editor.

use super::Engine;
use super::call_plan::PlannedCall;
use agent_tools::{Access, ToolContext};

impl Engine {
    /// Returns the file that the call would change and that has unsaved changes in the user's editor.
    pub(super) async fn unsaved_file(&self, planned: &PlannedCall<'_>, cx: &ToolContext) -> Option<String> {
        let written = planned.plan.touched_files.iter().filter(|touch| touch.write);
        let paths: Vec<&str> = written.map(|touch| touch.path.as_str()).collect();
        if planned.tool.access() != Access::Write || paths.is_empty() {
            return None;
        }
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => None,
            unsaved = self.approver.unsaved_file(&paths) => unsaved,
        }
    }
}
