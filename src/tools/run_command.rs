//! `run_command`.
