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
        SchemaArg::Events => &agent_report::schema::events(),
        SchemaArg::Result => &agent_report::schema::result(),
        SchemaArg::Config => include_str!("../../../config/schema/config.json"),
        SchemaArg::Approvals => &agent_report::schema::approvals(),
        SchemaArg::Stats => &agent_report::schema::stats(),
        SchemaArg::Report => &agent_report::schema::report(),
        SchemaArg::Tasks => &agent_report::schema::tasks(),
        SchemaArg::Health => &agent_report::schema::health(),
        SchemaArg::Work => &agent_report::schema::work(),
        SchemaArg::Comparison => &agent_report::schema::comparison(),
        SchemaArg::Review => REVIEW_SCHEMA,
        SchemaArg::Rpc => include_str!("../../../config/schema/rpc.json"),
        SchemaArg::Journal => &agent_report::schema::journal(),
    };
    print(terminal, text)
}
