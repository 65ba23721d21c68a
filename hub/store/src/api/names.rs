//! Names that there are: what a filter may mention.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;

use super::conditions::own;
use crate::catalog::{Kind, Visible};
use crate::statement::Statement;
use crate::{Store, StoreError};

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Environment,
    ClusterType,
    Ring,
    Workload,
    Workspace,
    Site,
    Assignment,
    Target,
    Cluster,
    /// A key of the labels that clusters have.
    ClusterLabel,
}

/// Names that are looked at for the nearest.
const MOST: i64 = 20_000;

impl NameKind {
    pub fn as_str(self) -> &'static str {
        match self {
            NameKind::Environment => "environment",
            NameKind::ClusterType => "cluster type",
            NameKind::Ring => "ring",
            NameKind::Workload => "workload",
            NameKind::Workspace => "workspace",
            NameKind::Site => "site",
            NameKind::Assignment => "assignment",
            NameKind::Target => "deployment target",
            NameKind::Cluster => "cluster",
            NameKind::ClusterLabel => "label of clusters",
        }
    }
}

impl Store {
    /// Names that the caller may see, of one environment or of all. What clusters are in counts too where it isn't described
    /// any more.
    pub async fn names(
        &self,
        kind: NameKind,
        visible: &Visible,
        environment: Option<&str>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut names = BTreeSet::new();
        let statements = match kind {
            NameKind::Environment => {
                vec![Statement::new("SELECT DISTINCT k.environment FROM population AS k WHERE k.count <> 0")]
            }
            NameKind::ClusterType => {
                vec![Statement::new("SELECT DISTINCT k.cluster_type FROM population AS k WHERE k.count <> 0")]
            }
            NameKind::Ring => vec![Statement::new("SELECT DISTINCT k.ring FROM population AS k WHERE k.count <> 0")],
            NameKind::Site => {
                vec![Statement::new(
                    "SELECT DISTINCT k.site FROM clusters AS k WHERE k.site IS NOT NULL AND k.state = 'active'",
                )]
            }
            NameKind::Cluster => {
                vec![Statement::new("SELECT DISTINCT k.name FROM clusters AS k WHERE k.state = 'active'")]
            }
            NameKind::ClusterLabel => {
                vec![Statement::new("SELECT DISTINCT k.labels FROM clusters AS k WHERE k.state = 'active'")]
            }
            NameKind::Workspace | NameKind::Workload | NameKind::Assignment | NameKind::Target => Vec::new(),
        };
        for mut statement in statements {
            if let Some(environment) = environment {
                statement.text(" AND k.environment = ?", environment);
            }
            own(&mut statement, visible);
            statement.number(" LIMIT ?", MOST);
            for row in statement.fetch(self).await? {
                let name: String = row.try_get(0)?;
                match kind {
                    NameKind::ClusterLabel => names.extend(keys(&name)?),
                    _ => _ = names.insert(name),
                }
            }
        }
        let described = match kind {
            NameKind::Environment => Some(Kind::Environment),
            NameKind::ClusterType => Some(Kind::ClusterType),
            NameKind::Workload => Some(Kind::Workload),
            NameKind::Assignment => Some(Kind::Assignment),
            NameKind::Target => Some(Kind::DeploymentTarget),
            NameKind::Ring | NameKind::Site | NameKind::Workspace | NameKind::Cluster | NameKind::ClusterLabel => None,
        };
        if let Some(described) = described {
            names.extend(self.described(described, visible, environment).await?);
        }
        if kind == NameKind::Workspace {
            match visible {
                Visible::Workspaces(workspaces) => names.extend(workspaces.iter().cloned()),
                Visible::All => {
                    let statement = Statement::new(
                        "SELECT DISTINCT workspace FROM catalog WHERE kind = 'workload' AND workspace <> ''",
                    );
                    for row in statement.fetch(self).await? {
                        names.insert(row.try_get(0)?);
                    }
                }
            }
        }
        Ok(names)
    }
}

/// The keys of a cluster's labels as they are stored.
fn keys(labels: &str) -> Result<Vec<String>, StoreError> {
    let labels: BTreeMap<String, String> =
        serde_json::from_str(labels).map_err(|error| StoreError::Corrupt(format!("a cluster's labels: {error}")))?;
    Ok(labels.into_keys().collect())
}
