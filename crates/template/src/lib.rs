//! Go's text/template with sprig and Kalypso's functions, exactly and with budgets. Parse once, run many.

mod context;
mod error;
mod execution;
mod float;
pub mod function;
mod item;
mod kalypso;
mod lexer;
mod number;
mod parser;
pub mod printer;
mod quote;
mod registry;
mod sprig;
mod syntax;
mod template;
pub mod value;

pub use context::{Config, Context, Data};
pub use error::{Error, Place};
pub use template::{Limits, Template};
pub use value::Value;
