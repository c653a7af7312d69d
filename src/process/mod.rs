//! Children: every program is started, limited and ended here.

pub mod launch;
