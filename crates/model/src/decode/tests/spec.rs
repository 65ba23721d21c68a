//! The fields of Kalypso's kinds, of ConfigMaps and of CapabilityMaps.

use super::*;
use crate::kinds::{ClusterType, RepoRef, TemplateType};
use crate::{Operator, Selector};

#[test]
fn cluster_type_without_spec_says_what_is_needed() {
    let text = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: drone}\n";
    assert_eq!(
        broken(text),
        [
            "1:1 !MissingField: ClusterType `drone` has no `spec` | add `spec:` with `reconciler` and `namespaceService`, and \
          `configType` if it has one; each is a Template's name"
        ]
    );
}

#[test]
fn every_missing_field_is_told_at_once() {
    let decoded = decode(&kalypso("ClusterType", "  reconsiler: arc\n"));
    assert_eq!(
        said(&decoded.problems),
        [
            "4:1 !MissingField: ClusterType `x` has no `spec.reconciler` | add `reconciler:`, the name of a Template",
            "4:1 !MissingField: ClusterType `x` has no `spec.namespaceService` | add `namespaceService:`, the name of a Template",
            "5:3 UnknownField: `spec.reconsiler` of ClusterType `x` isn't a field that Kedge knows | did you mean `reconciler`?",
        ]
    );
    assert_eq!(decoded.broken[0].problem, decoded.problems[0]);
}

#[test]
fn cluster_type_is_read() {
    let Spec::ClusterType(read) =
        spec_of(&kalypso("ClusterType", "  reconciler: arc\n  namespaceService: ns\n  configType:\n"))
    else {
        panic!("another kind")
    };
    assert_eq!(read, ClusterType { reconciler: "arc".into(), namespace_service: "ns".into(), config_type: None });
}

#[test]
fn repositories_have_careful_defaults() {
    let Spec::WorkloadRegistration(read) = spec_of(&kalypso("WorkloadRegistration", "  workload: {repo: u}\n")) else {
        panic!("another kind")
    };
    assert_eq!(read.workload, RepoRef { repo: "u".into(), branch: "main".into(), path: ".".into() });
    assert_eq!(read.workspace, None);
    assert_eq!(
        broken(&kalypso("GitOpsRepo", "  repo: u\n")),
        ["4:1 !MissingField: GitOpsRepo `x` has no `spec.branch` | add `branch:`"]
    );
    assert_eq!(
        broken(&kalypso("BaseRepo", "  branch: b\n  commit: 1234567\n")),
        [
            "4:1 !MissingField: BaseRepo `x` has no `spec.repo` | add `repo:`, the URL of the repository",
            "6:11 !NotAString: `spec.commit` of BaseRepo `x` must be a string, but is the number `1234567` | \
             put it in quotes: `commit: \"1234567\"`",
        ]
    );
    assert_eq!(
        broken(&kalypso("Environment", "  a: b\n"))[0],
        "4:1 !MissingField: Environment `x` has no `spec.controlPlane` | add `controlPlane:` with `repo`, `branch` and `path`"
    );
}

#[test]
fn manifests_know_the_line_their_text_begins_on() {
    let Spec::Template(read) = spec_of(&kalypso(
        "Template",
        "  type: config\n  manifests:\n  - |\n    a: {{ .X }}\n  - 'b'\n  - >-\n\n    c\n",
    )) else {
        panic!("another kind")
    };
    assert_eq!(read.template_type, Some(TemplateType::Config));
    let manifests: Vec<_> = read.manifests.iter().map(|manifest| (manifest.text.as_str(), manifest.line)).collect();
    assert_eq!(manifests[0], ("a: {{ .X }}\n", 8));
    assert_eq!(manifests[1], ("b", 9));
    assert_eq!(manifests[2].1, 11);
}

#[test]
fn template_with_an_unknown_type_is_refused() {
    assert_eq!(
        broken(&kalypso("Template", "  type: reconciller\n  manifests: [1]\n")),
        [
            "5:9 !UnknownValue: `spec.type` of Template `x` can't be `reconciller` | did you mean `reconciler`?",
            "6:15 !NotAString: `spec.manifests[0]` of Template `x` must be a string, but is the number `1` | \
             put it in quotes: `\"1\"`",
        ]
    );
    assert!(
        broken(&kalypso("Template", "  type: helm\n  manifests: []\n"))[0]
            .ends_with("write `reconciler`, `namespace` or `config`")
    );
}

