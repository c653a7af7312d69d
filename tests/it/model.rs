//! The model layer in a whole run: retries, errors, exit codes, streams.
