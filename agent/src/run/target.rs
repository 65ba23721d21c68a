//! What the applier's thread changes: a trait, so that a program for hosts has nothing of clusters in it, and one for clusters nothing of
//! hosts. `host` and `kubernetes` are the two; the applier asks for what differs between them.

use std::fmt::Debug;
use std::sync::Arc;

use crate::apply::Host;
use crate::goal::Goal;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::record::Failure;
use crate::records::Records;
use crate::store::index::PackageIndex;
use crate::worker::Wish;
use crate::worker::pulse::Pulse;

pub(super) trait Target: Debug + Send + Sync {
    /// How it is changed. One for each start of the applier.
    fn host(&self, objects: &Objects, pulse: &Arc<Pulse>) -> Box<dyn Host>;

    /// Brings what earlier agents wrote to how it is written now.
    fn adopt(&self, _records: &mut Records) {}

    /// What a wish means here, or why it can't be applied.
    fn goal(&self, wish: &Wish, objects: &Objects, index: &PackageIndex) -> Result<Goal, Failure>;

    /// The hub that health checks ask from now on; none: there is none.
    fn connect(&self, _link: Option<Arc<HubLink>>) {}
}
