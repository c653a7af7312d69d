//! Children: every program is started, limited and ended here.

pub mod capture;
pub mod environment;
#[cfg(target_os = "linux")]
mod guard;
pub mod launch;
mod order;
pub mod shell;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tree;
