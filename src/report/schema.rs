//! JSON Schemas of the machine-readable output, generated from the Rust types; `config/schema/` holds them as files.

use super::pending_approvals::PendingApprovalList;
use super::stats::Stats;
use crate::json_stream::StreamLine;
use crate::session_report::SessionReport;
use agent_core::comparison::ComparisonDocument;
use agent_core::event::Record;
use agent_core::fleet::TasksDocument;
use agent_core::health::HealthDocument;
use agent_core::run_result::RunResult;
use agent_core::work::WorkResult;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Returns the schema of the `--json` document.
pub fn result() -> String {
    text::<RunResult>()
}

/// Returns the schema of one line of `--output-format stream-json`.
pub fn events() -> String {
    text::<StreamLine<'_>>()
}

/// Returns the schema of one line of `--log-file` and of the records in a journal.
pub fn journal() -> String {
    text::<Record>()
}

/// Returns the schema of the document of `agent approvals list --json`.
pub fn approvals() -> String {
    text::<PendingApprovalList>()
}

/// Returns the schema of the document of `agent stats --json`.
pub fn stats() -> String {
    text::<Stats>()
}

/// Returns the schema of the document of `--report json`.
pub fn report() -> String {
    text::<SessionReport>()
}

/// Returns the schema of the document of `agent loop --json`.
pub fn work() -> String {
    text::<WorkResult>()
}

/// Returns the schema of the document of `agent eval compare --json`.
pub fn comparison() -> String {
    text::<ComparisonDocument>()
}

/// Returns the schema of the documents of `agent tasks --json`.
pub fn tasks() -> String {
    text::<TasksDocument>()
}

/// Returns the schema of the document of `agent health --json`.
pub fn health() -> String {
    text::<HealthDocument>()
}

/// Generates the schema for readers of the output: a key that is always written is required.
fn text<T: JsonSchema>() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    format!("{:#}\n", generator.into_root_schema_for::<T>().as_value())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test compares with files, and writes them when asked to")]
mod tests {
    use super::*;
    use agent_core::stop_reason::StopReason;
    use std::path::Path;
    use strum::VariantArray;

    /// Compares a file with the generated schema; `AGENT_UPDATE_SCHEMA=1 cargo test schema` writes the file instead.
    fn file_is(name: &str, generated: &str) {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/schema")).join(name);
        if std::env::var_os("AGENT_UPDATE_SCHEMA").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, generated).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            stored, generated,
            "{name} has drifted: AGENT_UPDATE_SCHEMA=1 cargo test --workspace --lib schema"
        );
    }

    #[test]
    fn o02_the_result_schema_is_the_one_of_the_types() {
        file_is("result.json", &result());
    }

    #[test]
    fn o09_the_event_schema_is_the_one_of_the_types() {
        file_is("events.json", &events());
    }

    #[test]
    fn o21_the_journal_schema_is_the_one_of_the_types() {
        file_is("journal.json", &journal());
    }

    #[test]
    fn s21_the_schema_of_waiting_calls_is_the_one_of_the_types() {
        file_is("approvals.json", &approvals());
    }

    #[test]
    fn the_schema_of_figures_is_the_one_of_the_types() {
        file_is("stats.json", &stats());
    }

    #[test]
    fn o19_the_schema_of_reports_is_the_one_of_the_types() {
        file_is("report.json", &report());
    }

    #[test]
    fn the_schema_of_a_command_of_several_runs_is_the_one_of_the_types() {
        file_is("work.json", &work());
    }

    #[test]
    fn a18_the_schema_of_comparisons_is_the_one_of_the_types() {
        file_is("comparison.json", &comparison());
    }

    #[test]
    fn the_schema_of_tasks_is_the_one_of_the_types() {
        file_is("tasks.json", &tasks());
    }

    #[test]
    fn o29_the_schema_of_code_health_is_the_one_of_the_types() {
        file_is("health.json", &health());
    }

    /// Returns the code in the first cells of a page's table rows.
    fn first_cells(page: &str) -> Vec<&str> {
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
    }

    #[test]
    fn o02_the_help_page_lists_the_keys_of_the_document() {
        let schema: serde_json::Value = serde_json::from_str(&result()).unwrap();
        let keys: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(first_cells(include_str!("../../config/help/json.md")), keys);
    }

    #[test]
    fn o19_the_help_page_names_the_keys_of_reports() {
        let (schema, page) = (report(), include_str!("../../config/help/reports.md"));
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        for key in schema["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn o03_the_help_page_lists_every_stop_reason_with_its_status() {
        let page = include_str!("../../config/help/exit-codes.md");
        assert_eq!(
            first_cells(page),
            StopReason::VARIANTS.iter().map(|reason| reason.name()).collect::<Vec<_>>()
        );
        for reason in StopReason::VARIANTS {
            let row = format!("| `{reason}` | {} |", reason.status().name());
            assert!(page.contains(&row), "{row}");
        }
    }
}
