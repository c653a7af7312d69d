//! What the protocols of other programs share: lines, messages and their output.

pub mod client_input;
pub mod client_lines;
pub mod client_output;
pub mod json_rpc;
