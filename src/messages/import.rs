//! Texts of `agent import`: what was carried over, and the reasons why a setting was not.

/// Failure without anything to import.
pub fn nothing_to_import(claude: &str, codex: &str) -> String {
    format!("nothing to import: there is neither {claude} nor {codex} (agent help init)")
}

/// Error for `--user` without a home directory.
pub const IMPORT_NO_HOME: &str = "cannot read your own settings: there is no home directory (set HOME)";

/// Error for too many settings.
pub fn too_many_settings(found: usize, limit: usize) -> String {
    format!("the files have {found} settings; at most {limit} can be imported")
}

/// Name of the new configuration in errors, before it is written.
pub const IMPORT_CONFIGURATION: &str = "the imported configuration";

/// Error for a configuration that is too large.
pub const IMPORT_TOO_LARGE: &str = "is larger than 512 KiB";

/// First line of the written configuration.
pub fn import_header(files: &str) -> String {
    format!("# Imported from {files} by `agent import` (agent help init). The keys: agent help config.\n")
}

/// Line about a file that was read.
pub fn import_read(file: &str) -> String {
    format!("read         {file}")
}

/// Line about instructions that need no import.
pub fn import_instructions(file: &str) -> String {
    format!("unchanged    {file} (agent reads it as it is)")
}

/// Line when no setting has a counterpart.
pub const IMPORT_NO_SETTINGS: &str = "no configuration was written: no setting has a counterpart here";

/// Heading of the settings to check.
pub const IMPORT_NOTES: &str = "carried over, but check these:";

/// Heading of the settings that were not carried over.
pub const IMPORT_SKIPPED: &str = "not carried over:";

/// Line for settings beyond the number that is listed.
pub fn import_more(count: usize) -> String {
    format!("  … and {count} more")
}

/// Reason: the value is invalid here.
pub fn import_invalid(why: &str) -> String {
    format!("it is not valid here: {why}")
}

/// Reason: a project may not set the key; `line` is the setting for the user's own configuration.
pub fn import_own_configuration(line: &str) -> String {
    format!("a project may not permit this; in your own configuration (agent config path) it is `{line}`")
}

/// Reason: another file with instructions is read in place of this one.
pub fn import_displaced(used: &str) -> String {
    format!("it is not read while {used} exists")
}

/// Reason: the text looks like a secret.
pub const IMPORT_SECRET: &str = "it contains a secret";
/// Reason: the setting is not what the other agent documents.
pub const IMPORT_MALFORMED: &str = "its form is not known";
/// Reason: the value of a variable or header in the `group` (`env` or `headers`) of an MCP server.
pub fn import_mcp_value(server: &str, group: &str, name: &str) -> String {
    let mapping = if name.eq_ignore_ascii_case("authorization") {
        "token_env: VARIABLE".to_owned()
    } else {
        format!("{group}: {{{name}: {{from: VARIABLE}}}}")
    };
    format!(
        "its value may be secret: set a variable and write `mcp: {{servers: {{{server}: {{{mapping}}}}}}}`"
    )
}
/// Reason: the transport of an MCP server.
pub const IMPORT_MCP_TYPE: &str = "only servers over stdio and http are supported (agent help mcp)";
/// Reason: a key of an MCP server.
pub const IMPORT_MCP_KEY: &str =
    "the keys of a server here are those of `mcp.servers.NAME` (agent help config)";
/// Reason: two MCP servers with one name.
pub const IMPORT_SAME_SERVER: &str = "another server of that name is carried over";
/// Reason: the list of MCP servers that are used.
pub const IMPORT_MCP_ENABLED: &str = "a server here has its own key `enabled` (agent help mcp)";
/// Reason: an allowed tool of an MCP server.
pub const IMPORT_MCP_ALLOW: &str =
    "`read_only` of a server names the tools that run without approval (agent help mcp)";
/// Note on an imported program of an MCP server.
pub const IMPORT_MCP_CHECK: &str =
    "it runs in the sandbox here, without the network unless you set its `network: true` (agent help mcp)";
