//! The desired state of a stream: what each of its clusters should run, signed and numbered by the hub.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::envelope::Payload;
use super::id::{Generation, Stream, Timestamp};
use crate::kinds::{Conflicts, Delivery, Destination, Drift, Rollback, Scope};

/// Absence never deletes: what goes is listed under `removed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DesiredState {
    pub stream: Stream,
    pub generation: Generation,
    pub created_at: Timestamp,
    /// How many assignments the last set had that a person or the guard confirmed: the agent checks again.
    pub confirmed: u64,
    pub entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Tombstone>,
    /// Stop managing and keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmanaged: Vec<Tombstone>,
    /// The branch that this came from: what a cluster under Flux or Argo CD reads itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlatformSource>,
    /// Its clusters change a few at a time: who has it from anybody but the hub waits for its `Turn`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turns: bool,
    /// Features without which this can't be followed; an unknown one is Failed(Unsupported).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// One assignment, called by its target's full name: the type is the stream's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub assignment: String,
    #[serde(flatten)]
    pub mode: Mode,
    /// Raised to restart the workload without other change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restart: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// Ours to apply, or another reconciler's to be observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "camelCase")]
pub enum Mode {
    Apply(Box<Packages>),
    Observe(Observation),
}

/// Both packages of an assignment, and how they are applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Packages {
    pub parameters: ApplyParameters,
    pub platform: PackageRef,
    pub workload: PackageRef,
    /// The workload's version, when its content says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The Delivery's parameters, as the platform team wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyParameters {
    #[serde(with = "spelled::destination")]
    pub to: Destination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(with = "spelled::scope")]
    pub scope: Scope,
    #[serde(with = "spelled::conflicts")]
    pub conflicts: Conflicts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    pub timeout_seconds: u64,
    pub soak_seconds: u64,
    #[serde(with = "spelled::rollback")]
    pub rollback: Rollback,
    #[serde(with = "spelled::drift")]
    pub drift: Drift,
}

/// A package: one blob (a tar, compressed with zstd) and the big artifacts that its content names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRef {
    pub digest: Digest,
    pub size: u64,
    pub repo: String,
    pub commit: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<BlobRef>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobRef {
    pub digest: Digest,
    pub size: u64,
}

/// What another reconciler should have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The objects of `reconciler.yaml`.
    pub objects: Vec<ObjectRef>,
    /// The commit of the source that they should have reached, where the hub knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_commit: Option<String>,
    /// Names the observed content: counts are by it.
    pub content: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

/// An assignment that is no longer desired, since this generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    pub assignment: String,
    pub since: Generation,
}

/// The environment's branch of the platform GitOps repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformSource {
    pub repo: String,
    pub branch: String,
    pub path: String,
    pub commit: String,
}

impl Payload for DesiredState {
    const TYPE: &'static str = "application/vnd.kedge.desired-state.v1+json";
}

impl From<&Delivery> for ApplyParameters {
    fn from(delivery: &Delivery) -> ApplyParameters {
        ApplyParameters {
            to: delivery.to,
            namespace: delivery.namespace.clone(),
            scope: delivery.scope,
            conflicts: delivery.conflicts,
            service_account: delivery.service_account.clone(),
            timeout_seconds: delivery.timeout.as_secs(),
            soak_seconds: delivery.soak.as_secs(),
            rollback: delivery.rollback,
            drift: delivery.drift,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The words of a Delivery's choices, as people write them in Git.
mod spelled {
    macro_rules! words {
        ($module:ident, $type:ty, $($value:path => $word:literal),+) => {
            pub mod $module {
                use serde::{Deserialize, Deserializer, Serializer};

                pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(match value { $($value => $word),+ })
                }

                pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                    let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                    match &*word {
                        $($word => Ok($value),)+
                        _ => Err(serde::de::Error::unknown_variant(&word, &[$($word),+])),
                    }
                }
            }
        };
    }

    words!(destination, crate::kinds::Destination, crate::kinds::Destination::Kubernetes => "kubernetes", crate::kinds::Destination::Host => "host");
    words!(scope, crate::kinds::Scope, crate::kinds::Scope::Namespace => "namespace", crate::kinds::Scope::Cluster => "cluster");
    words!(conflicts, crate::kinds::Conflicts, crate::kinds::Conflicts::Fail => "fail", crate::kinds::Conflicts::Take => "take");
    words!(rollback, crate::kinds::Rollback, crate::kinds::Rollback::Auto => "auto", crate::kinds::Rollback::Never => "never");
    words!(drift, crate::kinds::Drift, crate::kinds::Drift::Repair => "repair", crate::kinds::Drift::Report => "report", crate::kinds::Drift::Ignore => "ignore");
}
