//! Commits of main on their way through dev, {qa, perf} and prod.

use kedge_model::kinds::{Approval, ApproverRole, Empty, EnvironmentPolicy, Promoter, Window};

use super::*;
use crate::word::{Person, Refused};

const START: i64 = 1_794_830_400_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp(START + seconds * 1_000)
}

fn policy() -> PromotionPolicy {
    let environment = |name: &str, after: &[&str]| {
        EnvironmentPolicy::new(name, after.iter().map(|name| (*name).to_owned()).collect())
    };
    // Written in the wrong order on purpose: the graph counts.
    let environments =
        vec![environment("prod", &["qa", "perf"]), environment("qa", &["dev"]), environment("perf", &["dev"]), {
            environment("dev", &[])
        }];
    PromotionPolicy { promoter: Promoter::Kedge, environments }
}

/// A chain with its facts, moved by hand.
struct World {
    chain: Chain,
    facts: ChainFacts,
}

impl World {
    fn new(policy: PromotionPolicy) -> World {
        let names = policy.environments.iter().map(|rules| rules.name.clone());
        let environments = names.map(|name| (name, EnvironmentFacts::default())).collect();
        World { chain: Chain::new(Arc::new(policy)), facts: ChainFacts { main: Vec::new(), environments } }
    }

    fn commit(&mut self, commit: &str) -> &mut World {
        let author = format!("{commit}'s author <{commit}@example.com>");
        let subject = format!("change {commit}");
        self.facts.main.insert(0, MainCommit { commit: commit.to_owned(), subject, author });
        self
    }

    fn outcome(&mut self, environment: &str, commit: &str, state: OutcomeState) -> &mut World {
        let outcome = Outcome { commit: commit.to_owned(), rollout: Some(RolloutId(1)), state, remark: None };
        self.facts.environments.get_mut(environment).unwrap().outcome = Some(outcome);
        self
    }

    fn name(&mut self, environment: &str, commit: &str, seconds: i64) -> &mut World {
        let named = Named { commit: commit.to_owned(), by: "carl".to_owned(), at: at(seconds), why: String::new() };
        self.facts.environments.get_mut(environment).unwrap().named = Some(named);
        self
    }

    fn go(&mut self, seconds: i64) -> &mut World {
        if let Some(next) = promote(&self.chain, &self.facts, at(seconds)) {
            self.chain = next;
        }
        assert_eq!(promote(&self.chain, &self.facts, at(seconds)), None);
        self
    }

    fn say(&mut self, environment: &str, commit: Option<&str>, who: &str, say: Say) -> Result<(), Refused> {
        let (who, role, reason) = (who.to_owned(), "platform".to_owned(), "because".to_owned());
        let person = Person::new(&who, &[&format!("{who}@example.org")]);
        let word = Word { who, person, role, at: at(1), reason, say, new_token: false };
        self.chain = hear_promotion(&self.chain, environment, commit, word)?;
        Ok(())
    }

    fn current(&self, environment: &str) -> Option<&str> {
        self.chain.environments[environment].current.as_deref()
    }

    fn phase(&self, environment: &str, commit: &str) -> &PromotionPhase {
        &self.chain.environments[environment].promotion(commit).unwrap().phase
    }
}

const COMPLETE: OutcomeState = OutcomeState::Complete { late_failed: 0 };

fn failed() -> OutcomeState {
    OutcomeState::Failed { why: "1 failed".to_owned() }
}

#[test]
fn a_commit_goes_on_when_all_environments_before_have_passed_it() {
    let mut world = World::new(policy());
    world.commit("a").go(0);
    assert_eq!(world.current("dev"), Some("a"));
    assert_eq!(world.current("qa"), None);
    world.outcome("dev", "a", COMPLETE).go(1);
    assert_eq!((world.current("qa"), world.current("perf"), world.current("prod")), (Some("a"), Some("a"), None));
    world.outcome("qa", "a", COMPLETE).go(2);
    assert_eq!(world.current("prod"), None);
    assert_eq!(world.chain.hindrance("prod", "a").as_deref(), Some("a hasn't passed perf: its gate doesn't hold yet"));
    world.outcome("perf", "a", COMPLETE).go(3);
    assert_eq!(world.current("prod"), Some("a"));
    assert_eq!(world.chain.environments["prod"].promotions[0].subject, "change a");
}

