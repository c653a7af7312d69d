//! How dangerous a shell command is, from its text.
