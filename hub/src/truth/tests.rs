//! Intake, counts and promises against real databases: SQLite always, PostgreSQL where KEDGE_TEST_POSTGRES names a server.

pub(crate) mod fleet;
mod intake;
mod past;
mod promises;
mod recount;
