//! The command line: one file per command, composition, exit codes.
