//! SIGINT and SIGTERM as a cancellation that the run shares.
