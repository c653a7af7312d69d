//! `run_command`, called by a model over HTTP.
