//! What the black-box tests share.

pub mod run;
pub mod server;
