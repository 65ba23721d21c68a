//! Promotion over real repositories: who is let in where, what Git says afterwards, and what a crash or a race changes.

mod whole;
mod witnessed;

use kedge_model::{Kind, ObjectId, Spec};
use kedge_rollout::chain::OutcomeState;
use kedge_rollout::{PromotionPhase, Say};

use super::testing::{TERM, World, key};
use crate::config::ForgeKind;
use crate::git::testing::{Remote as Origin, Server, git};
use crate::publish::forge::fake::Fake;
use crate::store::promotion::evidence::EvidenceFilter;

const LINE: &str = "apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  environments:
    - {name: dev, soak: 1m}
    - {name: prod, soak: 1m}
";

const LOOSER: &str = "apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  environments:
    - {name: dev, soak: 1s}
    - {name: prod, soak: 1s}
";

const GRAPH: &str = "apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
    - {name: perf, after: [dev]}
    - {name: prod, after: [qa, perf]}
";

const EXTERNAL: &str = "apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  promoter: external
  environments:
    - {name: dev}
    - {name: prod}
";

#[tokio::test]
async fn the_same_commit_goes_on_when_its_gate_holds_and_evidence_is_kept() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let first = world.named("dev");
    let commit = world.commit().await;
    world.pass().await;
    assert_eq!((world.named("dev"), world.named("prod")), (commit.clone(), first.clone()));
    let message = git(&world.origin.bare, &["log", "-1", "--format=%B%an", "dev"]);
    assert!(
        message.starts_with(&format!("Promote main {} to dev\n\nchange\nby t <t@example.com>", &commit[..7])),
        "{message}"
    );
    assert!(message.ends_with(&format!("Kedge-Main-Commit: {commit}\nKedge")), "{message}");
    assert_eq!(world.row("dev").await.in_force, Some(commit.clone()));
    world.outcome("dev", &commit, OutcomeState::Moving);
    world.pass().await;
    assert_eq!(world.named("prod"), first);
    world.complete("dev", &commit).await;
    assert_eq!(world.named("prod"), commit);
    world.complete("prod", &commit).await;
    let standing = world.row("prod").await.standing;
    assert_eq!(standing.promotions[0].phase, PromotionPhase::Passed);

    let filter = EvidenceFilter { commit: Some(commit.clone()), limit: 10, ..EvidenceFilter::default() };
    let kept = world.store.evidence(&filter).await.unwrap();
    let shown: Vec<_> = kept.iter().map(|row| (row.environment.as_str(), row.event.as_str())).collect();
    assert_eq!(shown, [("prod", "passed"), ("dev", "passed")]);
    let (_, body) = world.store.one_evidence(kept[0].id).await.unwrap().unwrap();
    let statement = super::verify(body.as_bytes(), &[key().public()]).unwrap();
    assert_eq!(statement.subject[0].digest["gitCommit"], commit);
    assert!(statement.predicate.after["dev"].is_some());
    let other = kedge_model::wire::SigningKey::from_seed(&[9; 32]).unwrap().public();
    assert!(super::verify(body.as_bytes(), &[other]).is_err());
    assert!(super::verify(body.replace("eyJ", "eyK").as_bytes(), &[key().public()]).is_err());

    // Nothing is left to do: no further commit.
    let head = world.origin.head("prod");
    world.pass().await;
    assert_eq!(world.origin.head("prod"), head);
}

#[tokio::test]
async fn a_hub_that_dies_between_saving_and_pushing_pushes_when_it_is_back() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let first = world.named("dev");
    let commit = world.commit().await;
    world.faulty.dies.store(true, std::sync::atomic::Ordering::Relaxed);
    world.pass().await;
    let row = world.row("dev").await;
    assert_eq!(row.standing.current, Some(commit.clone()));
    assert_eq!((row.in_force, world.named("dev")), (Some(first.clone()), first));
    assert!(row.trouble.unwrap().contains("can't be reached"));
    world.restart();
    world.pass().await;
    let row = world.row("dev").await;
    assert_eq!((row.in_force, row.trouble, world.named("dev")), (Some(commit.clone()), None, commit));
}

