//! Hooks in a whole run.
