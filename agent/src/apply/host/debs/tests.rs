//! From wish to plan and from step to commands, with an apt that is told what to answer.

use std::collections::BTreeMap;
use std::fs;

use kedge_model::wire::Digest;

use super::Debs;
use super::apt::fake::FakeApt;
use super::status::Conffile;
use crate::clock::SystemClock;
use crate::goal::DebGoal;
use crate::objects::Objects;
use crate::observed::DebState;
use crate::paths::Paths;
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::{DebOriginal, Failure};
use crate::step::DebsStep;
use crate::trace::Tracer;

struct Lab {
    _root: tempfile::TempDir,
    objects: Objects,
    debs: Debs<FakeApt>,
}

impl Lab {
    fn new(apt: FakeApt) -> Lab {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc")).unwrap();
        let paths = Paths::below(root.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        Lab { debs: Debs::with(apt, &paths, &objects), objects, _root: root }
    }

    fn prepare(&mut self, wish: &DebWish) -> Result<DebPlan, Failure> {
        self.debs.prepare(wish, &mut Tracer::new(&SystemClock))
    }

    fn execute(&mut self, step: &DebsStep) -> Result<(), Failure> {
        self.debs.execute(step, &mut Tracer::new(&SystemClock))
    }

    fn did(&self) -> Vec<String> {
        self.debs.apt.did.borrow_mut().drain(..).collect()
    }

    fn states(&self) -> BTreeMap<String, DebState> {
        self.debs.apt.debs.borrow().iter().map(|(name, deb)| (name.clone(), deb.state.clone())).collect()
    }
}

fn want(debs: &[(&str, &str)]) -> DebWish {
    let goal = |(name, version): &(&str, &str)| DebGoal {
        name: (*name).to_owned(),
        version: (*version).to_owned(),
        file: None,
    };
    DebWish { want: debs.iter().map(goal).collect(), ..DebWish::default() }
}

fn steps(step: &DebsStep) -> Vec<String> {
    let install =
        step.install.iter().map(|deb| format!("{}={}{}", deb.name, deb.version, if deb.auto { " auto" } else { "" }));
    let remove = step.remove.iter().map(|deb| format!("{}{}", if deb.purge { "purge " } else { "remove " }, deb.name));
    let hold = step.hold.iter().map(|name| format!("hold {name}"));
    install.chain(remove).chain(hold).chain(step.unhold.iter().map(|name| format!("unhold {name}"))).collect()
}

#[test]
fn an_upgrade_has_its_dependency_and_an_exact_way_back() {
    let apt = FakeApt::default()
        .with("app", "1")
        .offering(&["app=1", "app=2", "lib=5"])
        .saying("Inst lib (5 source [amd64])\n");
    let mut lab = Lab::new(apt);
    let before = lab.states();
    let plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(steps(&plan.forward), ["app=2", "lib=5 auto", "hold app"]);
    assert_eq!(steps(&plan.back), ["app=1", "purge lib", "unhold app"]);
    assert_eq!(plan.originals["app"].state.version.as_deref(), Some("1"));
    assert_eq!(plan.originals["app"].archive, Some(plan.back.install[0].archive));
    assert_eq!(plan.originals["lib"], DebOriginal::default());
    assert_eq!(lab.did(), ["download app:amd64=2", "download lib:amd64=5", "download app:amd64=1"]);
    lab.execute(&plan.forward).unwrap();
    assert_eq!(lab.did(), ["install app 2", "install lib 5", "auto lib", "hold app"]);
    lab.execute(&plan.forward).unwrap();
    assert_eq!(lab.did(), Vec::<String>::new());
    lab.execute(&plan.back).unwrap();
    assert_eq!(lab.did(), ["install app 1", "remove lib", "purge lib"]);
    assert_eq!(lab.states(), before);
}

#[test]
fn nothing_is_asked_of_apt_when_nothing_differs() {
    let mut lab = Lab::new(FakeApt::default().with("app", "1").change("app", |deb| deb.state.held = true));
    assert_eq!(lab.prepare(&want(&[("app", "1")])).unwrap(), DebPlan::default());
    let mut lab = Lab::new(FakeApt::default().with("app", "1"));
    let plan = lab.prepare(&want(&[("app", "1")])).unwrap();
    assert_eq!((steps(&plan.forward), steps(&plan.back)), (vec!["hold app".to_owned()], vec!["unhold app".to_owned()]));
}

#[test]
fn removals_and_downgrades_that_nobody_asked_for_are_refused_with_the_simulation() {
    let cases = [
        ("Remv other [3]\n", "other 3 would be removed, and the workload doesn't ask for that"),
        (
            "Inst lib [5] (4 source [amd64])\n",
            "lib would be downgraded from 5 to 4, and the workload doesn't ask for that",
        ),
        (
            "Inst kept [1] (2 source [amd64])\n",
            "kept is held at 1 and would become 2, and the workload doesn't ask for that",
        ),
    ];
    for (says, why) in cases {
        let apt =
            FakeApt::default().with("lib", "5").with("other", "3").with("kept", "1").offering(&["app=2"]).saying(says);
        let mut lab = Lab::new(apt.change("kept", |deb| deb.state.held = true));
        let failure = lab.prepare(&want(&[("app", "2")])).unwrap_err();
        assert_eq!(failure.reason, "AptRefused");
        assert!(failure.message.starts_with(why) && failure.message.contains(says.trim()), "{}", failure.message);
        assert_eq!(lab.did(), Vec::<String>::new());
    }
}

#[test]
fn another_assignments_version_is_named() {
    let mut wish = want(&[("app", "2")]);
    wish.others.insert("app".to_owned(), ("1".to_owned(), "shop-a".to_owned()));
    let failure = Lab::new(FakeApt::default()).prepare(&wish).unwrap_err();
    assert_eq!(failure.reason, "DebConflict");
    assert_eq!(failure.message, "app: 2 is wanted, but assignment shop-a runs with 1");
    // The same for what apt would change on the way.
    let mut wish = want(&[("app", "2")]);
    wish.others.insert("lib".to_owned(), ("4".to_owned(), "shop-b".to_owned()));
    let apt = FakeApt::default().with("lib", "4").offering(&["app=2"]).saying("Inst lib [4] (5 source [amd64])\n");
    let failure = Lab::new(apt).prepare(&wish).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.message.contains("shop-b")), ("DebConflict", true));
}

