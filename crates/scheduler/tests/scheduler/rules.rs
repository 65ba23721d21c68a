//! The scheduling rules, one test each.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::{Problem, Tenant};
use kedge_scheduler::{
    CandidateEffect, LabelSource, Outcome, PlanChange, README_TEXT, Schedule, Scheduler, diff, explain, schedule,
};

use crate::written::{POLICY, REGISTRATION, WORKLOAD, config, id, platform_with, read};

fn paths(schedule: &Schedule) -> BTreeMap<String, String> {
    schedule.files().map(|(path, text)| (path, text.to_string())).collect()
}

fn reasons(schedule: &Schedule, cluster_type: &str) -> Vec<String> {
    match &schedule.assignments[&id(cluster_type, "hello-test")].outcome {
        Outcome::Quarantined(reasons) => reasons.iter().map(|reason| reason.message.clone()).collect(),
        Outcome::Rendered(_) => panic!("{cluster_type} is rendered"),
    }
}

#[test]
fn files_are_joined_named_and_left_out_as_kalypso_does() {
    let files = paths(&schedule(&platform_with(&[&config("a", "", "{K: v}")])));
    let expected = [
        ("drone/README.md", README_TEXT),
        ("drone/hello-test/namespace.yaml", "dev-drone-hello-test"),
        ("drone/hello-test/platform-config.sh", "K=v;"),
        ("drone/hello-test/reconciler.yaml", "first: hello-test\n---\nsecond: here\n"),
        ("large/README.md", README_TEXT),
        ("large/hello-test/namespace.yaml", "dev-large-hello-test"),
        (
            "large/hello-test/platform-config.yaml",
            "apiVersion: v1\ndata:\n  K: v\nkind: ConfigMap\nmetadata:\n  name: platform-config\n  namespace: dev-large-hello-test\n",
        ),
        ("large/hello-test/reconciler.yaml", "first: hello-test\n---\nsecond: here\n"),
    ];
    assert_eq!(files, expected.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
}

#[test]
fn configuration_that_renders_to_nothing_is_no_file() {
    assert!(!paths(&schedule(&platform_with(&[]))).contains_key("drone/hello-test/platform-config.sh"));
}

#[test]
fn the_commit_of_base_repo_main_is_tracked() {
    let base = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata: {name: main}\nspec: {repo: r, branch: main, path: ., commit: abc}";
    assert_eq!(paths(&schedule(&platform_with(&[base])))[".github/tracking/Promoted_Commit_Id"], "abc");
}

#[test]
fn labels_of_the_workload_overwrite_those_of_the_target() {
    let schedule = schedule(&platform_with(&[]));
    let labels = &schedule.assignments[&id("drone", "hello-test")].target.labels;
    let expected = [("family", "force"), ("purpose", "test"), ("workload", "hello"), ("workspace", "team")];
    assert_eq!(*labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
}

#[test]
fn two_policies_that_choose_one_pair_are_both_named() {
    let second = POLICY.replace("everywhere", "also").replace("{}", "{matchLabels: {region: east}}");
    let schedule = schedule(&platform_with(&[&second]));
    assert_eq!(schedule.assignments.len(), 2);
    let names = |cluster_type| {
        schedule.assignments[&id(cluster_type, "hello-test")]
            .policies
            .iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("drone"), ["also", "everywhere"]);
    assert_eq!(names("large"), ["everywhere"]);
}

#[test]
fn a_missing_template_quarantines_the_assignments_of_its_cluster_type_only() {
    let mut platform = platform_with(&[]);
    let template = platform.objects.keys().find(|id| id.name == "cfg").unwrap().clone();
    platform.objects.remove(&template);
    let schedule = schedule(&platform);
    assert_eq!(
        reasons(&schedule, "drone"),
        ["there is no Template cfg, which ClusterType drone names in `configType`"]
    );
    assert!(schedule.assignments[&id("large", "hello-test")].files().is_some());
}

#[test]
fn a_template_that_fails_is_placed_in_its_file() {
    let bad = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: cfg}\nspec:\n  manifests:\n  - |\n    one\n    {{ .Nope }}\n";
    let schedule = schedule(&platform_with(&[bad]));
    let Outcome::Quarantined(reasons) = &schedule.assignments[&id("drone", "hello-test")].outcome else { panic!() };
    let message = "template `cfg` line 2 at <.Nope>: can't evaluate field Nope in type scheduler.dataType";
    assert_eq!(reasons[0].message, message);
    assert_eq!(reasons[0].excerpt.as_ref().unwrap().text, "{{ .Nope }}");
    assert_eq!(reasons[0].origin.as_ref().unwrap().to_string(), "extra.yaml:8");
    assert_eq!(reasons[0].assignment.as_deref(), Some("drone/hello-test"));
}

#[test]
fn a_broken_schema_value_stops_what_the_schema_applies_to() {
    let schema = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata: {name: s, labels: {region: east}}\nspec: {schema: '{\"required\": [\"REGION\"]}'}";
    let stopped = schedule(&platform_with(&[schema]));
    assert_eq!(
        reasons(&stopped, "drone"),
        ["the configuration breaks ConfigSchema s: \"REGION\" is a required property"]
    );
    assert!(stopped.assignments[&id("large", "hello-test")].files().is_some());
    let warns = schema.replace("{name: s,", "{name: s, annotations: {kedge.dev/enforce: warn},");
    let warned = schedule(&platform_with(&[&warns]));
    let assignment = &warned.assignments[&id("drone", "hello-test")];
    assert!(assignment.files().is_some());
    assert_eq!(assignment.warnings.len(), 1);
}

#[test]
fn a_config_map_that_cannot_be_read_stops_what_it_would_apply_to() {
    let broken = config("c", ", region: east", "{K: 8080}");
    let schedule = schedule(&platform_with(&[&broken]));
    let schema = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata: {name: s, labels: {region: east}}\nspec: {schema: '{\"required\": [\"K\"]}'}";
    let cause = "`data.K` of ConfigMap `c` must be a string, but is the number `8080`";
    assert_eq!(reasons(&schedule, "drone"), [cause]);
    let with_schema = kedge_scheduler::schedule(&platform_with(&[&broken, schema]));
    assert_eq!(reasons(&with_schema, "drone"), [cause], "a cause hides its consequences");
    assert!(schedule.assignments[&id("large", "hello-test")].files().is_some());
}

#[test]
fn capability_rules_give_labels_before_policies_look() {
    let map = "apiVersion: kedge.dev/v1alpha1\nkind: CapabilityMap\nmetadata: {name: gpus}\nspec:\n  rules:\n  - when: {matchLabels: {purpose: test}}\n    add: {accelerator: nvidia}\n";
    let policy = POLICY.replace("everywhere", "gpu").replace("purpose: test", "accelerator: nvidia");
    let mut platform = platform_with(&[map, &policy]);
    let everywhere = platform.objects.keys().find(|id| id.name == "everywhere").unwrap().clone();
    platform.objects.remove(&everywhere);
    let scheduler = Scheduler::new(platform);
    assert_eq!(scheduler.schedule().assignments.len(), 2);
    let explanation = explain(&scheduler, "drone", "hello-test").unwrap();
    let label = explanation.target_labels.iter().find(|label| label.key == "accelerator").unwrap();
    let LabelSource::Capability { map, origin } = &label.source else { panic!("{label:?}") };
    assert_eq!((map.as_str(), origin.to_string().as_str()), ("gpus", "extra.yaml:6"));
}

#[test]
fn two_tenants_with_one_name_are_both_refused_unless_one_is_published() {
    let mut platform = platform_with(&[&REGISTRATION.replace("greeting", "other")]);
    read(&mut platform, "theirs.yaml", WORKLOAD, Some("other"));
    let refused = schedule(&platform);
    assert_eq!(refused.assignments.len(), 0);
    let taken: Vec<&Problem> = refused.problems.iter().filter(|problem| problem.code == "NameTaken").collect();
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].related.len(), 1);
    let tenant = Tenant { registration: "greeting".into(), workload: "hello".into(), target: "test".into() };
    platform.published.insert("hello-test".to_owned(), tenant);
    let kept = schedule(&platform);
    assert_eq!(kept.assignments.len(), 2);
    assert_eq!(kept.assignments[&id("drone", "hello-test")].target.registration.as_deref(), Some("greeting"));
}