#[tokio::test]
async fn somebodys_push_meanwhile_stays() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let commit = world.commit().await;
    *world.faulty.race.lock().unwrap() = Some(("dev".to_owned(), "theirs.txt".to_owned()));
    world.pass().await;
    assert_eq!(world.named("dev"), commit);
    assert_eq!(git(&world.origin.bare, &["show", "dev:theirs.txt"]), "theirs");
    assert_eq!(world.faulty.pushes.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_commit_waits_for_all_environments_before_it() {
    let mut world = World::new(&["dev", "qa", "perf", "prod"], GRAPH).await;
    let first = world.named("prod");
    let commit = world.commit().await;
    world.pass().await;
    world.complete("dev", &commit).await;
    assert_eq!((world.named("qa"), world.named("perf")), (commit.clone(), commit.clone()));
    world.complete("qa", &commit).await;
    assert_eq!(world.named("prod"), first);
    world.complete("perf", &commit).await;
    assert_eq!(world.named("prod"), commit);
}

#[tokio::test]
async fn the_newest_supersedes_and_the_list_shows_what_was_skipped() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.pass().await;
    let mut commits = Vec::new();
    for _ in 0..3 {
        commits.push(world.commit().await);
    }
    world.pass().await;
    let newest = commits.pop().unwrap();
    assert_eq!(world.named("dev"), newest);
    let standing = world.row("dev").await.standing;
    commits.reverse();
    assert!(standing.promotions[0].skipped.starts_with(&commits), "{:?}", standing.promotions[0].skipped);
    let message = git(&world.origin.bare, &["log", "-1", "--format=%B", "dev"]);
    assert!(message.contains(&format!("Skipped: {}", &commits[0][..7])), "{message}");
}

#[tokio::test]
async fn an_unpassed_commit_on_the_branch_stays_out_while_own_changes_flow() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let policy = world.commit().await;
    world.pass().await;
    world.complete("dev", &policy).await;
    world.complete("prod", &policy).await;
    let mut reader = world.environment_reader("prod").await;
    let count = |platform: &kedge_model::Platform| match &platform.objects
        [&ObjectId { kind: Kind::ConfigMap, owner: None, name: "common".to_owned() }]
        .spec
    {
        Spec::ConfigMap(map) => format!("{map:?}"),
        _ => String::new(),
    };
    let before = reader.read(TERM, None).await.unwrap().platform;
    let unpassed = world.commit().await;
    // Somebody names it, and changes a value of the environment's own.
    world.branch_with("prod", Some(&unpassed), "east").await;
    world.pass().await;
    let row = world.row("prod").await;
    let refused = row.standing.refused.clone().unwrap();
    assert_eq!((refused.commit.as_str(), refused.by.as_str()), (unpassed.as_str(), "t <t@example.com>"));
    assert_eq!((row.in_force.as_ref(), world.named("prod")), (Some(&policy), unpassed.clone()));
    let update = reader.read(TERM, None).await.unwrap();
    assert_eq!(count(&update.platform), count(&before));
    let region = &update.platform.objects[&ObjectId { kind: Kind::ConfigMap, owner: None, name: "region".to_owned() }];
    assert!(format!("{:?}", region.spec).contains("east"));
    let problem = update.platform.problems.iter().find(|problem| problem.code == "NotPromoted").unwrap();
    for part in ["prod", &unpassed[..12], "t <t@example.com>", "hasn't passed dev", &policy[..12]] {
        assert!(problem.message.contains(part), "{part}: {}", problem.message);
    }
    let way_out = format!("`kedge promote override --reason TEXT --commit {unpassed} prod`");
    assert!(problem.hint.as_ref().unwrap().contains(&way_out), "{:?}", problem.hint);
    assert!(update.platform.failing.is_empty());
    let base = &update.platform.objects[&ObjectId { kind: Kind::BaseRepo, owner: None, name: "main".to_owned() }];
    assert!(matches!(&base.spec, Spec::BaseRepo(base) if base.commit.as_deref() == Some(policy.as_str())));

    // Once it has passed it is taken.
    world.complete("dev", &unpassed).await;
    let update = reader.read(TERM, None).await.unwrap();
    assert_ne!(count(&update.platform), count(&before));
    assert!(update.platform.problems.iter().all(|problem| problem.code != "NotPromoted"));
}

