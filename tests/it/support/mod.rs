//! What the black-box tests share.

pub mod dialect;
pub mod kernel;
pub mod run;
pub mod server;
pub mod site;
pub mod sleepers;
pub mod wire_server;
