//! The program that spans come from, as OpenTelemetry names it.

use super::conventions::{SERVICE_NAME, SERVICE_VERSION};

/// The program that spans come from.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Name of the service (`OTEL_SERVICE_NAME`).
    pub service_name: String,
}

impl Resource {
    /// Returns the attributes of the program.
    pub(super) fn attributes(&self) -> [(&'static str, &str); 2] {
        [(SERVICE_NAME, &self.service_name), (SERVICE_VERSION, env!("CARGO_PKG_VERSION"))]
    }
}
