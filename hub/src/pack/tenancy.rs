//! For whom each assignment of an environment is packed: what its source may be, and with which credential it is fetched,
//! follows from that. Made from the schedule by the reconciler; asked by the packer.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::Platform;
use kedge_model::address::Address;
use kedge_platform::Grant;
use kedge_scheduler::Schedule;

use super::sources::SourceFault;
use crate::git::Trust;

/// The tenants of an environment's assignments, by the assignment's name.
#[derive(Clone, Debug, Default)]
pub struct Tenancy {
    known: BTreeMap<String, Trust>,
    /// For assignments that nobody brings: none is trusted with anything.
    other: Option<Trust>,
}

impl Tenancy {
    /// Of what is scheduled, and of what was published and isn't scheduled now.
    pub fn of(platform: &Platform, schedule: &Schedule, locate: &dyn Fn(&str) -> Option<Address>) -> Tenancy {
        let grants = Grant::all(platform, locate);
        let trust = |registration: Option<&str>| match registration {
            Some(name) => grants.get(name).map(|grant| Trust::Application(Arc::clone(grant))),
            // A Workload of the platform's own repositories.
            None => Some(Trust::Platform),
        };
        let published = platform.published.iter().filter_map(|(name, tenant)| {
            let registration = Some(tenant.registration.as_str()).filter(|name| !name.is_empty());
            Some((name.clone(), trust(registration)?))
        });
        let scheduled = schedule.assignments.values().filter_map(|assignment| {
            let target = &assignment.target;
            Some((target.name.to_string(), trust(target.registration.as_deref())?))
        });
        Tenancy { known: published.chain(scheduled).collect(), other: None }
    }

    /// Everything is the platform's own.
    #[cfg(test)]
    pub fn platform() -> Tenancy {
        Tenancy { known: BTreeMap::new(), other: Some(Trust::Platform) }
    }

    /// Everything is one workspace's.
    #[cfg(test)]
    pub fn workspace(trust: Trust) -> Tenancy {
        Tenancy { known: BTreeMap::new(), other: Some(trust) }
    }

    pub(super) fn trust(&self, assignment: &str) -> Option<&Trust> {
        self.known.get(assignment).or(self.other.as_ref())
    }

    /// Why an assignment that nobody brings has no source.
    pub(super) fn nobody() -> SourceFault {
        SourceFault {
            code: "SourceNotAllowed",
            message: "no WorkloadRegistration brings the assignment, so nothing is fetched for it".to_owned(),
            hint: Some("register its application, or remove its folder from the environment's branch".to_owned()),
        }
    }
}
