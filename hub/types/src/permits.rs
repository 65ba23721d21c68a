//! How many clusters of a ring may change at once, as the controller of rollouts decides it.

/// Of one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingLimit {
    /// None: everybody at once.
    pub permits: Option<u64>,
    /// Nobody begins now.
    pub closed: bool,
}
