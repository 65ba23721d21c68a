//! The engine on the real host applier, below a folder and without root: files, folders and links.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use kedge_durable::{CountingDisk, RealDisk};

use super::*;
use crate::apply::host::HostApplier;
use crate::goal::ArtifactGoal;
use crate::health::HealthContext;
use crate::objects::Objects;

struct Place {
    folder: tempfile::TempDir,
    paths: Paths,
    objects: Objects,
    disk: Arc<CountingDisk>,
    time: FakeTime,
    engine: Engine,
    _told: UnboundedReceiver<Told>,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        let disk = Arc::new(CountingDisk::new(Arc::new(RealDisk)));
        let (records, _) = Records::open(disk.clone(), &paths).unwrap();
        let (tell, told) = unbounded_channel();
        let time = FakeTime::default();
        let host = HostApplier::new(&paths, &objects, HealthContext::host(None));
        let pause = Box::new(time.clone());
        let engine = Engine::open(Box::new(host), records, Arc::new(time.clone()), tell, pause, &paths);
        Place { folder, paths, objects, disk, time, engine, _told: told }
    }

    fn order(&self, version: &str, program: &str) -> Order {
        let put = |text: &str| self.objects.put(text.as_bytes()).unwrap();
        let nobody = Owner::default();
        let file = |path: &str, mode, part| FileGoal {
            path: path.to_owned(),
            content: put(&format!("{path} {version}")),
            size: 1,
            owner: nobody.clone(),
            mode,
            part,
        };
        let goal = Goal {
            folders: vec![FolderGoal { path: "/srv/w".to_owned(), owner: nobody.clone(), mode: 0o750 }],
            files: vec![
                file("/etc/kedge/workloads/w/config", 0o640, Part::Platform),
                file("/srv/w/deep/data", 0o600, Part::Workload),
                file("/opt/there/before", 0o644, Part::Workload),
            ],
            artifacts: vec![ArtifactGoal { path: "/srv/w/model".to_owned(), content: put(version), size: 1 }],
            health: vec![Check {
                probe: Probe::Exec { command: vec![program.to_owned()], user: None, slice: None },
                timeout_seconds: 5,
            }],
            bounds: Bounds { timeout_seconds: 3, soak_seconds: 2, ..Bounds::default() },
            ..Goal::default()
        };
        Order { goal: Ok(goal), ..super::order("w", version) }
    }

    /// Everything but the agent's own state: kind, mode and content.
    fn tree(&self) -> BTreeMap<String, String> {
        let (mut all, mut waiting) = (BTreeMap::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = fs::symlink_metadata(&path).unwrap();
                if path.starts_with(self.paths.state()) || self.paths.state().starts_with(&path) {
                    continue;
                }
                let content = match kind.file_type() {
                    one if one.is_dir() => {
                        waiting.push(path.clone());
                        String::new()
                    }
                    one if one.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
                    _ => fs::read_to_string(&path).unwrap(),
                };
                all.insert(path.display().to_string(), format!("{:o} {content}", kind.mode()));
            }
        }
        all
    }

    fn place(&self, path: &str) -> std::path::PathBuf {
        self.paths.place(path)
    }
}

#[test]
fn real_files_change_return_and_are_repaired_exactly() {
    let mut place = Place::new();
    fs::create_dir_all(place.place("/opt/there")).unwrap();
    fs::write(place.place("/opt/there/before"), "theirs").unwrap();
    fs::set_permissions(place.place("/opt/there/before"), fs::Permissions::from_mode(0o604)).unwrap();
    let before = place.tree();

    place.engine.apply(place.order("1", "/bin/true"));
    let record = place.engine.records().get("w").unwrap();
    assert_eq!(record.last.as_ref().unwrap().outcome, Some(Outcome::Committed), "{record:#?}");
    let first = place.tree();
    assert_eq!(fs::read_to_string(place.place("/srv/w/model")).unwrap(), "1", "through the link");

    place.engine.apply(place.order("2", "/bin/false"));
    let last = place.engine.records().get("w").unwrap().last.clone().unwrap();
    assert!(matches!(last.outcome, Some(Outcome::RolledBack(_))), "{last:#?}");
    assert_eq!(place.tree(), first);

    fs::remove_file(place.place("/etc/kedge/workloads/w/config")).unwrap();
    fs::write(place.place("/srv/w/deep/data"), "edited").unwrap();
    fs::set_permissions(place.place("/srv/w"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_file(place.place("/srv/w/model")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.place("/srv/w/model")).unwrap();
    place.engine.look(&Scope::All, &BTreeSet::new());
    assert_eq!(place.tree(), first);

    place.engine.remove("w");
    assert_eq!(place.tree(), before);
    assert!(Path::new(&place.paths.records()).read_dir().unwrap().next().is_none(), "no record is left");
}

#[test]
fn a_change_of_a_small_workload_costs_little() {
    let mut place = Place::new();
    place.engine.apply(place.order("1", "/bin/true"));
    let syncs = place.disk.syncs();
    place.engine.apply(place.order("2", "/bin/true"));
    let last = place.engine.records().get("w").unwrap().last.clone().unwrap();
    assert_eq!(last.outcome, Some(Outcome::Committed));
    // Begin, each step, health, commit: three each.
    assert_eq!(place.disk.syncs() - syncs, 3 * (last.begun as u64 + 3));
    assert_eq!(place.time.elapsed(), Duration::from_secs(2 * 2));
}