#[test]
fn selectors_are_read_and_checked() {
    let spec = "  deploymentTargetSelector:\n    workspace: w\n    labelSelector:\n      matchLabels: {a: b}\n      matchExpressions:\n      - {key: s, operator: In, values: [x, z]}\n      - {key: e, operator: Exists}\n  clusterTypeSelector:\n    labelSelector:\n";
    let Spec::SchedulingPolicy(read) = spec_of(&kalypso("SchedulingPolicy", spec)) else { panic!("another kind") };
    assert_eq!(read.targets.workspace.as_deref(), Some("w"));
    assert_eq!(read.targets.labels.to_string(), "a=b, s in (x,z), e");
    assert_eq!(read.targets.labels.match_expressions[0].operator, Operator::In);
    assert_eq!(read.cluster_types, Selector::default());

    let spec = "  deploymentTargetSelector: {}\n  clusterTypeSelector:\n    labelSelector:\n      matchExpressions:\n      - {key: s, operator: Inn, values: [x]}\n      - {key: s, operator: Gt, values: [x]}\n      - {key: s, operator: In}\n      - {key: s, operator: Exists, values: [x]}\n      - {operator: Exists}\n";
    let said = broken(&kalypso("SchedulingPolicy", spec));
    let path = "spec.clusterTypeSelector.labelSelector.matchExpressions";
    assert_eq!(
        said,
        [
            format!(
                "9:28 !UnknownValue: `{path}[0].operator` of SchedulingPolicy `x` can't be `Inn` | did you mean `In`?"
            ),
            format!(
                "10:28 !UnknownValue: `{path}[1].operator` of SchedulingPolicy `x` can't be `Gt` | \
                 write `In`, `NotIn`, `Exists` or `DoesNotExist`"
            ),
            format!(
                "11:9 !InvalidValue: `{path}[2]` of SchedulingPolicy `x` has the operator `In` but no `values` | \
                 list at least one value, or use `Exists` or `DoesNotExist`"
            ),
            format!(
                "12:44 !InvalidValue: `{path}[3].values` of SchedulingPolicy `x` can't be there, because the operator `Exists` \
                 takes none | remove `values`, or use `In` or `NotIn`"
            ),
            format!("13:9 !MissingField: SchedulingPolicy `x` has no `{path}[4].key` | name the label: `key: region`"),
        ]
    );
}

#[test]
fn absent_selector_selects_everything_with_a_warning() {
    let decoded = decode(&kalypso("SchedulingPolicy", "  clusterTypeSelector: {}\n"));
    assert_eq!(decoded.objects.len(), 1);
    assert_eq!(
        said(&decoded.problems),
        [
            "4:1 SelectsEverything: SchedulingPolicy `x` has no `spec.deploymentTargetSelector`, so it selects every deployment \
          target | if you intend that, write `deploymentTargetSelector: {}`"
        ]
    );
}

#[test]
fn workload_targets_are_read() {
    let spec = "  deploymentTargets:\n  - name: t\n    environment: dev\n    labels:\n    manifests:\n      repo: u\n      path:\n  - name: t\n    environment: stage\n  configSchemas:\n  - '{}'\n";
    let Spec::Workload(read) = spec_of(&kalypso("Workload", spec)) else { panic!("another kind") };
    assert_eq!(read.targets.len(), 2);
    assert_eq!((read.targets[0].line, read.targets[1].line), (6, 12));
    assert_eq!(read.targets[0].manifests["path"], "");
    assert_eq!(read.config_schemas, ["{}"]);
}

#[test]
fn workload_targets_are_checked() {
    let say = |target: &str| broken(&kalypso("Workload", &format!("  deploymentTargets:\n  - {target}\n")));
    assert_eq!(
        say("{labels: {}}"),
        [
            "6:5 !MissingField: Workload `x` has no `spec.deploymentTargets[0].name` | add `name:`",
            "6:5 !MissingField: Workload `x` has no `spec.deploymentTargets[0].environment` | add `environment:`, the name of the \
             environment that the target is for",
        ]
    );
    assert!(
        say("{name: a/b, environment: d}")[0]
            .contains("!BadName: `spec.deploymentTargets[0].name` of Workload `x` can't be used")
    );
    let long = "y".repeat(252);
    assert!(say(&format!("{{name: {long}, environment: d}}"))[0].contains("has 254 bytes and at most 253 are allowed"));
    assert!(
        say("{name: a, environment: d, manifests: {replicas: 3}}")[0].contains("put it in quotes: `replicas: \"3\"`")
    );
    assert_eq!(
        say("{name: a, environment: d}\n  - {name: a, environment: d}"),
        [
            "7:5 !DuplicateTarget: `spec.deploymentTargets[1]` of Workload `x` is there twice: another target for `d` has the name \
          `a` | give each target of an environment a name of its own"
        ]
    );
    let decoded = decode(&kalypso("Workload", "  configSchemas: []\n"));
    assert_eq!((decoded.objects.len(), decoded.problems[0].code), (1, "NoTargets"));
}

