//! What survives: the append-only journal of a session, its lock and its reader.
