//! What happened, when, and by whom: the log that entries of `kedge_hub_types::history` go to. `store::history` keeps them by day,
//! `retention` lets old days go (the leader's task), `timeline` follows one commit, `issued` makes them of desired states, and
//! `pace` bounds how many a cluster may cause. `api`, the page and webhooks read them.

pub mod issued;
pub mod pace;
pub mod retention;
pub mod timeline;
