//! Members of streams with what each says of its assignments, in pages: what lists of conditions are made from. Plainly
//! Converged reports have no row of their own, so a list is made from the tallies beside the documents; exceptions add their
//! reasons. Counts say which streams have anything to show, so that nobody else's clusters are looked at.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::status::prepared::Exception;
use kedge_hub_types::status::tally::{Tally, Word};
use kedge_model::wire::Stream;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::catalog::Visible;
use crate::statement::Statement;
use crate::status::{exception_of, stream_of, tally_of};
use crate::{Store, StoreError};

/// Whose conditions. Empty fields ask for nothing.
#[derive(Clone, Debug, Default)]
pub struct MemberFilter {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// An id.
    pub cluster: Option<String>,
    /// Only members that say something of one of these.
    pub assignments: Option<Vec<String>>,
    /// Only members of these.
    pub streams: Option<BTreeSet<Stream>>,
    pub among: Among,
}

/// Which members can have what is asked for. Never too few: the conditions themselves are compared afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Among {
    #[default]
    All,
    /// Those with an exception in this condition.
    With(Word),
    Drifted,
    /// Those that are silent, or say so of an assignment.
    Unknown,
}

/// How a list is walked. A page after the first goes on in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Way {
    /// From the few exceptions to their clusters.
    Few,
    /// Along the clusters of each stream.
    Along,
}

/// A list that is being walked.
#[derive(Clone, Debug)]
pub struct Walk {
    pub way: Way,
    filter: MemberFilter,
    visible: Visible,
    /// Environments in the order in which a commit reaches them; others come last, by name.
    chain: Vec<String>,
    /// Those that have anything to show, in order.
    streams: Vec<Stream>,
}

/// The place of a member in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MemberKey {
    pub stream: Stream,
    pub name: String,
    pub id: String,
}

/// A member and what it says.
#[derive(Clone, Debug)]
pub struct MemberSeen {
    pub key: MemberKey,
    /// It missed its check-in and is offline since then: what it said is what was last heard.
    pub unknown_since: Option<i64>,
    pub look_at: Option<i64>,
    pub tally: Tally,
    pub exceptions: BTreeMap<String, Exception>,
}

/// So many candidates are sorted for a page; where there are more, a page along the clusters is soon full.
const FEW: i64 = 3000;

const MEMBER: &str = "SELECT m.id, m.name, m.environment, m.cluster_type, m.ring, m.unknown_since, m.look_at, d.tally \
     FROM (SELECT k.id, k.name, k.environment, k.cluster_type, k.ring, k.unknown_since, k.look_at, ";

impl Among {
    /// The exceptions' part of a statement; every text is literal, because partial indexes are found by literals only.
    fn exceptions(self) -> Option<&'static str> {
        match self {
            Among::All => None,
            Among::With(Word::Failed) => Some(" AND c.condition = 'Failed' AND c.condition <> 'Converging'"),
            Among::With(Word::Converging) => Some(" AND c.condition = 'Converging'"),
            Among::Unknown | Among::With(Word::Unknown) => {
                Some(" AND c.condition = 'Unknown' AND c.condition <> 'Converging'")
            }
            Among::Drifted => Some(" AND c.drift IS NOT NULL"),
            // Those that have a row are the fewest.
            Among::With(Word::Converged) => None,
        }
    }

    /// What counts say of it.
    fn counted(self) -> &'static str {
        match self {
            Among::All => "",
            Among::With(Word::Converged) => " AND condition = 'Converged'",
            Among::With(Word::Converging) => " AND condition = 'Converging'",
            Among::With(Word::Failed) => " AND condition = 'Failed'",
            Among::Unknown | Among::With(Word::Unknown) => " AND condition = 'Unknown'",
            Among::Drifted => " AND condition <> 'Unknown'",
        }
    }
}

impl Store {
    /// Decides how to walk, unless a page before has. `chain`: environments in the order in which a commit reaches them.
    pub async fn walk_conditions(
        &self,
        visible: &Visible,
        filter: MemberFilter,
        chain: &[String],
        way: Option<Way>,
    ) -> Result<Walk, StoreError> {
        let way = match way {
            Some(way) => way,
            None => self.choose_way(&filter).await?,
        };
        let mut streams = match way {
            Way::Few => Vec::new(),
            Way::Along => self.counted_streams(visible, &filter).await?,
        };
        streams.sort_by(|one, other| along(chain, one).cmp(&along(chain, other)));
        Ok(Walk { way, filter, visible: visible.clone(), chain: chain.to_vec(), streams })
    }

