//! The content that Pins put on rings: the pinned commit of a workload with the platform package of the head. What can't be
//! resolved is a problem of the Pin, and its assignments stay as they are. Called by the packer.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::{Pin, PinnedTo, SourceRef};
use kedge_model::wire::Timestamp;
use kedge_model::{Kind, Object, Platform, Problem, Spec};

use super::branch::Listed;
use super::build::Job;
use super::reconciler::{Purpose, SourceName};
use super::sources::{PATIENCE, SourceFault, SourceHead};
use super::tenancy::Tenancy;
use super::versions::{commit_of, plain};
use super::{PackError, Packer};
use crate::git::Trust;

/// What an environment's Pins ask for, and whose its assignments are.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// By name.
    pins: Vec<Arc<Object>>,
    /// Workload and target by the target's full name.
    targets: BTreeMap<String, Vec<(String, String)>>,
}

/// An assignment that a Pin speaks of.
#[derive(Debug)]
pub(super) struct Wish {
    pub pin: Arc<Object>,
    pub job: Job,
}

impl Pins {
    pub fn of(platform: &Platform) -> Pins {
        let pins: Vec<Arc<Object>> = platform.pins().map(|(object, _)| Arc::clone(object)).collect();
        let mut targets: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        // Nobody asks for names without a Pin.
        let workloads = platform.of_kind(Kind::Workload).filter(|_| !pins.is_empty());
        for object in workloads {
            let Spec::Workload(workload) = &object.spec else { continue };
            for target in workload.targets.iter().filter(|target| target.environment == platform.environment) {
                let name = &object.meta.name;
                let known = targets.entry(format!("{name}-{}", target.name)).or_default();
                known.push((name.clone(), target.name.clone()));
            }
        }
        Pins { pins, targets }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pins.is_empty()
    }

    fn selects(&self, pin: &Pin, cluster_type: &str, assignment: &str) -> bool {
        let there = pin.cluster_types.is_empty() || pin.cluster_types.iter().any(|name| name == cluster_type);
        let whose = self.targets.get(assignment).map(Vec::as_slice).unwrap_or_default();
        let meant = |(workload, target): &(String, String)| {
            *workload == pin.workload && pin.target.as_ref().is_none_or(|named| named == target)
        };
        there && whose.iter().any(meant)
    }
}

/// Every assignment that a Pin in force speaks of, with the commit it is pinned to; and what is wrong with Pins.
pub(super) async fn wishes(
    packer: &Packer,
    pins: &Pins,
    tenancy: &Tenancy,
    listed: &Listed,
    now: Timestamp,
) -> Result<(Vec<Wish>, Vec<Problem>), PackError> {
    let (mut wishes, mut problems) = (Vec::new(), Vec::new());
    for object in &pins.pins {
        let Spec::Pin(pin) = &object.spec else { continue };
        if let Some(until) = until(pin).filter(|until| *until <= now) {
            let message = format!("{} ended at {} and has no effect any more", object.id(), rfc3339(until));
            problems.push(Problem::warning("PinExpired", message).at(object.origin.clone()).hint("delete it"));
            continue;
        }
        let mut found = 0usize;
        let mut heads: BTreeMap<(String, String, Trust), Result<SourceHead, SourceFault>> = BTreeMap::new();
        for (cluster_type, listed) in &listed.types {
            let selected = listed.folders.iter().filter(|(name, _)| pins.selects(pin, cluster_type, name));
            for (assignment, folder) in selected {
                found += 1;
                let Ok(purpose) = folder.purpose.as_deref() else { continue };
                let Purpose::Deliver { source, parameters } = purpose else {
                    problems.push(observed(object, cluster_type, assignment));
                    continue;
                };
                let Some(trust) = tenancy.trust(assignment) else { continue };
                let key = (source.repo.clone(), clean(&source.path), trust.clone());
                let head = match heads.get(&key) {
                    Some(head) => head,
                    None => {
                        let head = resolve(packer, pin, source, trust).await?;
                        if let Err(fault) = &head {
                            problems.push(unresolved(object, &format!("{}: {}", source.repo, fault.message), fault));
                        }
                        heads.entry(key).or_insert(head)
                    }
                };
                if let Ok(head) = head {
                    let job = Job {
                        cluster_type: cluster_type.clone(),
                        assignment: assignment.clone(),
                        folder: folder.tree,
                        source: source.clone(),
                        head: head.clone(),
                        parameters: parameters.clone(),
                    };
                    wishes.push(Wish { pin: Arc::clone(object), job });
                }
            }
        }
        if found == 0 {
            let message =
                format!("{} matches no assignment: the workload {} doesn't run there", object.id(), pin.workload);
            let problem = Problem::warning("PinWithoutEffect", message).at(object.origin.clone());
            problems.push(problem.hint("check its `workload`, `target` and `clusterTypes`, or delete it"));
        }
    }
    Ok((wishes, problems))
}

