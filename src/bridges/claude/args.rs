//! The command line of Claude Code, as `@anthropic-ai/claude-agent-sdk` 0.3.331 sends it.

use agent_config::claude_names::names;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use strum::{IntoStaticStr, VariantArray};

/// The flags that are honoured.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct ClaudeArgs {
    /// Run without a user at the terminal
    #[arg(short, long)]
    pub print: bool,
    /// The task
    pub prompt: Option<String>,
    /// Format of standard output
    #[arg(long, default_value = "text")]
    pub output_format: ClaudeOutput,
    /// Format of standard input
    #[arg(long, default_value = "text")]
    pub input_format: ClaudeInput,
    /// Has no effect
    #[arg(long)]
    pub verbose: bool,
    /// Also write the pieces of streamed answers
    #[arg(long)]
    pub include_partial_messages: bool,
    /// Model; a name without a provider is one of the provider `anthropic`
    #[arg(long)]
    pub model: Option<String>,
    /// Fallback model
    #[arg(long)]
    pub fallback_model: Option<String>,
    /// Reasoning effort
    #[arg(long)]
    pub effort: Option<String>,
    /// Maximum number of model calls of a message
    #[arg(long)]
    pub max_turns: Option<u32>,
    /// Maximum cost of all messages, in US dollars
    #[arg(long, value_parser = agent_config::flag_values::parse_usd)]
    pub max_budget_usd: Option<f64>,
    /// JSON Schema that the answer must match
    #[arg(long)]
    pub json_schema: Option<String>,
    /// What runs without approval
    #[arg(long)]
    pub permission_mode: Option<PermissionMode>,
    /// Permit `bypassPermissions`
    #[arg(long)]
    pub allow_dangerously_skip_permissions: bool,
    /// The mode `bypassPermissions`, and permission for it
    #[arg(long)]
    pub dangerously_skip_permissions: bool,
    /// `stdio`: the client is asked for approval
    #[arg(long)]
    pub permission_prompt_tool: Option<String>,
    /// `none`: calls that need approval are refused; `host` has no effect
    #[arg(long)]
    pub permission_prompts: Option<PermissionPrompts>,
    /// Tools whose calls run without approval
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", num_args = 1..)]
    pub allowed_tools: Vec<String>,
    /// Tools that are refused
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", num_args = 1..)]
    pub disallowed_tools: Vec<String>,
    /// The tools of this program that are offered; `default`: all
    #[arg(long, num_args = 1..)]
    pub tools: Option<Vec<String>>,
    /// MCP servers: JSON, or a file with it
    #[arg(long, num_args = 1..)]
    pub mcp_config: Vec<String>,
    /// Use no other MCP server
    #[arg(long)]
    pub strict_mcp_config: bool,
    /// Continue the newest session of the workspace
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub continues: bool,
    /// Continue this session
    #[arg(short, long, value_name = "ID")]
    pub resume: Option<String>,
    /// Continue a copy of the session
    #[arg(long)]
    pub fork_session: bool,
    /// Id of a new session, a UUID
    #[arg(long)]
    pub session_id: Option<String>,
    /// Allow commands to write to this directory
    #[arg(long, num_args = 1..)]
    pub add_dir: Vec<PathBuf>,
    /// Has no effect: `initialize` is read in any case
    #[arg(long)]
    pub await_initialize: bool,
    /// Settings that `initialize` contains
    #[arg(long, value_delimiter = ',')]
    pub initialize_fields: Vec<InitializeField>,
    /// The flags of the table that were given.
    #[command(flatten)]
    pub others: OtherFlags,
}

/// Overrides of Claude Code that are known by name only.
#[derive(Debug, Clone, Default)]
pub struct OtherFlags {
    /// Overrides that were given and have no effect.
    pub ignored: Vec<String>,
    /// Overrides that were given and cannot be honoured, although they take permission away.
    pub refused: Vec<String>,
}

