//! `agent schema`: prints the JSON Schemas of the program's inputs and outputs.

use crate::args::SchemaArg;
use agent_core::review::REVIEW_SCHEMA;
use agent_run::error::AppResult;
use agent_run::output::print;
use agent_terminal::Terminal;

/// Prints the JSON Schema selected by `what`.
///
/// # Errors
/// Fails when standard output cannot be written.
pub fn schema(terminal: &Terminal, what: SchemaArg) -> AppResult<()> {
    let text = match what {
        SchemaArg::Events => include_str!("../../../config/schema/events.json"),
        SchemaArg::Result => include_str!("../../../config/schema/result.json"),
        SchemaArg::Config => include_str!("../../../config/schema/config.json"),
        SchemaArg::Approvals => include_str!("../../../config/schema/approvals.json"),
        SchemaArg::Stats => include_str!("../../../config/schema/stats.json"),
        SchemaArg::Report => include_str!("../../../config/schema/report.json"),
        SchemaArg::Tasks => include_str!("../../../config/schema/tasks.json"),
        SchemaArg::Health => include_str!("../../../config/schema/health.json"),
        SchemaArg::Work => include_str!("../../../config/schema/work.json"),
        SchemaArg::Comparison => include_str!("../../../config/schema/comparison.json"),
        SchemaArg::Review => REVIEW_SCHEMA,
        SchemaArg::Rpc => include_str!("../../../config/schema/rpc.json"),
        SchemaArg::Journal => include_str!("../../../config/schema/journal.json"),
    };
    print(terminal, text)
}
