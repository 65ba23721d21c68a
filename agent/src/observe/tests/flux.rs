//! Kustomizations, HelmReleases and sources.

use super::*;

fn applied(status: &Value) -> Value {
    json!({"spec": {"path": "./edge", "sourceRef": {"kind": "GitRepository", "name": "app"}}, "status": status})
}

#[test]
fn a_ready_kustomization_tells_its_commit_and_its_source() {
    let object = applied(&json!({
        "observedGeneration": 2,
        "conditions": [condition("Ready", "True", "ReconciliationSucceeded", &format!("Applied revision: dev@sha1:{NEW}"))],
        "lastAppliedRevision": format!("dev@sha1:{NEW}"), "lastAttemptedRevision": format!("dev@sha1:{NEW}"),
        "inventory": {"entries": [{"id": "a_b_apps_Deployment", "v": "v1"}]},
    }));
    let judged = judged(&kustomization(), &object);
    assert_eq!(judged.standing, Standing::Ready);
    assert_eq!(judged.commits, [format!("dev@sha1:{NEW}")]);
    assert_eq!(judged.sources, [Name::new(git(), Some("flux-system"), "app")]);
    assert_eq!(judged.since.unwrap().0, 1_794_830_400_000);
    assert!(!judged.suspended);
}

#[test]
fn a_broken_commit_fails_with_its_own_message_while_it_is_retried() {
    let object = applied(&json!({
        "observedGeneration": 2,
        "conditions": [
            condition("Reconciling", "True", "ProgressingWithRetry", "Building manifests"),
            condition("Ready", "False", "BuildFailed", "kustomize build failed: accumulating resources:\n  no such file"),
        ],
        "lastAppliedRevision": format!("dev@sha1:{OLD}"), "lastAttemptedRevision": format!("dev@sha1:{NEW}"),
    }));
    let judged = judged(&kustomization(), &object);
    assert_eq!((judged.standing, judged.reason.as_str()), (Standing::Failed, "BuildFailed"));
    assert_eq!(judged.message, "kustomize build failed: accumulating resources: no such file");
    assert_eq!(judged.commits, [format!("dev@sha1:{OLD}")]);
}

#[test]
fn a_failure_of_a_new_spec_counts_although_the_status_never_saw_it_through() {
    // Flux raises status.observedGeneration only when it has succeeded or given up.
    let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1,
        "conditions": [condition("Ready", "False", "HealthCheckFailed", "timeout waiting for: [Deployment/a/b]")]}});
    assert_eq!(judged(&kustomization(), &object).standing, Standing::Failed);
}

#[test]
fn work_on_a_new_revision_is_in_progress_and_the_same_again_is_no_news() {
    let ready = |revision: &str| {
        judged(
            &kustomization(),
            &applied(&json!({
                "conditions": [condition("Ready", "True", "ReconciliationSucceeded", "Applied")],
                "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
            })),
        )
    };
    let busy = |attempted: &str| {
        judged(
            &kustomization(),
            &applied(&json!({
                "conditions": [
                    condition("Reconciling", "True", "Progressing", "Building manifests for revision x"),
                    condition("Ready", "Unknown", "Progressing", "Reconciliation in progress"),
                ],
                "lastAppliedRevision": OLD, "lastAttemptedRevision": attempted,
            })),
        )
    };
    let before = ready(OLD);
    let again = busy(OLD).after(Some(&before));
    assert_eq!((again.standing, again.message.as_str()), (Standing::Ready, "Applied"));
    assert!(again.again.is_some());
    assert_eq!(busy(NEW).after(Some(&before)).standing, Standing::Progressing);
    assert_eq!(busy(OLD).after(None).standing, Standing::Progressing);
    assert_eq!(ready(OLD).after(Some(&again)).again, None);
}

#[test]
fn who_waits_for_a_dependency_has_not_failed() {
    let object = applied(
        &json!({"conditions": [condition("Ready", "False", "DependencyNotReady", "dependency 'flux-system/base' is not ready")]}),
    );
    let judged = judged(&kustomization(), &object);
    assert_eq!(judged.standing, Standing::Progressing);
    assert_eq!(judged.message, "dependency 'flux-system/base' is not ready");
}

#[test]
fn a_kustomization_without_status_waits_for_its_controller() {
    let judged = judged(&kustomization(), &applied(&Value::Null));
    assert_eq!(judged.standing, Standing::Progressing);
    // Nobody looks at the version that suspends it.
    let suspended = json!({"metadata": {"generation": 3}, "spec": {"suspend": true}, "status": {"conditions": [condition("Ready", "True", "", "")]}});
    let suspended = super::judged(&kustomization(), &suspended);
    assert!(suspended.suspended);
    assert_eq!(suspended.standing, Standing::Ready);
}

