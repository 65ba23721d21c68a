//! The pods of one cluster. They share its key, so they are no peers of a site to each other but mirrors of one cluster: the one that
//! holds the Lease opens a door to what the desired state names (`PodDoor`) and says beside the Lease where it is; those that stand by
//! fetch that from it and nothing from the hub (`Mirror`), so that whoever takes over has it all. Who shows the cluster's own key may
//! have what the cluster's own state names; what comes is believed for its digest, and what is named for its signature.

mod door;
pub(super) mod known;
mod leader;
pub(super) mod mirror;
#[cfg(test)]
mod tests;

pub use door::{Pod, PodDoor};
pub use mirror::{Mirror, NodeContent};
