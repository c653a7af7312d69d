//! The tools `remember` and `forget`: store and remove facts in the memory of the workspace.

use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_journal::memory::{Memory, MemoryKind};
use agent_text::lines::{QUOTE_CHARS, one_line, words};
use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of both tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// One sentence, at most 300 characters.
    fact: String,
}

/// The `remember` tool.
#[derive(Debug)]
pub struct Remember {
    /// The memory of the workspace.
    pub memory: Memory,
    /// Today, `YYYY-MM-DD`.
    pub day: String,
}

impl TypedTool for Remember {
    const NAME: &'static str = "remember";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Store a fact about this project for later sessions.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(&args.fact, QUOTE_CHARS), ..Plan::default() }
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let redactor = &cx.outputs.redactor;
        let has_secret = |text: &str| redactor.text(text) != text;
        match self.memory.add(&self.day, MemoryKind::Fact, &args.fact, has_secret) {
            Ok(true) => Ok(ToolOutput::ok("Stored. Later sessions read it.")),
            Ok(false) => Ok(ToolOutput::ok("It was stored before.")),
            Err(error) => Err(format!("Not stored: {error}.")),
        }
    }
}

/// The `forget` tool.
#[derive(Debug)]
pub struct Forget {
    /// The memory of the workspace.
    pub memory: Memory,
}

impl TypedTool for Forget {
    const NAME: &'static str = "forget";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Remove a stored fact, given by its exact text.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(&args.fact, QUOTE_CHARS), ..Plan::default() }
    }

    async fn run(&self, args: Args, _cx: &ToolContext) -> Result<ToolOutput, String> {
        let wanted = words(&args.fact);
        match self.memory.remove(|_, entry| entry.text == wanted) {
            Ok(0) => Err("There is no such fact: give its exact text, without date and kind.".to_owned()),
            Ok(_) => Ok(ToolOutput::ok("Removed.")),
            Err(error) => Err(format!("Not removed: {error}.")),
        }
    }
}