#[test]
fn the_agents_own_deb_and_what_is_no_name_are_refused() {
    for (name, reason) in [("kedge-agent", "NotAllowed"), ("--purge", "BadPackage"), ("app-", "BadPackage")] {
        let failure = Lab::new(FakeApt::default()).prepare(&want(&[(name, "1")])).unwrap_err();
        assert_eq!(failure.reason, reason, "{name}");
        let step = DebsStep { hold: vec![name.to_owned()], ..DebsStep::default() };
        assert_eq!(Lab::new(FakeApt::default()).execute(&step).unwrap_err().reason, reason);
    }
    let apt = FakeApt::default()
        .with("kedge-agent", "1")
        .offering(&["app=2"])
        .saying("Inst kedge-agent [1] (2 source [amd64])\n");
    assert_eq!(Lab::new(apt).prepare(&want(&[("app", "2")])).unwrap_err().reason, "NotAllowed");
}

#[test]
fn a_version_that_is_new_in_a_source_is_found_by_one_update() {
    let mut apt = FakeApt::default().offering(&["app=2"]);
    apt.after_update.insert("app=2".to_owned());
    let mut lab = Lab::new(apt);
    lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(lab.did(), ["update", "download app:amd64=2"]);
    let failure = lab.prepare(&want(&[("app", "3")])).unwrap_err();
    assert_eq!(failure.reason, "DebUnavailable");
    assert_eq!(failure.message, "Version '3' for 'app' was not found; sources looked at: file:/repo ./");
    assert_eq!(lab.did(), ["update"]);
}

