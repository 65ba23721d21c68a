//! Where a ConfigMap or a ConfigSchema applies: the one rule of labels that both share.

use std::collections::BTreeMap;

use kedge_model::Labels;

/// Marks a ConfigMap as platform configuration; says nothing about where it applies.
pub const PLATFORM_CONFIG: &str = "platform-config";

/// Labels that Flux writes on what it applies; they say nothing about where a value applies.
const FLUX_LABELS: [&str; 2] = ["kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"];

/// What a label asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Nothing,
    ClusterType,
    Target,
    Workload,
    /// A label of the cluster type or of the target.
    Either,
}

/// The half of a pair that is a cluster type.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub name: &'a str,
    pub labels: &'a Labels,
}

/// The half of a pair that is a target.
#[derive(Clone, Copy, Debug)]
pub struct Tenancy<'a> {
    pub name: &'a str,
    pub workload: &'a str,
    pub labels: &'a Labels,
}

/// What a set of labels still asks of a target once the cluster type has answered; none when it refused.
pub type Residual<'a> = Vec<(&'a str, &'a str)>;

fn asks(key: &str) -> Asks {
    match key {
        PLATFORM_CONFIG => Asks::Nothing,
        "cluster-type" => Asks::ClusterType,
        "deployment-target" => Asks::Target,
        "workload" => Asks::Workload,
        key if FLUX_LABELS.contains(&key) => Asks::Nothing,
        _ => Asks::Either,
    }
}

/// A missing label counts as the empty one, as in Go.
fn value<'a>(labels: &'a Labels, key: &str) -> &'a str {
    labels.get(key).map_or("", String::as_str)
}

/// Asks the cluster type first: its answer is the same for all targets.
pub fn residual<'a>(labels: &'a Labels, place: Place<'_>) -> Option<Residual<'a>> {
    let mut rest = Vec::new();
    for (key, wanted) in labels {
        match asks(key) {
            Asks::Nothing => {}
            Asks::ClusterType if wanted == place.name => {}
            Asks::ClusterType => return None,
            Asks::Either if value(place.labels, key) == wanted => {}
            Asks::Target | Asks::Workload | Asks::Either => rest.push((key.as_str(), wanted.as_str())),
        }
    }
    Some(rest)
}

/// Asks the target what is left.
pub fn satisfied(residual: &[(&str, &str)], tenancy: Tenancy<'_>) -> bool {
    residual.iter().all(|(key, wanted)| target_value(key, tenancy) == *wanted)
}

fn target_value<'a>(key: &str, tenancy: Tenancy<'a>) -> &'a str {
    match asks(key) {
        Asks::Target => tenancy.name,
        Asks::Workload => tenancy.workload,
        _ => value(tenancy.labels, key),
    }
}

/// Why labels don't apply to a pair, for people: `region is east-us, not west-us`. Empty when they do.
pub fn mismatches(labels: &BTreeMap<String, String>, place: Place<'_>, tenancy: Tenancy<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    for (key, wanted) in labels {
        let (found, whose) = match asks(key) {
            Asks::Nothing => continue,
            Asks::ClusterType => (place.name, "the cluster type"),
            Asks::Target | Asks::Workload => (target_value(key, tenancy), "the target"),
            Asks::Either => {
                let here = value(place.labels, key);
                if here == wanted { (here, "") } else { (value(tenancy.labels, key), "cluster type or target") }
            }
        };
        if found == wanted {
            continue;
        }
        reasons.push(match (asks(key), found) {
            (Asks::Either, _) => format!("neither cluster type nor target has `{key}: {wanted}`"),
            (_, "") => format!("{whose} has no `{key}`"),
            (_, found) => format!("`{key}` is `{found}`, it asks for `{wanted}`"),
        });
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn check(asked: &[(&str, &str)]) -> bool {
        let place_labels = labels(&[("region", "east")]);
        let target_labels = labels(&[("purpose", "test"), ("workload", "w")]);
        let (asked, place) = (labels(asked), Place { name: "ct", labels: &place_labels });
        let tenancy = Tenancy { name: "w-t", workload: "w", labels: &target_labels };
        let applies = residual(&asked, place).is_some_and(|rest| satisfied(&rest, tenancy));
        assert_eq!(
            applies,
            mismatches(&asked, place, tenancy).is_empty(),
            "a reason is given just when it doesn't apply"
        );
        applies
    }

    #[test]
    fn no_label_applies_everywhere() {
        assert!(check(&[("platform-config", "true")]));
    }

    #[test]
    fn each_label_must_match_the_cluster_type_or_the_target() {
        assert!(check(&[("region", "east"), ("purpose", "test")]));
        assert!(!check(&[("region", "west")]));
        assert!(!check(&[("region", "east"), ("purpose", "other")]));
    }

    #[test]
    fn names_of_cluster_type_target_and_workload_are_labels_too() {
        assert!(check(&[("cluster-type", "ct"), ("deployment-target", "w-t"), ("workload", "w")]));
        assert!(!check(&[("cluster-type", "other")]));
        assert!(!check(&[("deployment-target", "t")]));
        assert!(!check(&[("workload", "other")]));
    }

    #[test]
    fn an_empty_value_matches_a_label_that_nobody_has() {
        assert!(check(&[("zone", "")]));
        assert!(check(&[("region", "")]), "the target has no region, as in Go");
    }

    #[test]
    fn labels_of_flux_say_nothing() {
        assert!(check(&[("kustomize.toolkit.fluxcd.io/name", "x")]));
    }

    #[test]
    fn a_mismatch_names_the_label() {
        let place_labels = labels(&[("region", "east")]);
        let none = Labels::new();
        let reasons = mismatches(
            &labels(&[("region", "west"), ("cluster-type", "other")]),
            Place { name: "ct", labels: &place_labels },
            Tenancy { name: "w-t", workload: "w", labels: &none },
        );
        assert_eq!(
            reasons,
            ["`cluster-type` is `ct`, it asks for `other`", "neither cluster type nor target has `region: west`"]
        );
    }
}
