//! Plans a call: looks up the tool, parses the arguments and determines the effects.

use crate::hook_dispatch::CallView;
use crate::{Engine, call_arguments};
use agent_core::message::ToolCall;
use agent_tools::toolbox::CALL_TOOL;
use agent_tools::{Access, Plan, Tool, argument_conversion};
use serde_json::Value;

/// A call with parsed arguments and plan, or the reason why they are invalid.
pub struct PreparedCall<'a> {
    /// The call as the model made it.
    pub call: &'a ToolCall,
    /// The tool's kind of effect; `Execute` when there is no such tool.
    pub access: Access,
    /// The tool, its arguments and its plan, or the error message for the model.
    pub(super) planned: Result<PlannedCall<'a>, String>,
}

/// A call with valid arguments.
#[derive(Clone)]
pub(super) struct PlannedCall<'a> {
    pub(super) tool: &'a dyn Tool,
    pub(super) args: Value,
    pub(super) plan: Plan,
}

impl PlannedCall<'_> {
    pub(super) fn view<'a>(&'a self, call_id: &'a str) -> CallView<'a> {
        CallView {
            call_id,
            tool: self.tool.name(),
            access: self.tool.access(),
            args: &self.args,
            plan: &self.plan,
        }
    }
}

impl PreparedCall<'_> {
    /// Returns the paths that the call would change.
    pub fn written_paths(&self) -> impl Iterator<Item = &str> {
        let touched_files =
            self.planned.as_ref().map(|planned| planned.plan.touched_files.as_slice()).unwrap_or_default();
        touched_files.iter().filter(|touch| touch.write).map(|touch| touch.path.as_str())
    }

    pub(super) fn summary(&self) -> &str {
        self.planned.as_ref().map(|planned| planned.plan.summary.as_str()).unwrap_or_default()
    }

    /// Returns the summary for the start of the call, which names the tool if the call is one of `call_tool`.
    pub(super) fn start_summary(&self) -> String {
        match &self.planned {
            Ok(planned) if planned.tool.name() != self.call.name => {
                format!("{} {}", planned.tool.name(), planned.plan.summary)
            }
            _ => self.summary().to_owned(),
        }
    }
}

impl Engine {
    /// Finds the tool, parses the arguments and plans the call, without any effect.
    pub fn prepare<'a>(&'a self, call: &'a ToolCall) -> PreparedCall<'a> {
        let planned = self.plan_call(call);
        let tool = planned.as_ref().map(|planned| planned.tool).or_else(|_| self.toolbox.get(&call.name));
        let access = tool.map_or(Access::Execute, Tool::access);
        PreparedCall { call, access, planned }
    }

    /// Plans a call. One of `call_tool` is planned as a call of the tool that it names.
    fn plan_call<'a>(&'a self, call: &ToolCall) -> Result<PlannedCall<'a>, String> {
        let mut tool = self.toolbox.get(&call.name)?;
        let mut args = call_arguments::parse(&call.arguments)?;
        argument_conversion::convert(&mut args, &tool.parameters());
        if call.name == CALL_TOOL {
            (tool, args) = self.toolbox.called_by_name(tool, &args)?;
            argument_conversion::convert(&mut args, &tool.parameters());
        }
        Ok(PlannedCall { tool, plan: tool.plan(&args)?, args })
    }
}