#[test]
fn what_no_source_offers_is_repacked_and_what_cannot_be_is_refused() {
    let mut lab = Lab::new(FakeApt::default().with("app", "1").offering(&["app=2"]));
    lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(lab.did(), ["download app:amd64=2", "repack app"]);

    let apt = || FakeApt { no_repack: true, ..FakeApt::default().with("app", "1").offering(&["app=2"]) };
    let failure = Lab::new(apt()).prepare(&want(&[("app", "2")])).unwrap_err();
    assert_eq!(failure.reason, "NoWayBack");
    assert!(failure.message.contains("/usr/bin/app"), "{}", failure.message);

    let plan = Lab::new(apt()).prepare(&DebWish { no_rollback: true, ..want(&[("app", "2")]) }).unwrap();
    assert_eq!(
        (steps(&plan.forward), steps(&plan.back)),
        (vec!["app=2".into(), "hold app".into()], vec!["unhold app".to_owned()])
    );
}

#[test]
fn altered_files_return_as_they_were_altered() {
    let mut lab =
        Lab::new(FakeApt { altered: true, ..FakeApt::default().with("app", "1").offering(&["app=1", "app=2"]) });
    lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(lab.did(), ["download app:amd64=2", "repack app"]);
}

#[test]
fn a_full_disk_is_noticed_before_the_download() {
    let mut lab = Lab::new(FakeApt { full: true, ..FakeApt::default().offering(&["app=2"]) });
    let failure = lab.prepare(&want(&[("app", "2")])).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.passes), ("DiskFull", true));
    assert_eq!(lab.did(), Vec::<String>::new());
}

#[test]
fn a_file_must_hold_the_deb_that_is_named() {
    let mut lab = Lab::new(FakeApt::default());
    let mut wish = want(&[("app", "2")]);
    wish.want[0].file = Some(lab.objects.put(b"app 3").unwrap());
    assert_eq!(lab.prepare(&wish).unwrap_err().reason, "BadPackage");
    wish.want[0].file = Some(lab.objects.put(b"app 2 /etc/app.conf").unwrap());
    let plan = lab.prepare(&wish).unwrap();
    assert_eq!(plan.forward.install[0].archive, wish.want[0].file.unwrap());
    assert_eq!(
        plan.back.conffiles.iter().map(|conffile| (conffile.path.as_str(), conffile.was.is_none())).collect::<Vec<_>>(),
        [("/etc/app.conf", true)]
    );
    assert_eq!(lab.did(), Vec::<String>::new());
}

#[test]
fn conffiles_return_and_new_ones_go() {
    let mut apt = FakeApt::default().with("app", "1").offering(&["app=1"]);
    apt.offers.insert("app=2".to_owned(), vec!["/etc/app.conf".to_owned(), "/etc/new.conf".to_owned()]);
    let conffile = Conffile { path: "/etc/app.conf".to_owned(), md5: String::new(), obsolete: false };
    let mut lab = Lab::new(apt.change("app", |deb| deb.conffiles.push(conffile)));
    let etc = lab.debs.root.join("etc");
    fs::write(etc.join("app.conf"), "mine").unwrap();
    let plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    lab.execute(&plan.forward).unwrap();
    fs::write(etc.join("app.conf"), "theirs").unwrap();
    fs::write(etc.join("new.conf"), "new").unwrap();
    lab.execute(&plan.back).unwrap();
    assert_eq!(fs::read_to_string(etc.join("app.conf")).unwrap(), "mine");
    assert!(!etc.join("new.conf").exists());
    assert_eq!(plan.originals["app"].conffiles.keys().collect::<Vec<_>>(), ["/etc/app.conf"]);
}

#[test]
fn what_is_given_back_returns_to_what_it_was() {
    let mut lab =
        Lab::new(FakeApt::default().with("app", "2").with("lib", "5").with("used", "1").offering(&["app=2", "lib=5"]));
    let earlier = lab.objects.put(b"app 1").unwrap();
    let state = DebState {
        version: Some("1".to_owned()),
        architecture: Some("amd64".to_owned()),
        whole: true,
        ..DebState::default()
    };
    let original = DebOriginal { state, archive: Some(earlier), ..DebOriginal::default() };
    let give_back = [("app", original), ("lib", DebOriginal::default()), ("used", DebOriginal::default())];
    let wish = DebWish {
        give_back: give_back.into_iter().map(|(name, original)| (name.to_owned(), original)).collect(),
        others: BTreeMap::from([("used".to_owned(), ("1".to_owned(), "shop-b".to_owned()))]),
        ..DebWish::default()
    };
    let plan = lab.prepare(&wish).unwrap();
    assert_eq!(steps(&plan.forward), ["app=1", "purge lib", "unhold app"]);
    assert_eq!(steps(&plan.back), ["app=2", "lib=5", "unhold app", "unhold lib"]);
    lab.execute(&plan.forward).unwrap();
    assert_eq!(lab.states().keys().collect::<Vec<_>>(), ["app", "used"]);
}