impl Args for OtherFlags {
    fn augment_args(command: Command) -> Command {
        [&names().ignored_flags, &names().refused_flags].into_iter().fold(command, |command, flags| {
            let flag = |name: &'static String| Arg::new(name.as_str()).long(name.as_str()).hide(true);
            let valued = flags.with_value.iter().map(|name| flag(name).action(ArgAction::Append));
            let others = flags.without_value.iter().map(|name| flag(name).action(ArgAction::SetTrue));
            command.args(valued.chain(others))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OtherFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |flags: &agent_config::claude_names::Overrides| {
            let all = flags.with_value.iter().chain(&flags.without_value);
            all.filter(|name| is_given(matches, name)).map(|name| format!("--{name}")).collect()
        };
        Ok(Self { ignored: given(&names().ignored_flags), refused: given(&names().refused_flags) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Formats of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClaudeOutput {
    /// The answer.
    Text,
    /// The result as one JSON document.
    Json,
    /// Each message as a JSON line.
    StreamJson,
}

/// Formats of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClaudeInput {
    /// The task.
    Text,
    /// Messages as JSON lines.
    StreamJson,
}

/// What runs without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, IntoStaticStr, VariantArray)]
#[clap(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum PermissionMode {
    /// As in `confirm-sensitive`.
    Default,
    /// Changes of files too.
    AcceptEdits,
    /// Everything that only needs approval because of the mode.
    BypassPermissions,
    /// Nothing is changed: the agent `plan`.
    Plan,
    /// Nobody is asked: what needs approval is refused.
    DontAsk,
    /// A classifier decides, which does not exist here: `default` without the allowed tools.
    Auto,
}

agent_core::impl_name!(PermissionMode);

/// Whether there is somebody to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PermissionPrompts {
    /// Nobody.
    None,
    /// The client, if it is asked at all.
    Host,
}

/// Settings that `initialize` can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InitializeField {
    /// Tools that are refused.
    #[value(name = "disallowedTools")]
    DisallowedTools,
}

/// Checks whether `first`, the first argument of the program, is a flag of Claude Code.
pub fn is_flag(first: &str) -> bool {
    let name = first.split_once('=').map_or(first, |(name, _)| name);
    let is_named = |arg: &Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => name.strip_prefix('-').is_some_and(|short| {
            short.chars().count() == 1 && arg.get_short().is_some_and(|own| short.starts_with(own))
        }),
    };
    first.starts_with('-') && command().get_arguments().any(is_named)
}

/// Parses the arguments of the program, of which the first is its name.
///
/// # Errors
/// For an unknown flag or value.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<ClaudeArgs, clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    ClaudeArgs::from_arg_matches(&matches)
}

fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
}

fn command() -> Command {
    ClaudeArgs::augment_args(Command::new("agent").disable_version_flag(true))
}

/// Splits lists of tools at commas and spaces outside of parentheses.
pub fn tool_list(texts: &[String]) -> Vec<String> {
    let mut tools = Vec::new();
    for text in texts {
        let (mut depth, mut tool) = (0_u32, String::new());
        for c in text.chars() {
            match c {
                '(' => depth = depth.saturating_add(1),
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ',' || c.is_whitespace()) {
                tools.push(std::mem::take(&mut tool));
            } else {
                tool.push(c);
            }
        }
        tools.push(tool);
    }
    tools.retain(|tool| !tool.is_empty());
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(words: &[&str]) -> Result<ClaudeArgs, clap::Error> {
        parse(std::iter::once("agent").chain(words.iter().copied()).map(OsString::from))
    }

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn values_follow_after_an_equals_sign_or_a_space() {
        for words in [["--max-turns=3", "--model=m"].as_slice(), &["--max-turns", "3", "--model", "m"]] {
            let args = parsed(words).unwrap();
            assert_eq!((args.max_turns, args.model.as_deref()), (Some(3), Some("m")));
        }
        let args = parsed(&["-p", "task", "--thinking=adaptive", "--settings", "{}"]).unwrap();
        assert_eq!((args.print, args.prompt.as_deref()), (true, Some("task")));
        assert_eq!(
            (args.others.ignored, args.others.refused),
            (vec!["--thinking".to_owned()], vec!["--settings".to_owned()])
        );
        for wrong in
            ["--no-such-flag", "--permission-mode=never", "--initialize-fields=settings", "--max-turns=x"]
        {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_argument_decides() {
        for flag in [
            "-p",
            "--print",
            "--output-format",
            "--output-format=text",
            "-r",
            "--continue",
            "--settings",
            "--debug",
        ] {
            assert!(is_flag(flag), "{flag}");
        }
        for other in ["run", "--help", "-h", "--version", "-V", "-", "--", "", "--no-such-flag", "-px"] {
            assert!(!is_flag(other), "{other}");
        }
    }

    #[test]
    fn tools_are_separated_outside_of_parentheses() {
        let list = |text: &str| tool_list(&[text.to_owned()]);
        assert_eq!(list("Bash(git log:*, x),Edit Read"), ["Bash(git log:*, x)", "Edit", "Read"]);
        assert_eq!(list(""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn no_part_of_a_list_is_lost(text in "[A-Za-z(), :*]{0,30}") {
            let plain = |text: &str| text.chars().filter(|c| !matches!(c, ',' | ' ')).collect::<String>();
            prop_assert_eq!(plain(&tool_list(std::slice::from_ref(&text)).concat()), plain(&text));
        }
    }
}
