//! Plans a call: looks up the tool, parses the arguments and determines the effects.

use crate::core::message::ToolCall;
use crate::engine::call::PlannedCall;
use crate::engine::{Engine, call_arguments};
use crate::tools::Plan;
use crate::tools::toolbox::CALL_TOOL;

impl Engine {
    /// Plans a call. One of `call_tool` is planned as a call of the tool that it names.
    pub(super) fn plan_call<'a>(&'a self, call: &ToolCall) -> Result<PlannedCall<'a>, String> {
        let tool = self.toolbox.get(&call.name)?;
        let args = call_arguments::parse(&call.arguments)?;
        if call.name != CALL_TOOL {
            return Ok(PlannedCall { tool, plan: tool.plan(&args)?, args });
        }
        let (name, args) = self.toolbox.called_by_name(tool, &args)?;
        let plan = name.plan(&args)?;
        let summary = format!("{} {}", name.name(), plan.summary);
        Ok(PlannedCall { tool: name, plan: Plan { summary, ..plan }, args })
    }
}
