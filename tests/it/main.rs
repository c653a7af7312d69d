//! The one integration binary: black-box tests of `agent`, and the rules of the house.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests make their own files and processes")]

mod background;
mod bad_input;
mod batches;
mod caching;
mod commands;
mod concurrent_runs;
mod configuration;
mod costs;
mod fallback;
mod faults;
mod file_modes;
mod file_tools;
mod formats;
mod fuzz;
mod hook_scripts;
mod hooks;
mod hostile;
mod llm;
mod memory;
mod model;
mod ollama;
mod output;
mod permission;
mod process;
mod projects;
mod providers;
mod run_loop;
mod sandbox;
mod scenarios;
mod secrets;
mod sessions;
mod structured;
mod support;
mod tidy;
mod trust;
mod web;
mod window;
mod wire;
mod wrong_turns;
