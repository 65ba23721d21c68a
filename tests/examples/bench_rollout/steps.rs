//! The steps from ring to ring: the hub's own controller on the hub's own database, with the clock on each pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use kedge_hub::config::Config;
use kedge_hub::keys::Keys;
use kedge_hub::rollout::{Describe, Parts, Policies, RolloutController, Shared};
use kedge_hub::state::{DesiredStateCache, Issuer};
use kedge_hub::store::{Store, now};
use kedge_model::kinds::{EnvironmentPolicy, Promoter, PromotionPolicy, Ring};
use kedge_tests::world::cluster::block_on;
use kedge_tests::world::plant::{Plant, assignment};
use sqlx::AnyPool;

use super::fill::{ENVIRONMENT, Members, converge};
use super::{RINGS, ring};

/// Nobody asks who wrote a commit here.
struct Nobody;

impl Describe for Nobody {
    fn describe(&self, _: &str, _: &str) -> Option<(String, String)> {
        None
    }
}

/// All clusters report what their streams hold.
pub fn report(plant: &Plant, members: &Members, keys: &BTreeMap<String, String>) {
    block_on(async {
        let pool = pool(plant).await;
        say(&pool, members, keys).await;
        pool.close().await;
    });
}

async fn say(pool: &AnyPool, members: &Members, keys: &BTreeMap<String, String>) {
    for (cluster_type, key) in keys {
        let own = members.iter().filter(|((name, _), _)| name == cluster_type);
        let own: Members = own.map(|(stream, count)| (stream.clone(), *count)).collect();
        converge(pool, assignment(ENVIRONMENT), key, &own).await;
    }
}

async fn pool(plant: &Plant) -> AnyPool {
    sqlx::any::install_default_drivers();
    let config = Config::load(&plant.world.hub.config()).expect("the hub's settings");
    AnyPool::connect(&config.database.url).await.unwrap()
}

/// Ring by ring its clusters converge, and the pass that sees it lets the next one begin. Milliseconds of each.
pub fn measure(plant: &Plant, rings: Vec<Ring>, members: &Members, target: &BTreeMap<String, String>) -> Vec<f64> {
    let config = Config::load(&plant.world.hub.config()).expect("the hub's settings");
    block_on(async {
        let store = Store::open(&config.database.url).await.unwrap();
        let keys = Keys::open(&config.keys, &store).await.unwrap();
        let term = store.stand("bench").await.unwrap().expect("nobody else leads").term();
        let intake = Arc::new(store.clone());
        let issuer =
            Arc::new(Issuer::new(store.clone(), Arc::new(DesiredStateCache::default()), Arc::new(keys), intake));
        let policies = Policies::new();
        let environment = EnvironmentPolicy { rings, ..EnvironmentPolicy::new(ENVIRONMENT, Vec::new()) };
        policies.set(Some(&PromotionPolicy { promoter: Promoter::Kedge, environments: vec![environment] }));
        let controller = RolloutController::new(Parts {
            store: store.clone(),
            issuer,
            shared: Shared { policies, ..Shared::default() },
            describe: Arc::new(Nobody),
            metrics: Arc::default(),
            clock: now,
        });
        let pool = pool(plant).await;
        // The first pass of a term reads what is there.
        controller.pass(term, ENVIRONMENT).await.unwrap();
        let mut times = Vec::new();
        for number in 0..RINGS {
            let here = members.iter().filter(|((_, name), _)| *name == ring(number));
            let here: Members = here.map(|(stream, count)| (stream.clone(), *count)).collect();
            say(&pool, &here, target).await;
            let began = Instant::now();
            let passed = controller.pass(term, ENVIRONMENT).await.unwrap();
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            assert!(!passed.moved.is_empty(), "{} lets nothing go on", ring(number));
        }
        pool.close().await;
        store.close().await;
        times
    })
}
