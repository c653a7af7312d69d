//! The one integration binary: black-box tests of `agent`, and the rules of the house.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests make their own files and processes")]

mod bad_input;
mod hook_scripts;
mod llm;
mod process;
mod run_loop;
mod sessions;
mod support;
mod tidy;
