//! Plans of small platforms that are made here.

use std::sync::Arc;

use kedge_model::decode::{self, Options};
use kedge_model::{Origin, Source};

use super::*;

const PLATFORM: &str = "
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: drone, labels: {region: west}}
spec: {reconciler: rec, namespaceService: rec, configType: configmap}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: rec}
spec: {type: reconciler, manifests: ['{{ .Namespace }}']}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: all}
spec: {deploymentTargetSelector: {labelSelector: {}}, clusterTypeSelector: {labelSelector: {}}}
";

fn scheduler(targets: usize, data: &str) -> Scheduler {
    let mut text = PLATFORM.to_owned();
    text.push_str(&format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, labels: {{platform-config: 'true'}}}}\ndata: {data}\n"
    ));
    text.push_str("---\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec:\n  deploymentTargets:\n");
    for index in 0..targets {
        text.push_str(&format!(
            "  - {{name: t{index}, environment: dev, labels: {{}}, manifests: {{repo: r, branch: b, path: p}}}}\n"
        ));
    }
    let source = Arc::new(Source { repo: "here".to_owned(), revision: None });
    let origin = Origin { source, file: "all.yaml".into(), line: 0, column: 0 };
    let decoded = decode::objects(text.as_bytes(), &origin, &Options::default());
    assert!(decoded.broken.is_empty(), "{:?}", decoded.problems);
    let objects = decoded.objects.into_iter().map(|object| (object.id(), Arc::new(object))).collect();
    Scheduler::new(Platform { environment: "dev".to_owned(), objects, ..Platform::default() })
}

fn folder(name: &str) -> Side {
    Side::Read(kedge_platform::ControlPlane::Folder(name.into()))
}

fn compared(old: Scheduler, new: Scheduler, with_diff: bool) -> Compared {
    let plan = plan(old.schedule(), new.schedule());
    Compared {
        environment: "dev".to_owned(),
        sides: Sides { from: folder("a"), to: folder("b") },
        old,
        new,
        plan,
        with_diff,
    }
}

#[test]
fn text_shows_keys_files_and_the_summary() {
    let plan = compared(scheduler(1, "{A: x, B: 'true'}"), scheduler(1, "{A: z, C: '{n: 1}'}"), false);
    insta::assert_snapshot!(plan.to_text(), @r#"
    plan for dev: a → b
    ~ drone/w-t0 changed
        A  "x" → "z"
        B  - "true"
        C  + {"n":1}
        files: platform-config.yaml
    1 of 1 assignment on 1 of 1 cluster type
    "#);
}

#[test]
fn diffs_are_unified() {
    let plan = compared(scheduler(1, "{A: x}"), scheduler(1, "{A: z}"), true);
    let text = plan.to_text();
    assert!(
        text.contains("--- a/drone/w-t0/platform-config.yaml\n+++ b/drone/w-t0/platform-config.yaml\n@@ "),
        "{text}"
    );
    assert!(text.contains("-  A: x\n+  A: z\n"), "{text}");
}

#[test]
fn markdown_never_shows_what_looks_secret() {
    let old = scheduler(1, "{DB_PASSWORD: hunter2, A: x, URL: 'http://u:hunter3@h/'}");
    let new = scheduler(1, "{DB_PASSWORD: hunter4, A: '@all|*', URL: 'http://u:hunter5@h/'}");
    let text = compared(old, new, true).to_markdown(&Problems::default());
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("<code>\"&#91;redacted&#93;\"</code>"), "{text}");
    assert!(text.contains("&#64;all&#124;&#42;"), "{text}");
    assert!(text.contains("The files aren't shown"), "{text}");
}

#[test]
fn markdown_of_many_changes_is_folded_and_cut() {
    let long = "x".repeat(190);
    let plan = compared(scheduler(500, "{A: x}"), scheduler(500, &format!("{{A: {long}}}")), true);
    let text = plan.to_markdown(&Problems::default());
    assert!(text.chars().count() < LIMIT_OF_A_COMMENT, "{}", text.chars().count());
    assert!(text.contains("<summary>500 changed assignments</summary>"));
    assert!(text.contains("</details>"));
    assert!(text.contains("more didn't fit"), "{}", &text[text.len() - 300..]);
    assert!(text.contains("**500 of 500 assignments on 1 of 1 cluster type**"));
}

const LIMIT_OF_A_COMMENT: usize = 60_000;
