//! `agent trust`: shows the settings of a project that need trust, and stores or revokes the user's trust in them.

use crate::cli::args::TrustArgs;
use crate::cli::commands::common_args::CommonArgs;
use crate::cli::compose::app::{App, common_flags};
use crate::cli::compose::output::print;
use crate::cli::error::{CliError, CliResult};
use crate::config::flags::Flags;
use crate::config::load::{self, LoadedConfig};
use crate::config::trust::manifest::referencing_keys;
use crate::config::trust::{self, TrustFlag, TrustStatus};
use crate::core::failure::FailureKind;
use crate::core::language::Language;
use crate::messages;
use crate::terminal::{self, PromptAnswer, Style, one_line, preview};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Shows, requests, stores or revokes trust.
///
/// # Errors
/// Fails for an invalid configuration, a refusal, no user to ask, and a record that cannot be written.
pub fn trust(app: &App, args: &TrustArgs, common: &CommonArgs) -> CliResult<()> {
    if args.revoke {
        return revoke(app, common);
    }
    let status = app.load(&common_flags(common))?.trust.status;
    // Loaded as if it were trusted, so that problems with the trusted settings are reported first.
    let loaded = app.load(&Flags { trust: TrustFlag::ThisRun, ..common_flags(common) })?;
    let manifest = &loaded.trust.manifest;
    let mut text = listing(&loaded);
    let _ = writeln!(text, "hash    {}", manifest.hash());
    let settled = matches!(status, TrustStatus::NothingToTrust | TrustStatus::Trusted);
    if args.show || settled {
        let _ = writeln!(text, "status  {}", describe_status(&status));
        return print(&app.terminal, &text);
    }
    if args.yes {
        print(&app.terminal, &text)?;
    } else {
        ask(app, &text)?;
    }
    let settings = &loaded.settings;
    let stored = trust::fact_cache(&settings.state, &settings.workspace).store(manifest.files.clone());
    stored.map_err(|error| {
        CliError::new(FailureKind::Config, messages::trust_not_stored(&error.to_string()))
    })?;
    app.notify(Style::Success, messages::TRUSTED);
    Ok(())
}

fn revoke(app: &App, common: &CommonArgs) -> CliResult<()> {
    let wrong = |cause: anyhow::Error| CliError { kind: FailureKind::Config, cause };
    let (state, workspace) = load::state_and_workspace(&common_flags(common), &app.environment)
        .map_err(|error| wrong(error.into()))?;
    let was_trusted = trust::fact_cache(&state, &workspace).delete().map_err(|error| wrong(error.into()))?;
    let text = if was_trusted { messages::TRUST_REVOKED } else { messages::NO_TRUST_TO_REVOKE };
    app.notify(Style::Plain, text);
    Ok(())
}

/// Shows the whole listing and asks the user; every answer except yes is an error.
fn ask(app: &App, listing: &str) -> CliResult<()> {
    if !app.terminal.can_ask() {
        return Err(CliError::new(FailureKind::Usage, messages::TRUST_NEEDS_TERMINAL));
    }
    app.notify(Style::Plain, listing.trim_end());
    let question = terminal::PromptQuestion {
        language: Language::En,
        title: messages::TRUST_QUESTION,
        reason: messages::TRUST_REASON,
        notes: &[],
        preview: None,
        lasting: None,
    };
    let answer = app.block_on(async { Ok(app.terminal.ask(&question, &CancellationToken::new()).await) })?;
    match answer {
        PromptAnswer::Yes => Ok(()),
        PromptAnswer::Always | PromptAnswer::No(_) | PromptAnswer::Abort => {
            Err(CliError::new(FailureKind::Usage, messages::NOT_TRUSTED))
        }
    }
}

/// Describes the trust status of the project.
pub fn describe_status(status: &TrustStatus) -> String {
    match status {
        TrustStatus::NothingToTrust => "nothing here needs trust".to_owned(),
        TrustStatus::Untrusted => "not trusted".to_owned(),
        TrustStatus::Changed { changes } => format!("no longer trusted: {changes}"),
        TrustStatus::Trusted | TrustStatus::ThisRun { .. } => "trusted as it is".to_owned(),
    }
}

/// Lists every relevant file with its keys that need trust and their values, truncated like an approval prompt.
fn listing(loaded: &LoadedConfig) -> String {
    let mut text = format!("{}\n", name(&loaded.settings.workspace.to_string_lossy()));
    for file in &loaded.project.files {
        let _ = writeln!(text, "\n{}", name(&file.path));
        for (key, layer_value) in file.restricted.needs_trust.layer_values() {
            let _ = writeln!(text, "  {} (line {})", name(key), layer_value.origin.line);
            show(&layer_value.value, &mut text);
        }
        if file.restricted.needs_trust.is_empty() {
            let _ = writeln!(text, "  nothing that needs trust");
        }
        for (key, _) in file.restricted.never_from_project.layer_values() {
            let _ = writeln!(text, "  {} is ignored, trusted or not", name(key));
        }
    }
    let named: Vec<&Path> = trust::other_files(&loaded.trust.manifest, &loaded.project).collect();
    for file in &named {
        let _ = writeln!(text, "\n{}", name(&file.to_string_lossy()));
        let _ = writeln!(text, "  {}", references(loaded, file));
    }
    let files = &loaded.project.files;
    let settings: usize = files.iter().map(|file| file.restricted.needs_trust.layer_values().count()).sum();
    let _ = writeln!(text, "\n{}", messages::trust_totals(settings, files.len(), named.len()));
    text
}

/// Sanitizes a name chosen by the project, in full and on one line; otherwise it could forge lines of this listing.
fn name(text: &str) -> String {
    one_line(text, usize::MAX)
}

/// Explains why a file other than a configuration file is relevant.
fn references(loaded: &LoadedConfig, file: &Path) -> String {
    let (root, file) = (&loaded.settings.workspace, file.to_string_lossy());
    if loaded.project.commands.values().any(|command| command.path == file) {
        return "a slash command: its text is sent to the model as your message".to_owned();
    }
    let waiting = loaded.project.files.iter().map(|file| &file.restricted.needs_trust);
    let keys: Vec<&str> = waiting.flat_map(|waiting| referencing_keys(root, waiting, &file)).collect();
    format!("named by {}: read it before you trust it", name(&keys.join(", ")))
}

/// Formats a value for the decision: commands and other texts verbatim, each item of a list separately.
fn show(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| show(item, text)),
        Value::Object(fields) => {
            let command = fields.get("command").and_then(Value::as_str);
            indented(command.unwrap_or_default(), "    ", text);
            let more = fields.iter().filter(|(field, _)| *field != "command");
            let more: Vec<String> = more.map(|(field, value)| format!("{field}: {value}")).collect();
            indented(&more.join("\n"), "      ", text);
        }
        Value::String(value) => indented(value, "    ", text),
        other => indented(&other.to_string(), "    ", text),
    }
}

fn indented(value: &str, indent: &str, text: &mut String) {
    for line in preview(value).lines().filter(|_| !value.is_empty()) {
        let _ = writeln!(text, "{indent}{line}");
    }
}
