//! Ten million entries of history over ninety days, on SQLite and on PostgreSQL: how long the first page takes that somebody asks
//! for, of a workload that is in every tenth entry and of one that is in thirty of all. Days are made by the hub's own code and
//! filled by the database itself; the page is asked for through the hub's own code.

use std::fs;
use std::time::{Duration, Instant};

use kedge_hub::store::Store;
use kedge_hub::store::history::page::{HistoryFilter, Reader};
use kedge_hub_types::history::{Day, Entry, Place, What};
use kedge_model::wire::Timestamp;
use kedge_tests::lab::postgres::{Fsync, Postgres};
use sqlx::AssertSqlSafe;

const ENTRIES: usize = 10_000_000;
const DAYS: usize = 90;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// What the API gives without a wish.
const PAGE: usize = 100;
/// Of which the slowest is the figure: the first one finds nothing in memory.
const LOOKS: usize = 7;
/// Entries of the rare workload, spread over all days.
const RARE: usize = 30;

/// The same text for both databases. A tenth is of one workload; the others are spread over 400, in three environments, of 40
/// teams, on 100,000 clusters.
const FILL: &str = "INSERT INTO {day} (id, at, recorded_at, corrected, kind, event, environment, workspace, workload, cluster_type, \
     ring, assignment, cluster, commit_id, who, content, detail) \
     WITH RECURSIVE numbers(n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count}) \
     SELECT {id} + n, {begin} + n * 86400000 / {count}, {begin} + n * 86400000 / {count} + 900, 0, 'condition', \
     CASE WHEN n % 7 = 0 THEN 'Failed' WHEN n % 2 = 0 THEN 'Converging' ELSE 'Converged' END, \
     CASE n % 3 WHEN 0 THEN 'dev' WHEN 1 THEN 'stage' ELSE 'prod' END, 'team-' || CAST(n % 40 AS TEXT), \
     CASE WHEN n % 10 = 0 THEN 'frequent' ELSE 'workload-' || CAST(n % 400 AS TEXT) END, 'drone', 'rest', \
     'drone/workload-' || CAST(n % 400 AS TEXT) || '-all', \
     CAST(1000000000 + (n * 7919) % 100000 AS TEXT) || '0000000000000000000000', '', '', '', \
     '{\"type\":\"condition\",\"condition\":\"Failed\",\"reason\":\"HealthCheck\",\"version\":\"1.4.2\",' \
     || '\"running\":\"0123456789abcdef0123456789abcdef\",\"desired\":\"0123456789abcdef0123456789abcdef\"}' FROM numbers";

/// How many entries, and the slowest first page on any database, in milliseconds.
pub fn measure(scale: f64) -> (usize, f64) {
    let entries = ((ENTRIES as f64 * scale).round() as usize).max(DAYS * 10);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::Builder::new().prefix("kedge-history-").tempdir().unwrap();
    let file = folder.path().join("hub.db");
    let sqlite = runtime.block_on(of(&format!("sqlite:{}", file.display()), entries, "SQLite"));
    eprintln!("SQLite's file has {} bytes an entry", fs::metadata(&file).unwrap().len() / entries as u64);
    drop(folder);
    // Without a server the figure is SQLite's alone, and the reason was said.
    match Postgres::start(Fsync::Off) {
        Some(server) => {
            let postgres = runtime.block_on(of(&server.create_database(), entries, "PostgreSQL"));
            (entries, sqlite.max(postgres))
        }
        None => (entries, sqlite),
    }
}

/// The slowest first page of one workload, in milliseconds.
async fn of(url: &str, entries: usize, name: &str) -> f64 {
    let store = Store::open(url).await.unwrap();
    store.keep_history(Duration::from_secs(400 * 86_400));
    let begun = Instant::now();
    fill(&store, entries).await;
    eprintln!("{entries} entries in {name} within {:.0} s", begun.elapsed().as_secs_f64());
    let any = HistoryFilter { limit: PAGE, since: Some(ago(DAYS as i64)), ..HistoryFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let asked = [
        ("a frequent workload", HistoryFilter { workload: text("frequent"), ..any.clone() }),
        ("a rare workload", HistoryFilter { workload: text("rare"), ..any.clone() }),
        ("a workload that nobody has", HistoryFilter { workload: text("nobody's"), ..any.clone() }),
        (
            "a rare workload in one environment",
            HistoryFilter { workload: text("rare"), environment: text("prod"), ..any },
        ),
    ];
    let mut worst = 0.0_f64;
    for (what, filter) in asked {
        let mut slowest = 0.0_f64;
        let mut found = 0;
        for _ in 0..LOOKS {
            let begun = Instant::now();
            let (page, _) = store.history_page(&Reader::All, &filter).await.unwrap();
            slowest = slowest.max(begun.elapsed().as_secs_f64() * 1000.0);
            found = page.len();
        }
        eprintln!("{name}: the first page of {what} has {found} entries and takes {slowest:.1} ms");
        worst = worst.max(slowest);
    }
    store.close().await;
    worst
}

async fn fill(store: &Store, entries: usize) {
    for back in 0..DAYS {
        let at = ago(back as i64);
        let place = Place {
            workload: "rare".to_owned(),
            assignment: "drone/rare-all".to_owned(),
            ..Place::environment("prod")
        };
        let rare = Entry::new(at, place, What::Lost { count: 1 });
        let count = if back % (DAYS / RARE) == 0 { 1 } else { 0 };
        // An entry of nobody's makes the day where the rare workload has none.
        let other = Entry::new(at, Place::environment("dev"), What::Lost { count: 1 });
        store.record([rare; 1].into_iter().take(count).chain([other]).collect()).await.unwrap();
        let (day, id) = (Day::of(at), (back as i64 + 1) << 40);
        let per_day = entries / DAYS;
        let text = FILL
            .replace("{day}", &day.to_string())
            .replace("{count}", &per_day.to_string())
            .replace("{id}", &id.to_string())
            .replace("{begin}", &day.begin().0.to_string());
        let mut tx = store.write().await.unwrap();
        sqlx::query(AssertSqlSafe(text)).execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Noon would be tomorrow's for some: whole days back from this moment.
fn ago(days: i64) -> Timestamp {
    Timestamp(kedge_hub::store::now().0 - days * DAY_MS)
}
