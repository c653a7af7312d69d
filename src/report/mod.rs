//! Listeners to a run: the human log, the JSON document, the log file.
