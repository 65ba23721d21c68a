//! Documents from before the hub kept warnings: they are read once, and counted once.

use kedge_model::wire::Timestamp;
use kedge_status::{Severity, Warning};

use super::fleet::{Fleet, Member, databases, member, relocate, start, stream};
use crate::status::unwarned::round;
use crate::store::catalog::Visible;
use crate::store::now;

async fn warn(fleet: &Fleet, member: &mut Member, code: &str) {
    let since = Timestamp(now().0 - 1000);
    let warning = Warning { severity: Severity::Error, message: "it is so".to_owned(), since, clock: 0 };
    member.document.set_warning(code, &warning).unwrap();
    let envelope = member.seal();
    fleet.intake.take(Some(&member.id), envelope).await.unwrap();
}

/// As an older hub left it.
async fn forget(fleet: &Fleet) {
    for sql in ["UPDATE documents SET warned = NULL", "DELETE FROM warnings", "DELETE FROM warning_counts"] {
        sqlx::query(sql).execute(fleet.store().pool()).await.unwrap();
    }
}

async fn counts(fleet: &Fleet) -> Vec<(String, u64)> {
    let sums = fleet.store().warning_sums(&Visible::All).await.unwrap();
    let mut counts: Vec<(String, u64)> = sums.into_iter().map(|sum| (sum.kind, sum.count)).collect();
    counts.sort();
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_an_older_hub_are_counted_once() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut members: Vec<Member> = (50..53).map(member).collect();
        for member in &mut members {
            fleet.join(member, &stream("drone")).await;
            warn(&fleet, member, "DiskLow").await;
        }
        relocate(fleet.store(), &members[2].id, &stream("drone"), None).await;
        forget(&fleet).await;
        // This one tells of more before its turn comes.
        warn(&fleet, &mut members[1], "ClockOff").await;
        while round(fleet.store()).await.unwrap() {}
        let low = ("DiskLow".to_owned(), 2);
        assert_eq!(counts(&fleet).await, [("ClockOff".to_owned(), 1), low.clone()]);
        assert!(!round(fleet.store()).await.unwrap());
        // Who was retired then is counted when it is back, and what is over is over.
        fleet.join(&members[2], &stream("drone")).await;
        members[1].document.clear_warning("ClockOff", now()).unwrap();
        let envelope = members[1].seal();
        fleet.intake.take(Some(&members[1].id), envelope).await.unwrap();
        assert_eq!(counts(&fleet).await, [("DiskLow".to_owned(), 3)]);
        let seen = fleet.store().warnings_of(&Visible::All, "dev", "DiskLow", 10).await.unwrap();
        assert_eq!(seen.len(), 3);
        fleet.stop().await;
    }
}
