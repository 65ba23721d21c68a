//! The cluster's own source of the platform's branch, and which watches a state asks for.

use kedge_model::wire::{
    DesiredState, Digest, Entry, Generation, Mode, ObjectRef, Observation, PlatformSource, Stream, Timestamp,
};

use super::super::judged::Reads;
use super::super::platform::{Platform, platform, same_repo};
use super::super::wanted::Wanted;
use super::*;

const PUBLISHED: Timestamp = Timestamp(1_794_830_400_000);
const SOON: Timestamp = Timestamp(PUBLISHED.0 + 60_000);
const LATER: Timestamp = Timestamp(PUBLISHED.0 + 11 * 60_000);

fn state() -> DesiredState {
    let object = |api_version: &str, kind: &str, name: &str| ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: Some("apps".to_owned()),
        name: name.to_owned(),
    };
    let observation = Observation {
        objects: vec![
            object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "app"),
            object("notification.toolkit.fluxcd.io/v1beta3", "Alert", "app"),
            object("v1", "Secret", "token"),
        ],
        expected_commit: None,
        content: Digest::of(b"x"),
    };
    DesiredState {
        stream: Stream::new("dev", "drone", "all"),
        generation: Generation(3),
        created_at: PUBLISHED,
        confirmed: 1,
        entries: vec![Entry {
            assignment: "app".to_owned(),
            mode: Mode::Observe(observation),
            restart: 0,
            requires: Vec::new(),
        }],
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: Some(PlatformSource {
            repo: "https://git.example.com/platform/gitops".to_owned(),
            branch: "dev".to_owned(),
            path: ".".to_owned(),
            commit: NEW.to_owned(),
        }),
        turns: false,
        requires: Vec::new(),
    }
}

fn reader(commit: &str) -> Judged {
    let revision = format!("dev@sha1:{commit}");
    Judged {
        standing: Standing::Ready,
        revision: Some(revision.clone()),
        commits: vec![revision],
        reads: Some(Reads {
            repo: "ssh://git@git.example.com:22/platform/gitops.git".to_owned(),
            branch: Some("dev".to_owned()),
        }),
        ..Judged::default()
    }
}

fn applier(commit: &str, path: &str) -> Judged {
    Judged {
        sources: vec![Name::new(git(), Some("flux-system"), "platform")],
        path: Some(path.to_owned()),
        reads: None,
        ..reader(commit)
    }
}

fn known(objects: &[(Kind, &str, Judged)], now: Timestamp) -> Platform {
    let state = state();
    platform(&state, Wanted::of(&state).wide(), &facts(objects), now).unwrap()
}

#[test]
fn a_branch_that_is_read_and_applied_is_a_fact() {
    for path in ["./drone", "drone/", "./", ""] {
        let known = known(&[(git(), "platform", reader(NEW)), (kustomization(), "all", applier(NEW, path))], LATER);
        assert_eq!((known.warning, known.behind), (None, None), "{path}");
        let fact = format!(
            "GitRepository flux-system/platform at dev@sha1:{NEW}, Kustomization flux-system/all at dev@sha1:{NEW}"
        );
        assert_eq!(known.fact.unwrap(), fact);
    }
}

#[test]
fn a_branch_that_nothing_reads_is_a_warning() {
    let known = known(&[], SOON);
    assert_eq!(
        known.warning.unwrap(),
        "nothing in this cluster reads the branch dev of https://git.example.com/platform/gitops: what is published \
         doesn't arrive"
    );
    assert_eq!(known.behind, None);
}

#[test]
fn a_branch_that_nothing_applies_is_a_warning() {
    let objects = [(git(), "platform", reader(NEW)), (kustomization(), "other", applier(NEW, "./large"))];
    assert!(known(&objects, SOON).warning.unwrap().ends_with("and nothing applies it"));
}

#[test]
fn who_is_behind_is_waited_for_before_it_is_a_warning() {
    let objects = [(git(), "platform", reader(NEW)), (kustomization(), "all", applier(OLD, "./drone"))];
    let soon = known(&objects, SOON);
    let behind =
        format!("Kustomization flux-system/all is at dev@sha1:{OLD}, and {NEW} of the platform's branch is expected");
    assert_eq!((soon.warning, soon.behind.as_ref()), (None, Some(&behind)));
    assert!(soon.again.unwrap() > SOON);
    let later = known(&objects, LATER);
    assert_eq!((later.warning, later.again), (Some(behind), None));
}

#[test]
fn a_failing_source_is_told_with_its_own_message() {
    let mut failing = reader(OLD);
    (failing.standing, failing.message) = (Standing::Failed, "authentication required".to_owned());
    let objects = [(git(), "platform", failing), (kustomization(), "all", applier(OLD, "./drone"))];
    assert_eq!(known(&objects, LATER).warning.unwrap(), "GitRepository flux-system/platform: authentication required");
}

#[test]
fn nothing_is_said_before_the_watches_have_listed() {
    let state = state();
    assert_eq!(platform(&state, Wanted::of(&state).wide(), &Facts::default(), SOON), None);
}

#[test]
fn one_repository_has_many_spellings() {
    let one = "https://git.example.com/platform/gitops";
    for other in [
        "https://git.example.com/platform/gitops.git",
        "https://user:secret@GIT.example.com/platform/gitops/",
        "git@git.example.com:platform/gitops.git",
        "ssh://git@git.example.com:2222/platform/gitops",
    ] {
        assert!(same_repo(one, other), "{other}");
    }
    assert!(!same_repo(one, "https://git.example.com/platform/other"));
    assert!(same_repo("file:///srv/a.git", "/srv/a"));
}

#[test]
fn only_what_is_needed_is_watched_and_secrets_never() {
    let wanted = Wanted::of(&state());
    let scopes = wanted.scopes(&Facts::default());
    let told: Vec<String> =
        scopes.iter().map(|one| format!("{} {:?} {:?}", one.kind.kind, one.namespace, one.only)).collect();
    assert_eq!(told, ["Kustomization None None", "Alert Some(\"apps\") Some(\"app\")", "GitRepository None None"]);
    let alert = scopes.iter().find(|scope| scope.kind.kind == "Alert").unwrap();
    assert_eq!(alert.version, "v1beta3");
}

#[test]
fn a_cluster_that_may_not_be_seen_whole_is_seen_by_namespace() {
    let wanted = Wanted::of(&state());
    let mut facts = Facts::default();
    for scope in wanted.scopes(&facts) {
        let fare = if scope.is_wide() { Fare::Forbidden("no".to_owned()) } else { Fare::Synced };
        facts.watches.insert(scope, Watched { fare, listed: false });
    }
    let scopes = wanted.scopes(&facts);
    assert!(scopes.iter().any(|scope| scope.kind == kustomization() && scope.only.as_deref() == Some("app")));
}

#[test]
fn what_an_object_reads_from_is_watched_once_it_is_known() {
    let wanted = Wanted::of(&DesiredState { source: None, ..state() });
    let oci = Name::new(Kind::new(SOURCES, "OCIRepository"), Some("apps"), "image");
    let mut facts = Facts::default();
    let reading = Judged { sources: vec![oci.clone()], ..Judged::default() };
    facts.objects.insert(Name::new(kustomization(), Some("apps"), "app"), reading);
    assert!(wanted.scopes(&facts).iter().any(|scope| scope.covers(&oci)));
    assert!(!wanted.scopes(&Facts::default()).iter().any(|scope| scope.covers(&oci)));
}
