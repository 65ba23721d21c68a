//! The list of problems as it was last made, for whoever only wants to know how many there are: every page of the hub does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_api::problems::ProblemSummary;
use tokio::sync::Mutex;

use super::{changes, clusters, fold, hub, inputs, warnings};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::api::fleet::Order;
use crate::store::catalog::Visible;

/// By workspaces; none: everything is seen.
#[derive(Debug, Default)]
pub struct KnownProblems {
    lists: Mutex<BTreeMap<Option<Vec<String>>, Made>>,
}

#[derive(Clone, Debug)]
struct Made {
    at: Instant,
    tick: i64,
    list: Arc<Vec<ProblemSummary>>,
}

/// However much changes, it isn't made more often than this for numbers.
const FRESH: Duration = Duration::from_secs(1);
/// Certificates end without a change in the database.
const OLDEST: Duration = Duration::from_secs(30);
/// Teams whose lists are remembered.
const MOST: usize = 64;

impl KnownProblems {
    /// How many there are, a second ago at worst.
    pub async fn count(&self, state: &ApiState, caller: &Caller) -> Result<u64, ApiError> {
        let tick = state.ticks.current(&state.store).await?;
        let known = self.lists.lock().await.get(&key(caller)).cloned();
        let list = match known {
            Some(made) if made.at.elapsed() < FRESH => made.list,
            Some(made) if made.tick == tick && made.at.elapsed() < OLDEST => made.list,
            _ => self.fresh(state, caller).await?,
        };
        Ok(list.len() as u64)
    }

    /// As it is now.
    pub async fn fresh(&self, state: &ApiState, caller: &Caller) -> Result<Arc<Vec<ProblemSummary>>, ApiError> {
        let tick = state.ticks.current(&state.store).await?;
        let list = Arc::new(made(state, caller).await?);
        let mut lists = self.lists.lock().await;
        if lists.len() >= MOST {
            lists.clear();
        }
        lists.insert(key(caller), Made { at: Instant::now(), tick, list: Arc::clone(&list) });
        Ok(list)
    }
}

fn key(caller: &Caller) -> Option<Vec<String>> {
    match caller.visible() {
        Visible::All => None,
        Visible::Workspaces(workspaces) => Some(workspaces),
    }
}

async fn made(state: &ApiState, caller: &Caller) -> Result<Vec<ProblemSummary>, ApiError> {
    let visible = caller.visible();
    let mut found = fold::Found::default();
    if visible == Visible::All {
        hub::database(&mut found);
    }
    inputs::repositories(state, &visible, &mut found).await?;
    inputs::findings(state, &visible, &mut found).await?;
    inputs::environments(state, &visible, &mut found).await?;
    changes::rollouts(state, caller, &mut found).await?;
    if visible == Visible::All {
        changes::promotions(state, &mut found).await?;
    }
    clusters::failed(state, &visible, &mut found).await?;
    clusters::offline(state, &visible, &mut found).await?;
    clusters::identities(state, &visible, &mut found).await?;
    clusters::touched(state, &visible, &mut found).await?;
    warnings::warnings(state, &visible, &mut found).await?;
    let order = Order::of(state).await?;
    Ok(fold::fold(found, &order))
}
