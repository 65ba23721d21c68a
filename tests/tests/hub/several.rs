//! Two hubs on one PostgreSQL: both serve, one publishes. A kill -9 of that one, and the other goes on within seconds; no
//! generation is lost or issued twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kedge_tests::lab::await_true;
use kedge_tests::lab::git_server::Webhook;
use kedge_tests::lab::hub::Hub;
use kedge_tests::world::api::Api;
use kedge_tests::world::{Database, HOOK_SECRET, SOON, World, platform_token, sample};

/// The next push is published by the other one in this time.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(10);

/// A second hub beside the world's own, with the same database, keys and packages.
struct Pair {
    world: World,
    second: Hub,
    second_api: Api,
}

impl Pair {
    fn start() -> Option<Pair> {
        let shared = tempfile::Builder::new().prefix("kedge-shared-").tempdir().unwrap().keep();
        let mut world = World::start_with(Database::Postgres, |settings, _| {
            settings.poll = "1s".to_owned();
            settings.keys = Some(shared.join("keys"));
            settings.packages.push(format!("folder = {:?}", shared.join("packages").display().to_string()));
        })?;
        let mut second = Hub::prepare(|places| world.settings.text(places))?;
        second.start_again();
        world.meet();
        let second_api = Api::at(&second.url("")).with_token(&platform_token(&world.hub));
        Some(Pair { world, second, second_api })
    }

    /// Sends webhooks to whom a load balancer would choose.
    fn notify(&self, hub: &Hub) {
        for name in sample::REPOSITORIES {
            self.world.git.notify(name, Webhook { url: hub.url("/hooks/git"), secret: HOOK_SECRET.to_owned() });
        }
    }
}

fn leads(api: &Api) -> bool {
    let text = api.ask(http::Method::GET, "/metrics", None, &[]).text;
    text.lines().any(|line| line.starts_with("kedge_hub_leader") && line.ends_with(" 1"))
}

#[test]
fn a_killed_leader_is_followed_by_the_other_within_ten_seconds() {
    let Some(mut pair) = Pair::start() else { return };
    pair.world.await_first_states();
    assert!(leads(&pair.world.api) && !leads(&pair.second_api), "the first leads");
    await_true("the second serves the same states", SOON, || {
        pair.second_api.generation("dev", "drone") == pair.world.api.generation("dev", "drone")
    });
    let mut issued = BTreeMap::from([(1, pair.world.api.envelope("dev", "drone", 1))]);

    pair.world.sample.change_drones("Before");
    pair.world.await_generation("dev", "drone", 2);
    issued.insert(2, pair.world.api.envelope("dev", "drone", 2));
    pair.world.hub.kill();
    let killed = Instant::now();
    pair.notify(&pair.second);
    pair.world.sample.change_drones("After");
    await_true("the other publishes", TAKEN_OVER_WITHIN, || pair.second_api.generation("dev", "drone") == Some(3));
    assert!(killed.elapsed() < TAKEN_OVER_WITHIN, "{:?} after the kill", killed.elapsed());
    issued.insert(3, pair.second_api.envelope("dev", "drone", 3));

    // The killed one comes back as a follower, and the same happens the other way round.
    pair.world.hub.start_again();
    assert!(!leads(&pair.world.api) && leads(&pair.second_api));
    await_true("it serves what it missed", SOON, || pair.world.api.generation("dev", "drone") == Some(3));
    pair.second.kill();
    pair.notify(&pair.world.hub);
    pair.world.sample.change_drones("And back");
    await_true("the first publishes again", TAKEN_OVER_WITHIN, || pair.world.api.generation("dev", "drone") == Some(4));
    for (generation, envelope) in issued {
        assert_eq!(pair.world.api.envelope("dev", "drone", generation), envelope, "generation {generation}");
    }
    let commits = pair.world.sample.gitops.git(["ls-remote", "origin", "refs/heads/dev"]);
    assert!(commits.contains(&pair.world.git.head("gitops", "dev").unwrap()));
    let published = pair.world.sample.published("dev");
    assert!(pair.world.rendered("dev").iter().all(|(path, bytes)| published.get(path) == Some(bytes)));
}

#[test]
fn a_stopped_leader_hands_over_at_once_and_both_answer_meanwhile() {
    let Some(mut pair) = Pair::start() else { return };
    pair.world.await_first_states();
    await_true("the second is ready", SOON, || pair.second_api.generation("dev", "drone") == Some(1));
    assert_eq!(pair.world.hub.stop().code(), Some(0));
    await_true("the second leads", TAKEN_OVER_WITHIN, || leads(&pair.second_api));
    pair.notify(&pair.second);
    pair.world.sample.change_drones("Handed over");
    await_true("the second publishes", TAKEN_OVER_WITHIN, || pair.second_api.generation("dev", "drone") == Some(2));
}
