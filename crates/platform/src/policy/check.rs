//! What a policy and Pins name that isn't there, or that won't happen as somebody may think.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kedge_model::kinds::{EnvironmentPolicy, Pin, PromotionPolicy, Ring};
use kedge_model::{Kind, Object, Platform, Problem, Spec};

/// Environments of the policy that the control plane doesn't declare.
pub fn check_chain(object: &Object, policy: &PromotionPolicy, environments: &[String]) -> Vec<Problem> {
    let unknown = policy.environments.iter().filter(|environment| !environments.contains(&environment.name));
    let say = |environment: &EnvironmentPolicy| {
        let message = format!(
            "{} names the environment `{}`, which `.environments/` doesn't declare",
            object.id(),
            environment.name
        );
        let problem = Problem::error("UnknownEnvironment", message).at(object.origin.clone());
        match environments.is_empty() {
            true => problem.hint("write an Environment object below `.environments/`"),
            false => problem.hint(format!("the environments are {}", environments.join(", "))),
        }
    };
    unknown.map(say).collect()
}

/// What the policy says of this environment and can't be so there.
pub fn check_environment(object: &Object, policy: &EnvironmentPolicy, platform: &Platform) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (what, kind, names) in [
        ("cluster type", Kind::ClusterType, &policy.counts.cluster_types),
        ("workload", Kind::Workload, &policy.counts.workloads),
    ] {
        for name in names.iter().filter(|name| !is_there(platform, kind, name)) {
            let message = format!(
                "{} counts the {what} `{name}` in {}, and there is none of that name",
                object.id(),
                platform.environment
            );
            let problem = Problem::error("UnknownName", message).at(object.origin.clone());
            problems.push(problem.hint(known(platform, kind)));
        }
    }
    let plain =
        policy.rings.iter().all(|ring| ring.max_unavailable == Ring::MAX_UNAVAILABLE) && policy.rings.len() == 1;
    if !plain {
        problems
            .extend(platform.of_kind(Kind::ClusterType).filter(|object| !is_delivered(platform, object)).map(observed));
    }
    problems
}

/// Who applies there reads the branch, and no ring holds it back.
fn observed(object: &std::sync::Arc<Object>) -> Problem {
    let message = format!(
        "rings and maxUnavailable don't apply to cluster type {}: its reconciler reads the branch's head",
        object.meta.name
    );
    let problem = Problem::warning("RingsDontApply", message).at(object.origin.clone());
    problem.hint("a reconciler template that writes a Delivery lets Kedge deliver, ring by ring")
}

/// Whether the type's reconciler template writes a Delivery. What can't be told counts as delivered.
fn is_delivered(platform: &Platform, object: &Object) -> bool {
    let Spec::ClusterType(cluster_type) = &object.spec else { return true };
    let found = platform.of_kind(Kind::Template).find(|template| template.meta.name == cluster_type.reconciler);
    match found.map(|template| &template.spec) {
        Some(Spec::Template(template)) => {
            let writes = |text: &str| text.contains("kedge.dev/") && text.contains("kind: Delivery");
            template.manifests.iter().any(|manifest| writes(&manifest.text))
        }
        _ => true,
    }
}

/// Pins that name what isn't there, that are over, or that speak of the same place. Without a policy there is one ring.
pub fn check_pins(platform: &Platform, policy: Option<&EnvironmentPolicy>, now: Timestamp) -> Vec<Problem> {
    let mut problems = check_pin_rings(platform, policy);
    for (object, pin) in platform.pins() {
        let refuse = |message: String, hint: String| unknown_name(object, message, hint);
        let id = object.id();
        match targets(platform, &pin.workload) {
            None => problems.push(refuse(
                format!("{id} names the workload `{}`, which isn't there", pin.workload),
                known(platform, Kind::Workload),
            )),
            Some(targets) => {
                if let Some(target) = pin.target.as_deref().filter(|target| !targets.contains(target)) {
                    let message = format!(
                        "{id} names the target `{target}`, which the workload {} doesn't have in {}",
                        pin.workload, platform.environment
                    );
                    problems.push(refuse(message, listed("its targets there are", targets.into_iter())));
                }
            }
        }
        for name in pin.cluster_types.iter().filter(|name| !is_there(platform, Kind::ClusterType, name)) {
            let message = format!("{id} names the cluster type `{name}`, which isn't there");
            problems.push(refuse(message, known(platform, Kind::ClusterType)));
        }
        if let Some(until) = expired(pin, now) {
            let message = format!("{id} ended at {until} and has no effect any more");
            problems.push(Problem::warning("PinExpired", message).at(object.origin.clone()).hint("delete it"));
        }
    }
    problems
}

/// Pins that name rings which the environment doesn't have: nothing of them ever comes into force there.
pub fn check_pin_rings(platform: &Platform, policy: Option<&EnvironmentPolicy>) -> Vec<Problem> {
    let rings: BTreeSet<&str> = match policy {
        Some(policy) => policy.rings.iter().map(|ring| ring.name.as_str()).collect(),
        None => BTreeSet::from([Ring::ALL]),
    };
    let mut problems = Vec::new();
    for (object, pin) in platform.pins() {
        for name in pin.rings.iter().filter(|name| !rings.contains(name.as_str())) {
            let message =
                format!("{} names the ring `{name}`, which {} doesn't have", object.id(), platform.environment);
            problems.push(unknown_name(object, message, listed("its rings are", rings.iter().copied())));
        }
    }
    problems
}

fn unknown_name(object: &Object, message: String, hint: String) -> Problem {
    Problem::error("UnknownName", message).at(object.origin.clone()).hint(hint)
}

/// When a Pin ended, if it did.
fn expired(pin: &Pin, now: Timestamp) -> Option<&str> {
    let until = pin.until.as_deref()?;
    until.parse::<Timestamp>().is_ok_and(|end| end <= now).then_some(until)
}

fn is_there(platform: &Platform, kind: Kind, name: &str) -> bool {
    platform.of_kind(kind).any(|object| object.meta.name == name)
}

/// The targets that a workload has in this environment; none when there is no such workload.
fn targets<'p>(platform: &'p Platform, workload: &str) -> Option<BTreeSet<&'p str>> {
    let mut named = platform.of_kind(Kind::Workload).filter(|object| object.meta.name == workload).peekable();
    named.peek()?;
    let all = named.filter_map(|object| match &object.spec {
        Spec::Workload(workload) => Some(&workload.targets),
        _ => None,
    });
    let here = all.flatten().filter(|target| target.environment == platform.environment);
    Some(here.map(|target| target.name.as_str()).collect())
}

fn known(platform: &Platform, kind: Kind) -> String {
    let names: BTreeSet<&str> = platform.of_kind(kind).map(|object| object.meta.name.as_str()).collect();
    listed("known are", names.into_iter())
}

/// `known are a, b, c`; long lists are cut.
fn listed<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "there are none".to_owned(),
        count if count > MOST => format!("{what} {} and {} more", names[..MOST].join(", "), count - MOST),
        _ => format!("{what} {}", names.join(", ")),
    }
}
