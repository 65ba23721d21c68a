//! How a change is watched: the Delivery sets the bounds, the HostWorkload may only be more careful. The more careful value of the two
//! counts, as far as the Delivery's timeout allows: a host changes one assignment after the other, so whoever soaks lets all others wait.

use kedge_model::kinds::{Drift, HostWorkload, Rollback};
use kedge_model::wire::ApplyParameters;

use crate::goal::{Bounds, OnDrift};

pub fn of(delivery: &ApplyParameters, workload: &HostWorkload) -> Bounds {
    let timeout =
        workload.timeout.map_or(delivery.timeout_seconds, |timeout| timeout.as_secs().min(delivery.timeout_seconds));
    let asked = workload.soak.map_or(0, |soak| soak.as_secs().min(delivery.timeout_seconds));
    let soak = asked.max(delivery.soak_seconds);
    let never =
        delivery.rollback == Rollback::Never && workload.rollback.is_none_or(|rollback| rollback == Rollback::Never);
    let drift = workload.drift.map_or(delivery.drift, |drift| more_careful(drift, delivery.drift));
    let drift = on_drift(drift);
    Bounds { timeout_seconds: timeout.max(1), soak_seconds: soak, no_rollback: never, drift }
}

/// Objects of an API server have no word beside the Delivery's on these.
pub fn of_delivery(delivery: &ApplyParameters) -> Bounds {
    of(delivery, &HostWorkload::default())
}

/// What an object's own word makes of the Delivery's. It may be ignored where the Delivery would repair it: that is what it asks for
/// when somebody else changes it by design. Where drift is to be reported, it is.
pub fn of_object(delivery: Drift, object: Option<Drift>) -> OnDrift {
    on_drift(match (delivery, object) {
        (Drift::Repair, Some(Drift::Ignore)) => Drift::Ignore,
        (delivery, object) => object.map_or(delivery, |object| more_careful(object, delivery)),
    })
}

fn on_drift(drift: Drift) -> OnDrift {
    match drift {
        Drift::Repair => OnDrift::Repair,
        Drift::Report => OnDrift::Report,
        Drift::Ignore => OnDrift::Ignore,
    }
}

/// To tell and not to touch is the most careful; not even to tell is the least.
fn more_careful(one: Drift, other: Drift) -> Drift {
    match (one, other) {
        (Drift::Report, _) | (_, Drift::Report) => Drift::Report,
        (Drift::Repair, _) | (_, Drift::Repair) => Drift::Repair,
        _ => Drift::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kedge_model::kinds::{Conflicts, Destination, Scope};
    use std::time::Duration;

    fn delivery(rollback: Rollback, drift: Drift) -> ApplyParameters {
        ApplyParameters {
            to: Destination::Host,
            namespace: None,
            scope: Scope::Namespace,
            conflicts: Conflicts::Fail,
            service_account: None,
            timeout_seconds: 300,
            soak_seconds: 30,
            rollback,
            drift,
        }
    }

    #[test]
    fn a_workload_is_heard_only_where_it_is_more_careful() {
        let seconds = |number| Some(Duration::from_secs(number));
        let auto = delivery(Rollback::Auto, Drift::Repair);
        for (timeout, soak, expected) in [
            (None, None, (300, 30)),
            (seconds(60), seconds(90), (60, 90)),
            (seconds(900), seconds(1), (300, 30)),
            // Nobody keeps a host to itself.
            (None, seconds(3_600_000), (300, 300)),
        ] {
            let bounds = of(&auto, &HostWorkload { timeout, soak, ..HostWorkload::default() });
            assert_eq!((bounds.timeout_seconds, bounds.soak_seconds), expected);
        }
        let never = HostWorkload { rollback: Some(Rollback::Never), ..HostWorkload::default() };
        assert!(!of(&auto, &never).no_rollback);
        assert!(of(&delivery(Rollback::Never, Drift::Repair), &never).no_rollback);
        assert!(of(&delivery(Rollback::Never, Drift::Repair), &HostWorkload::default()).no_rollback);
    }

    #[test]
    fn report_is_more_careful_than_repair_and_that_than_ignore() {
        for (theirs, ours, expected) in [
            (Drift::Repair, Some(Drift::Report), OnDrift::Report),
            (Drift::Repair, Some(Drift::Ignore), OnDrift::Repair),
            (Drift::Ignore, Some(Drift::Repair), OnDrift::Repair),
            (Drift::Ignore, None, OnDrift::Ignore),
            (Drift::Report, Some(Drift::Repair), OnDrift::Report),
        ] {
            let workload = HostWorkload { drift: ours, ..HostWorkload::default() };
            assert_eq!(of(&delivery(Rollback::Auto, theirs), &workload).drift, expected);
        }
    }

    #[test]
    fn an_object_may_be_left_alone_unless_drift_is_to_be_reported() {
        for (theirs, ours, expected) in [
            (Drift::Repair, None, OnDrift::Repair),
            (Drift::Repair, Some(Drift::Ignore), OnDrift::Ignore),
            (Drift::Repair, Some(Drift::Report), OnDrift::Report),
            (Drift::Report, Some(Drift::Ignore), OnDrift::Report),
            (Drift::Report, Some(Drift::Repair), OnDrift::Report),
            (Drift::Ignore, Some(Drift::Report), OnDrift::Report),
            (Drift::Ignore, None, OnDrift::Ignore),
        ] {
            assert_eq!(of_object(theirs, ours), expected, "{theirs:?} {ours:?}");
        }
    }
}