#[tokio::test]
async fn an_override_lets_it_in_and_stays_in_the_evidence() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.pass().await;
    let commit = world.commit().await;
    let silent = world.say("prod", Some(&commit), Say::Override { ring: None }, "").await;
    world.pass().await;
    assert!(world.store.promotion_word(silent).await.unwrap().unwrap().refused.unwrap().contains("reason"));
    assert_ne!(world.named("prod"), commit);
    world.say("prod", Some(&commit), Say::Override { ring: None }, "the site is down").await;
    world.pass().await;
    assert_eq!(world.named("prod"), commit);
    let filter = EvidenceFilter { environment: Some("prod".to_owned()), limit: 10, ..EvidenceFilter::default() };
    let kept = world.store.evidence(&filter).await.unwrap();
    assert_eq!(kept[0].event, "overridden");
    let (_, body) = world.store.one_evidence(kept[0].id).await.unwrap().unwrap();
    let statement = super::verify(body.as_bytes(), &[key().public()]).unwrap();
    assert_eq!(statement.predicate.overrides[0].reason, "the site is down");
    assert_eq!(statement.predicate.after["dev"], None);
    let message = git(&world.origin.bare, &["log", "-1", "--format=%B", "prod"]);
    assert!(message.contains("Overridden by: bob (the site is down)"), "{message}");
}

