//! The engine of a subagent: that of the run which asks it, with tools, a policy and a memory of its own.

use crate::engine::approver::NoApprover;
use crate::engine::policy::Policy;
use crate::engine::{Engine, EngineOptions};
use crate::journal::approvals::Approvals;
use crate::runtime::emitter::Emitter;
use crate::tools::toolbox::Toolbox;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

impl Engine {
    /// An engine for the subagent that call `call_id` asks, which may do what `policy` says with the tools in `toolbox`, and tells
    /// `emitter`. It works in the same workspace behind the same walls, the same hooks and guardrails
    /// look at its calls, and what a person has granted holds for it. Its calls cannot wait for an answer: nobody could go on
    /// with it.
    #[must_use]
    pub fn for_subagent(
        &self,
        policy: Arc<Policy>,
        toolbox: Toolbox,
        emitter: Rc<Emitter>,
        call_id: &str,
    ) -> Self {
        Self {
            toolbox,
            policy,
            guardrails: Rc::clone(&self.guardrails),
            commands: self.commands.clone(),
            hooks: Rc::clone(&self.hooks),
            gates: Vec::new(),
            approver: Rc::clone(&self.approver),
            grants: Rc::clone(&self.grants),
            approvals: Approvals::default(),
            has_pending_call: Cell::new(false),
            outputs: Rc::new(self.outputs.for_subagent(call_id)),
            emitter,
            source: Rc::clone(&self.source),
            workspace: Rc::clone(&self.workspace),
            launcher: Rc::clone(&self.launcher),
            observed_files: Rc::default(),
            background: Rc::default(),
            options: EngineOptions { no_approver: NoApprover::Refuse, ..self.options },
            is_stopped_by_hook: Cell::new(self.is_stopped_by_hook.get()),
            baseline: Arc::clone(&self.baseline),
            checkpoints: None,
            has_warned_unlisted: Cell::new(self.has_warned_unlisted.get()),
        }
    }
}
