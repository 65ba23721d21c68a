//! What both listeners need to stay reachable: a guard against who takes nothing, shares of what everybody needs, and whose
//! address a connection comes from. Used by `agents`, `api`, `web` and `run`; knows none of them.

pub mod address;
pub mod guard;
pub mod proxies;
pub mod shares;
