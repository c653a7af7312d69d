//! Control requests of a client.

use super::args::{PermissionMode, tool_list};
use super::conversation::Conversation;
use super::hooks::registered;
use super::options::refuse;
use agent_config::flag_values::parse_name;
use agent_messages as messages;
use agent_run::request::AnswerSchema;
use serde_json::{Map, Value, json};
use std::rc::Rc;

/// Fields of `initialize` that can take permission away and have no counterpart.
const REFUSED_FIELDS: [&str; 2] = ["settings", "managedSettings"];
/// Fields of `initialize` that are honoured, or are about features of the client that need nothing here.
const KNOWN_FIELDS: [&str; 15] = [
    "subtype",
    "hooks",
    "sdkMcpServers",
    "sdkMcpServerConfigs",
    "sdkMcpServerManifests",
    "sdkMcpServerManifestsOrigin",
    "jsonSchema",
    "disallowedTools",
    "systemPromptSnapshot",
    "title",
    "promptSuggestions",
    "agentProgressSummaries",
    "forwardSubagentText",
    "supportedDialogKinds",
    "perTaskStopAffordance",
];

impl Conversation {
    /// Performs a control request and returns the response.
    ///
    /// # Errors
    /// Why it cannot be performed.
    pub fn control(&self, request: &mut Value) -> Result<Value, String> {
        match request["subtype"].as_str().unwrap_or_default() {
            "initialize" => self.initialize(request),
            "interrupt" => {
                self.interrupt();
                Ok(json!({}))
            }
            "set_permission_mode" => {
                let name = request["mode"].as_str().unwrap_or_default();
                let mode = parse_name::<PermissionMode>("the modes are", name)?;
                self.setup.permissions.set_mode(mode)?;
                Ok(json!({ "mode": mode.name() }))
            }
            "set_model" => {
                let model = match &request["model"] {
                    Value::Null => None,
                    Value::String(name) => Some(name.as_str()),
                    _ => return Err("`model` must be a text".to_owned()),
                };
                self.choices.borrow_mut().model = self.setup.model(model);
                Ok(json!({}))
            }
            "mcp_message" => {
                let message = request["message"].take();
                let server = request["server_name"].as_str().unwrap_or_default();
                self.servers.deliver(server, message).map(|()| json!({}))
            }
            subtype => Err(messages::claude_request_unknown(subtype)),
        }
    }

    fn initialize(&self, request: &Value) -> Result<Value, String> {
        let fields = request.as_object().map_or_else(Map::new, Clone::clone);
        let given = |name: &&str| fields.get(*name).is_some_and(|value| !is_empty(value));
        if let Some(field) = REFUSED_FIELDS.iter().find(|name| given(name)) {
            return Err(messages::claude_field_refused(field));
        }
        let configs = request["sdkMcpServerConfigs"].as_object().into_iter().flatten();
        if configs.into_iter().any(|(_, config)| !is_empty(&config["tools"])) {
            return Err(messages::claude_field_refused("sdkMcpServerConfigs.tools"));
        }
        let (hooks, ignored) = registered(&request["hooks"])?;
        let mut bounds = self.setup.request.bounds.clone();
        let refused = texts(&request["disallowedTools"])?;
        refuse(&tool_list(&refused), &mut bounds).map_err(|error| error.to_string())?;
        self.servers.set(&request["sdkMcpServers"])?;

        let has_hooks = !hooks.is_empty();
        let mut choices = self.choices.borrow_mut();
        (choices.bounds, choices.hooks) = (bounds, Rc::new(hooks));
        if !is_empty(&request["jsonSchema"]) {
            choices.schema = Some(AnswerSchema::Text(request["jsonSchema"].to_string()));
        }
        for event in &ignored {
            self.warn(messages::claude_hook_ignored(event));
        }
        let unknown =
            fields.iter().filter(|(name, value)| !KNOWN_FIELDS.contains(&name.as_str()) && !is_empty(value));
        unknown.for_each(|(name, _)| self.warn(messages::claude_field_ignored(name)));
        let model = choices.model.as_ref().or(self.setup.settings.llm.model.as_ref());
        let models: Vec<Value> = model
            .map(|name| json!({"value": name, "displayName": name, "description": ""}))
            .into_iter()
            .collect();
        Ok(
            json!({"commands": [], "agents": [], "output_style": "default", "available_output_styles": ["default"],
            "models": models, "account": {}, "hooks_applied": has_hooks, "hook_on_failure_supported": true,
            "disallowed_tools_applied": true, "mcp_servers_applied": false, "plugins_applied": false,
            "claude_code_version": env!("CARGO_PKG_VERSION")}),
        )
    }
}

/// Checks whether a field says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    if value.is_null() {
        Ok(Vec::new())
    } else {
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())
    }
}
