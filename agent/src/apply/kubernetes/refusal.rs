//! Why the API server did not do what was asked, as a failure with a stable word: pure, over the server's own answer.

use crate::cluster::request::{ApiError, Cause, Refusal, shorten};
use crate::record::Failure;

/// What the server says where a field can't be changed any more; it has no code of its own for that.
const IMMUTABLE: [&str; 7] = [
    "immutable",
    "may not change once set",
    "may not be changed",
    "cannot be changed",
    "cannot change",
    "can not be changed",
    "updates to statefulset spec for fields other than",
];
/// Reasons and causes are enough; a server lists every field of a broken object.
const MOST_CAUSES: usize = 4;

/// Of an object, by its name as people write it.
pub fn failure(object: &str, error: ApiError) -> Failure {
    match error {
        ApiError::Passing { message, .. } => Failure::passing("ApiServer", format!("{object}: {message}")),
        ApiError::NotLeader => Failure::passing("NotLeader", format!("{object}: {error}")),
        ApiError::Refused(refusal) => refused(object, &refusal),
    }
}

/// The fields that can't be changed, if that is the trouble and the only one.
pub fn immutable(refusal: &Refusal) -> Option<Vec<String>> {
    let says = |text: &str| IMMUTABLE.iter().any(|words| text.contains(words));
    if refusal.code != 422 {
        return None;
    }
    let causes = &refusal.details.causes;
    let all = !causes.is_empty() && causes.iter().all(|cause| says(&cause.message));
    match all {
        true => Some(causes.iter().map(|cause| cause.field.clone()).collect()),
        false => (causes.is_empty() && says(&refusal.message)).then(Vec::new),
    }
}

/// A kind that isn't served, or not yet.
pub fn is_unserved(refusal: &Refusal) -> bool {
    refusal.code == 404 && refusal.details.name.is_empty()
}

fn refused(object: &str, refusal: &Refusal) -> Failure {
    let said = refusal.sentence();
    let causes = &refusal.details.causes;
    let has = |reason: &str| causes.iter().any(|cause| cause.reason == reason);
    let too_large = refusal.message.contains("too large") || has("FieldValueTooLong") && said.contains("1048576");
    if let Some(fields) = immutable(refusal) {
        let fields = if fields.is_empty() { said } else { fields.join(", ") };
        let way = "annotate the object with kedge.dev/recreate: \"true\" to have it deleted and made again";
        return Failure::new("Immutable", format!("{object}: {fields} can't be changed; {way}"));
    }
    match refusal.code {
        403 if has("NamespaceTerminating") => Failure::passing("Terminating", format!("{object}: {said}")),
        403 if !said.contains("admission webhook") => Failure::new("Forbidden", format!("{object}: {said}")),
        404 if is_unserved(refusal) => {
            Failure::new("UnknownKind", format!("{object}: the API server doesn't serve this kind: {said}"))
        }
        413 => Failure::new("ObjectTooLarge", format!("{object}: {said}")),
        _ if too_large => Failure::new("ObjectTooLarge", format!("{object}: {said}")),
        422 if !causes.is_empty() => Failure::new("Rejected", format!("{object}: {}", sentences(causes))),
        _ => Failure::new("Rejected", format!("{object}: {said}")),
    }
}

/// What is wrong with which field.
fn sentences(causes: &[Cause]) -> String {
    let one = |cause: &Cause| match cause.field.as_str() {
        "" | "<nil>" => shorten(&cause.message),
        field => format!("{field}: {}", shorten(&cause.message)),
    };
    let mut text = causes.iter().take(MOST_CAUSES).map(one).collect::<Vec<_>>().join("; ");
    if causes.len() > MOST_CAUSES {
        text.push_str(&format!("; and {} more", causes.len() - MOST_CAUSES));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(status: Value) -> Failure {
        failure("Deployment shop/web", ApiError::Refused(Box::new(serde_json::from_value(status).unwrap())))
    }

    #[test]
    fn an_immutable_field_is_named_with_the_way_out() {
        let failure = refused(
            json!({"code": 422, "reason": "Invalid", "message": "Job.batch \"x\" is invalid", "details": {"causes": [
                {"reason": "FieldValueInvalid", "field": "spec.template", "message": "Invalid value: {…}: field is immutable"},
            ]}}),
        );
        assert_eq!(failure.reason, "Immutable");
        assert!(failure.message.contains("spec.template") && failure.message.contains("kedge.dev/recreate"));
        let mixed = refused(json!({"code": 422, "message": "invalid", "details": {"causes": [
            {"field": "spec.template", "message": "field is immutable"}, {"field": "spec.x", "message": "Required value"},
        ]}}));
        assert_eq!(mixed.reason, "Rejected", "making it again would not help");
    }

    #[test]
    fn each_trouble_has_its_word() {
        let forbidden = json!({"code": 403, "reason": "Forbidden", "message": "cannot patch resource \"deployments\" in API group \"apps\""});
        assert_eq!(refused(forbidden).reason, "Forbidden");
        let ending =
            json!({"code": 403, "message": "forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
        assert!(refused(ending).passes);
        let hook = json!({"code": 403, "message": "admission webhook \"x\" denied the request: no"});
        assert_eq!(refused(hook).reason, "Rejected");
        let unserved = json!({"code": 404, "message": "the server could not find the requested resource"});
        assert_eq!(refused(unserved).reason, "UnknownKind");
        let no_namespace = json!({"code": 404, "message": "namespaces \"shop\" not found", "details": {"kind": "namespaces", "name": "shop"}});
        assert_eq!(refused(no_namespace).reason, "Rejected");
        assert_eq!(refused(json!({"code": 413, "message": "limit is 3145728"})).reason, "ObjectTooLarge");
        assert!(failure("x", ApiError::NotLeader).passes);
    }
}
