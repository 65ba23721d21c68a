//! Names that there are: what a filter may mention.

use std::collections::BTreeSet;

use sqlx::Row as _;

use super::conditions::own;
use crate::store::catalog::{Kind, Visible};
use crate::store::statement::Statement;
use crate::store::{Store, StoreError};

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
            NameKind::Workspace | NameKind::Workload | NameKind::Assignment => Vec::new(),
        };
        for mut statement in statements {
            if let Some(environment) = environment {
                statement.text(" AND k.environment = ?", environment);
            }
            own(&mut statement, visible);
            statement.number(" LIMIT ?", MOST);
            for row in statement.fetch(self).await? {
                names.insert(row.try_get(0)?);
            }
        }
        let described = match kind {
            NameKind::Environment => Some(Kind::Environment),
            NameKind::ClusterType => Some(Kind::ClusterType),
            NameKind::Workload => Some(Kind::Workload),
            NameKind::Assignment => Some(Kind::Assignment),
            NameKind::Ring | NameKind::Site | NameKind::Workspace => None,
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