#[test]
fn the_newest_supersedes_and_lists_what_was_skipped() {
    let mut world = World::new(policy());
    world.commit("a").go(0).commit("b").commit("c").go(1);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Superseded { by: "c".to_owned() });
    assert_eq!(world.chain.environments["dev"].promotions[0].skipped, ["b", "a"]);
    world.outcome("dev", "c", COMPLETE).go(2).commit("d").go(3);
    assert_eq!(world.chain.environments["dev"].promotions[0].skipped, Vec::<String>::new());
    assert_eq!(world.phase("dev", "c"), &PromotionPhase::Passed);
}

#[test]
fn nothing_takes_the_place_of_what_is_beyond_its_first_ring() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", OutcomeState::Held).commit("b").go(1);
    assert_eq!(world.current("dev"), Some("a"));
    assert_eq!(world.chain.environments["dev"].promotions[0].waits_for, ["a is on its way through the rings here"]);
    world.commit("c").outcome("dev", "a", COMPLETE).go(2);
    assert_eq!(world.current("dev"), Some("c"));
    assert_eq!(world.current("qa"), Some("a"));
    assert_eq!(world.phase("dev", "b"), &PromotionPhase::Superseded { by: "c".to_owned() });
    assert_eq!(world.chain.environments["dev"].promotions[0].skipped, ["b"]);
}

#[test]
fn what_the_environments_ran_before_is_adopted_and_never_counts_as_passed() {
    let mut world = World::new(policy());
    world.commit("a").commit("b").name("dev", "b", -9).name("prod", "elsewhere", -9).go(0);
    assert_eq!(world.phase("dev", "b"), &PromotionPhase::Adopted);
    assert_eq!((world.current("dev"), world.current("prod")), (Some("b"), Some("elsewhere")));
    assert!(!world.chain.permits("qa", "b"));
    world.say("dev", Some("b"), "ben", Say::Override { ring: None }).unwrap();
    world.go(1);
    assert_eq!(world.current("qa"), Some("b"));
}

#[test]
fn an_environment_that_cannot_be_read_stays_as_it_is() {
    let mut world = World::new(policy());
    let unread = world.facts.environments.remove("dev").unwrap();
    world.commit("a").go(0);
    assert!(!world.chain.environments.contains_key("dev"));
    assert_eq!(world.say("dev", Some("a"), "ben", Say::Now).unwrap_err().reason, "NotReadYet");
    world.facts.environments.insert("dev".to_owned(), unread);
    assert_eq!(world.name("dev", "x", -9).go(1).current("dev"), Some("a"));
    assert_eq!(world.phase("dev", "x"), &PromotionPhase::Adopted);
}

#[test]
fn a_commit_named_by_hand_that_has_not_passed_is_refused_and_what_ran_stays() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", COMPLETE).go(1);
    world.commit("b").name("qa", "b", 2).go(2);
    assert_eq!(world.current("qa"), Some("a"));
    let refused = world.chain.environments["qa"].refused.clone().unwrap();
    assert_eq!((refused.commit.as_str(), refused.by.as_str(), refused.at), ("b", "carl", at(2)));
    assert_eq!(refused.why, "b hasn't passed dev: its gate doesn't hold yet");
    world.outcome("dev", "b", COMPLETE).go(3);
    assert_eq!((world.current("qa"), &world.chain.environments["qa"].refused), (Some("b"), &None));
    world.name("qa", "nowhere", 4).go(4);
    let refused = world.chain.environments["qa"].refused.clone().unwrap();
    assert_eq!(refused.why, "nowhere isn't a commit of main; nowhere hasn't passed dev: it has never been there");
}

#[test]
fn never_back_and_a_branch_that_only_lags_is_not_refused() {
    let mut world = World::new(policy());
    world.commit("a").name("dev", "a", -9).go(0).commit("b").go(10);
    assert_eq!((world.current("dev"), &world.chain.environments["dev"].refused), (Some("b"), &None));
    world.name("dev", "a", 20).go(20);
    assert_eq!(world.current("dev"), Some("b"));
    let refused = world.chain.environments["dev"].refused.clone().unwrap();
    assert_eq!(refused.why, "a is not newer than what is in force");
}

