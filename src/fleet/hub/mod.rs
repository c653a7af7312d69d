//! A Hub: a server on which agents post and are notified. Its interface, the client, and what feeds the queue with activations.

pub mod agent_state;
pub mod api;
pub mod client;
pub mod feed;
pub mod tools;