    async fn choose_way(&self, filter: &MemberFilter) -> Result<Way, StoreError> {
        if filter.cluster.is_some() {
            return Ok(Way::Few);
        }
        let Some(exceptions) = filter.among.exceptions() else { return Ok(Way::Along) };
        let mut statement = Statement::new("SELECT COUNT(*) FROM (SELECT 1 AS one FROM conditions c WHERE 1 = 1");
        statement.push(exceptions);
        named(&mut statement, filter);
        statement.number(" LIMIT ?) AS found", FEW + 1);
        let mut found: i64 = first(&statement.fetch(self).await?)?;
        if filter.among == Among::Unknown {
            let mut statement = Statement::new(
                "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM population k WHERE presence = 'Unknown'",
            );
            scope(&mut statement, filter);
            found += first::<i64>(&statement.fetch(self).await?)?;
        }
        Ok(if found > FEW { Way::Along } else { Way::Few })
    }

    async fn counted_streams(&self, visible: &Visible, filter: &MemberFilter) -> Result<Vec<Stream>, StoreError> {
        let mut statement =
            Statement::new("SELECT DISTINCT environment, cluster_type, ring FROM counts AS k WHERE count <> 0");
        statement.push(filter.among.counted());
        if let Some(names) = &filter.assignments {
            statement.list(" AND assignment IN (", names, ")");
        }
        scope(&mut statement, filter);
        own(&mut statement, visible);
        let mut streams: Vec<Stream> =
            statement.fetch(self).await?.iter().map(stream_of).collect::<Result<_, StoreError>>()?;
        streams.retain(|stream| filter.streams.as_ref().is_none_or(|wanted| wanted.contains(stream)));
        Ok(streams)
    }

    /// The next members of a walk; none: it is at its end. `from` may be given once more, with what is left of it.
    pub async fn members_from(
        &self,
        walk: &Walk,
        from: Option<&MemberKey>,
        again: bool,
        limit: usize,
    ) -> Result<Vec<MemberSeen>, StoreError> {
        let rows = match walk.way {
            Way::Few => self.few_members(walk, from, again, limit).await?,
            Way::Along => {
                let mut rows = Vec::new();
                let begun = from.map(|from| along(&walk.chain, &from.stream));
                let passed = |stream: &&Stream| begun.as_ref().is_some_and(|begun| along(&walk.chain, stream) < *begun);
                for stream in walk.streams.iter().skip_while(passed) {
                    let from = from.filter(|from| from.stream == *stream);
                    rows.extend(self.members_along(walk, stream, from, again, limit - rows.len()).await?);
                    if rows.len() >= limit {
                        break;
                    }
                }
                rows
            }
        };
        let mut members: Vec<MemberSeen> = rows.iter().map(member).collect::<Result<_, StoreError>>()?;
        self.add_exceptions(&mut members).await?;
        Ok(members)
    }

    async fn few_members(
        &self,
        walk: &Walk,
        from: Option<&MemberKey>,
        again: bool,
        limit: usize,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let filter = &walk.filter;
        let mut statement = Statement::new(MEMBER);
        place(&mut statement, &walk.chain);
        statement.push(" AS place FROM ");
        match (&filter.cluster, filter.among.exceptions()) {
            (Some(cluster), _) => statement.text("clusters k WHERE k.state = 'active' AND k.id = ?", cluster),
            (None, exceptions) => {
                statement.push("(SELECT c.cluster FROM conditions c WHERE 1 = 1");
                statement.push(exceptions.unwrap_or_default());
                named(&mut statement, filter);
                if filter.among == Among::Unknown {
                    statement.push(
                        " UNION SELECT cluster FROM (SELECT k.id AS cluster FROM clusters k \
                         WHERE k.unknown_since IS NOT NULL AND k.state = 'active'",
                    );
                    scope(&mut statement, filter);
                    // The order of the index of the silent, so that it is taken.
                    statement.number(
                        " ORDER BY k.environment, k.cluster_type, k.ring, k.unknown_since LIMIT ?) AS silent",
                        i64::MAX,
                    );
                } else {
                    statement.push(" GROUP BY c.cluster");
                }
                // SQLite takes a cross join in the order in which it is written: from the few to their clusters.
                statement.push(") AS hit CROSS JOIN clusters k WHERE k.id = hit.cluster AND k.state = 'active'");
            }
        }
        scope(&mut statement, filter);
        own(&mut statement, &walk.visible);
        if let Some(from) = from {
            statement.push(" AND (");
            place(&mut statement, &walk.chain);
            statement.push(", k.environment, k.cluster_type, k.ring, k.name, k.id)");
            let passed = number(along(&walk.chain, &from.stream).0);
            statement.number(if again { " >= (?" } else { " > (?" }, passed);
            statement.text(", ?", &from.stream.environment);
            statement.text(", ?", &from.stream.cluster_type);
            statement.text(", ?", &from.stream.ring);
            statement.text(", ?", &from.name);
            statement.text(", ?)", &from.id);
        }
        statement.number(
            " ORDER BY place, k.environment, k.cluster_type, k.ring, k.name, k.id LIMIT ?) AS m \
             LEFT JOIN documents d ON d.cluster = m.id \
             ORDER BY m.place, m.environment, m.cluster_type, m.ring, m.name, m.id",
            number(limit),
        );
        statement.fetch(self).await
    }

