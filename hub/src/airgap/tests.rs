//! Bundles out, and what comes back.

use std::collections::BTreeMap;
use std::io::Cursor;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use kedge_bundle::{Author, Index, Reader, Sealed};
use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Entry, Envelope, Generation, Heads, HoldDocument, Mode, PackageRef, Packages,
    PollRequest, Presence, Profile, Sequence, SigningKey, Stream, Timestamp, Turn,
};
use kedge_status::{Condition, Report};
use sqlx::Row as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;
use crate::status::tests::fleet::{Member, join, member};
use crate::store::{now, test_database};

struct World {
    air_gap: AirGap,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

async fn world(store: Store, folder: tempfile::TempDir) -> World {
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    let blobs = Blobs::open(&folder.path().join("packages")).unwrap();
    let (stop, shutdown) = watch::channel(false);
    let (intake, tasks) = StatusIntake::start(store.clone(), shutdown).await.unwrap();
    World { air_gap: AirGap { store, keys, blobs, intake }, stop, tasks, _folder: folder }
}

async fn worlds() -> Vec<World> {
    let (folder, store) = test_database::sqlite().await;
    let mut all = vec![world(store, folder).await];
    if let Some(store) = test_database::postgres().await {
        all.push(world(store, tempfile::tempdir().unwrap()).await);
    }
    all
}

fn presses() -> Stream {
    Stream::new("prod", "press", Stream::ALL)
}

impl World {
    /// A member with a membership that this hub signed.
    async fn member(&self, number: u8) -> Member {
        let member = member(number);
        join(&self.air_gap.store, &member.key, &member.id, &presses()).await;
        let membership = kedge_model::wire::Membership {
            cluster: member.id,
            name: format!("press-{number}"),
            stream: presses(),
            labels: BTreeMap::new(),
            site: None,
            sequence: Sequence(1),
            issued_at: now(),
            remove: Vec::new(),
            unmanage: Vec::new(),
            relay: false,
            retired: false,
            requires: Vec::new(),
        };
        let json = self.air_gap.keys.sign(&membership).unwrap().to_json().unwrap();
        self.write("UPDATE clusters SET membership = $2 WHERE id = $1", &member.id, json).await;
        member
    }

