//! The agent's numbers, for a Prometheus on the same host: off unless `metrics` is set. `run` starts the listener; the modules count
//! with `tally`; the rest is read from the same ledgers as `kedge-agent status` when somebody asks. Nothing waits for it.

mod listener;
mod request;
#[cfg(test)]
mod tests;
mod text;

pub use listener::serve;
