//! Puts the modules together and runs them until told to stop. Called by `main` and by tests. Owns every task: each gets
//! the same signal to stop, and what is under way may finish.

pub mod data;
pub mod error;
pub mod leader;
pub mod listener;
pub mod notify;
mod people;
mod work;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agents::rings::Membership;
use crate::agents::{self, AgentService, Fleet, Parts};
use crate::airgap::AirGap;
use crate::api::{self, ApiState};
use crate::config::Config;
use crate::git::Mirrors;
use crate::keys::Keys;
use crate::metrics::own::Own;
use crate::metrics::{At, Metrics};
use crate::pack::{Blobs, Configurations};
use crate::platform::PlatformReader;
use crate::preview::Previews;
use crate::promotion::{self, Branches};
use crate::publish::Publisher;
use crate::rollout;
use crate::signal::stopped;
use crate::state::{self, DesiredStateCache};
use crate::status::StatusIntake;
use crate::store::{Store, StoreError, now};
use crate::web;
use data::{DataFolder, FirstTokens};
pub use error::RunError;
use people::People;
use work::Work;

/// A hub that serves.
#[derive(Debug)]
pub struct Hub {
    /// Where people and programs, and where agents are served: the real ports, also when 0 was asked for.
    pub api: SocketAddr,
    pub agents: SocketAddr,
    /// Where metrics are served without a token, if the configuration says so.
    pub metrics_address: Option<SocketAddr>,
    /// Written by this start: the files with the first tokens.
    pub first_tokens: Option<FirstTokens>,
    pub store: Store,
    pub keys: Keys,
    pub metrics: Arc<Metrics>,
    pub desired_states: Arc<DesiredStateCache>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<Result<&'static str, RunError>>,
    _data: DataFolder,
}

/// The modules that several others reach.
#[derive(Clone, Debug)]
struct Services {
    mirrors: Mirrors,
    reader: PlatformReader,
    publisher: Arc<Publisher>,
    blobs: Blobs,
    intake: StatusIntake,
    rollouts: rollout::Shared,
}

/// A database that starts together with the hub gets this long.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries to open it.
const DATABASE_RETRY: Duration = Duration::from_secs(1);
/// Answers that are under way when the hub is told to stop may take so long.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How old the figures of repositories may be.
const REPOSITORIES: Duration = Duration::from_secs(5);
/// After that, tasks get a moment to notice.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Starts a hub and runs it until `shutdown` says true.
pub async fn run(config: Config, shutdown: watch::Receiver<bool>) -> Result<(), RunError> {
    Hub::start(config).await?.finish(shutdown).await
}

impl Hub {
    /// Returns once both listeners are open.
    pub async fn start(config: Config) -> Result<Hub, RunError> {
        let data = DataFolder::open(&config.data)?;
        let store = open_store(&config).await?;
        store.keep_history(config.history.keep);
        let keys = Keys::open(&config.keys, &store).await?;
        let first_tokens = data.first_tokens(&store).await?;
        if !store.has_administrator().await? {
            tracing::warn!(
                "there is no administrator, so nobody can create access tokens: run `kedge-hub administrator` on this host"
            );
        }
        let api = listener::bind(config.api.listen).await?;
        let agents = listener::bind(config.agents.listen).await?;
        let metrics = match config.metrics.listen {
            Some(address) => Some(listener::bind(address).await?),
            None => None,
        };
        let mut hub = Hub {
            api: listener::address(&api)?,
            agents: listener::address(&agents)?,
            metrics_address: metrics.as_ref().map(listener::address).transpose()?,
            first_tokens,
            store,
            keys,
            metrics: Arc::new(Metrics::new()),
            desired_states: Arc::new(DesiredStateCache::default()),
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
            _data: data,
        };
        hub.metrics.gathered.know(Own {
            data: config.data.clone(),
            packages: config.packages_folder(),
            keys: hub.keys.clone(),
            api_certificate: config.api.tls.as_ref().map(|tls| tls.certificate.clone()),
        });
        let services = hub.open_services(&config).await?;
        hub.follow_others().await?;
        let service = hub.agent_service(&config, &services);
        hub.serve_people(&config, &services, &service, (api, metrics))?;
        hub.stand(&config, &services, service.fleet());
        hub.serve_agents(service, agents);
        tracing::info!(api = %hub.api, agents = %hub.agents, address = config.agents.address, "the hub serves");
        if let Some(metrics) = hub.metrics_address {
            tracing::info!(%metrics, "serves metrics without a token");
        }
        Ok(hub)
    }

