//! The one integration binary: black-box tests of `agent`, and the rules of the house.

#![cfg(test)]

mod llm;
mod process;
mod support;
mod wire;
