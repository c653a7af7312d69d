//! Configuration, agents, prompts, seen from outside.