#[test]
fn two_workloads_whose_targets_have_one_full_name_are_refused() {
    let mut platform = platform_with(&[]);
    let theirs = WORKLOAD.replace("name: hello,", "name: hello-a,").replace("name: test", "name: b");
    let ours = WORKLOAD.replace("name: test", "name: a-b");
    read(&mut platform, "a.yaml", &theirs, Some("greeting"));
    read(&mut platform, "b.yaml", &ours, Some("greeting"));
    let schedule = schedule(&platform);
    assert!(schedule.assignments.is_empty());
    assert!(schedule.problems.iter().any(|problem| problem.message.contains("`hello-a-b` is claimed more than once")));
}

#[test]
fn names_that_would_leave_the_folder_are_refused() {
    let mut platform = platform_with(&[]);
    for name in ["../x", "a/b", "\u{7}"] {
        let mut object = (**platform.objects.values().find(|object| object.meta.name == "hello").unwrap()).clone();
        let kedge_model::Spec::Workload(workload) = &mut object.spec else { panic!() };
        workload.targets[0].name = name.to_owned();
        platform.objects.insert(object.id(), Arc::new(object));
        let schedule = schedule(&platform);
        assert!(schedule.assignments.is_empty());
        assert!(schedule.problems.iter().any(|problem| problem.code == "NameRefused"), "{name:?}");
    }
}