#[test]
fn config_values_keep_text_and_line() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nimmutable: true\nbinaryData: {b: AA==}\ndata:\n  A: \"8080\"\n  B: |\n    x:\n      - y\n  C:\n  D: 2024-01-01\n";
    let Spec::ConfigMap(read) = spec_of(text) else { panic!("another kind") };
    let values: Vec<_> = read.data.iter().map(|(key, value)| (key.as_str(), value.text.as_str(), value.line)).collect();
    assert_eq!(values, [("A", "8080", 7), ("B", "x:\n  - y\n", 8), ("C", "", 11), ("D", "2024-01-01", 12)]);
    let Spec::ConfigMap(empty) = spec_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n") else {
        panic!("another kind")
    };
    assert!(empty.data.is_empty());
}

#[test]
fn config_values_must_be_strings() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nimmutable: x\ndata:\n  A: true\n  B: [a]\n";
    assert_eq!(
        broken(text),
        [
            "4:12 !WrongType: `immutable` of ConfigMap `c` must be `true` or `false`, but is a string",
            "6:6 !NotAString: `data.A` of ConfigMap `c` must be a string, but is the boolean `true` | \
             put it in quotes: `A: \"true\"`",
            "7:6 !NotAString: `data.B` of ConfigMap `c` must be a string, but is a list",
        ]
    );
}

#[test]
fn schema_that_is_not_json_is_placed_on_its_line() {
    let text = kalypso("ConfigSchema", "  schema: |\n    {\n      \"type\": object\n    }\n");
    let decoded = decode(&text);
    assert_eq!(
        said(&decoded.problems),
        [
            "7:15 !SchemaNotJson: `spec.schema` of ConfigSchema `x` isn't JSON: expected value | a schema is JSON as text, also \
          inside YAML: quote its keys and strings"
        ]
    );
    assert!(broken(&kalypso("ConfigSchema", "  schema: 'type: object'\n"))[0].starts_with("5:11 !SchemaNotJson"));
    assert!(
        broken(&kalypso("ConfigSchema", "  schema: {type: object}\n"))[0].contains("must be a string, but is a map")
    );
    assert!(matches!(spec_of(&kalypso("ConfigSchema", "  schema: '{\"a\": 1e999}'\n")), Spec::ConfigSchema(_)));
}

#[test]
fn capability_rules_are_read_and_guarded() {
    let rule = "  rules:\n  - when: {matchLabels: {gpu: yes please}}\n    add: {pool: gpu}\n";
    let Spec::CapabilityMap(read) = spec_of(&kedge("CapabilityMap", rule)) else { panic!("another kind") };
    assert_eq!((read.rules[0].line, read.rules[0].when.to_string()), (6, "gpu=yes please".to_owned()));
    assert_eq!(
        broken(&kedge("CapabilityMap", "  rules:\n  - when: {}\n    add: {workspace: a}\n")),
        [
            "7:22 !ReservedLabel: `spec.rules[0].add.workspace` of CapabilityMap `x` can't be added: a target has this label from \
          its registration | choose another label"
        ]
    );
    assert_eq!(
        broken(&kedge("CapabilityMap", "  rules:\n  - add: {a: b}\n")),
        [
            "6:5 !MissingField: CapabilityMap `x` has no `spec.rules[0].when` | select targets with `when`; `when: {}` matches all of them"
        ]
    );
    // Not narrowing where somebody meant to would give labels to everybody.
    assert!(
        broken(&kedge("CapabilityMap", "  rules:\n  - when: {matchLabel: {a: b}}\n    add: {c: d}\n"))[0]
            .contains("!UnknownField: `spec.rules[0].when.matchLabel`")
    );
}
