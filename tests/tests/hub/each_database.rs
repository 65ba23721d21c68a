//! Scenarios that run once on SQLite and once on PostgreSQL.

/// Makes a test of each function for each database: `MODULE::sqlite::NAME` and `MODULE::postgres::NAME`.
macro_rules! on_each_database {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(kedge_tests::world::Database::Sqlite); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::$name(kedge_tests::world::Database::Postgres); })+
        }
    };
}

pub(crate) use on_each_database;