#[test]
fn an_external_promoter_is_gated() {
    let mut policy = policy();
    policy.promoter = Promoter::External;
    let mut world = World::new(policy);
    world.commit("a").go(0);
    assert_eq!(world.current("dev"), None);
    world.name("dev", "a", 1).go(1);
    assert_eq!(world.current("dev"), Some("a"));
    world.name("qa", "a", 2).go(2);
    assert_eq!((world.current("qa"), world.chain.environments["qa"].refused.is_some()), (None, true));
    world.outcome("dev", "a", COMPLETE).go(3);
    assert_eq!((world.current("qa"), world.current("perf")), (Some("a"), None));
    assert_eq!(
        world.chain.environments["perf"].promotions[0].waits_for,
        ["the workflow that promotes has not written it to the environment's branch"]
    );
}

#[test]
fn approval_and_windows_come_before_the_entry() {
    let mut policy = policy();
    // A commit of main is the platform team's to approve, whatever the ring says of applications.
    policy.environments[3].rings[0].approval =
        Some(Approval { people: 1, role: ApproverRole::Application, not_author: true });
    policy.environments[3].windows = vec![Window { days: vec![1], from: 780, to: 840, time_zone: "UTC".to_owned() }];
    let mut world = World::new(policy);
    world.commit("a").commit("b").go(0).commit("c").go(1);
    assert_eq!(world.current("dev"), None);
    let waits = &world.chain.environments["dev"].promotions[0].waits_for;
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert_eq!(world.phase("dev", "b"), &PromotionPhase::Superseded { by: "c".to_owned() });
    assert_eq!(world.say("dev", None, "c@example.com", Say::Approve { ring: None }).unwrap_err().reason, "OwnChange");
    // The author of a commit that it takes over wrote a part of it, too.
    assert_eq!(world.say("dev", None, "b@example.com", Say::Approve { ring: None }).unwrap_err().reason, "OwnChange");
    world.say("dev", None, "ben", Say::Now).unwrap();
    assert_eq!(world.go(2).current("dev"), None);
    world.say("dev", None, "ben", Say::Approve { ring: None }).unwrap();
    assert_eq!(world.go(3).current("dev"), Some("c"));
}

#[test]
fn an_override_lets_a_commit_in_and_stays_with_it() {
    let mut world = World::new(policy());
    world.commit("a").go(0);
    let no_reason = Word {
        who: "ben".to_owned(),
        person: Person::new("ben", &[]),
        role: "platform".to_owned(),
        at: at(1),
        reason: " ".to_owned(),
        say: Say::Override { ring: None },
        new_token: false,
    };
    assert_eq!(hear_promotion(&world.chain, "prod", Some("a"), no_reason).unwrap_err().reason, "ReasonNeeded");
    world.say("prod", Some("a"), "ben", Say::Override { ring: None }).unwrap();
    world.go(1);
    assert_eq!((world.current("prod"), world.current("qa")), (Some("a"), None));
    assert!(world.chain.permits("prod", "a"));
    assert_eq!(world.phase("prod", "a"), &PromotionPhase::Entered);
    assert_eq!(world.chain.environments["prod"].promotions[0].words[0].reason, "because");
}

#[test]
fn what_an_override_and_the_branch_put_ahead_is_the_only_one_that_waits() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", COMPLETE).go(1).outcome("qa", "a", OutcomeState::Held);
    world.commit("b").go(2).outcome("dev", "b", COMPLETE).go(3).commit("c");
    world.name("qa", "c", 3).say("qa", Some("c"), "ben", Say::Override { ring: None }).unwrap();
    world.go(4).go(5);
    assert_eq!(world.phase("qa", "b"), &PromotionPhase::Superseded { by: "c".to_owned() });
    assert_eq!(world.phase("qa", "c"), &PromotionPhase::Waiting);
    assert_eq!(world.chain.environments["qa"].promotions.len(), 3);
    world.outcome("qa", "a", COMPLETE).go(6);
    assert_eq!(world.current("qa"), Some("c"));
}

