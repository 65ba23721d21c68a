//! Reconciling real repositories, with services that only write down what they were asked.

use std::sync::Mutex;

use async_trait::async_trait;
use kedge_hub_types::pack::PackedEntry;
use kedge_model::wire::PlatformSource;
use kedge_scheduler::{Delta, Scheduler};

use super::*;
use crate::catalog::CatalogNotes;
use crate::git::{Head, Mirrors};
use crate::metrics::ReconcileOutcome;
use crate::pack::{Packed, Pins, Tenancy};
use crate::platform::testing::{Scene, config, environment, workload};
use crate::publish::{Next, Outcome, PublishJob, Published};
use crate::rollout::Occasion;

const TERM: Term = Term(0);

/// What a step was asked, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Catalog(String),
    Forget(String),
    Publish(String, Vec<String>),
    Pack(String),
    Issue(String),
}

#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<Asked>>,
    failing: Mutex<BTreeMap<String, Stop>>,
    approved: Mutex<BTreeSet<String>>,
    outcomes: Mutex<Vec<ReconcileOutcome>>,
    occasion: Mutex<Occasion>,
    heard: tokio::sync::Notify,
}

impl Fake {
    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
        self.heard.notify_one();
    }

    /// Waits until something was asked, and forgets everything until then.
    async fn until(&self, mut found: impl FnMut(&Asked) -> bool) -> Vec<Asked> {
        let wait = async {
            loop {
                {
                    let mut asked = self.asked.lock().unwrap();
                    if let Some(at) = asked.iter().position(&mut found) {
                        return asked.drain(..=at).collect();
                    }
                }
                self.heard.notified().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        waited.unwrap_or_else(|_| panic!("asked was only {:?}", self.asked.lock().unwrap()))
    }
}

#[async_trait]
impl Steps for Fake {
    async fn catalog(
        &self,
        _term: Term,
        environment: &str,
        _scheduler: &Scheduler,
        _delta: Option<&Delta>,
        _notes: &CatalogNotes,
    ) -> Result<(), Stop> {
        self.note(Asked::Catalog(environment.to_owned()));
        Ok(())
    }

    async fn forget(&self, _term: Term, environment: &str) -> Result<(), Stop> {
        self.note(Asked::Forget(environment.to_owned()));
        Ok(())
    }

    async fn publish(&self, _term: Term, job: PublishJob<'_>) -> Result<Published, Stop> {
        let configs = job.schedule.assignments.values().filter_map(|assignment| assignment.files());
        let texts = configs.filter_map(|files| Some(files.config.as_ref()?.1.trim().to_owned()));
        self.note(Asked::Publish(job.environment.to_owned(), texts.collect()));
        if let Some(stop) = self.failing.lock().unwrap().get(job.environment) {
            return Err(stop.clone());
        }
        let head = Head {
            repo: job.target.repo.clone(),
            branch: job.target.branch.clone(),
            commit: "c".repeat(40),
            path: "/nowhere".into(),
        };
        let outcome = Outcome::Unchanged;
        Ok(Published { head: Some(head), outcome, waiting: BTreeMap::new(), foreign: Vec::new() })
    }

    async fn pack(&self, environment: &str, head: &Head, _tenancy: &Tenancy, _pins: &Pins) -> Result<Packed, Stop> {
        self.note(Asked::Pack(environment.to_owned()));
        let entries = BTreeMap::from([("hello-dev".to_owned(), PackedEntry::Quarantined)]);
        Ok(Packed {
            environment: environment.to_owned(),
            source: PlatformSource {
                repo: head.repo.clone(),
                branch: head.branch.clone(),
                commit: head.commit.clone(),
                path: String::new(),
            },
            types: BTreeMap::from([("drone".to_owned(), Arc::new(entries))]),
            origins: BTreeMap::new(),
            pinned: BTreeMap::new(),
            problems: Vec::new(),
            built: 0,
        })
    }

    async fn issue(&self, _term: Term, packed: &Packed, occasion: &Occasion) -> Result<usize, Stop> {
        *self.occasion.lock().unwrap() = occasion.clone();
        self.note(Asked::Issue(packed.environment.clone()));
        Ok(1)
    }

    async fn approved(&self) -> Result<BTreeSet<String>, Stop> {
        Ok(self.approved.lock().unwrap().clone())
    }

    fn ended(&self, outcome: ReconcileOutcome) {
        self.outcomes.lock().unwrap().push(outcome);
    }
}

struct Led {
    fake: Arc<Fake>,
    reconcilers: Reconcilers<Fake>,
    mirrors: Mirrors,
    confirm: watch::Sender<u64>,
    _download: watch::Sender<u64>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Led {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lead(scene: &Scene) -> Led {
    let mirrors = scene.mirrors();
    let fake = Arc::new(Fake::default());
    let (confirm, download) = (watch::Sender::new(0), watch::Sender::new(0));
    let promotions = watch::channel(0).1;
    let signals = Signals { confirmations: confirm.subscribe(), downloads: download.subscribe(), promotions };
    let reconcilers = Reconcilers::new(scene.reader(&mirrors), Arc::clone(&fake), signals);
    let task = tokio::spawn(reconcilers.clone().lead(TERM));
    Led { fake, reconcilers, mirrors, confirm, _download: download, task }
}

fn issued(environment: &str) -> impl FnMut(&Asked) -> bool {
    move |asked| *asked == Asked::Issue(environment.to_owned())
}

#[tokio::test]
async fn a_push_is_reconciled_to_the_end_and_publishes_the_new_value() {
    let scene = Scene::new().await;
    let led = lead(&scene);
    let first = led.fake.until(issued("dev")).await;
    assert!(first.contains(&Asked::Publish("dev".to_owned(), vec!["REGION: west".to_owned()])), "{first:?}");
    led.fake.until(|asked| matches!(asked, Asked::Catalog(_))).await;

    scene.dev(&[("configs/region.yaml", &config("region", "REGION", "east"))]);
    led.mirrors.nudge(&scene.control_plane.path());
    let east = Asked::Publish("dev".to_owned(), vec!["REGION: east".to_owned()]);
    let second = led.fake.until(|asked| *asked == east).await;
    assert!(
        !second.iter().any(|asked| matches!(asked, Asked::Issue(_))),
        "no walk for what was read already: {second:?}"
    );
    led.fake.until(issued("dev")).await;
    let occasion = led.fake.occasion.lock().unwrap().clone();
    assert_eq!(occasion.workloads["hello-dev"], "hello");
    assert!(!occasion.author.is_empty() && !occasion.subject.is_empty(), "{occasion:?}");
    let status = led.reconcilers.status();
    assert!(status["dev"].took.contains_key("schedule"));

    // The name on the branch is remembered with its tenant.
    let waited = async {
        while scene.store.published_names("dev").await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waited).await.unwrap();
    assert_eq!(scene.store.published_names("dev").await.unwrap()["hello-dev"].registration, "hello");
}

#[tokio::test]
async fn a_hand_edit_publishes_and_a_confirmation_too() {
    let scene = Scene::new().await;
    let led = lead(&scene);
    led.fake.until(issued("dev")).await;
    led.mirrors.head(&scene.gitops.path(), "dev", crate::git::Trust::Platform).await.unwrap();
    led.fake.until(|asked| matches!(asked, Asked::Publish(..))).await;
    led.fake.until(issued("dev")).await;
    scene.gitops.commit("dev", &[("README.md", "edited")]);
    led.mirrors.nudge(&scene.gitops.path());
    let asked = led.fake.until(issued("dev")).await;
    assert!(asked.iter().any(|asked| matches!(asked, Asked::Publish(..))), "{asked:?}");

    led.confirm.send_modify(|count| *count += 1);
    let asked = led.fake.until(issued("dev")).await;
    assert!(asked.iter().any(|asked| matches!(asked, Asked::Publish(..))), "{asked:?}");
    led.fake.approved.lock().unwrap().insert("dev".to_owned());
    let asked = led.fake.until(issued("dev")).await;
    assert!(asked.iter().any(|asked| matches!(asked, Asked::Publish(..))), "another hub's: {asked:?}");
}

#[tokio::test]
async fn a_failing_environment_is_tried_again_and_delays_no_other() {
    let scene = Scene::new().await;
    let led = lead(&scene);
    led.fake.failing.lock().unwrap().insert("dev".to_owned(), Stop::retry("the server is away"));
    led.fake.until(|asked| matches!(asked, Asked::Publish(name, _) if name == "dev")).await;

    let qa = environment("qa", &scene.control_plane.path(), "qa");
    scene
        .control_plane
        .commit("qa", &[("gitops.yaml", &crate::platform::testing::gitops("qa", &scene.gitops.path(), "qa"))]);
    scene.main(&[(".environments/qa.yaml", &qa)]);
    led.mirrors.nudge(&scene.control_plane.path());
    led.fake.until(issued("qa")).await;
    let (stop, _) = led.reconcilers.status()["dev"].stopped.clone().unwrap();
    assert_eq!((stop.message.as_str(), stop.next), ("the server is away", Next::Retry(None)));

    led.fake.failing.lock().unwrap().clear();
    led.fake.until(issued("dev")).await;
    assert!(led.fake.outcomes.lock().unwrap().contains(&ReconcileOutcome::Retry));

    // Removed with a valid commit: no longer reconciled.
    scene.main(&[]);
    led.mirrors.nudge(&scene.control_plane.path());
    led.fake.until(|asked| *asked == Asked::Forget("qa".to_owned())).await;
    assert!(!led.reconcilers.status().contains_key("qa"));
}

#[tokio::test]
async fn an_environment_that_was_never_good_says_why_and_begins_when_it_is() {
    let scene = Scene::new().await;
    scene.control_plane.commit("dev", &[("notes.txt", "nothing yet")]);
    let led = lead(&scene);
    led.fake.until(|asked| matches!(asked, Asked::Catalog(_))).await;
    scene.dev(&[]);
    led.mirrors.nudge(&scene.control_plane.path());
    led.fake.until(issued("dev")).await;

    // An application's own push is enough.
    scene.app.commit("main", &[("workload/workload.yaml", &workload("hello", &["dev", "qa"]))]);
    led.mirrors.nudge(&scene.app.path());
    led.fake.until(issued("dev")).await;
}
