//! The one integration binary: black-box tests of `agent`, and the rules of the house.

mod hook_scripts;
mod process;
