//! A tool of a server, as the engine uses it.

use super::definition::{ListedTool, name_for_model};
use super::result;
use super::server::Server;
use agent_text::lines::one_line;
use agent_tools::rewrite::Rewrite;
use agent_tools::{Access, Plan, Tool, ToolContext, ToolOutput};
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::rc::Rc;

/// Maximum characters of the first argument in the summary of a call.
const SUMMARY_CHARS: usize = 60;

/// A tool of a server.
#[derive(Clone)]
pub struct McpTool {
    server: Rc<Server>,
    access: Access,
    listed: ListedTool,
    /// The name for the model.
    name: String,
    description: String,
    schema: Value,
    /// The hash of the definition that the user has accepted.
    accepted: String,
}

impl McpTool {
    /// Creates the tool that `listed` defines.
    pub fn new(server: Rc<Server>, listed: ListedTool, access: Access) -> Self {
        let name = name_for_model(&server.spec.name, &listed.name);
        let description = listed.description_for_model(&server.spec.name);
        let (accepted, schema) = (listed.hash(), listed.schema_for_model());
        Self { server, access, listed, name, description, schema, accepted }
    }

    /// Returns the name of its server, and its own name there.
    pub fn origin(&self) -> (&str, &str) {
        (&self.server.spec.name, &self.listed.name)
    }

    /// Returns the hash of the definition that the user has accepted.
    pub fn hash(&self) -> &str {
        &self.accepted
    }

    async fn run(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, String> {
        let arguments = args.as_object().cloned().unwrap_or_default();
        // A call that may change files starts when they have been scanned.
        cx.launcher.wait_for_barrier(&cx.cancel).await.map_err(|error| error.to_string())?;
        let result = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err("The call was interrupted and cancelled.".to_owned()),
            result = self.server.call(&self.listed.name, &self.accepted, arguments) => result?,
        };
        let output = result::output(&result, &self.name, cx);
        Ok(ToolOutput { text: self.server.redact(output.text), ..output })
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn access(&self) -> Access {
        self.access
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        self.schema.clone()
    }

    fn plan(&self, args: &Value) -> Result<Plan, String> {
        let first = args.as_object().and_then(|args| args.values().next());
        let summary = first.map_or_else(String::new, |first| match first {
            Value::String(text) => one_line(text, SUMMARY_CHARS),
            other => one_line(&other.to_string(), SUMMARY_CHARS),
        });
        Ok(Plan { summary, ..Plan::default() })
    }

    fn rewrites(&self, _args: &Value, _cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        Ok(Vec::new())
    }

    fn preview(&self, args: &Value, _cx: &ToolContext) -> Result<Option<String>, String> {
        serde_json::to_string_pretty(args).map(Some).map_err(|error| error.to_string())
    }

    fn call<'a>(&'a self, args: &'a Value, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        let failed = |why| ToolOutput::error(self.server.redact(why));
        Box::pin(async move { self.run(args, cx).await.unwrap_or_else(failed) })
    }
}
