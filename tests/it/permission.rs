//! Modes, questions at a terminal, refusals, dry run.
