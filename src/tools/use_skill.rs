//! The `use_skill` tool: returns the instructions of a skill.

use crate::arguments::nearest;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_core::skill::Skill;
use agent_messages as messages;
use agent_text::lines::{QUOTE_CHARS, one_line};
use schemars::JsonSchema;
use serde::Deserialize;

/// The `use_skill` tool of a run that offers `skills`.
#[derive(Debug)]
pub struct UseSkill {
    /// The skills.
    pub skills: Vec<Skill>,
}

/// The arguments of `use_skill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Name of the skill.
    name: String,
    /// What to apply it to.
    input: Option<String>,
}

impl TypedTool for UseSkill {
    const NAME: &'static str = "use_skill";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Instructions of a skill from the list in the system message.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(&args.name, QUOTE_CHARS), ..Plan::default() }
    }

    async fn run(&self, args: Args, _cx: &ToolContext) -> Result<ToolOutput, String> {
        let Some(skill) = self.skills.iter().find(|skill| skill.name == args.name) else {
            let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            let hint = nearest(&args.name, names.iter().copied())
                .map_or_else(String::new, |near| format!(" Did you mean {near}?"));
            let name = one_line(&args.name, QUOTE_CHARS);
            return Err(format!("There is no skill '{name}'.{hint} Skills: {}.", names.join(", ")));
        };
        let input = args.input.map_or_else(String::new, |input| format!("\n\nInput: {input}"));
        Ok(ToolOutput::ok(messages::skill_loaded(&skill.name, &skill.directory, &skill.body) + &input))
    }
}
