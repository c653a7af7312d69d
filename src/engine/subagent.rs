//! Creates the engine of a subagent from that of its parent run, with separate tools, policy and observed files.

use crate::approver::NoApprover;
use crate::message_queue::MessageQueue;
use crate::policy::Policy;
use crate::{Engine, EngineOptions};
use agent_journal::approvals::Approvals;
use agent_runtime::emitter::Emitter;
use agent_tools::toolbox::Toolbox;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

impl Engine {
    /// Creates the engine for the subagent started by call `call_id`, with its own `policy`, `toolbox` and `emitter`. It shares
    /// workspace, sandbox, hooks, guardrails and grants with this engine. Its calls cannot become pending, because a subagent
    /// cannot be resumed.
    #[must_use]
    pub fn for_subagent(
        &self,
        policy: Arc<Policy>,
        toolbox: Toolbox,
        emitter: Rc<Emitter>,
        call_id: &str,
    ) -> Self {
        Self {
            subagent: Some(call_id.to_owned()),
            toolbox,
            policy,
            guardrails: Rc::clone(&self.guardrails),
            commands: self.commands.clone(),
            hooks: Rc::clone(&self.hooks),
            gates: Vec::new(),
            reviewer: None,
            approver: Rc::clone(&self.approver),
            grants: Rc::clone(&self.grants),
            approvals: Approvals::default(),
            has_pending_call: Cell::new(false),
            answering: Cell::default(),
            outputs: Rc::new(self.outputs.for_subagent(call_id)),
            images: self.images.clone(),
            emitter,
            source: Rc::clone(&self.source),
            workspace: Rc::clone(&self.workspace),
            launcher: Rc::clone(&self.launcher),
            observed_files: Rc::default(),
            background: Rc::default(),
            foreground: self.foreground.clone(),
            skills: Rc::default(),
            instructions: Rc::new(self.instructions.for_new_session()),
            queue: MessageQueue::default(),
            options: EngineOptions { no_approver: NoApprover::Refuse, ..self.options },
            is_stopped_by_hook: Cell::new(self.is_stopped_by_hook.get()),
            baseline: Arc::clone(&self.baseline),
            checkpoints: None,
            has_warned_unlisted: Cell::new(self.has_warned_unlisted.get()),
        }
    }
}
