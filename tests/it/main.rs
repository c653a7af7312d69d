//! The one integration binary: black-box tests of `agent`, and the rules of the house.
#![cfg(test)]

mod bad_input;
mod llm;
mod process;
mod run_loop;
mod sessions;
mod support;
mod tidy;
