//! Several calls in one turn: which run together.
