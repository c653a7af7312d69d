//! What goes to standard output, standard error, and the log file.
