//! Whole sessions on small projects: `tests/scenarios`.
