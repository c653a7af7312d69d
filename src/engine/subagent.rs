//! The engine of a subagent: that of the run which asks it, with tools, a policy and a memory of its own.

use crate::emit::Emitter;
use crate::engine::approve::Unanswered;
use crate::engine::policy::Policy;
use crate::engine::{Engine, EngineOptions};
use crate::journal::approvals::Approvals;
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
            granted: Rc::clone(&self.granted),
            approvals: Approvals::default(),
            holds: Cell::new(false),
            outputs: Rc::new(self.outputs.of_subagent(call_id)),
            emitter,
            source: Rc::clone(&self.source),
            workspace: Rc::clone(&self.workspace),
            launcher: Rc::clone(&self.launcher),
            ledger: Rc::default(),
            background: Rc::default(),
            options: EngineOptions { unanswered: Unanswered::Refuse, ..self.options },
            stopped: Cell::new(self.stopped.get()),
            baseline: Arc::clone(&self.baseline),
            checkpoints: None,
            unwatched_told: Cell::new(self.unwatched_told.get()),
        }
    }
}