async fn resolve(
    packer: &Packer,
    pin: &Pin,
    source: &SourceName,
    trust: &Trust,
) -> Result<Result<SourceHead, SourceFault>, PackError> {
    let commit = match &pin.to {
        PinnedTo::Commit(commit) => commit.clone(),
        PinnedTo::Version(version) => match commit_of_version(packer, version, source, trust).await? {
            Ok(commit) => commit,
            Err(fault) => return Ok(Err(fault)),
        },
    };
    let reference = SourceRef::Commit(commit);
    let head = tokio::time::timeout(PATIENCE, packer.sources.resolve(&source.repo, &reference, trust)).await;
    Ok(head.unwrap_or_else(|_| Err(SourceFault::slow())))
}

/// By tag, else by what was packed before.
async fn commit_of_version(
    packer: &Packer,
    version: &str,
    source: &SourceName,
    trust: &Trust,
) -> Result<Result<String, SourceFault>, PackError> {
    let tags = packer.tags.of(&packer.sources, &source.repo, trust, version, PATIENCE).await;
    if let Some(commit) = tags.as_ref().ok().and_then(|tags| commit_of(tags, version)) {
        return Ok(Ok(commit.to_owned()));
    }
    let path = clean(&source.path);
    for version in [version, plain(version)] {
        if let Some(commit) = packer.store.version_commit(&source.repo, &path, version).await? {
            return Ok(Ok(commit));
        }
    }
    Ok(Err(match tags {
        Err(fault) => fault,
        Ok(_) => SourceFault {
            code: "VersionUnknown",
            message: format!("there is no tag `{0}` or `v{0}`, and no version {0} was packed before", plain(version)),
            hint: Some("push the tag, or pin a commit".to_owned()),
        },
    }))
}

pub(super) fn unresolved(object: &Object, why: &str, fault: &SourceFault) -> Problem {
    let message = format!("{} can't be resolved: {why}", object.id());
    let problem = Problem::error("PinUnresolved", message).at(object.origin.clone());
    let fix = fault.hint.as_deref().unwrap_or("its assignments follow their rings until it is fixed");
    problem.hint(or_delete(fix, object))
}

/// How to fix a Pin, or to be rid of it: one that `kedge rollout start` wrote is in a file that nobody else knows of.
pub(super) fn or_delete(fix: &str, object: &Object) -> String {
    format!("{fix}; or delete {} if it is no longer needed", object.origin.file)
}

fn observed(object: &Object, cluster_type: &str, assignment: &str) -> Problem {
    let message = format!(
        "{} has no effect on {cluster_type}/{assignment}: another reconciler delivers it, from the branch's head",
        object.id()
    );
    let problem = Problem::warning("PinWithoutEffect", message).at(object.origin.clone());
    problem.hint("pin the source where that reconciler reads it, or let Kedge deliver")
}

/// When a Pin ends; the decoder let only instants pass.
pub(super) fn until(pin: &Pin) -> Option<Timestamp> {
    let until: jiff::Timestamp = pin.until.as_deref()?.parse().ok()?;
    Some(Timestamp(until.as_millisecond()))
}

fn rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).map(|time| time.to_string()).unwrap_or_default()
}

/// A folder as it is named in the table of versions.
pub(super) fn clean(path: &str) -> String {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/")
}
