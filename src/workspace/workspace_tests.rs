//! Tests of the workspace on real directories.