/// Reason: the tool does not exist here.
pub const IMPORT_NO_TOOL: &str = "there is no such tool here";
/// Reason: no key.
pub const IMPORT_NO_KEY: &str = "there is no key for it";
/// Reason: a rule that allows everything.
pub const IMPORT_ALLOWS_EVERYTHING: &str = "it allows everything; to permit that, run with `--mode yolo`";
/// Reason: an allowed command without a prefix.
pub const IMPORT_ALLOW_PREFIX: &str = "an `allow` rule here matches a prefix of plain words, so it would allow more, or not match (agent help permissions)";
/// Reason: an `allow` rule next to restrictions that are missing here.
pub const IMPORT_ALLOW_RESTRICTED: &str = "a hook, or a rule that is not carried over, may refuse such commands there; add it by hand (agent help permissions)";
/// Reason: a pattern in an `ask` rule.
pub const IMPORT_ASK_PATTERN: &str = "an `ask` rule here matches a prefix of plain words only";
/// Reason: reading is allowed.
pub const IMPORT_READING: &str = "reading needs no permission here, except in mode `confirm-all`";
/// Reason: the other agent ignores the rule.
pub const IMPORT_IGNORED_THERE: &str = "it has no effect there either: paths belong into `Read`";
/// Reason: allowed file changes.
pub const IMPORT_ALLOW_FILES: &str =
    "file patterns here match more names (other cases, every directory), so it would allow more";
/// Reason: a path outside the workspace.
pub const IMPORT_OUTSIDE: &str =
    "it is outside the workspace, where the file tools cannot go; `sandbox.hidden` hides it from commands";
/// Reason: a pattern without counterpart.
pub const IMPORT_PATTERN: &str =
    "file patterns here have no exceptions (!) and no backslashes, and begin at the workspace";
/// Reason: web pages.
pub const IMPORT_WEB: &str =
    "fetching is off; set `web.enabled` and `web.allowed_hosts` in your own configuration";
/// Reason: environment variables.
pub const IMPORT_ENVIRONMENT: &str = "its values may be secret; copy what commands need into `commands.env`";
/// Reason: the model.
pub const IMPORT_MODEL: &str = "choose the model in your own configuration (`llm.model`)";
/// Reason: a permission mode.
pub const IMPORT_MODE: &str =
    "no mode here permits exactly the same; choose one with `mode` or `--mode` (agent help permissions)";
/// Reason: further directories.
pub const IMPORT_DIRECTORIES: &str =
    "the file tools stay in the workspace; `sandbox.writable` in your own configuration is for commands";
/// Reason: a read-only sandbox.
pub const IMPORT_READ_ONLY: &str = "for work that changes nothing, run with `--agent plan`";
/// Reason: no sandbox.
pub const IMPORT_NO_SANDBOX: &str = "the sandbox stays on; `--sandbox off` ends it for one run";
/// Reason: options of a sandbox mode that is not set.
pub const IMPORT_NOT_IN_MODE: &str = "it has an effect only with sandbox_mode = \"workspace-write\"";
/// Reason: hooks are off.
pub const IMPORT_HOOKS_OFF: &str = "`disableAllHooks` is set";
/// Reason: the kind of a hook.
pub const IMPORT_HOOK_TYPE: &str = "only hooks of the type `command` exist here";
/// Reason: the event of a hook.
pub const IMPORT_HOOK_EVENT: &str = "there is no such event (agent help hooks)";
/// Reason: the matcher of a hook.
pub const IMPORT_MATCHER: &str = "its matcher has no counterpart here (agent help hooks)";
/// Reason: the input of a hook.
pub const IMPORT_HOOK_INPUT: &str =
    "it reads the input of the other agent; adapt it to the input here (agent help hooks)";
/// Note on every imported hook.
pub const IMPORT_HOOK_CHECK: &str = "hooks get another input here, with other tool names; refusals in their output (exit 2, `decision`, `permissionDecision`) count as there (agent help hooks)";
/// Reason: hooks of Codex.
pub const IMPORT_CODEX_HOOKS: &str = "hooks of Codex are not carried over; add them by hand: refusals in their output (exit 2, `decision`, `permissionDecision`) count here too (agent help hooks)";
/// Note on a hook that ran when the agent stopped.
pub const IMPORT_STOP_HOOK: &str =
    "it cannot make the agent continue; `guardrails.quality_gates` can (agent help guardrails)";
/// Reason: further instructions.
pub const IMPORT_LOCAL_INSTRUCTIONS: &str = "it is not read; move what is needed into CLAUDE.md or AGENTS.md";
/// Reason: imports in instructions.
pub const IMPORT_IMPORTS: &str = "they are not followed; the model can read these files";
/// Reason: agents and slash commands.
pub const IMPORT_AGENTS: &str = "agents and slash commands here are files in .agent/agents and .agent/commands (agent help agents, agent help chat)";
