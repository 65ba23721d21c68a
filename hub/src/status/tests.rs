//! Intake, counts and check-ins against real databases: SQLite always, PostgreSQL where KEDGE_TEST_POSTGRES names a server.

mod check_ins;
pub(crate) mod fleet;
mod intake;
mod past;
mod recount;
mod unwarned;
