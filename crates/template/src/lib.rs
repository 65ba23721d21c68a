//! Go's text/template with sprig and Kalypso's functions, exactly and with budgets. Parse once, run many.

mod context;
mod depth;
mod error;
mod execution;
mod float;
mod function;
mod item;
mod kalypso;
mod lexer;
mod number;
mod parser;
mod printer;
mod quote;
mod registry;
mod sprig;
mod syntax;
mod template;
#[cfg(test)]
mod testing;
mod uses;
mod value;

pub use context::{Config, Context, Data};
pub use error::{Error, Place};
pub use template::{Limits, Template};
pub use uses::{Rendered, Uses};
