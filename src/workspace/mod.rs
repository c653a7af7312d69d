//! The project directory: confined paths, bounded reads, atomic writes, search.

pub mod index;

/// The project directory, held open by descriptor.
#[derive(Debug)]
pub struct Workspace {}