#[test]
fn a_removed_debs_configuration_is_left_again() {
    let apt = FakeApt::default().with("app", "1").offering(&["app=2"]).change("app", |deb| {
        deb.state = DebState { config_only: true, ..DebState::default() };
        deb.left = Some("1".to_owned());
    });
    let mut lab = Lab::new(apt);
    let plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(steps(&plan.back), ["app=1", "remove app"]);
    lab.execute(&plan.forward).unwrap();
    lab.did();
    lab.execute(&plan.back).unwrap();
    assert_eq!(lab.did(), ["install app 1", "remove app"]);
    assert!(lab.states()["app"].config_only);
    lab.execute(&plan.back).unwrap();
    assert_eq!(lab.did(), Vec::<String>::new());
}

#[test]
fn a_half_configured_deb_is_configured() {
    let mut lab =
        Lab::new(FakeApt::default().with("app", "2").offering(&["app=2"]).change("app", |deb| deb.state.whole = false));
    let plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    assert_eq!(steps(&plan.forward), ["app=2", "hold app"]);
    lab.execute(&plan.forward).unwrap();
    assert_eq!(lab.did(), ["download app:amd64=2", "configure app", "hold app"]);
}

#[test]
fn a_torn_deb_is_unpacked_before_apt_is_asked() {
    let mut lab = Lab::new(FakeApt::default().with("app", "1").offering(&["app=1", "app=2"]));
    let plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    lab.did();
    let tear = |lab: &Lab| {
        let mut debs = lab.debs.apt.debs.borrow_mut();
        let deb = debs.get_mut("app").unwrap();
        (deb.torn, deb.leaving, deb.state.whole) = (true, true, false);
    };
    tear(&lab);
    lab.execute(&plan.back).unwrap();
    assert_eq!(lab.did(), ["unpack app 1", "configure app", "install app"]);
    tear(&lab);
    lab.debs.repair(&mut Tracer::new(&SystemClock)).unwrap_err();
    assert_eq!(lab.did()[..2], ["unpack app 1", "configure"]);
}

#[test]
fn a_failed_run_counts_only_if_ours_is_not_whole() {
    let wish = want(&[("app", "2")]);
    let mut lab = Lab::new(FakeApt { fails: true, ..FakeApt::default().offering(&["app=2"]) });
    let plan = lab.prepare(&wish).unwrap();
    assert_eq!(lab.execute(&plan.forward).unwrap_err().reason, "DpkgFailed");
    let mut lab = Lab::new(FakeApt { broken: true, ..FakeApt::default().offering(&["app=2"]) });
    let plan = lab.prepare(&wish).unwrap();
    lab.execute(&plan.forward).unwrap();
}

#[test]
fn a_step_whose_archive_is_gone_changes_nothing() {
    let mut lab = Lab::new(FakeApt::default().offering(&["app=2"]));
    let mut plan = lab.prepare(&want(&[("app", "2")])).unwrap();
    lab.did();
    plan.forward.install[0].archive = Digest::of(b"collected");
    assert_eq!(lab.execute(&plan.forward).unwrap_err().reason, "NoWayBack");
    assert_eq!(lab.did(), Vec::<String>::new());
}

#[test]
fn mending_never_removes_unasked() {
    let apt = FakeApt::default().with("app", "1").change("app", |deb| deb.state.whole = false).saying("Remv app [1]\n");
    let mut lab = Lab::new(apt);
    let failure = lab.debs.repair(&mut Tracer::new(&SystemClock)).unwrap_err();
    assert_eq!(failure.reason, "AptRefused");
    assert_eq!(lab.did(), ["configure", "would fix"]);
}
