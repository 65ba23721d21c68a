//! The router in memory over real databases, with fakes for the other modules.

/// The same test on SQLite and, where `KEDGE_TEST_POSTGRES` names a server, on PostgreSQL.
macro_rules! on_each_database {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use crate::api::tests::fixture::Hub;

            #[tokio::test]
            async fn sqlite() {
                super::$name(Hub::new().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                if let Some(hub) = Hub::on_postgres().await {
                    super::$name(hub).await;
                }
            }
        })+
    };
}

pub(crate) mod answers;
mod commits;
mod compare;
#[cfg(feature = "figures")]
mod figures;
pub(crate) mod fixture;
mod halted;
mod history;
mod hostile;
mod people;
mod roles;
pub(crate) mod rollouts;
mod routes;
pub(crate) mod running;
mod sites;
mod standing;
mod watching;
