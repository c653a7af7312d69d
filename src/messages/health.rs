//! Figures on code as text: a table, the functions and blocks that exceed the limits, and what was left out.

use super::numbers::{counted, thousands};
use agent_core::health::{CodeHealth, FilesLeftOut, HealthFigures, MeasuredFunction, RepeatedBlock};
use agent_core::language::Language;
use agent_text::lines::one_line;

/// Characters of a path.
const PATH_CHARS: usize = 200;
/// Characters of a commit id.
const SHORT_COMMIT: usize = 12;
/// Width of a column of figures.
const COLUMN: usize = 9;
/// Functions, and repeated blocks, that are listed in a text; the JSON document lists more.
const MAX_LISTED: usize = 20;

/// Lines of the text: the table, what exceeds the limits, and what was left out.
pub fn code_health(health: &CodeHealth, language: Language) -> Vec<String> {
    let mut lines = code_health_table(health, language);
    lines.extend(health.functions.iter().take(MAX_LISTED).map(|function| function_line(function, language)));
    lines.extend(health.repeated_blocks.iter().take(MAX_LISTED).map(|block| block_line(block, language)));
    let more = [health.functions.len(), health.repeated_blocks.len()]
        .map(|listed| listed.saturating_sub(MAX_LISTED) as u64)
        .iter()
        .sum::<u64>()
        + health.not_listed;
    if more > 0 {
        let more = thousands(more);
        lines.push(match language {
            Language::En => format!("{more} more are not listed"),
            Language::Es => format!("{more} más no se enumeran"),
        });
    }
    lines.extend(omissions(health.before.as_ref(), &health.after, language));
    lines
}

/// Table of the figures: the current ones, or those before and after with their difference.
fn code_health_table(health: &CodeHealth, language: Language) -> Vec<String> {
    let rows = rows(health, language);
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or_default();
    let title = title(health, language);
    let Some(_) = health.before else {
        let line = |row: &Row| format!("{:width$}{:>COLUMN$}", row.label, row.after);
        return std::iter::once(title).chain(rows.iter().map(line)).collect();
    };
    let head = language.pick(["before", "after", "change"], ["antes", "después", "cambio"]);
    let line = |label: &str, [before, after, change]: [&str; 3]| {
        format!("{label:width$}{before:>COLUMN$}{after:>COLUMN$}{change:>COLUMN$}")
    };
    let changes = rows.iter().map(|row| line(row.label, [&row.before, &row.after, &row.change]));
    let mut lines: Vec<String> = [title, line("", head)].into_iter().chain(changes).collect();
    let [new, removed] = [health.new_functions, health.removed_functions].map(Option::unwrap_or_default);
    let label = language.pick("Functions new, removed", "Funciones nuevas, eliminadas");
    lines.push(format!("{label}: {}, {}", thousands(new), thousands(removed)));
    lines
}

fn title(health: &CodeHealth, language: Language) -> String {
    let (files, other) = (thousands(health.after.files), thousands(health.after.other_files));
    let of = match (language, &health.base, &health.before) {
        (Language::En, Some(base), _) => format!(" since commit {}", short(base)),
        (Language::Es, Some(base), _) => format!(" desde el commit {}", short(base)),
        (Language::En, None, Some(_)) => " before and after the run".to_owned(),
        (Language::Es, None, Some(_)) => " antes y después de la ejecución".to_owned(),
        (_, None, None) => String::new(),
    };
    match language {
        Language::En => format!("Code health{of} (files measured: {files}, other files: {other})"),
        Language::Es => format!("Salud del código{of} (archivos medidos: {files}, otros: {other})"),
    }
}

/// A figure with its name.
struct Row {
    label: &'static str,
    before: String,
    after: String,
    change: String,
}