#[test]
fn explain_shows_every_candidate_and_the_winner() {
    let scheduler = Scheduler::new(platform_with(&[
        &config("a", "", "{K: common}"),
        &config("b", ", region: east", "{K: east}"),
        &config("c", ", region: west", "{K: west}"),
    ]));
    let explanation = explain(&scheduler, "drone", "hello-test").unwrap();
    assert!(explanation.assigned);
    let key = &explanation.config.keys["K"];
    let shown: Vec<_> = key.candidates.iter().map(|c| (&*c.config_map, &*c.text, c.effect)).collect();
    assert_eq!(shown, [("a", "common", CandidateEffect::Overridden), ("b", "east", CandidateEffect::Wins)]);
    assert_eq!(key.candidates[0].origin.line, 4);
    assert_eq!(key.skipped[0].reasons, ["neither cluster type nor target has `region: west`"]);
}

#[test]
fn explain_says_which_label_a_pair_is_missing() {
    let scheduler = Scheduler::new(platform_with(&[&POLICY
        .replace("everywhere", "p2")
        .replace("{}", "{matchLabels: {region: north}}")]));
    let explanation = explain(&scheduler, "drone", "hello-test").unwrap();
    let verdict = explanation.policies.iter().find(|verdict| verdict.name == "p2").unwrap();
    assert!(!verdict.chooses());
    assert_eq!(verdict.cluster_type_mismatches[0].key, "region");
    assert_eq!(verdict.cluster_type_mismatches[0].found.as_deref(), Some("east"));
}

#[test]
fn a_plan_lists_keys_and_files_and_sums_up() {
    let old = schedule(&platform_with(&[&config("a", ", region: east", "{K: old}")]));
    let new = schedule(&platform_with(&[&config("a", ", region: east", "{K: new}")]));
    let plan = diff(&old, &new);
    assert_eq!(plan.summary(), "1 of 2 assignments on 1 of 2 cluster types");
    assert_eq!(plan.changes[0].change, PlanChange::Changed);
    assert_eq!(&*plan.changes[0].keys[0].key, "K");
    assert_eq!(plan.changes[0].files[0].name, "platform-config.sh");
    assert!(diff(&new, &new).is_empty());
}

