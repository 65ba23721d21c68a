//! A second application on the plant's boxes, `tally`, with a repository of its own: what becomes of one must not concern the other.

use crate::lab::git::Checkout;
use crate::lab::git_server::Webhook;
use crate::world::HOOK_SECRET;

use super::{LINE, MOVED_WITHIN, Plant, workload};

/// Its assignment in dev, on both cluster types.
pub const TALLY: &str = "tally-line-test";

const FOLDER: &str = "line-test";

/// The application team of `tally`, at its checkout.
#[derive(Debug)]
pub struct Tally {
    checkout: Checkout,
}

impl Plant {
    /// The platform team brings it in by a commit on main; the team pushes its first content, and dev wants it.
    #[track_caller]
    pub fn add_tally(&self) -> Tally {
        let git = &self.world.git;
        git.create("tally");
        git.notify("tally", Webhook { url: self.world.hub.url("/hooks/git"), secret: HOOK_SECRET.to_owned() });
        let checkout = Checkout::init_for(&git.url_with_login("tally"));
        let url = git.url("tally");
        checkout.change(
            "workload/tally.yaml",
            &format!(
                "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {{name: tally}}\nspec:\n  deploymentTargets:\n    \
                 - name: line-test\n      environment: dev\n      labels: {{purpose: line-test, runs: host, needs: gpu}}\n      \
                 manifests: {{repo: {url:?}, branch: dev, path: ./{FOLDER}}}\n"
            ),
        );
        checkout.create_orphan("dev");
        let tally = Tally { checkout };
        tally.push("tally 1");
        self.push_tally_setting("one");
        self.await_so("dev wants the second application", MOVED_WITHIN, |plant| {
            let path = format!("/api/v1/assignments/dev/{LINE}/{TALLY}");
            plant.world.api.status_of(&path) == 200
        });
        tally
    }

    /// A commit on main that concerns `tally` only; the first also registers it.
    pub fn push_tally_setting(&self, value: &str) -> String {
        let url = self.world.git.url("tally");
        self.push_file(
            "main",
            "workloads/tally.yaml",
            &format!(
                "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {{name: tally}}\nspec:\n  \
                 workload: {{repo: {url:?}, branch: main, path: workload}}\n  workspace: hello-team\n---\napiVersion: v1\n\
                 kind: ConfigMap\nmetadata:\n  name: 18-tally\n  labels: {{platform-config: \"true\", workload: tally}}\n\
                 data:\n  COUNTS: {value}\n"
            ),
        )
    }

    /// Its text on a box.
    #[track_caller]
    pub fn tally_on(&self, name: &str) -> Option<String> {
        Some(self.find(name).read(&format!("srv/{TALLY}/app.txt"))?.trim_end().to_owned())
    }

    /// The platform's value for it on a box.
    #[track_caller]
    pub fn tally_setting_on(&self, name: &str) -> Option<String> {
        self.setting_of(name, TALLY, "COUNTS")
    }
}

impl Tally {
    /// A commit of its team for dev.
    pub fn push(&self, text: &str) -> String {
        workload(TALLY, text).push(&self.checkout, FOLDER)
    }
}
