//! Names from OpenTelemetry's semantic conventions for generative AI, version 1.41.1 (status: Development), and names of ours.

/// Schema of the names; changes with the version of the conventions.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.1";

/// Values of [`OPERATION_NAME`], with which the name of a span starts.
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const CHAT: &str = "chat";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(super) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(super) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const ERROR_TYPE: &str = "error.type";

/// Contents, only with `telemetry.content`.
pub(super) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

/// Names that the conventions do not have.
pub(super) const STEP: &str = "agent.step";
pub(super) const STEPS: &str = "agent.steps";
pub(super) const PURPOSE: &str = "agent.purpose";
pub(super) const REQUESTS: &str = "agent.requests";
pub(super) const CACHED_ANSWER: &str = "agent.cached_answer";
pub(super) const COST_USD: &str = "agent.cost_usd";
pub(super) const STATUS: &str = "agent.status";
pub(super) const STOP_REASON: &str = "agent.stop_reason";
pub(super) const TOOL_CALLS: &str = "agent.tool_calls";
pub(super) const TOOL_IS_ERROR: &str = "agent.tool.is_error";
pub(super) const TOOL_OUTCOME: &str = "agent.tool.outcome";

pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const SERVICE_VERSION: &str = "service.version";

/// Splits `provider/model` into the name that the conventions have for the provider, and the model.
pub(super) fn provider_and_model(model: &str) -> (&str, &str) {
    if model.starts_with("scripted:") {
        return ("scripted", model);
    }
    let Some((provider, name)) = model.split_once('/') else { return ("_OTHER", model) };
    let provider = match provider {
        "gemini" => "gcp.gemini",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "moonshot" => "moonshot_ai",
        other => other,
    };
    (provider, name)
}
