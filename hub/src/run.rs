//! Puts the rooms together and runs them until told to stop. Called by `main` and by tests. Owns every task: each gets
//! the same signal to stop, and what is under way may finish.

pub mod data;
pub mod leader;
pub mod listener;
pub mod notify;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::keys::{Keys, KeysError};
use crate::metrics::{At, CONTENT_TYPE, Metrics};
use crate::store::{Store, StoreError, Term};
use data::{DataError, DataFolder};
use listener::ListenerError;

/// A hub that serves.
#[derive(Debug)]
pub struct Hub {
    /// Where people and programs, and where agents are served: the real ports, also when 0 was asked for.
    pub api: SocketAddr,
    pub agents: SocketAddr,
    /// Written by this start: the file with the first administrator's token.
    pub first_token: Option<PathBuf>,
    pub store: Store,
    pub keys: Keys,
    pub metrics: Arc<Metrics>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<&'static str>,
    _data: DataFolder,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("the database can't be opened")]
    Store(#[from] StoreError),
    #[error("the file with the database's password, {path}, can't be read")]
    Password { path: PathBuf, source: std::io::Error },
    #[error("the hub's keys can't be used")]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// A part that should run for ever ended: nothing is served rather than half.
    #[error("the task `{0}` ended")]
    TaskEnded(&'static str),
    #[error("a task broke down")]
    TaskFailed(#[source] tokio::task::JoinError),
}

/// A database that starts together with the hub gets this long.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries to open it.
const DATABASE_RETRY: Duration = Duration::from_secs(1);
/// Answers that are under way when the hub is told to stop may take so long.
pub const DRAIN: Duration = Duration::from_secs(10);
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
        let keys = Keys::open(&config.keys, &store).await?;
        let first_token = data.first_token(&store).await?;
        let metrics = Arc::new(Metrics::new());
        let api = listener::bind(config.api.listen).await?;
        let agents = listener::bind(config.agents.listen).await?;
        let mut hub = Hub {
            api: listener::address(&api)?,
            agents: listener::address(&agents)?,
            first_token,
            store,
            keys,
            metrics,
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
            _data: data,
        };
        hub.serve_api(&config, api)?;
        drop(agents);
        hub.spawn("keys", hub.keys.clone().follow(hub.store.clone(), hub.stop.subscribe()));
        let leading = leader::run(hub.store.clone(), Arc::clone(&hub.metrics), hub.stop.subscribe(), lead);
        hub.spawn("leader", leading);
        tracing::info!(api = %hub.api, agents = %hub.agents, address = config.agents.address, "the hub serves");
        Ok(hub)
    }

    /// Serves until `shutdown` says true or a part breaks down; then stops cleanly.
    pub async fn finish(mut self, mut shutdown: watch::Receiver<bool>) -> Result<(), RunError> {
        let outcome = tokio::select! {
            () = stopped(&mut shutdown) => Ok(()),
            ended = self.tasks.join_next() => Err(match ended {
                Some(Ok(name)) => RunError::TaskEnded(name),
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

    fn serve_api(&mut self, config: &Config, listener: TcpListener) -> Result<(), RunError> {
        let metrics = Arc::clone(&self.metrics);
        let numbers = move || async move {
            let text = metrics.encode().map_err(|_| http::StatusCode::INTERNAL_SERVER_ERROR)?;
            Ok::<_, http::StatusCode>(([(http::header::CONTENT_TYPE, CONTENT_TYPE)], text))
        };
        let router = axum::Router::new().route("/metrics", get(numbers)).route("/healthz", get(async || "ok\n"));
        let tls = listener::Tls::load(config.api.tls.as_ref())?;
        let served = listener::serve(listener, tls, router, Arc::clone(&self.metrics), At::Api, self.stop.subscribe());
        self.spawn("api", served);
        Ok(())
    }

    fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            task.await;
            name
        });
    }
}

async fn lead(_term: Term) {
    std::future::pending().await
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

/// Returns when the signal says stop. A sender that is gone can't say it any more; that is a stop too.
pub async fn stopped(signal: &mut watch::Receiver<bool>) {
    let _ = signal.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests;