#[test]
fn a_source_that_can_not_be_fetched_fails_with_the_message_of_git() {
    let object = json!({
        "spec": {"url": "https://git.example.com/app", "ref": {"branch": "dev"}},
        "status": {"artifact": {"revision": format!("dev@sha1:{OLD}")}, "observedGeneration": 1, "conditions": [
            condition("Reconciling", "True", "ProgressingWithRetry", "reconciliation in progress"),
            condition("Ready", "False", "GitOperationFailed", "failed to checkout and determine revision: unable to list remote"),
            condition("FetchFailed", "True", "GitOperationFailed", "failed to checkout and determine revision: unable to list remote"),
            condition("ArtifactInStorage", "True", "Succeeded", "stored artifact"),
        ]},
    });
    let judged = judged(&git(), &object);
    assert_eq!((judged.standing, judged.reason.as_str()), (Standing::Failed, "GitOperationFailed"));
    assert_eq!(judged.revision, Some(format!("dev@sha1:{OLD}")));
    assert_eq!(judged.reads.unwrap().branch.as_deref(), Some("dev"));
}

#[test]
fn the_branch_of_a_source_is_the_one_that_flux_prefers() {
    let branch = |reference: Value| {
        judged(&git(), &json!({"spec": {"url": "https://h/a", "ref": reference}})).reads.and_then(|reads| reads.branch)
    };
    assert_eq!(branch(Value::Null).as_deref(), Some("master"));
    assert_eq!(branch(json!({"name": "refs/heads/prod", "branch": "dev"})).as_deref(), Some("prod"));
    for other in [json!({"tag": "v1"}), json!({"semver": ">1"}), json!({"commit": NEW, "branch": "dev"})] {
        assert_eq!(branch(other), None);
    }
}

#[test]
fn an_image_names_the_commit_it_was_made_from() {
    let oci = Kind::new(SOURCES, "OCIRepository");
    let mut object = json!({"spec": {"url": "oci://r/a"}, "status": {
        "conditions": [condition("Ready", "True", "Succeeded", "stored artifact")],
        "artifact": {"revision": format!("latest@sha256:{}", "a".repeat(64)), "metadata": {}}}});
    assert!(judged(&oci, &object).commits.is_empty());
    object["status"]["artifact"]["metadata"]["org.opencontainers.image.revision"] = json!(format!("main@sha1:{NEW}"));
    assert_eq!(judged(&oci, &object).commits, [format!("main@sha1:{NEW}")]);
    let applied = json!({"spec": {"sourceRef": {"kind": "OCIRepository", "name": "a"}}, "status": {
        "lastAppliedRevision": format!("latest@sha256:{}", "a".repeat(64)),
        "lastAppliedOriginRevision": format!("main@sha1:{NEW}")}});
    assert_eq!(judged(&kustomization(), &applied).commits, [format!("main@sha1:{NEW}")]);
}

#[test]
fn an_oci_helm_repository_needs_no_status() {
    let kind = Kind::new(SOURCES, "HelmRepository");
    assert_eq!(judged(&kind, &json!({"spec": {"type": "oci", "url": "oci://r"}})).standing, Standing::Ready);
    assert_eq!(judged(&kind, &json!({"spec": {"url": "https://r"}})).standing, Standing::Progressing);
}

#[test]
fn a_helm_release_tells_its_chart_and_after_a_rollback_what_went_wrong() {
    let object = json!({
        "spec": {"chart": {"spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "app", "namespace": "apps"}}}},
        "status": {
            "helmChart": "apps/flux-system-web", "lastAttemptedRevision": "1.3.0",
            "history": [
                {"chartVersion": "1.3.0", "status": "failed"},
                {"chartVersion": "1.2.0", "status": "deployed"},
            ],
            "conditions": [
                condition("Ready", "False", "RollbackSucceeded", "Helm rollback to previous release succeeded"),
                condition("Remediated", "True", "RollbackSucceeded", "Helm rollback to previous release succeeded"),
                condition("Released", "False", "UpgradeFailed", "Helm upgrade failed: context deadline exceeded"),
            ],
        },
    });
    let judged = judged(&helm_release(), &object);
    assert_eq!((judged.standing, judged.reason.as_str()), (Standing::Failed, "UpgradeFailed"));
    assert_eq!(judged.message, "Helm upgrade failed: context deadline exceeded");
    assert_eq!(judged.revision.as_deref(), Some("1.2.0"));
    assert_eq!(
        judged.sources,
        [
            Name::new(Kind::new(SOURCES, "HelmChart"), Some("apps"), "flux-system-web"),
            Name::new(git(), Some("apps"), "app"),
        ]
    );
    assert!(judged.commits.is_empty());
}