#[test]
fn failures_fail_it_and_a_good_outcome_later_passes_it() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", failed()).go(1);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Failed { why: "1 failed".to_owned() });
    world.outcome("dev", "a", OutcomeState::Moving).go(2);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Entered);
    world.outcome("dev", "a", COMPLETE).go(3);
    assert_eq!((world.phase("dev", "a"), world.current("qa")), (&PromotionPhase::Passed, Some("a")));
}

#[test]
fn late_failures_open_it_again_and_nothing_follows_from_it() {
    let mut policy = policy();
    policy.environments[1].windows = vec![Window { days: vec![1], from: 780, to: 840, time_zone: "UTC".to_owned() }];
    let mut world = World::new(policy);
    world.commit("a").go(0).outcome("dev", "a", COMPLETE).go(1);
    assert_eq!(world.current("qa"), None);
    world.outcome("dev", "a", OutcomeState::Complete { late_failed: 2 }).go(2);
    assert_eq!(world.chain.environments["dev"].promotions[0].late_failed, 2);
    world.outcome("dev", "a", failed()).go(3);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Reopened { why: "1 failed".to_owned() });
    assert_eq!(world.go(3_700).current("qa"), None);
    world.outcome("dev", "a", COMPLETE).go(3_701);
    assert_eq!(world.current("qa"), Some("a"));
}

#[test]
fn a_commit_that_changes_nothing_waits_for_a_person_or_the_policy() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", OutcomeState::Unchanged).go(1);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Entered);
    assert!(world.chain.environments["dev"].promotions[0].waits_for[0].starts_with("nothing to observe"));
    world.say("dev", None, "ben", Say::Approve { ring: None }).unwrap();
    assert_eq!(world.go(2).current("qa"), Some("a"));
    let mut policy = policy();
    policy.environments[3].rings[0].gate.empty = Empty::Pass;
    let mut world = World::new(policy);
    assert_eq!(world.commit("a").go(0).outcome("dev", "a", OutcomeState::Unchanged).go(1).current("qa"), Some("a"));
}

#[test]
fn a_promotion_is_not_paused_and_its_list_is_bounded() {
    let mut world = World::new(policy());
    world.commit("a").go(0);
    assert_eq!(world.say("dev", None, "ben", Say::Pause).unwrap_err().reason, "NotOfPromotions");
    assert_eq!(world.say("moon", None, "ben", Say::Now).unwrap_err().reason, "NoSuchEnvironment");
    world.outcome("dev", "a", COMPLETE).go(1);
    for number in 0..200 {
        world.commit(&format!("n{number}")).go(2 + number);
    }
    let kept = &world.chain.environments["dev"].promotions;
    assert_eq!(kept.len(), KEPT);
    assert!(kept.iter().any(|promotion| promotion.commit == "a"));
    let text = serde_json::to_string(&world.chain).unwrap();
    assert_eq!(serde_json::from_str::<Chain>(&text).unwrap(), world.chain);
}

#[test]
fn who_contains_a_break_answers_for_it_until_a_commit_with_it_has_passed() {
    let mut world = World::new(policy());
    world.commit("p").go(0).outcome("dev", "p", COMPLETE).go(1);
    world.commit("broken").go(2).outcome("dev", "broken", failed()).go(3);
    world.commit("readme").go(4).commit("more").go(5);
    let dev = &world.chain.environments["dev"];
    assert!(dev.answers_for("more", "broken", at(2)) && dev.answers_for("more", "readme", at(4)));
    assert!(!dev.answers_for("more", "p", at(0)), "what passed isn't looked at again");
    // A person says that it counts as passed: those that come later begin there.
    world.say("dev", Some("more"), "ben", Say::Override { ring: None }).unwrap();
    world.go(6).commit("next").go(7);
    let dev = &world.chain.environments["dev"];
    assert_eq!(dev.current.as_deref(), Some("next"));
    assert!(!dev.answers_for("next", "broken", at(2)) && !dev.answers_for("next", "more", at(5)));
    assert!(!dev.answers_for("next", "forgotten", at(3)) && dev.answers_for("next", "forgotten", at(8)));
}

