//! The hub's own numbers, for `/metrics`.
