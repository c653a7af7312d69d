//! What a call does, in one line: as a question before it runs, and as its title afterwards.

use super::numbers;
use agent_core::language::Language;
use agent_text::lines::pluralize;
use std::time::Duration;

/// Time after which a title tells how long the call took.
const LONG: Duration = Duration::from_secs(1);

/// The verb of a tool, as in "May I … FILE?" and "… FILE".
struct Verb {
    question: &'static str,
    title: &'static str,
}

/// Returns the verb of a built-in tool.
fn verb(tool: &str, language: Language) -> Option<Verb> {
    let (question, title) = match (tool, language) {
        ("run_command", Language::En) => ("run", "$"),
        ("run_command", Language::Es) => ("ejecutar", "$"),
        ("read_file", Language::En) => ("read", "Read"),
        ("read_file", Language::Es) => ("leer", "Leer"),
        ("list_files", Language::En) => ("list", "List"),
        ("list_files", Language::Es) => ("listar", "Listar"),
        ("find_files", Language::En) => ("find", "Find"),
        ("grep" | "search_code", Language::En) => ("search for", "Search"),
        ("find_files" | "grep" | "search_code", Language::Es) => ("buscar", "Buscar"),
        ("edit_file", Language::En) => ("edit", "Edit"),
        ("edit_file", Language::Es) => ("editar", "Editar"),
        ("write_file", Language::En) => ("write", "Write"),
        ("write_file", Language::Es) => ("escribir", "Escribir"),
        ("apply_patch", Language::En) => ("patch", "Patch"),
        ("apply_patch", Language::Es) => ("modificar", "Modificar"),
        ("delete_file", Language::En) => ("delete", "Delete"),
        ("delete_file", Language::Es) => ("borrar", "Borrar"),
        ("web_fetch", Language::En) => ("fetch", "Fetch"),
        ("web_fetch", Language::Es) => ("descargar", "Descargar"),
        _ => return None,
    };
    Some(Verb { question, title })
}

/// Asks whether a call may run; `summary` is its one-line summary.
pub fn call_question(tool: &str, summary: &str, language: Language) -> String {
    let what = match verb(tool, language) {
        Some(Verb { question, .. }) => format!("{question} {summary}"),
        None => format!("{} {tool} {summary}", language.pick("call", "llamar a")),
    };
    match language {
        Language::En => format!("May I {}?", what.trim_end()),
        Language::Es => format!("¿Puedo {}?", what.trim_end()),
    }
}

/// Says what a finished call did; `summary` is its one-line summary.
pub fn call_title(tool: &str, summary: &str, language: Language) -> String {
    let verb = verb(tool, language).map_or(tool, |verb| verb.title);
    format!("{verb} {summary}").trim_end().to_owned()
}

/// Says after a title that the call failed, and how long it took.
pub fn call_failed(why: &str, duration: Duration) -> String {
    format!("✗ {why}{}", call_took(duration))
}

/// Says after a title that the call was refused.
pub fn call_refused(why: &str, language: Language) -> String {
    format!("✗ {}: {why}", language.pick("refused", "rechazado"))
}

/// Says after a title that the call did nothing, because the run is a dry run.
pub fn call_simulated(language: Language) -> &'static str {
    language.pick(" (dry run: nothing was done)", " (simulación: no se hizo nada)")
}

/// Says after a title how long the call took; nothing for a short one.
pub fn call_took(duration: Duration) -> String {
    if duration < LONG { String::new() } else { format!(", {}", numbers::duration(duration)) }
}

/// Line about what a call printed and is not shown; `key` shows it.
pub fn call_more(lines: usize, key: Option<&str>, language: Language) -> String {
    let more = language.pick(pluralize(lines, "line"), format!("{lines} líneas"));
    format!("   … +{more}{}", key.map(|key| format!(" ({key})")).unwrap_or_default())
}

/// Line below a diff that is shown in part; `key` shows it whole.
pub fn call_whole(key: &str, language: Language) -> String {
    format!("   … {key} {}", language.pick("shows all of it", "lo muestra todo"))
}

/// Says after a command that it has more lines.
pub fn call_more_lines(lines: usize, language: Language) -> String {
    format!(" +{}", language.pick(pluralize(lines, "line"), format!("{lines} líneas")))
}
