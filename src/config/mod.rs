//! Settings: layers with provenance and scopes, agents, and the only reader of the environment.