    /// Serves until `shutdown` says true or a part breaks down; then stops cleanly.
    pub async fn finish(mut self, mut shutdown: watch::Receiver<bool>) -> Result<(), RunError> {
        let outcome = tokio::select! {
            () = stopped(&mut shutdown) => Ok(()),
            ended = self.tasks.join_next() => Err(match ended {
                Some(Ok(Ok(name))) => RunError::TaskEnded(name),
                Some(Ok(Err(error))) => error,
                Some(Err(error)) => RunError::TaskFailed(error),
                None => RunError::TaskEnded("all"),
            }),
        };
        tracing::info!("the hub stops");
        self.stop.send_replace(true);
        let drained =
            tokio::time::timeout(DRAIN + LAST_MOMENT, async { while self.tasks.join_next().await.is_some() {} });
        if drained.await.is_err() {
            tracing::warn!("some work didn't end in time and was cut off");
            self.tasks.shutdown().await;
        }
        self.store.close().await;
        outcome
    }

    async fn open_services(&mut self, config: &Config) -> Result<Services, RunError> {
        let mirrors = Mirrors::new(&config.git, config.data.join("mirrors"), self.store.clone())?;
        let reader = PlatformReader::new(&config.git, mirrors.clone(), self.store.clone());
        let publisher = Arc::new(Publisher::new(mirrors.clone(), self.store.clone(), config));
        let blobs = Blobs::open(&config.packages_folder())?;
        let (intake, tasks) = StatusIntake::start(self.store.clone(), self.stop.subscribe()).await?;
        self.spawn("truth", async move {
            tasks.join_all().await;
            Ok(())
        });
        let rollouts = rollout::Shared { nudge: intake.counts_changed().clone(), ..rollout::Shared::default() };
        promotion::show_policy(&self.store, &rollouts.policies).await?;
        let policy = promotion::follow_policy(self.store.clone(), rollouts.policies.clone(), self.stop.subscribe());
        self.spawn("policy", async {
            policy.await;
            Ok(())
        });
        Ok(Services { mirrors, reader, publisher, blobs, intake, rollouts })
    }

    /// What other hubs issue and rotate is seen here within a second.
    async fn follow_others(&mut self) -> Result<(), RunError> {
        let tick = self.desired_states.load(&self.store).await?;
        let states = state::follow(self.store.clone(), Arc::clone(&self.desired_states), tick, self.stop.subscribe());
        let keys = self.keys.clone().follow(self.store.clone(), self.stop.subscribe());
        self.spawn("states", async {
            states.await;
            Ok(())
        });
        self.spawn("keys", async {
            keys.await;
            Ok(())
        });
        Ok(())
    }

    fn agent_service(&self, config: &Config, services: &Services) -> Arc<AgentService> {
        let mut settings = config.agents.clone();
        settings.names = config.server_names();
        Arc::new(AgentService::new(Parts {
            store: self.store.clone(),
            keys: self.keys.clone(),
            desired_states: Arc::clone(&self.desired_states),
            packages: Arc::new(services.blobs.clone()),
            intake: Arc::new(services.intake.clone()),
            proofs: Arc::new(state::Prover { store: self.store.clone(), keys: self.keys.clone() }),
            permits: services.intake.permits().clone(),
            policies: services.rollouts.policies.clone(),
            config: settings,
            metrics: Arc::clone(&self.metrics),
        }))
    }

