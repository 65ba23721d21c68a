//! An explanation for programs.

use kedge_model::Origin;
use kedge_model::selector::Mismatch;
use kedge_scheduler::{CandidateEffect, KeyExplanation, LabelOrigin, LabelSource, PolicyVerdict};
use serde_json::{Map, Value, json};

use super::Explained;
use crate::output::{origin_to_json, value_to_json};

impl Explained<'_> {
    pub(super) fn to_json(&self) -> Value {
        let explanation = &self.explanation;
        let keys = explanation.config.keys.iter().filter(|(key, known)| match self.key {
            Some(wanted) => wanted == &***key,
            None => !known.candidates.is_empty(),
        });
        let configuration: Map<String, Value> = keys.map(|(key, known)| (key.to_string(), of_key(known))).collect();
        let quarantine = self.quarantine.iter().map(|reason| {
            json!({"code": reason.code, "message": reason.message, "origin": reason.origin.as_ref().map(origin_to_json)})
        });
        json!({
            "assignment": explanation.id.to_string(),
            "environment": self.environment,
            "assigned": explanation.assigned,
            "quarantine": quarantine.collect::<Vec<_>>(),
            "policies": explanation.policies.iter().map(policy).collect::<Vec<_>>(),
            "clusterTypeLabels": explanation.cluster_type_labels,
            "targetLabels": explanation.target_labels.iter().map(label).collect::<Vec<_>>(),
            "configuration": configuration,
        })
    }
}

fn policy(policy: &PolicyVerdict) -> Value {
    let missing = |mismatches: &[Mismatch]| mismatches.iter().map(Mismatch::to_string).collect::<Vec<_>>();
    json!({
        "name": policy.name,
        "origin": origin_to_json(&policy.origin),
        "chooses": policy.chooses(),
        "clusterTypeSelector": policy.cluster_type_selector,
        "targetSelector": policy.target_selector,
        "clusterTypeMismatches": missing(&policy.cluster_type_mismatches),
        "targetMismatches": missing(&policy.target_mismatches),
        "workspaceMismatch": policy.workspace.as_ref().map(|(wanted, found)| json!({"wanted": wanted, "found": found})),
    })
}

fn label(label: &LabelOrigin) -> Value {
    let (source, origin, map): (&str, Option<&Origin>, Option<&str>) = match &label.source {
        LabelSource::Target(origin) => ("target", Some(origin), None),
        LabelSource::Workload(origin) => ("workload", Some(origin), None),
        LabelSource::Registration(origin) => ("registration", Some(origin), None),
        LabelSource::Capability { map, origin } => ("capabilityMap", Some(origin), Some(map)),
        LabelSource::Kedge => ("kedge", None, None),
    };
    json!({
        "key": label.key,
        "value": label.value,
        "source": source,
        "capabilityMap": map,
        "origin": origin.map(origin_to_json),
    })
}

fn of_key(known: &KeyExplanation) -> Value {
    let candidates = known.candidates.iter().map(|candidate| {
        let effect = match candidate.effect {
            CandidateEffect::Wins => "wins",
            CandidateEffect::Merged => "merged",
            CandidateEffect::Overridden => "overridden",
        };
        json!({
            "configMap": &*candidate.config_map,
            "origin": origin_to_json(&candidate.origin),
            "text": &*candidate.text,
            "effect": effect,
        })
    });
    let skipped = known.skipped.iter().map(|skipped| {
        json!({
            "configMap": &*skipped.config_map,
            "origin": origin_to_json(&skipped.origin),
            "text": &*skipped.text,
            "reasons": skipped.reasons,
        })
    });
    json!({
        "value": known.value.as_deref().map(value_to_json),
        "candidates": candidates.collect::<Vec<_>>(),
        "notApplied": skipped.collect::<Vec<_>>(),
    })
}
