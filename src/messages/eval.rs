//! Messages of `agent eval`.

use super::numbers::counted;
use agent_core::comparison::{Comparison, ComparisonDocument, Difference, DifferenceTest};
use agent_core::language::Language;
use agent_core::ranking::{Median, Ranked};
use agent_text::lines::{escape_controls, one_line};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Characters of a name in the table.
const NAME_CHARS: usize = 60;

/// Characters of a reason or of a list.
const WHY_CHARS: usize = 400;
/// Number of errors that are shown.
const SHOWN_ERRORS: usize = 100;

/// Error about too few models or configurations.
pub const EVAL_NEEDS_TWO: &str = "a comparison needs two or more different models (`--models a,b`) or configuration files (`--configs f1,f2`)";

/// Error about a task beside `--tasks`.
pub const TASK_AND_TASKS: &str = "give either a task or `--tasks DIR`";

/// Error about two runs with one name.
pub const SAME_RUN_NAME: &str = "the names of tasks and models make two runs with the same name";

/// Error about too many runs.
pub fn too_many_runs(count: usize, most: usize) -> String {
    format!("{count} runs are more than {most}: measure fewer tasks or repetitions")
}

/// Error about tasks that cannot be used.
pub fn task_errors(errors: &[String]) -> String {
    let count = errors.len();
    let mut text =
        format!("the tasks cannot be used: {count} {}", if count == 1 { "error" } else { "errors" });
    for error in errors.iter().take(SHOWN_ERRORS) {
        let _infallible = write!(text, "\n  {}", escape_controls(error));
    }
    if count > SHOWN_ERRORS {
        let _infallible = write!(text, "\n  and {} more", count.saturating_sub(SHOWN_ERRORS));
    }
    text
}

/// Error about a directory of tasks in which this program works.
pub fn tasks_contain_state(directory: &str) -> String {
    format!(
        "--tasks {directory} contains the state directory of this program, where the runs work; move the tasks to a directory of their own"
    )
}

/// The text of a record of several tasks.
pub fn tasks_of(count: usize, directory: &str) -> String {
    format!("{count} tasks of {directory}")
}

/// Error about the directory of a run.
pub fn no_task_directory(task: &str, why: &str) -> String {
    format!("the files of the task {task} could not be copied: {why}")
}

/// Why the directory of a run is incomplete.
pub fn not_copied(from: &str, paths: &[&str]) -> String {
    format!(
        "{from} has files that cannot be copied (too large, unreadable, or with a secret of this process): {}",
        paths.join(", ")
    )
}

/// Output of a check that did not run.
pub fn tests_not_restored(why: &str) -> String {
    format!("not run, the tests of the task could not be put in place: {why}")
}

/// The ranking as a Markdown table, and what its figures leave out.
pub fn ranking(ranked: &[Ranked], language: Language) -> String {
    let mut text = language
        .pick(
            "| # | Name | Score | Checks | Status | Efficiency | Cost | Passed | Median score | Steps | USD | Time |\n",
            "| # | Nombre | Puntos | Comprobaciones | Estado | Eficiencia | Coste | Superadas | Mediana de puntos | Pasos | USD | Tiempo |\n",
        )
        .to_owned();
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (at, one) in ranked.iter().enumerate() {
        let (name, parts) = (one_line(&one.name, NAME_CHARS).replace('|', "\\|"), one.parts);
        let cost = parts.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.1}"));
        let usd = one.median_cost_usd.map_or_else(|| "-".to_owned(), |usd| median(usd, 4));
        let _infallible = writeln!(
            text,
            "| {} | {name} | {:.1} | {:.1} | {:.1} | {:.1} | {cost} | {} | {} | {} | {usd} | {} s |",
            at.saturating_add(1),
            one.score,
            parts.checks,
            parts.status,
            parts.efficiency,
            passed(one),
            median(one.median_score, 1),
            median(one.median_steps, 1),
            median(one.median_seconds, 1)
        );
    }
    if ranked.iter().any(|one| one.parts.cost.is_none()) {
        text.push_str(language.pick(
            "\nThe cost of a run is unknown: the score of its model has no part for the cost.\n",
            "\nEl coste de una ejecución es desconocido: la puntuación de su modelo no incluye el coste.\n",
        ));
    }
    if ranked.iter().any(|one| one.runs > 1 && one.median_score.interval.is_none()) {
        text.push_str(language.pick(
            "\nA median has an interval from six runs on, or from six tasks on if there are several.\n",
            "\nUna mediana tiene intervalo a partir de seis ejecuciones, o de seis tareas si hay varias.\n",
        ));
    }
    text
}

/// The runs that passed, with the interval of their share, such as `3/5 (23-88 %)`.
pub fn passed(one: &Ranked) -> String {
    let [low, high] = one.pass_rate_interval;
    format!("{}/{} ({:.0}-{:.0} %)", one.passed, one.runs, low * 100.0, high * 100.0)
}