    async fn write(&self, statement: &'static str, id: &ClusterId, bytes: Vec<u8>) {
        let mut tx = self.air_gap.store.write().await.unwrap();
        sqlx::query(statement).bind(id.to_string()).bind(bytes).execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn accepted(&self, id: &ClusterId, generation: i64) {
        let mut tx = self.air_gap.store.write().await.unwrap();
        let query = sqlx::query("UPDATE clusters SET generation = $2 WHERE id = $1");
        query.bind(id.to_string()).bind(generation).execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A state of one assignment with these contents, as the issuer writes it.
    async fn issue(&self, generation: u64, platform: &str, workload: &str) -> Entry {
        self.issue_with(generation, platform, workload, false).await
    }

    async fn issue_with(&self, generation: u64, platform: &str, workload: &str, turns: bool) -> Entry {
        let package = |text: &str| {
            let blob = self.air_gap.blobs.put(text.as_bytes()).unwrap();
            let (repo, commit) = ("r".to_owned(), "c".to_owned());
            PackageRef { digest: blob.digest, size: blob.size, repo, commit, artifacts: Vec::new() }
        };
        let parameters = match kedge_hub_types::testing::ours("x") {
            kedge_hub_types::pack::PackedEntry::Apply(packages) => packages.parameters.clone(),
            other => panic!("{other:?}"),
        };
        let (platform, workload) = (package(platform), package(workload));
        let packages = Packages { parameters, platform, workload, version: None };
        let entry = Entry {
            assignment: "shop".to_owned(),
            mode: Mode::Apply(Box::new(packages)),
            restart: 0,
            requires: Vec::new(),
        };
        let state = DesiredState {
            stream: presses(),
            generation: Generation(generation),
            created_at: now(),
            confirmed: 1,
            entries: vec![entry.clone()],
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns,
            requires: Vec::new(),
        };
        let envelope = self.air_gap.keys.sign(&state).unwrap().to_json().unwrap();
        let mut tx = self.air_gap.store.write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        let query = sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ('prod', 'press', 'all', $1, '', $2, 0, $3)",
        );
        let bound = query.bind(i64::try_from(generation).unwrap()).bind(envelope).bind(tick);
        bound.execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
        entry
    }

    async fn export(&self, since: Since) -> Result<(Vec<u8>, usize), ExportError> {
        let order = Order { environment: "prod".to_owned(), whom: Whom::ClusterType("press".to_owned()), since };
        let export = self.air_gap.export(&order).await?;
        let (length, left_out) = (export.length(), export.left_out);
        let pieces: Vec<Bytes> = export.pour().try_collect().await.unwrap();
        let bytes = pieces.concat();
        assert_eq!(bytes.len() as u64, length);
        Ok((bytes, left_out))
    }

    async fn stop(mut self) {
        self.stop.send(true).unwrap();
        while self.tasks.join_next().await.is_some() {}
    }
}

fn digests(bytes: &[u8]) -> Vec<Digest> {
    let mut bundle = Reader::open(Cursor::new(bytes.to_vec())).unwrap().look().unwrap();
    bundle.check(|_| ()).unwrap();
    bundle.index().blobs.iter().map(|blob| blob.digest).collect()
}

fn presence(of: &Member, at: Timestamp) -> Envelope {
    let poll = PollRequest {
        key_set: 1,
        membership: Sequence(1),
        generation: Generation(2),
        status: Heads::default(),
        look_age: 1,
        profile: Profile::Normal,
        wait: None,
        holds: 0,
    };
    let said = Presence { key: of.key.public(), at, poll };
    Envelope::sign(&said, &of.key).unwrap()
}

fn up(writer: &SigningKey, fill: impl FnOnce(&mut Index)) -> Bytes {
    let mut index = Index::new(Digest::of(b"fleet"), now());
    let cluster = ClusterId::of_public_key(writer.public().as_bytes());
    index.writer = Some(Author { cluster, key: writer.public() });
    fill(&mut index);
    Bytes::from(Sealed::seal(&index, writer).unwrap().into_head())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_has_what_its_clusters_need_and_leaves_out_what_they_run() {
    for world in worlds().await {
        let mut press = world.member(1).await;
        let nobody = Order {
            environment: "prod".to_owned(),
            whom: Whom::ClusterType("robot".to_owned()),
            since: Since::Nothing,
        };
        assert!(matches!(world.air_gap.export(&nobody).await, Err(ExportError::Nobody)));
        assert!(matches!(world.export(Since::Nothing).await, Err(ExportError::NoState(_))));
        let first = world.issue(1, "platform 1", "workload 1").await;
        let (whole, left_out) = world.export(Since::Nothing).await.unwrap();
        assert_eq!((digests(&whole).len(), left_out), (2, 0));
        let bundle = Reader::open(Cursor::new(whole)).unwrap().verify(&world.air_gap.keys.key_set()).unwrap();
        let index = bundle.index();
        assert_eq!((index.clusters.as_slice(), index.streams.as_slice()), (&[press.id][..], &[presses()][..]));
        assert_eq!((index.memberships.len(), index.states.len(), index.writer), (1, 1, None));

        // Only the workload changes, and the cluster has told that it runs the first.
        let at = Timestamp(now().0 - 60_000);
        let report = Report {
            desired: Some(first.packages_key()),
            generation: Generation(1),
            running: Some(first.packages_key()),
            version: None,
            condition: Condition::Converged,
            since: at,
            observed_at: at,
            drift: None,
            clock: 0,
        };
        press.document.set_report("shop", &report).unwrap();
        let told = press.seal();
        world.air_gap.intake.take(None, told).await.unwrap();
        world.accepted(&press.id, 1).await;
        world.issue(2, "platform 1", "workload 2").await;
        let (less, left_out) = world.export(Since::Reported).await.unwrap();
        assert_eq!((digests(&less), left_out), (vec![Digest::of(b"workload 2")], 1));
        let (since, _) = world.export(Since::Generation(Generation(1))).await.unwrap();
        assert_eq!(digests(&since), [Digest::of(b"workload 2")]);
        let rings = Since::Rings(BTreeMap::from([("all".to_owned(), Generation(2))]));
        assert!(digests(&world.export(rings).await.unwrap().0).is_empty());
        let lost = world.export(Since::Generation(Generation(9))).await;
        assert!(matches!(lost, Err(ExportError::NoGeneration(..))));

        // Another one has nothing yet: it needs all of it.
        world.member(2).await;
        assert_eq!(digests(&world.export(Since::Reported).await.unwrap().0).len(), 2);
        std::fs::remove_file(world.air_gap.blobs.path(&Digest::of(b"workload 2"))).unwrap();
        assert!(matches!(world.export(Since::Nothing).await, Err(ExportError::Gone(..))));
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_has_a_turn_for_each_cluster_that_it_is_for_where_the_state_asks_for_turns() {
    for world in worlds().await {
        let members = [world.member(1).await.id, world.member(2).await.id];
        world.issue(1, "platform", "workload").await;
        let turns = async || {
            let (bytes, _) = world.export(Since::Nothing).await.unwrap();
            let keys = world.air_gap.keys.key_set();
            let index = Reader::open(Cursor::new(bytes)).unwrap().verify(&keys).unwrap().into_index();
            let turn = |envelope: &Envelope| envelope.open::<Turn>(&keys.trusted()).unwrap();
            index.turns.iter().map(turn).map(|turn| (turn.cluster, turn.generation, turn.asked)).collect::<Vec<_>>()
        };
        assert_eq!(turns().await, []);
        world.issue_with(2, "platform", "workload 2", true).await;
        let mut expected = members.map(|cluster| (cluster, Generation(2), None));
        expected.sort_by_key(|(cluster, ..)| *cluster);
        assert_eq!(turns().await, expected);
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_counts_from_when_it_was_said() {
    for world in worlds().await {
        let (mut press, mut other, stranger) = (world.member(1).await, world.member(2).await, member(9));
        let said = Timestamp(now().0 - 120_000);
        let hold = HoldDocument { cluster: press.id, sequence: 1, written_at: said, holds: Vec::new() };
        let hold = Envelope::sign(&hold, &press.key).unwrap();
        let told = [&mut press, &mut other].map(|one| one.tell("shop", Condition::Converged, "new"));
        let file = up(&press.key, |index| {
            index.documents = told.to_vec();
            index.holds = vec![hold];
            index.presences = vec![presence(&press, said), presence(&stranger, said)];
        });
        let import = world.air_gap.import(file.clone()).await.unwrap();
        assert_eq!(import.writer, press.id);
        let words = |import: &Import| -> Vec<(&'static str, &'static str)> {
            import.items.iter().map(|item| (item.what.as_str(), item.outcome.as_str())).collect()
        };
        let mut expected = vec![
            ("status", "taken"),
            ("status", "taken"),
            ("hold", "taken"),
            ("presence", "taken"),
            ("presence", "refused"),
        ];
        let mut found = words(&import);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let observed = async || {
            let query = sqlx::query("SELECT last_contact, via FROM clusters WHERE id = $1").bind(press.id.to_string());
            let row = query.fetch_one(world.air_gap.store.pool()).await.unwrap();
            (row.try_get::<i64, _>("last_contact").unwrap(), row.try_get::<Option<String>, _>("via").unwrap())
        };
        while observed().await.0 != said.0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(observed().await.1.as_deref(), Some("file"));
        // The same again changes nothing.
        let again = world.air_gap.import(file).await.unwrap();
        assert!(words(&again).iter().all(|(_, outcome)| *outcome != "taken"), "{again:?}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_changed_cut_or_of_a_stranger_is_refused_as_a_whole() {
    let world = worlds().await.remove(0);
    let (mut press, stranger) = (world.member(1).await, member(9));
    let told = press.tell("shop", Condition::Converged, "new");
    let file = up(&press.key, |index| index.documents = vec![told.clone()]);
    for place in (0..file.len()).step_by(97) {
        let mut changed = file.to_vec();
        changed[place] ^= 1;
        assert!(world.air_gap.import(Bytes::from(changed)).await.is_err(), "byte {place}");
    }
    for length in (0..file.len()).step_by(97) {
        assert!(world.air_gap.import(file.slice(..length)).await.is_err(), "{length} bytes");
    }
    let foreign = up(&stranger.key, |index| index.documents = vec![told]);
    assert!(matches!(world.air_gap.import(foreign).await, Err(ImportError::Stranger(_))));
    assert!(world.air_gap.store.document(&press.id).await.unwrap().is_none());
    world.stop().await;
}
