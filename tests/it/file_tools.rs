//! The file tools, called by a model over HTTP.
