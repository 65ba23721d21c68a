//! Intake, counts and promises against real databases: SQLite always, PostgreSQL where KEDGE_TEST_POSTGRES names a server.

mod fleet;
mod intake;
mod promises;
mod recount;