#[test]
fn a_base_repo_or_a_capability_map_that_cannot_be_read_stops_every_assignment() {
    for kind in [kedge_model::Kind::BaseRepo, kedge_model::Kind::CapabilityMap] {
        let base = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata: {name: main}\nspec: {repo: r, branch: main, path: ., commit: abc}";
        let mut platform = platform_with(&[base]);
        platform.broken.push(kedge_model::Broken {
            kind: Some(kind),
            name: Some("lost".into()),
            owner: None,
            labels: None,
            problem: Problem::error("RepositoryFailed", "no route"),
        });
        let schedule = schedule(&platform);
        assert_eq!(schedule.quarantined().count(), 2);
        assert_eq!(
            schedule.promoted_commit.is_some(),
            kind != kedge_model::Kind::BaseRepo,
            "what wasn't read wasn't promoted"
        );
    }
}

#[test]
fn templates_and_schemas_that_nobody_uses_are_checked_too() {
    let template = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: unused}\nspec: {manifests: ['{{ now }}']}";
    let schema = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata: {name: s, labels: {region: moon}}\nspec: {schema: '{\"type\": \"strin\"}'}";
    let schedule = schedule(&platform_with(&[template, schema]));
    let codes: Vec<&str> = schedule.dormant.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["TemplateFailed", "SchemaUnusable"]);
    assert_eq!(schedule.quarantined().count(), 0);
}

#[test]
fn a_value_that_breaks_a_schema_is_shown_where_it_was_written() {
    let schema = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata: {name: s}\nspec: {schema: '{\"properties\": {\"PORT\": {\"type\": \"integer\"}}}'}";
    let schedule = schedule(&platform_with(&[schema, &config("a", "", "{PORT: http}")]));
    let Outcome::Quarantined(reasons) = &schedule.assignments[&id("drone", "hello-test")].outcome else { panic!() };
    assert_eq!(reasons[0].origin.as_ref().unwrap().line, 4, "the line of data");
    assert_eq!(reasons[0].related.len(), 1, "and the schema");
}

#[test]
fn a_delivery_to_kubernetes_with_a_long_namespace_is_quarantined_others_are_warned_about() {
    let long = "a".repeat(60);
    let workload = WORKLOAD.replace("name: test", &format!("name: {long}"));
    let mut platform = platform_with(&[]);
    read(&mut platform, "workload.yaml", &workload, Some("greeting"));
    let warned = schedule(&platform);
    let assignment = warned.assignments.values().next().unwrap();
    assert!(assignment.files().is_some());
    assert_eq!(assignment.warnings[0].code, "NamespaceTooLong");
    let delivery = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: rec}\nspec:\n  manifests:\n  - |\n    apiVersion: kedge.dev/v1alpha1\n    kind: Delivery\n    metadata:\n      name: {{ .DeploymentTargetName }}\n    spec:\n      source: {repo: https://example.com/x, ref: {branch: main}, path: .}\n      to: kubernetes\n      namespace: {{ .Namespace }}\n";
    read(&mut platform, "extra.yaml", delivery, None);
    let stopped = schedule(&platform);
    let Outcome::Quarantined(reasons) = &stopped.assignments.values().next().unwrap().outcome else { panic!() };
    assert_eq!(reasons.iter().map(|reason| reason.code).collect::<Vec<_>>(), ["NamespaceTooLong"]);
    assert!(reasons[0].message.contains("has 76 characters"), "{}", reasons[0].message);
}

#[test]
fn keys_of_azure_app_config_say_where_they_apply_and_the_longer_wins() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: azure-app-config-x}\ndata:\n  K: all\n  region.east.K: east\n  region.east.purpose.test.K: both\n  region.west.K: west\n  odd.K: never\n";
    let schedule = schedule(&platform_with(&[text, &config("zz", "", "{K: labelled}")]));
    let value = |cluster_type| schedule.assignments[&id(cluster_type, "hello-test")].configuration.values["K"].clone();
    assert_eq!(*value("drone"), kedge_goyaml::Value::String("both".into()));
    assert_eq!(*value("large"), kedge_goyaml::Value::String("west".into()));
}
