//! From picks and packages to signed, numbered desired states.

pub mod board;

pub use board::{Board, Issued};