#[test]
fn what_others_broke_stays_with_the_promotion_that_passes_all_the_same() {
    let mut world = World::new(policy());
    world.commit("a").go(0).outcome("dev", "a", COMPLETE);
    let facts = world.facts.environments.get_mut("dev").unwrap();
    facts.outcome.as_mut().unwrap().remark = Some("1 assignment is in quarantine".to_owned());
    world.go(1);
    assert_eq!(world.phase("dev", "a"), &PromotionPhase::Passed);
    assert_eq!(world.chain.environments["dev"].promotions[0].remark.as_deref(), Some("1 assignment is in quarantine"));
}

/// Main as it is after a force-push: the newest first.
fn rewrite(world: &mut World, commits: &[&str]) {
    world.facts.main.clear();
    for commit in commits.iter().rev() {
        world.commit(commit);
    }
}

/// dev, stage and prod, one behind the other; the last asks for two approvals.
fn line() -> PromotionPolicy {
    let after = |name: &str| vec![name.to_owned()];
    let mut prod = EnvironmentPolicy::new("prod", after("stage"));
    prod.rings[0].approval = Some(Approval { people: 2, role: ApproverRole::Platform, not_author: true });
    let environments = vec![EnvironmentPolicy::new("dev", vec![]), EnvironmentPolicy::new("stage", after("dev")), prod];
    PromotionPolicy { promoter: Promoter::Kedge, environments }
}

#[test]
fn after_main_was_rewritten_nothing_older_than_its_new_head_comes_anywhere() {
    let mut world = World::new(line());
    let mut second = 0;
    for commit in ["a", "b", "c", "d"] {
        for environment in ["dev", "stage"] {
            second += 1;
            world.go(second);
            if environment == "dev" {
                world.commit(commit).go(second);
            }
            world.outcome(environment, commit, COMPLETE).go(second);
        }
    }
    assert_eq!((world.current("stage"), world.phase("prod", "d")), (Some("d"), &PromotionPhase::Waiting));
    assert_eq!(world.phase("prod", "a"), &PromotionPhase::Superseded { by: "b".to_owned() });

    rewrite(&mut world, &["b", "a"]);
    world.go(20);
    assert_eq!((world.current("dev"), world.current("stage"), world.current("prod")), (Some("b"), Some("d"), None));
    assert_eq!(world.phase("dev", "b"), &PromotionPhase::Entered, "it is gated once more");
    let prod = &world.chain.environments["prod"];
    assert_eq!(world.phase("prod", "d"), &PromotionPhase::Superseded { by: "b".to_owned() });
    assert_eq!(prod.subject(), None, "nobody is asked for a commit that was superseded");

    world.outcome("dev", "b", COMPLETE).go(21);
    assert_eq!((world.current("stage"), world.current("prod")), (Some("b"), None));
    world.outcome("stage", "b", COMPLETE).go(22);
    assert_eq!(world.chain.environments["prod"].subject(), Some("b"));
}

#[test]
fn a_commit_on_top_of_a_rewritten_main_is_waited_for() {
    let mut world = World::new(line());
    for (second, commit) in (0..).step_by(10).zip(["a", "b", "d"]) {
        world.commit(commit).go(second).outcome("dev", commit, COMPLETE).go(second + 1);
        world.outcome("stage", commit, COMPLETE).go(second + 2);
    }
    rewrite(&mut world, &["x", "b", "a"]);
    world.go(40);
    assert_eq!((world.current("dev"), world.current("stage")), (Some("x"), Some("d")));
    world.outcome("dev", "x", failed()).go(41);
    assert_eq!(world.current("stage"), Some("d"), "what dev passed of the main that was doesn't count");
    world.commit("y").go(42).outcome("dev", "y", COMPLETE).go(43);
    assert_eq!(world.current("stage"), Some("y"));
}

#[test]
fn a_branch_that_names_what_was_superseded_does_not_bring_it_back_when_main_is_rewritten() {
    let mut world = World::new(line());
    for (second, commit) in (0..).step_by(10).zip(["a", "b", "d"]) {
        world.commit(commit).go(second).outcome("dev", commit, COMPLETE).go(second + 1);
    }
    // The branch lags behind what was let in.
    world.name("stage", "a", 5);
    rewrite(&mut world, &["b", "a"]);
    world.go(40).outcome("dev", "b", COMPLETE).go(41);
    assert_eq!(world.current("stage"), Some("b"));
}
