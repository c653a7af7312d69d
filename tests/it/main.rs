//! The one integration binary: black-box tests of `agent`, and the rules of the house.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests make their own files and processes")]

mod bad_input;
mod batches;
mod caching;
mod commands;
mod configuration;
mod costs;
mod fallback;
mod faults;
mod file_tools;
mod formats;
mod fuzz;
mod hook_scripts;
mod hooks;
mod llm;
mod memory;
mod model;
mod ollama;
mod output;
mod permission;
mod process;
mod providers;
mod run_loop;
mod scenarios;
mod sessions;
mod structured;
mod support;
mod tidy;
mod web;
mod window;
mod wire;
mod wrong_turns;