/// A median with its interval, such as `3.5 (2.0-6.0)`.
pub fn median(median: Median, digits: usize) -> String {
    let value = format!("{:.digits$}", median.value);
    match median.interval {
        Some([low, high]) => format!("{value} ({low:.digits$}-{high:.digits$})"),
        None => value,
    }
}

/// Error about two measurements without a common model.
pub const NOTHING_IN_COMMON: &str =
    "there is nothing to compare: no model or configuration, or no task, is in both measurements";
/// Why a measurement cannot be read: there is none.
pub const NO_FILE_OR_RECORD: &str = "there is no such file, and no record with this id (`agent work list`)";
/// Why a measurement cannot be read: it goes on.
pub const NOT_ENDED: &str = "it has not ended: `agent eval resume ID` goes on with it";
/// Why a measurement cannot be read: it is something else.
pub const NO_SCORES: &str = "it has no scores of `agent eval`";

/// Why a measurement is not compared: runs are missing.
pub fn runs_missing(count: usize) -> String {
    format!(
        "{count} of its runs did not start; `agent eval resume ID` makes up for those that a limit or an interrupt prevented"
    )
}

/// Error about a measurement that cannot be read.
pub fn no_measurement(source: &str, why: &str) -> String {
    format!("{} cannot be compared: {}", one_line(source, NAME_CHARS), one_line(why, WHY_CHARS))
}

/// The comparisons of measurements, each with a table and sentences.
pub fn comparisons(document: &ComparisonDocument, language: Language) -> String {
    let texts = document.comparisons.iter().map(|one| comparison(one, language));
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if !document.left_out.is_empty() {
        let names = one_line(&document.left_out.join(", "), WHY_CHARS);
        let only = language.pick("Only in one of the measurements", "Solo en una de las mediciones");
        let _infallible = write!(text, "\n{only}: {names}\n");
    }
    text
}

fn comparison(one: &Comparison, language: Language) -> String {
    let name = |name: &str| one_line(name, NAME_CHARS).replace('|', "\\|");
    let mut text = if one.first == one.second {
        format!("## {}\n\n", name(&one.first))
    } else {
        format!("## A: {}, B: {}\n\n", name(&one.first), name(&one.second))
    };
    text.push_str("| | A | B | p | |\n|---|---|---|---|---|\n");
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let row = |title: &str, of: Difference, format: &dyn Fn(f64) -> String| {
        let verdict = if of.differs {
            language.pick("differs", "difiere")
        } else {
            language.pick("may be chance", "puede ser azar")
        };
        format!(
            "| {title} | {} | {} | {:.3} | {verdict} |\n",
            format(of.first),
            format(of.second),
            of.p_value
        )
    };
    text.push_str(&row(language.pick("passed", "superadas"), one.pass_rate, &percent));
    let points = language.pick("points without cost (of 90)", "puntos sin coste (de 90)");
    text.push_str(&row(points, one.points, &|points| format!("{points:.1}")));
    if let Some(cost) = one.cost_usd {
        text.push_str(&row(language.pick("USD per run", "USD por ejecución"), cost, &|usd| {
            format!("{usd:.4}")
        }));
    }
    let _infallible = write!(text, "\n{}\n", conclusion(one, language));
    text
}

/// A sentence on what a comparison shows.
fn conclusion(one: &Comparison, language: Language) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let basis = basis(one, language);
    if !one.can_differ {
        let (en, es) = (
            "too few to tell any difference from chance",
            "muy pocas para distinguir una diferencia del azar",
        );
        return format!("{basis}: {}.", language.pick(en, es));
    }
    let (rate, p) = (one.pass_rate, percent(one.pass_rate.p_value));
    let better = match rate.second.total_cmp(&rate.first) {
        Ordering::Less => "A",
        Ordering::Equal => {
            return format!(
                "{basis}: {}.",
                language.pick("both pass equally often", "ambas superan lo mismo")
            );
        }
        Ordering::Greater => "B",
    };
    match (rate.differs, language) {
        (true, Language::En) => {
            format!(
                "{basis}: {better} passes more often. Chance alone makes a difference this large in {p} of cases."
            )
        }
        (true, Language::Es) => {
            format!(
                "{basis}: {better} supera más. El azar solo produce una diferencia así en el {p} de los casos."
            )
        }
        (false, Language::En) => format!(
            "{basis}: the difference in passed runs may be chance. Chance alone makes one this large in {p} of cases."
        ),
        (false, Language::Es) => format!(
            "{basis}: la diferencia de lo superado puede ser ruido. El azar solo produce una así en el {p} de los casos."
        ),
    }
}

/// What a comparison rests on.
fn basis(one: &Comparison, language: Language) -> String {
    if one.test == DifferenceTest::Runs {
        return language.pick("The runs of one task", "Las ejecuciones de una tarea").to_owned();
    }
    let tasks = counted(one.tasks, ["task", "tasks"], ["tarea", "tareas"], language);
    match (one.left_out_tasks, language) {
        (0, _) => tasks,
        (left_out, Language::En) => format!("{tasks} in both ({left_out} in one only)"),
        (left_out, Language::Es) => format!("{tasks} en ambas ({left_out} solo en una)"),
    }
}