fn rows(health: &CodeHealth, language: Language) -> Vec<Row> {
    let whole = |label, figure: fn(&HealthFigures) -> u64| {
        let [before, after] = [health.before.as_ref().map_or(0, figure), figure(&health.after)];
        let (sign, difference) = if after < before { ("-", before - after) } else { ("+", after - before) };
        let change =
            if difference == 0 { "0".to_owned() } else { format!("{sign}{}", thousands(difference)) };
        Row { label, before: thousands(before), after: thousands(after), change }
    };
    let average = |label, figure: fn(&HealthFigures) -> f64| {
        let [before, after] = [health.before.as_ref().map_or(0.0, figure), figure(&health.after)];
        // Averages have two decimals: a smaller difference is none.
        let difference = after - before;
        let change = if difference.abs() < 0.005 { "0".to_owned() } else { format!("{difference:+.2}") };
        Row { label, before: format!("{before:.2}"), after: format!("{after:.2}"), change }
    };
    let label = |english, spanish| language.pick(english, spanish);
    vec![
        whole(label("Functions", "Funciones"), |of| of.functions),
        average(label("Average complexity", "Complejidad media"), |of| of.average_complexity),
        whole(label("Maximum complexity", "Complejidad máxima"), |of| of.max_complexity.into()),
        average(label("Average lines", "Líneas de media"), |of| of.average_lines),
        whole(label("Long functions (over 50 lines)", "Funciones largas (más de 50 líneas)"), |of| {
            of.long_functions
        }),
        whole(label("Complex functions (over 10)", "Funciones complejas (más de 10)"), |of| {
            of.complex_functions
        }),
        whole(label("Repeated blocks (6 lines)", "Bloques repetidos (6 líneas)"), |of| of.repeated_blocks),
    ]
}

fn function_line(function: &MeasuredFunction, language: Language) -> String {
    let MeasuredFunction { path, line, name, lines, complexity } = function;
    let (path, name) = (one_line(path, PATH_CHARS), one_line(name, PATH_CHARS));
    match language {
        Language::En => format!("{path}:{line}: {name}: complexity {complexity}, {lines} lines"),
        Language::Es => format!("{path}:{line}: {name}: complejidad {complexity}, {lines} líneas"),
    }
}

fn block_line(block: &RepeatedBlock, language: Language) -> String {
    let RepeatedBlock { path, line, end_line, first_path, first_line } = block;
    let [path, first_path] = [path, first_path].map(|path| one_line(path, PATH_CHARS));
    match language {
        Language::En => format!("{path}:{line}-{end_line}: repeats {first_path}:{first_line}"),
        Language::Es => format!("{path}:{line}-{end_line}: repite {first_path}:{first_line}"),
    }
}

/// Lines about files that were not measured or have uncertain figures.
fn omissions(before: Option<&HealthFigures>, after: &HealthFigures, language: Language) -> Vec<String> {
    let FilesLeftOut { too_large, too_slow, unreadable, sensitive, not_reached } = after.left_out;
    let reasons = [
        (too_large, language.pick("larger than 1 MiB", "de más de 1 MiB")),
        (too_slow, language.pick("not parsed within 1 s", "no analizados en 1 s")),
        (unreadable, language.pick("unreadable or not text", "ilegibles o sin texto")),
        (sensitive, language.pick("sensitive", "sensibles")),
        (
            not_reached,
            language.pick(
                "beyond the limits of 20,000 files, 2,000,000 lines and 10 s",
                "fuera de los límites de 20,000 archivos, 2,000,000 líneas y 10 s",
            ),
        ),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0);
    let listed: Vec<String> =
        reasons.map(|(count, reason)| format!("{} {reason}", thousands(*count))).collect();
    let mut lines = Vec::new();
    if !listed.is_empty() {
        let label = language.pick("Not measured", "Sin medir");
        lines.push(format!("{label}: {}", listed.join(", ")));
    }
    if after.files_with_errors > 0 {
        let files = counted(after.files_with_errors, ["file", "files"], ["archivo", "archivos"], language);
        lines.push(match language {
            Language::En => format!("Syntax errors in {files}, whose figures are uncertain"),
            Language::Es => format!("Errores de sintaxis en {files}, cuyas cifras son inciertas"),
        });
    }
    if !after.complete || before.is_some_and(|before| !before.complete) {
        let incomplete = language.pick(
            "Incomplete: the figures do not cover all files",
            "Incompleto: las cifras no abarcan todos los archivos",
        );
        lines.push(incomplete.to_owned());
    }
    lines
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT_COMMIT).unwrap_or(commit)
}

/// Notice that a run ended without the figures after its work.
pub fn health_interrupted(language: Language) -> &'static str {
    language.pick(
        "code health: not measured after the run, because it was interrupted",
        "salud del código: sin medir después de la ejecución, porque se interrumpió",
    )
}

/// Error that the code cannot be measured.
pub fn health_failed(why: &str) -> String {
    format!("cannot measure the code: {why}")
}