    fn serve_people(
        &mut self,
        config: &Config,
        services: &Services,
        service: &AgentService,
        (listener, own): (TcpListener, Option<TcpListener>),
    ) -> Result<(), RunError> {
        let people = People {
            store: self.store.clone(),
            fleet: service.fleet().clone(),
            intake: services.intake.clone(),
            air_gap: AirGap {
                store: self.store.clone(),
                keys: self.keys.clone(),
                blobs: services.blobs.clone(),
                intake: services.intake.clone(),
            },
            mirrors: services.mirrors.clone(),
            publisher: Arc::clone(&services.publisher),
            branches: Branches::new(Arc::new(services.mirrors.clone()), config),
            previews: Previews::new(services.reader.clone(), self.store.clone()),
            configurations: Configurations::new(services.blobs.clone()),
            rollouts: services.rollouts.nudge.clone(),
            webhook_secret: config.git.webhook_secret_file.clone(),
        };
        let (metrics, stop) = (Arc::clone(&self.metrics), self.stop.subscribe());
        let state =
            ApiState::new(self.store.clone(), Arc::new(people), Arc::clone(&metrics), &config.api, stop.clone())
                .with_certificate_lifetime(config.agents.certificate_lifetime);
        let tls = listener::Tls::load(config.api.tls.as_ref())?;
        let router = api::router(state.clone()).merge(web::router(state.clone()));
        let proxies = Arc::new(config.api.trusted_proxies.clone());
        let people = listener::Served { tls, proxies, router };
        let served = listener::serve(listener, people, Arc::clone(&metrics), At::Api, stop.clone());
        self.spawn("api", async {
            served.await;
            Ok(())
        });
        let (refusing, until) = (state.clone(), stop.clone());
        self.spawn("refusals", async move {
            refusing.write_sums(until).await;
            Ok(())
        });
        if let Some(own) = own {
            let scraped = listener::Served { tls: None, proxies: Arc::default(), router: api::metrics_alone(state) };
            let served = listener::serve(own, scraped, metrics, At::Metrics, stop);
            self.spawn("metrics", async {
                served.await;
                Ok(())
            });
        }
        Ok(())
    }

    fn serve_agents(&mut self, service: Arc<AgentService>, listener: TcpListener) {
        let served = agents::serve(listener, service, self.stop.subscribe());
        self.spawn("agents", async { Ok(served.await?) });
    }

    fn stand(&mut self, config: &Config, services: &Services, fleet: &Fleet) {
        let stop = self.stop.subscribe();
        let policies = services.rollouts.policies.clone();
        let members = Membership { fleet: fleet.clone(), store: self.store.clone(), policies };
        let work = Work::new(config, self, services, members, stop.clone());
        let lead = move |term| work.clone().lead(term);
        let leading = leader::run(self.store.clone(), Arc::clone(&self.metrics), stop.clone(), lead);
        self.spawn("leader", async {
            leading.await;
            Ok(())
        });
        let figures = count_repositories(services.mirrors.clone(), Arc::clone(&self.metrics), stop);
        self.spawn("repositories", async {
            figures.await;
            Ok(())
        });
    }

    fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<(), RunError>> + Send + 'static) {
        self.tasks.spawn(async move { task.await.map(|()| name) });
    }
}

/// Keeps the figures of repositories fresh.
async fn count_repositories(mirrors: Mirrors, metrics: Arc<Metrics>, mut shutdown: watch::Receiver<bool>) {
    let mut timer = tokio::time::interval(REPOSITORIES);
    loop {
        tokio::select! {
            () = stopped(&mut shutdown) => return,
            _ = timer.tick() => {}
        }
        let all = mirrors.status();
        let failing = all.iter().filter(|repository| repository.failing.is_some()).count();
        let oldest = all.iter().filter_map(|repository| Some(repository.failing.as_ref()?.since)).min();
        let age = oldest.map_or(0, |since| ((now().0 - since.0) / 1000).max(0));
        metrics.repositories.set(i64::try_from(all.len()).unwrap_or(i64::MAX));
        metrics.repositories_failing.set(i64::try_from(failing).unwrap_or(i64::MAX));
        metrics.repository_failing_oldest.set(age);
    }
}

/// A database that isn't there yet is waited for: it may start beside the hub.
async fn open_store(config: &Config) -> Result<Store, RunError> {
    let url = database_url(config)?;
    let begun = tokio::time::Instant::now();
    loop {
        match Store::open(&url).await {
            Err(StoreError::Unavailable(error)) if begun.elapsed() < DATABASE_PATIENCE => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the database can't be reached; trying again");
                tokio::time::sleep(DATABASE_RETRY).await;
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// The database of a hub that runs, or ran, with these settings; for commands.
pub async fn join_store(config: &Config) -> Result<Store, RunError> {
    Ok(Store::join(&database_url(config)?).await?)
}

/// With the password, if that is in a file.
pub fn database_url(config: &Config) -> Result<String, RunError> {
    config.database.connection_url().map_err(|source| {
        let path = config.database.password_file.clone().unwrap_or_default();
        RunError::Password { path, source }
    })
}

#[cfg(test)]
mod tests;
