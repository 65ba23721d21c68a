//! What pairs of packages are to people: the version and the commits that they were made from.

use std::collections::BTreeMap;

use sqlx::Row as _;

use crate::store::statement::Statement;
use crate::store::{Store, StoreError};

/// A pair of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub version: Option<String>,
    pub platform_commit: String,
    pub workload_commit: String,
}

/// Names of one statement.
const CHUNK: usize = 200;

impl Store {
    /// Those of these pairs that were ever desired.
    pub async fn contents(&self, packages: &[String]) -> Result<BTreeMap<String, Content>, StoreError> {
        let mut found = BTreeMap::new();
        for packages in packages.chunks(CHUNK) {
            let mut statement =
                Statement::new("SELECT packages, version, platform_commit, workload_commit FROM contents");
            statement.list(" WHERE packages IN (", packages, ")");
            for row in statement.fetch(self).await? {
                let content = Content {
                    version: row.try_get("version")?,
                    platform_commit: row.try_get("platform_commit")?,
                    workload_commit: row.try_get("workload_commit")?,
                };
                found.insert(row.try_get("packages")?, content);
            }
        }
        Ok(found)
    }
}
