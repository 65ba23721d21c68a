//! What pairs of packages are to people: the version, the commits that they were made from, and the package that holds the
//! configuration.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::{DesiredState, Digest, Envelope, Mode, PackagesKey};
use sqlx::Row as _;

use crate::statement::Statement;
use crate::{Store, StoreError};

/// A pair of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub version: Option<String>,
    pub platform_commit: String,
    pub workload_commit: String,
    /// The platform's package; none where it isn't known any more.
    pub platform: Option<Digest>,
    pub workload: Option<Digest>,
}

/// Names of one statement.
const CHUNK: usize = 200;
/// States that are opened at once.
const STATES: i64 = 100;
/// Of a pair whose platform package nothing names any more.
const NOWHERE: &str = "-";

impl Store {
    /// Those of these pairs that were ever desired.
    pub async fn contents(&self, packages: &[String]) -> Result<BTreeMap<String, Content>, StoreError> {
        let mut found = BTreeMap::new();
        for packages in packages.chunks(CHUNK) {
            let mut statement = Statement::new(
                "SELECT packages, version, platform_commit, workload_commit, platform, workload FROM contents",
            );
            statement.list(" WHERE packages IN (", packages, ")");
            for row in statement.fetch(self).await? {
                let (platform, workload): (String, String) = (row.try_get("platform")?, row.try_get("workload")?);
                let content = Content {
                    version: row.try_get("version")?,
                    platform_commit: row.try_get("platform_commit")?,
                    workload_commit: row.try_get("workload_commit")?,
                    platform: platform.parse().ok(),
                    workload: workload.parse().ok(),
                };
                found.insert(row.try_get("packages")?, content);
            }
        }
        Ok(found)
    }

    /// Platform packages of what clusters were last known to run.
    pub async fn running_platforms(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let query = sqlx::query(
            "SELECT DISTINCT c.platform FROM counts AS k JOIN contents AS c ON c.packages = k.running \
             WHERE k.count <> 0 AND c.platform <> ''",
        );
        let mut found = BTreeSet::new();
        for row in query.fetch_all(self.pool()).await? {
            let digest: String = row.try_get(0)?;
            found.extend(digest.parse::<Digest>().ok());
        }
        Ok(found)
    }

    /// Pairs that were written down before their platform package was: the states say which it is. Done once; then there is
    /// nothing to look up.
    pub async fn name_platforms(&self) -> Result<(), StoreError> {
        let nameless = sqlx::query("SELECT packages FROM contents WHERE platform = ''").fetch_all(self.pool()).await?;
        let mut nameless =
            nameless.iter().map(|row| row.try_get(0)).collect::<Result<BTreeSet<String>, sqlx::Error>>()?;
        let mut from = (String::new(), String::new(), String::new(), 0);
        while !nameless.is_empty() {
            let states = sqlx::query(
                "SELECT environment, cluster_type, ring, generation, envelope FROM states \
                 WHERE (environment, cluster_type, ring, generation) > ($1, $2, $3, $4) \
                 ORDER BY environment, cluster_type, ring, generation LIMIT $5",
            );
            let states = states.bind(&from.0).bind(&from.1).bind(&from.2).bind(from.3).bind(STATES);
            let rows = states.fetch_all(self.pool()).await?;
            let Some(last) = rows.last() else { break };
            from = (last.try_get(0)?, last.try_get(1)?, last.try_get(2)?, last.try_get(3)?);
            let mut found = BTreeMap::new();
            for row in &rows {
                let named = named(&row.try_get::<Vec<u8>, _>(4)?);
                found.extend(named.into_iter().filter(|(packages, _)| nameless.contains(packages)));
            }
            nameless.retain(|packages| !found.contains_key(packages));
            self.set_platforms(&found).await?;
        }
        let nowhere = || (NOWHERE.to_owned(), NOWHERE.to_owned());
        self.set_platforms(&nameless.into_iter().map(|packages| (packages, nowhere())).collect()).await
    }

    async fn set_platforms(&self, found: &BTreeMap<String, Pair>) -> Result<(), StoreError> {
        if found.is_empty() {
            return Ok(());
        }
        let mut tx = self.write().await?;
        for (packages, (platform, workload)) in found {
            let query =
                sqlx::query("UPDATE contents SET platform = $1, workload = $2 WHERE packages = $3 AND platform = ''");
            let query = query.bind(platform.as_str()).bind(workload.as_str()).bind(packages.as_str());
            query.execute(tx.connection()).await?;
        }
        tx.commit().await
    }
}

/// Digests of the platform's and the workload's package.
type Pair = (String, String);

/// The pairs of a signed state. One that can't be read names none.
fn named(envelope: &[u8]) -> Vec<(String, Pair)> {
    let Ok(envelope) = Envelope::from_json(envelope) else { return Vec::new() };
    let Ok(state) = serde_json::from_slice::<DesiredState>(&envelope.payload) else { return Vec::new() };
    let named = state.entries.iter().filter_map(|entry| match &entry.mode {
        Mode::Apply(packages) => {
            let key = PackagesKey::of_packages(&packages.platform.digest, &packages.workload.digest);
            Some((key.to_string(), (packages.platform.digest.to_string(), packages.workload.digest.to_string())))
        }
        Mode::Observe(_) => None,
    });
    named.collect()
}
