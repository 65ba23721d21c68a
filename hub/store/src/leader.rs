//! Which hub leads. On SQLite there is one hub (its data folder is locked) and it leads. On PostgreSQL the one whose
//! own connection holds the advisory lock leads: the server gives the lock free as soon as that connection is gone, and
//! the next one begins a new term, after which the old one's writes are refused. Called by `run::leader`.

use std::time::Duration;

use sqlx::{AnyConnection, Connection as _};

use super::{Backend, Store, StoreError, Term, now};

/// This hub leads for as long as `hold` doesn't return.
#[derive(Debug)]
pub struct Leadership {
    term: Term,
    /// Holds the lock; none on SQLite.
    connection: Option<AnyConnection>,
}

/// The lock's number in PostgreSQL: "kedge" and 1 in ASCII, so that it is nobody else's.
const LOCK: i64 = 0x6b65_6467_6501;
/// How often the leader asks whether its connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A server that doesn't answer for so long may have given the lock to another; stop before that one begins.
const SILENCE: Duration = Duration::from_secs(3);
/// The server's side of the same: a hub whose host died says nothing, so the server asks soon and gives up soon.
const KEEPALIVE: [&str; 4] = [
    "SET tcp_keepalives_idle = 2",
    "SET tcp_keepalives_interval = 1",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = 5000",
];

impl Store {
    /// Tries to lead. `None`: another hub does.
    pub async fn stand(&self, holder: &str) -> Result<Option<Leadership>, StoreError> {
        match self.backend() {
            Backend::Sqlite => {
                let mut tx = self.write().await?;
                let term = begin_term(tx.connection(), holder).await?;
                tx.commit().await?;
                Ok(Some(Leadership { term, connection: None }))
            }
            Backend::Postgres => {
                // Not the pool's any more: nobody else's work may end up on it, and it is never closed for being idle.
                let mut connection = self.pool().acquire().await?.detach();
                let locked = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK);
                if !locked.fetch_one(&mut connection).await? {
                    connection.close().await?;
                    return Ok(None);
                }
                for setting in KEEPALIVE {
                    sqlx::query(setting).execute(&mut connection).await?;
                }
                let term = begin_term(&mut connection, holder).await?;
                Ok(Some(Leadership { term, connection: Some(connection) }))
            }
        }
    }

    /// Who leads, in which term, since when; an empty name before the first.
    pub async fn leader(&self) -> Result<(String, Term), StoreError> {
        let row = sqlx::query_as::<_, (String, i64)>("SELECT holder, term FROM leader WHERE id = 1");
        let (holder, term) = row.fetch_one(self.pool()).await?;
        Ok((holder, Term(term)))
    }
}

impl Leadership {
    pub fn term(&self) -> Term {
        self.term
    }

    /// Returns only when this hub leads no longer.
    pub async fn hold(&mut self) -> StoreError {
        let Some(connection) = &mut self.connection else { return std::future::pending().await };
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            match tokio::time::timeout(SILENCE, connection.ping()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.into(),
                Err(_) => return StoreError::Unavailable(sqlx::Error::PoolTimedOut),
            }
        }
    }

    /// Lets the next one begin at once.
    pub async fn resign(self) {
        if let Some(connection) = self.connection {
            // The server notices the closed connection in any case.
            let _ = tokio::time::timeout(SILENCE, connection.close()).await;
        }
    }
}

async fn begin_term(connection: &mut AnyConnection, holder: &str) -> Result<Term, StoreError> {
    let next =
        sqlx::query_scalar("UPDATE leader SET term = term + 1, holder = $1, since = $2 WHERE id = 1 RETURNING term");
    Ok(Term(next.bind(holder).bind(now().0).fetch_one(connection).await?))
}

#[cfg(test)]
mod tests {
    use super::super::test_database;
    use super::*;

    #[tokio::test]
    async fn each_leadership_is_a_new_term_and_ends_the_one_before() {
        let (_folder, store) = test_database::sqlite().await;
        let first = store.stand("one").await.unwrap().unwrap();
        assert!(store.write_as(first.term()).await.is_ok());
        let second = store.stand("two").await.unwrap().unwrap();
        assert!(second.term() > first.term());
        assert!(matches!(store.write_as(first.term()).await, Err(StoreError::Fenced(_))));
        assert_eq!(store.leader().await.unwrap(), ("two".to_owned(), second.term()));
    }

    #[tokio::test]
    async fn one_of_two_hubs_on_postgres_leads_and_the_other_follows_it() {
        let Some(url) = test_database::postgres_url().await else { return };
        let (one, other) = (Store::open(&url).await.unwrap(), Store::open(&url).await.unwrap());
        let first = one.stand("one").await.unwrap().unwrap();
        assert!(other.stand("other").await.unwrap().is_none());
        first.resign().await;
        let second = stand_soon(&other, "other").await;
        assert!(matches!(one.write_as(Term(second.term().0 - 1)).await, Err(StoreError::Fenced(_))));
        assert!(other.write_as(second.term()).await.is_ok());
    }

    #[tokio::test]
    async fn a_leader_on_postgres_whose_connection_breaks_knows_it_and_another_takes_over() {
        let Some(url) = test_database::postgres_url().await else { return };
        let (one, other) = (Store::open(&url).await.unwrap(), Store::open(&url).await.unwrap());
        let mut first = one.stand("one").await.unwrap().unwrap();
        let begun = std::time::Instant::now();
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        sqlx::query(kill).execute(other.pool()).await.unwrap();
        let lost = first.hold().await;
        assert!(matches!(lost, StoreError::Unavailable(_)), "{lost:?}");
        let second = stand_soon(&other, "other").await;
        assert!(second.term() > first.term());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(matches!(one.write_as(first.term()).await, Err(StoreError::Fenced(_))));
    }

    #[tokio::test]
    async fn connections_that_the_server_of_postgres_cut_are_made_again() {
        let Some(url) = test_database::postgres_url().await else { return };
        let store = Store::open(&url).await.unwrap();
        let mut tx = store.write().await.unwrap();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
             AND pid <> pg_backend_pid()";
        let second = Store::open(&url).await.unwrap();
        sqlx::query(cut).execute(second.pool()).await.unwrap();
        let error = tx.set_meta("lost", "x").await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        drop(tx);
        let mut tx = store.write().await.unwrap();
        tx.set_meta("kept", "x").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(store.meta("lost").await.unwrap(), None);
    }

    /// The server notices a closed connection in its own time.
    async fn stand_soon(store: &Store, holder: &str) -> Leadership {
        let begun = std::time::Instant::now();
        loop {
            if let Some(leadership) = store.stand(holder).await.unwrap() {
                return leadership;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "nobody could take over");
        }
    }
}
