//! `agent trust`: what a project's configuration asks for, and whether the user allows exactly that.

use crate::cli::app::{App, flags_of};
use crate::cli::args::TrustArgs;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::place::PlaceArgs;
use crate::config::flags::Flags;
use crate::config::load::{self, Loaded};
use crate::config::trust::claim::naming;
use crate::config::trust::{self, Standing, TrustWish};
use crate::failure::ErrorKind;
use crate::language::Language;
use crate::messages;
use crate::terminal::{self, Answer, Style, one_line, preview};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Shows, asks, keeps or ends trust.
///
/// # Errors
/// When the configuration is wrong, nobody can be asked, the answer is no, or the record cannot be written.
pub fn trust(app: &App, args: &TrustArgs, place: &PlaceArgs) -> CliResult<()> {
    if args.revoke {
        return revoke(app, place);
    }
    let standing = app.load(&flags_of(place))?.trust.standing;
    // As if it were trusted: what would be wrong then is said before anybody trusts it.
    let loaded = app.load(&Flags { trust: TrustWish::ThisRun, ..flags_of(place) })?;
    let claim = &loaded.trust.claim;
    let mut text = listing(&loaded);
    let _ = writeln!(text, "hash    {}", claim.hash());
    let settled = matches!(standing, Standing::NothingToTrust | Standing::Trusted);
    if args.show || settled {
        let _ = writeln!(text, "status  {}", in_words(&standing));
        return print(&app.terminal, &text);
    }
    if args.yes {
        print(&app.terminal, &text)?;
    } else {
        ask(app, &text)?;
    }
    let settings = &loaded.settings;
    let kept = trust::shelf(&settings.state, &settings.workspace).keep(claim.files.clone());
    kept.map_err(|error| CliError::new(ErrorKind::Config, messages::trust_not_kept(&error.to_string())))?;
    app.tell(Style::Good, messages::TRUSTED);
    Ok(())
}

fn revoke(app: &App, place: &PlaceArgs) -> CliResult<()> {
    let wrong = |cause: anyhow::Error| CliError { kind: ErrorKind::Config, cause };
    let (state, workspace) =
        load::place(&flags_of(place), &app.environment).map_err(|error| wrong(error.into()))?;
    let was_trusted = trust::shelf(&state, &workspace).forget().map_err(|error| wrong(error.into()))?;
    let said = if was_trusted { messages::TRUST_REVOKED } else { messages::NO_TRUST_TO_REVOKE };
    app.tell(Style::Plain, said);
    Ok(())
}

/// Puts the whole listing before a person; anything but yes is an error.
fn ask(app: &App, listing: &str) -> CliResult<()> {
    if !app.terminal.can_ask() {
        return Err(CliError::new(ErrorKind::Usage, messages::TRUST_NEEDS_A_PERSON));
    }
    app.tell(Style::Plain, listing.trim_end());
    let question = terminal::Question {
        language: Language::En,
        title: messages::TRUST_QUESTION,
        reason: messages::TRUST_REASON,
        notes: &[],
        preview: None,
        lasting: None,
    };
    let answer = app.block_on(async { Ok(app.terminal.ask(&question, &CancellationToken::new()).await) })?;
    match answer {
        Answer::Yes => Ok(()),
        Answer::Always | Answer::No(_) | Answer::Abort => {
            Err(CliError::new(ErrorKind::Usage, messages::NOT_TRUSTED))
        }
    }
}

/// How the project stands, in words.
pub fn in_words(standing: &Standing) -> String {
    match standing {
        Standing::NothingToTrust => "nothing here needs trust".to_owned(),
        Standing::Untrusted => "not trusted".to_owned(),
        Standing::Ended { changes } => format!("no longer trusted: {changes}"),
        Standing::Trusted | Standing::ThisRun { .. } => "trusted as it is".to_owned(),
    }
}

/// Every file that counts, with the keys in it that wait for trust and their whole values, bounded as a question is.
fn listing(loaded: &Loaded) -> String {
    let mut text = format!("{}\n", name(&loaded.settings.workspace.to_string_lossy()));
    for file in &loaded.project.files {
        let _ = writeln!(text, "\n{}", name(&file.place));
        for (key, statement) in file.taken_out.needs_trust.statements() {
            let _ = writeln!(text, "  {} (line {})", name(key), statement.origin.line);
            show(&statement.value, &mut text);
        }
        if file.taken_out.needs_trust.is_empty() {
            let _ = writeln!(text, "  nothing that needs trust");
        }
        for (key, _) in file.taken_out.never.statements() {
            let _ = writeln!(text, "  {} is ignored, trusted or not", name(key));
        }
    }
    let named: Vec<&Path> = trust::named(&loaded.trust.claim, &loaded.project).collect();
    for file in &named {
        let _ = writeln!(text, "\n{}", name(&file.to_string_lossy()));
        let _ = writeln!(text, "  {}", named_by(loaded, file));
    }
    let files = &loaded.project.files;
    let settings: usize = files.iter().map(|file| file.taken_out.needs_trust.statements().count()).sum();
    let _ = writeln!(text, "\n{}", messages::trust_asked(settings, files.len(), named.len()));
    text
}

/// A name that the project has chosen: whole, and on one line, or it could write lines of this listing.
fn name(text: &str) -> String {
    one_line(text, usize::MAX)
}

/// Why a file counts that is no configuration.
fn named_by(loaded: &Loaded, file: &Path) -> String {
    let (root, place) = (&loaded.settings.workspace, file.to_string_lossy());
    let waiting = loaded.project.files.iter().map(|file| &file.taken_out.needs_trust);
    let keys: Vec<&str> = waiting.flat_map(|waiting| naming(root, waiting, &place)).collect();
    format!("named by {}: read it before you trust it", name(&keys.join(", ")))
}

/// A value as a person decides on it: commands and other texts as they are, each of a list by itself.
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
