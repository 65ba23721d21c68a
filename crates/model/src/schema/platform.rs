//! Schemas of what the platform and application teams write about places, workloads and configuration.

use serde_json::{Value, json};

use super::{list, object, text, text_map, word, words};

pub(super) fn repo(description: &str, required: &[&str]) -> Value {
    object(description, required, &repo_fields())
}

fn repo_fields() -> [(&'static str, Value); 3] {
    [
        ("repo", word("The URL of the repository.")),
        ("branch", text("A branch; where it may be left out it is `main`.")),
        ("path", text("A folder inside the repository; `.` is all of it.")),
    ]
}

pub(super) fn environment() -> Value {
    let control_plane = repo("The branch that describes the environment.", &["repo", "branch"]);
    object("Where the environment is described.", &["controlPlane"], &[("controlPlane", control_plane)])
}

pub(super) fn base_repo() -> Value {
    let [repo, branch, path] = repo_fields();
    let commit = ("commit", text("Read at this commit; without one, at the branch's head."));
    object("The repository.", &["repo"], &[repo, branch, path, commit])
}

pub(super) fn cluster_type() -> Value {
    object(
        "Each field names a Template.",
        &["reconciler", "namespaceService"],
        &[
            ("reconciler", word("The Template that delivers workloads.")),
            ("namespaceService", word("The Template that makes namespaces.")),
            ("configType", text("The Template that writes the configuration; or `configmap`, `envFile`.")),
        ],
    )
}

pub(super) fn template() -> Value {
    object(
        "What the template is for, and its texts.",
        &["manifests"],
        &[
            ("type", words("What a ClusterType may use it for.", &["reconciler", "namespace", "config"])),
            ("contentType", text("`sh` makes `platform-config.sh`; anything else YAML.")),
            ("manifests", list("Go templates, each of one manifest.", &json!({"type": ["string", "null"]}))),
        ],
    )
}

pub(super) fn registration() -> Value {
    object(
        "Where the application's Workloads are, and whose they are.",
        &["workload"],
        &[
            ("workload", repo("The folder that holds the Workloads.", &["repo"])),
            ("workspace", text("The tenant that the application belongs to.")),
            ("sources", list(SOURCES, &word("`https://git.example.com/team`, `git@host:team`, `oci://host/team`."))),
        ],
    )
}

const SOURCES: &str = "The beginnings of Git, chart and OCI addresses that the hub may fetch for the workspace; \
    without any, the owner of `workload.repo`: its address without the last part.";

pub(super) fn workload() -> Value {
    let target = object(
        "A named flavour of the workload in an environment.",
        &["name", "environment"],
        &[
            ("name", word("Its full name is `<workload>-<name>`.")),
            ("labels", text_map("What SchedulingPolicies select by.")),
            ("environment", word("The environment that the target is for.")),
            ("manifests", text_map("Whatever the reconciler's template asks for.")),
            ("configSchemas", schemas("JSON Schemas for this target.")),
        ],
    );
    object(
        "The targets of the workload.",
        &[],
        &[
            ("deploymentTargets", list("The targets of the workload.", &target)),
            ("configSchemas", schemas("JSON Schemas for every target.")),
        ],
    )
}

fn schemas(description: &str) -> Value {
    list(description, &json!({"type": "string", "description": "A JSON Schema as text."}))
}

pub(super) fn scheduling_policy() -> Value {
    let targets = object(
        "Which deployment targets.",
        &[],
        &[("workspace", text("Only targets of this workspace.")), ("labelSelector", selector())],
    );
    let cluster_types = object("Which cluster types.", &[], &[("labelSelector", selector())]);
    object(
        "Every selected target runs on every selected cluster type.",
        &[],
        &[("deploymentTargetSelector", targets), ("clusterTypeSelector", cluster_types)],
    )
}

pub(super) fn selector() -> Value {
    let mut requirement = object(
        "A condition on one label.",
        &["key", "operator"],
        &[
            ("key", word("The label.")),
            ("operator", words("How it is compared.", &["In", "NotIn", "Exists", "DoesNotExist"])),
            ("values", list("For `In` and `NotIn`.", &json!({"type": ["string", "null"]}))),
        ],
    );
    requirement["if"] = json!({"properties": {"operator": {"enum": ["In", "NotIn"]}}, "required": ["operator"]});
    requirement["then"] = json!({"required": ["values"], "properties": {"values": {"type": "array", "minItems": 1}}});
    requirement["else"] = json!({"properties": {"values": {"maxItems": 0}}});
    object(
        "All parts must hold; `{}` selects everything.",
        &[],
        &[
            ("matchLabels", text_map("Labels and the values they must have.")),
            ("matchExpressions", list("Further conditions.", &requirement)),
        ],
    )
}

pub(super) fn config_schema() -> Value {
    object("The schema.", &["schema"], &[("schema", word("A JSON Schema as text."))])
}

pub(super) fn capability_map() -> Value {
    let mut add = text_map("The labels that they get.");
    add["type"] = json!("object");
    add["propertyNames"] = json!({"not": {"enum": ["workload", "workspace"]}});
    let mut when = selector();
    when["type"] = json!(["object", "null"]);
    let rule = object("One rule.", &["when", "add"], &[("when", when), ("add", add)]);
    object("The rules, in order.", &["rules"], &[("rules", list("The rules, in order.", &rule))])
}