#[tokio::test]
async fn a_pin_that_names_a_ring_which_is_not_there_is_a_problem_until_the_policy_has_it() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.commit().await;
    world.pass().await;
    let pin = "apiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata: {name: p}\nspec: {workload: hello, version: \"1\", rings: [canary]}\n";
    let base = git(&world.origin.bare, &["show", "dev:base-repo.yaml"]);
    world.origin.commit("dev", &[("base-repo.yaml", &base), ("pins/p.yaml", pin)]);
    world.fetch().await;
    let said = async |world: &World| -> Vec<String> {
        let update = world.environment_reader("dev").await.read(TERM, None).await.unwrap();
        let unknown = update.platform.problems.iter().filter(|problem| problem.code == "UnknownName");
        unknown.map(|problem| format!("{}; {}", problem.message, problem.hint.as_deref().unwrap_or_default())).collect()
    };
    let [problem] = &said(&world).await[..] else { panic!("{:?}", said(&world).await) };
    assert!(problem.contains("the ring `canary`, which dev doesn't have; its rings are all"), "{problem}");

    let rings = LINE.replacen("name: dev", "name: dev, rings: [{name: canary, share: 50%}, {name: rest}]", 1);
    assert_ne!(rings, LINE);
    world.with_policy(Some(&rings)).await;
    world.pass().await;
    world.say("", None, Say::Approve { ring: None }, "").await;
    world.pass().await;
    assert_eq!(said(&world).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_looser_policy_and_a_deleted_one_wait_for_people() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.commit().await;
    world.pass().await;
    world.with_policy(Some(LOOSER)).await;
    world.pass().await;
    let policies = world.store.policies().await.unwrap();
    assert_eq!(policies.in_force().unwrap().environments[0].rings[0].soak.as_secs(), 60);
    assert!(!policies.waiting.unwrap().reasons.is_empty());
    let update = world.environment_reader("dev").await.read(TERM, None).await.unwrap();
    assert!(
        update.platform.problems.iter().any(|problem| problem.code == "PolicyLoosened"),
        "{:?}",
        update.platform.problems
    );
    world.say("", None, Say::Approve { ring: None }, "").await;
    world.pass().await;
    let policies = world.store.policies().await.unwrap();
    assert_eq!(policies.in_force().unwrap().environments[0].rings[0].soak.as_secs(), 1);
    let kept = world.store.evidence(&EvidenceFilter { limit: 1, ..EvidenceFilter::default() }).await.unwrap();
    assert_eq!((kept[0].kind.as_str(), kept[0].event.as_str()), ("policy", "loosened"));

    world.with_policy(None).await;
    world.pass().await;
    let policies = world.store.policies().await.unwrap();
    assert!(policies.in_force().is_some() && policies.waiting.is_some());
    world
        .with_policy(Some("kind: PromotionPolicy\napiVersion: kedge.dev/v1alpha1\nmetadata: {name: x}\nspec: 7\n"))
        .await;
    world.pass().await;
    let policies = world.store.policies().await.unwrap();
    assert!(policies.in_force().is_some() && policies.broken.is_some());
    world.with_policy(None).await;
    world.say("", None, Say::Approve { ring: None }, "").await;
    world.pass().await;
    assert!(world.store.policies().await.unwrap().in_force().is_none());
    assert!(world.store.promotions().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_external_promoter_writes_itself_and_is_gated() {
    let mut world = World::new(&["dev", "prod"], EXTERNAL).await;
    let commit = world.commit().await;
    let first = world.named("dev");
    world.pass().await;
    assert_eq!(world.named("dev"), first);
    world.branch("dev", Some(&commit)).await;
    world.branch("prod", Some(&commit)).await;
    world.pass().await;
    assert_eq!(world.row("dev").await.in_force, Some(commit.clone()));
    let prod = world.row("prod").await;
    assert_eq!((prod.in_force, prod.standing.refused.unwrap().commit), (Some(first), commit.clone()));
    world.complete("dev", &commit).await;
    world.pass().await;
    assert_eq!(world.row("prod").await.in_force, Some(commit));
    assert_eq!(world.faulty.pushes.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_base_repo_without_a_commit_is_held_at_what_it_ran() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.branch("prod", None).await;
    let commit = world.commit().await;
    world.pass().await;
    assert_eq!(world.row("prod").await.in_force, Some(commit.clone()));
    assert_eq!(world.named("prod"), commit);
    let later = world.commit().await;
    world.pass().await;
    assert_eq!((world.named("dev"), world.named("prod")), (later, commit));
}

#[tokio::test]
async fn a_protected_branch_gets_one_pull_request() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("team");
    std::fs::create_dir_all(&folder).unwrap();
    let origin = Origin::new(&folder, "gitops");
    let server = Server::start(root.path());
    let url = format!("{}/team/gitops.git", server.address);
    let fake = Fake::start(ForgeKind::Gitea).await;
    fake.state().origin = Some(origin.bare.clone());
    let forge = crate::config::Forge { prefix: server.address.clone(), ..fake.config() };
    let mut world = World::over(root, origin, url, vec![forge], &["dev", "prod"], LINE).await;
    world.pass().await;
    let hook = world.origin.bare.join("hooks/update");
    std::fs::write(&hook, "#!/bin/sh\n[ \"$1\" != refs/heads/dev ] || { echo only pull requests >&2; exit 1; }\n")
        .unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let first = world.named("dev");
    let commit = world.commit().await;
    world.pass().await;
    world.pass().await;
    let row = world.row("dev").await;
    assert!(row.trouble.as_ref().unwrap().contains("merge the pull request"), "{row:?}");
    assert_eq!((row.in_force, world.named("dev")), (Some(first.clone()), first.clone()));
    assert_eq!(fake.state().pulls.len(), 1);
    assert_eq!(fake.state().pulls[0]["title"], format!("Promote main {} to dev", &commit[..7]));
    assert_eq!(world.named("kedge-promote/dev"), commit);

    // A newer commit takes the place of the one that is asked for.
    let newer = world.commit().await;
    world.restart();
    world.pass().await;
    assert_eq!((fake.state().pulls.len(), world.named("kedge-promote/dev")), (1, newer.clone()));

    // Closed is declined, until it is opened again.
    fake.set(1, serde_json::json!({"state": "closed"}));
    world.pass().await;
    assert!(world.row("dev").await.trouble.unwrap().contains("was closed"));
    fake.set(1, serde_json::json!({"state": "open"}));
    world.pass().await;
    assert!(world.row("dev").await.trouble.unwrap().contains("merge the pull request"));

    // Merged by a person.
    std::fs::remove_file(&hook).unwrap();
    git(&world.origin.bare, &["update-ref", "refs/heads/dev", "refs/heads/kedge-promote/dev"]);
    world.fetch().await;
    world.pass().await;
    let row = world.row("dev").await;
    assert_eq!((row.in_force, row.trouble), (Some(newer.clone()), None));
    assert!(git(&world.origin.bare, &["branch", "--list", "kedge-promote/dev"]).is_empty());
}

#[tokio::test]
async fn an_environment_without_a_base_repo_gets_one() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let own = crate::platform::testing::config("region", "REGION", "west");
    world.origin.commit("dev", &[("own.yaml", &own)]);
    let commit = world.commit().await;
    world.pass().await;
    assert_eq!(world.named("dev"), commit);
    let text = git(&world.origin.bare, &["show", "dev:base-repo.yaml"]);
    assert!(
        text.starts_with(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: "
        ),
        "{text}"
    );
}
