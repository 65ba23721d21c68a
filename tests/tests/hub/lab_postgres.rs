//! The lab's PostgreSQL: a server of a test's own, and what a database does that goes away.

use kedge_tests::lab::postgres::{Fsync, Postgres, shared_database};

#[test]
fn a_statement_is_answered_by_postgresql() {
    let Some(postgres) = Postgres::start(Fsync::Off) else { return };
    let version: u32 = postgres.psql("postgres", "show server_version_num").unwrap().parse().unwrap();
    assert!(version >= 150_000, "{version}");
    assert_eq!(postgres.psql("postgres", "show fsync").unwrap(), "off");
    assert!(postgres.psql("postgres", "select nothing").unwrap_err().contains("nothing"));
}

#[test]
fn databases_are_apart() {
    let Some(postgres) = Postgres::start(Fsync::Off) else { return };
    let names: Vec<String> =
        (0..2).map(|_| postgres.create_database().rsplit('/').next().unwrap().to_owned()).collect();
    postgres.psql(&names[0], "create table here (a bigint)").unwrap();
    assert!(postgres.psql(&names[1], "select a from here").is_err());
}

#[test]
fn what_was_committed_is_there_after_stop_and_kill() {
    let Some(mut postgres) = Postgres::start(Fsync::On) else { return };
    postgres.psql("postgres", "create table kept (a bigint)").unwrap();
    postgres.stop();
    assert!(postgres.psql("postgres", "select 1").is_err(), "it is away");
    postgres.start_again();
    postgres.psql("postgres", "insert into kept values (4)").unwrap();
    postgres.kill();
    postgres.start_again();
    assert_eq!(postgres.psql("postgres", "select a from kept").unwrap(), "4");
}

#[test]
fn the_suites_shared_server_gives_each_test_a_database() {
    let (Some(one), Some(two)) = (shared_database(), shared_database()) else { return };
    assert_ne!(one, two);
}