    async fn members_along(
        &self,
        walk: &Walk,
        stream: &Stream,
        from: Option<&MemberKey>,
        again: bool,
        limit: usize,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let filter = &walk.filter;
        let mut statement = Statement::new(MEMBER);
        statement
            .text("0 AS place FROM clusters k WHERE k.state = 'active' AND k.environment = ?", &stream.environment);
        statement.text(" AND k.cluster_type = ?", &stream.cluster_type);
        statement.text(" AND k.ring = ?", &stream.ring);
        if let Some(exceptions) = filter.among.exceptions() {
            statement.push(match filter.among {
                Among::Unknown => {
                    " AND (k.unknown_since IS NOT NULL OR EXISTS (SELECT 1 FROM conditions c WHERE c.cluster = k.id"
                }
                _ => " AND (EXISTS (SELECT 1 FROM conditions c WHERE c.cluster = k.id",
            });
            statement.push(exceptions);
            named(&mut statement, filter);
            statement.push("))");
        }
        if let Some(from) = from {
            statement.text(if again { " AND (k.name, k.id) >= (?" } else { " AND (k.name, k.id) > (?" }, &from.name);
            statement.text(", ?)", &from.id);
        }
        statement.number(
            " ORDER BY k.name, k.id LIMIT ?) AS m LEFT JOIN documents d ON d.cluster = m.id ORDER BY m.name, m.id",
            number(limit),
        );
        statement.fetch(self).await
    }

    async fn add_exceptions(&self, members: &mut [MemberSeen]) -> Result<(), StoreError> {
        let has = |member: &&MemberSeen| member.tally.0.values().any(|tallied| tallied.3.is_some());
        let ids: Vec<String> = members.iter().filter(has).map(|member| member.key.id.clone()).collect();
        let mut found: BTreeMap<String, BTreeMap<String, Exception>> = BTreeMap::new();
        for ids in ids.chunks(200) {
            let mut statement = Statement::new("SELECT * FROM conditions");
            statement.list(" WHERE cluster IN (", ids, ")");
            for row in statement.fetch(self).await? {
                let of = found.entry(row.try_get("cluster")?).or_default();
                of.insert(row.try_get("assignment")?, exception_of(&row)?);
            }
        }
        for member in members {
            member.exceptions = found.remove(&member.key.id).unwrap_or_default();
        }
        Ok(())
    }
}

/// Where a stream stands in a list: those of an environment together, environments as a commit reaches them.
fn along<'a>(chain: &[String], stream: &'a Stream) -> (usize, &'a Stream) {
    (chain.iter().position(|name| *name == stream.environment).unwrap_or(chain.len()), stream)
}

/// The same place as an expression of a statement in which `k` has a stream.
fn place(statement: &mut Statement, chain: &[String]) {
    statement.push("CASE k.environment");
    for (place, name) in chain.iter().enumerate() {
        statement.text(" WHEN ?", name);
        statement.number(" THEN ?", number(place));
    }
    // SQL knows no CASE without a WHEN; no environment has no name.
    statement.number(" WHEN '' THEN ?", number(chain.len()));
    statement.number(" ELSE ? END", number(chain.len()));
}

/// Part of a statement in which `k` has a stream.
pub(super) fn scope(statement: &mut Statement, filter: &MemberFilter) {
    let fields: [(&'static str, &Option<String>); 3] = [
        (" AND k.environment = ?", &filter.environment),
        (" AND k.cluster_type = ?", &filter.cluster_type),
        (" AND k.ring = ?", &filter.ring),
    ];
    for (part, value) in fields {
        if let Some(value) = value {
            statement.text(part, value);
        }
    }
}

/// Part of a statement in which `k` has a stream: those with an assignment of the caller's.
pub(super) fn own(statement: &mut Statement, visible: &Visible) {
    let Visible::Workspaces(workspaces) = visible else { return };
    statement.list(
        " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
         AND own.environment = k.environment AND own.parent = k.cluster_type AND own.workspace IN (",
        workspaces,
        "))",
    );
}

fn named(statement: &mut Statement, filter: &MemberFilter) {
    if let Some(names) = &filter.assignments {
        statement.list(" AND c.assignment IN (", names, ")");
    }
}

fn member(row: &AnyRow) -> Result<MemberSeen, StoreError> {
    Ok(MemberSeen {
        key: MemberKey { stream: stream_of(row)?, name: row.try_get("name")?, id: row.try_get("id")? },
        unknown_since: row.try_get("unknown_since")?,
        look_at: row.try_get("look_at")?,
        tally: tally_of(row)?.unwrap_or_default(),
        exceptions: BTreeMap::new(),
    })
}

fn first<'r, T: sqlx::Decode<'r, sqlx::Any> + sqlx::Type<sqlx::Any>>(rows: &'r [AnyRow]) -> Result<T, StoreError> {
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("a count without a row".to_owned()))?;
    Ok(row.try_get(0)?)
}

fn number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
