//! What a call does, in one line: as a question before it runs, and as its title afterwards.

use super::numbers;
use agent_core::language::Language;
use agent_text::lines::pluralize;
use std::time::Duration;

/// Shortest duration that a title shows.
const LONG: Duration = Duration::from_secs(1);

/// Returns the verb of a built-in tool, as in "May I … FILE?" and "… FILE".
fn verbs(tool: &str, language: Language) -> Option<(&'static str, &'static str)> {
    let (english, spanish) = match tool {
        "run_command" => (("run", "$"), ("ejecutar", "$")),
        "read_file" => (("read", "Read"), ("leer", "Leer")),
        "list_files" => (("list", "List"), ("listar", "Listar")),
        "find_files" => (("find", "Find"), ("buscar", "Buscar")),
        "grep" | "search_code" => (("search for", "Search"), ("buscar", "Buscar")),
        "edit_file" => (("edit", "Edit"), ("editar", "Editar")),
        "write_file" => (("write", "Write"), ("escribir", "Escribir")),
        "apply_patch" => (("patch", "Patch"), ("modificar", "Modificar")),
        "delete_file" => (("delete", "Delete"), ("borrar", "Borrar")),
        "ask_user" => (("ask", "Asked"), ("preguntar", "Pregunta")),
        "todo" => (("list", "Todo"), ("listar", "Lista")),
        "web_fetch" => (("fetch", "Fetch"), ("descargar", "Descargar")),
        _ => return None,
    };
    Some(language.pick(english, spanish))
}

/// Asks whether a call may run; `summary` is its one-line summary.
pub fn call_question(tool: &str, summary: &str, language: Language) -> String {
    let what = match verbs(tool, language) {
        Some((question, _)) => format!("{question} {summary}"),
        None => format!("{} {tool} {summary}", language.pick("call", "llamar a")),
    };
    match language {
        Language::En => format!("May I {}?", what.trim_end()),
        Language::Es => format!("¿Puedo {}?", what.trim_end()),
    }
}

/// Says what a finished call did; `summary` is its one-line summary.
pub fn call_title(tool: &str, summary: &str, language: Language) -> String {
    let verb = verbs(tool, language).map_or(tool, |(_, title)| title);
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
    format!(
        "   …{}{}",
        call_more_lines(lines, language),
        key.map(|key| format!(" ({key})")).unwrap_or_default()
    )
}

/// Line below what is shown in part; `key` shows it whole.
pub fn call_whole(key: &str, language: Language) -> String {
    format!("   … {} ({key})", language.pick("shown in part", "se muestra en parte"))
}

/// Note on a command that goes on in the background.
pub fn call_in_background(id: &str, language: Language) -> String {
    format!("{} {id}", language.pick("in the background:", "en segundo plano:"))
}

/// Note on a question that was not answered.
pub fn call_no_answer(language: Language) -> &'static str {
    language.pick("no answer", "sin respuesta")
}

/// Says after a command that it has more lines.
pub fn call_more_lines(lines: usize, language: Language) -> String {
    format!(" +{}", language.pick(pluralize(lines, "line"), format!("{lines} líneas")))
}
