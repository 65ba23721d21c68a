//! The leader's whole work: the reconcilers of all environments, their rollouts, answers to proven generations, who belongs to which
//! ring, events for others, and the collecting of packages that nobody needs and of days of history that are too old. Run by
//! `run::leader` for as long as this hub leads; nothing of it outlives the future.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Hub, Services};
use crate::agents::rings::Membership;
use crate::config::{self, Config};
use crate::events::Events;
use crate::history::retention;
use crate::pack::Packer;
use crate::promotion::{self, Rollouts};
use crate::reconcile::{self, Reconcilers, Signals};
use crate::rollout::{self, RolloutController};
use crate::state::Issuer;
use crate::store::{Store, Term, now};

/// Everything that only a leader does. Cheap to clone: each term has its own.
#[derive(Clone)]
pub(super) struct Work {
    /// None: there is no control plane to reconcile.
    reconcilers: Option<Reconcilers<reconcile::Services>>,
    issuer: Arc<Issuer>,
    controller: Arc<RolloutController>,
    /// None: there is no control plane.
    promotions: Option<promotion::PromotionController>,
    packer: Arc<Packer>,
    members: Membership,
    store: Store,
    history: config::History,
    events: Events,
    stop: watch::Receiver<bool>,
}

/// What nobody needs any more has waited for days; an hour doesn't matter.
const COLLECT: Duration = Duration::from_secs(3600);

impl Work {
    pub(super) fn new(
        config: &Config,
        hub: &Hub,
        services: &Services,
        members: Membership,
        stop: watch::Receiver<bool>,
    ) -> Work {
        let Hub { store, keys, desired_states, metrics, .. } = hub;
        let mirrors = services.mirrors.clone();
        let scratch = config.data.join("scratch");
        let packer = Arc::new(Packer::new(
            store.clone(),
            services.blobs.clone(),
            Arc::new(mirrors.clone()),
            &config.packages,
            scratch,
        ));
        let (signer, confirmations) = (Arc::new(keys.clone()), Arc::new(store.clone()));
        let issuer = Arc::new(Issuer::new(store.clone(), Arc::clone(desired_states), signer, confirmations));
        let controller = Arc::new(RolloutController::new(rollout::Parts {
            store: store.clone(),
            issuer: Arc::clone(&issuer),
            shared: services.rollouts.clone(),
            describe: Arc::new(mirrors.clone()),
            metrics: Arc::clone(metrics),
            clock: now,
        }));
        let parts = promotion::Parts {
            store: store.clone(),
            mirrors: mirrors.clone(),
            witness: Arc::new(keys.clone()),
            outcomes: Arc::new(Rollouts { store: store.clone() }),
            rollouts: services.rollouts.clone(),
        };
        let promotions = promotion::PromotionController::new(config, parts);
        let reconcilers = promotions.as_ref().map(|promotions| {
            let steps = reconcile::Services {
                store: store.clone(),
                publisher: Arc::clone(&services.publisher),
                packer: Arc::clone(&packer),
                controller: Arc::clone(&controller),
                metrics: Arc::clone(metrics),
            };
            let reader = services.reader.clone();
            let signals = Signals {
                confirmations: services.publisher.confirmations(),
                downloads: packer.downloads().changed(),
                promotions: promotions.moved(),
            };
            Reconcilers::new(reader, Arc::new(steps), signals)
        });
        let events = Events::new(store.clone(), &config.events, &config.agents.address);
        let (store, history) = (store.clone(), config.history);
        Work { reconcilers, issuer, controller, promotions, packer, members, store, history, events, stop }
    }

    /// Leads until it is dropped, or until one part can't go on in this term.
    pub(super) async fn lead(self, term: Term) {
        let reconcilers = async {
            match self.reconcilers {
                Some(reconcilers) => reconcilers.lead(term).await,
                None => std::future::pending().await,
            }
        };
        let promotions = async {
            match self.promotions {
                Some(promotions) => promotions.lead(term).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = reconcilers => {}
            () = promotions => {}
            () = self.controller.lead(term) => {}
            () = collect(&self.packer) => {}
            () = self.members.keep(term) => {}
            () = self.events.lead(term) => {}
            () = retention::keep(&self.store, term, self.history) => {}
            () = watch_floors(&self.issuer, term, self.stop) => {}
        }
    }
}

/// Returns only when this term can't go on.
async fn watch_floors(issuer: &Issuer, term: Term, stop: watch::Receiver<bool>) {
    match issuer.watch_floors(term, stop).await {
        // The hub stops; so does its leader, whoever notices first.
        Ok(()) => std::future::pending().await,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "proven generations can't be answered in this term");
        }
    }
}

/// Deletes packages for ever; a failure waits for the next time.
async fn collect(packer: &Packer) {
    let mut timer = tokio::time::interval(COLLECT);
    loop {
        timer.tick().await;
        if let Err(error) = packer.collect().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "packages that nobody needs can't be deleted now");
        }
    }
}
