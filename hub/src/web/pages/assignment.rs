//! `/assignments/{environment}/{cluster type}/{target}`: desired against reality, both packages with their commits, every
//! configuration value with its origin, and why it was chosen.

mod configuration;

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use kedge_api::assignments::{
    AssignmentDetail, DesiredAssignment, RunningAssignment, RunningConfiguration, SchedulingPolicySummary,
};
use kedge_api::counts::CountSummary;
use kedge_api::desired_states::PackageSummary;
use kedge_api::rollouts::{PinnedAssignment, RolloutReference};

use crate::api::ApiState;
use crate::api::objects;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Four, Place, Tone, When};
use crate::web::{Show, Viewer, WebError, links, rings};
use configuration::Values;
pub use configuration::plain;

#[derive(Template)]
#[template(path = "assignment.html")]
pub struct AssignmentPage {
    frame: Frame,
    environment: String,
    environment_link: String,
    cluster_type: String,
    cluster_type_link: String,
    target: String,
    workload: String,
    workload_link: String,
    workspace: String,
    labels: Vec<(String, String)>,
    updated: When,
    quarantine: Vec<Finding>,
    warnings: Vec<Finding>,
    bar: Bar,
    rings: Vec<Ring>,
    running: Vec<Running>,
    drifted: u64,
    drifted_link: String,
    rollouts: Vec<About>,
    pinned: Vec<PinnedAssignment>,
    /// That Git doesn't describe it any more.
    note: Option<String>,
    values: Values,
    secrets: bool,
    policies: Vec<Policy>,
    target_origin: Option<Place>,
    manifests: Vec<(String, String)>,
    files: Vec<(String, String)>,
    history: String,
    conditions: String,
}

/// What a ring should run.
struct Ring {
    name: String,
    generation: u64,
    generation_link: String,
    version: String,
    observed: bool,
    expected: Option<Chip>,
    platform: Option<Package>,
    workload: Option<Package>,
    restart: u64,
    bar: Bar,
}

struct Package {
    chip: Chip,
    digest: String,
    short: String,
    size: String,
    repo: Option<String>,
}

/// What runs on so many clusters of a ring.
struct Running {
    ring: String,
    version: String,
    chip: Option<Chip>,
    configuration: Option<Chip>,
    /// What Git says of its configuration: nothing when that isn't known.
    git: &'static str,
    count: u64,
    offline: u64,
    offline_since: Option<When>,
    desired: bool,
    /// Where it was changed; empty: nowhere.
    drifted_on: String,
    link: String,
}

struct About {
    link: String,
    id: u64,
    state: String,
    tone: Option<Tone>,
    rings: String,
    chip: Chip,
    subject: String,
    author: String,
}

/// Why it was chosen.
struct Policy {
    name: String,
    cluster_types: String,
    targets: String,
    origin: Place,
}

pub struct Finding {
    code: String,
    message: String,
    hint: Option<String>,
    origin: Option<Place>,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    path: Result<Path<(String, String, String)>, PathRejection>,
) -> Result<Show<AssignmentPage>, WebError> {
    let path = path?.0;
    let named = path.clone();
    let caller = viewer.caller.clone();
    let whole = objects::assignment(State(state), caller.clone(), Ok(Path(path))).await?.0;
    let frame = Frame::of(&viewer, whole.assignment.name.clone(), Section::Workloads);
    Ok(Show(AssignmentPage::of(frame, named, whole, caller.sees_secrets())))
}

impl AssignmentPage {
    fn of(
        frame: Frame,
        (environment, cluster_type, target): (String, String, String),
        whole: AssignmentDetail,
        sees_secrets: bool,
    ) -> AssignmentPage {
        let AssignmentDetail {
            assignment,
            provenance,
            configuration,
            desired,
            running,
            configurations,
            counts,
            rollouts,
            pinned,
            note,
            updated_at,
        } = whole;
        let pairs = [
            ("environment", environment.as_str()),
            ("clusterType", cluster_type.as_str()),
            ("assignment", target.as_str()),
        ];
        let with = |key: &str, value: &str| {
            let all: Vec<(&str, &str)> = pairs.iter().copied().chain(std::iter::once((key, value))).collect();
            links::query("/conditions", &all)
        };
        let stream = |ring: &str| {
            format!("/types/{}/{}", links::part(&environment), links::part(&cluster_type)) + "#" + &links::part(ring)
        };
        let values = Values::of(configuration, &configurations, &running);
        let drifted = running.iter().filter(|one| one.drifted).map(|one| one.count).sum();
        let running = running.into_iter().map(|one| Running::of(one, &configurations, &pairs));
        AssignmentPage {
            frame,
            environment_link: links::environment(&environment),
            cluster_type_link: links::cluster_type(&environment, &cluster_type),
            workload_link: links::workload(&assignment.workload),
            labels: assignment.labels.into_iter().collect(),
            updated: When::of(&updated_at),
            quarantine: assignment.quarantine.iter().map(Finding::of).collect(),
            warnings: provenance.warnings.iter().map(Finding::of).collect(),
            bar: four(counts.iter()).bar("/conditions", &pairs),
            rings: desired.into_iter().map(|ring| Ring::of(ring, &counts, &pairs, &stream)).collect(),
            running: running.collect(),
            drifted,
            drifted_link: with("drift", "true"),
            rollouts: rollouts.into_iter().map(About::of).collect(),
            pinned,
            note,
            secrets: !sees_secrets && values.rows.iter().any(|value| value.secret),
            values,
            policies: provenance.policies.iter().map(Policy::of).collect(),
            target_origin: provenance.target_origin.as_ref().map(Place::of),
            manifests: provenance.manifests.into_iter().map(|(key, value)| (key, links::bare(&value))).collect(),
            files: provenance.files.into_iter().map(|file| (file.path, short_digest(&file.digest))).collect(),
            history: links::query(
                "/history",
                &[("environment", environment.as_str()), ("assignment", assignment.name.as_str())],
            ),
            conditions: links::query("/conditions", &pairs),
            workload: assignment.workload,
            workspace: assignment.workspace,
            environment,
            cluster_type,
            target,
        }
    }
}

impl Running {
    fn of(one: RunningAssignment, configurations: &[RunningConfiguration], pairs: &[(&str, &str)]) -> Running {
        let found = one.configuration.as_ref().and_then(|id| configurations.iter().find(|known| known.id == *id));
        let reality = match (one.conditions.unknown == one.count, one.as_desired) {
            _ if one.drifted => "drifted",
            (true, _) => "unknown",
            (false, true) => "asDesired",
            (false, false) => "differs",
        };
        let narrowed = [("ring", one.ring.as_str()), ("reality", reality)];
        let narrowed: Vec<(&str, &str)> = pairs.iter().copied().chain(narrowed).collect();
        Running {
            link: links::query("/conditions", &narrowed),
            version: match (&one.version, one.packages.is_empty()) {
                (Some(version), _) => version.clone(),
                (None, true) => "nothing".to_owned(),
                (None, false) => "without a version".to_owned(),
            },
            chip: one.commit.as_deref().map(|commit| Chip::new(commit, "")),
            configuration: one.platform_commit.as_deref().map(|commit| Chip::new(commit, "")),
            git: match found {
                _ if one.drifted => "changed there: the values aren't known",
                Some(found) if found.unknown.is_some() => "can't be shown",
                Some(found) if found.as_in_git => "as in Git",
                Some(_) => "Git says otherwise",
                None => "",
            },
            count: one.count,
            offline: one.conditions.unknown,
            offline_since: When::maybe(one.offline_since.as_deref()),
            desired: one.as_desired,
            drifted_on: named(one.count, &one.drifted_on),
            ring: one.ring,
        }
    }
}

impl Ring {
    fn of(
        ring: DesiredAssignment,
        counts: &[CountSummary],
        pairs: &[(&str, &str)],
        stream: &dyn Fn(&str) -> String,
    ) -> Ring {
        let DesiredAssignment { ring: name, generation, entry, .. } = ring;
        let narrowed: Vec<(&str, &str)> =
            pairs.iter().copied().chain(std::iter::once(("ring", name.as_str()))).collect();
        Ring {
            bar: four(counts.iter().filter(|count| count.ring == name)).bar("/conditions", &narrowed),
            generation_link: stream(&name),
            generation,
            version: entry.version.unwrap_or_default(),
            observed: entry.mode == "observe",
            expected: entry.expected_commit.as_deref().map(|commit| Chip::new(commit, "")),
            platform: entry.platform.map(Package::of),
            workload: entry.workload.map(Package::of),
            restart: entry.restart,
            name,
        }
    }
}

impl Package {
    fn of(package: PackageSummary) -> Package {
        Package {
            chip: Chip::new(&package.commit, &links::bare(&package.repo)),
            short: short_digest(&package.digest),
            digest: package.digest,
            size: size(package.size),
            repo: links::repository(&package.repo),
        }
    }
}

impl About {
    fn of(about: RolloutReference) -> About {
        About {
            link: links::rollout(about.rollout),
            id: about.rollout,
            tone: rings::tone_of_rollout(&about.state, about.settled),
            state: rings::said(&about.state).to_owned(),
            rings: about.rings,
            chip: Chip::new(&about.commit, &about.subject),
            subject: about.subject,
            author: rings::person(&about.author),
        }
    }
}

impl Policy {
    fn of(policy: &SchedulingPolicySummary) -> Policy {
        Policy {
            name: policy.name.clone(),
            cluster_types: policy.cluster_types.clone(),
            targets: policy.targets.clone(),
            origin: Place::of(&policy.origin),
        }
    }
}

impl Finding {
    pub fn of(finding: &kedge_api::findings::Finding) -> Finding {
        Finding {
            code: finding.code.clone(),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
            origin: finding.origin.as_ref().map(Place::of),
        }
    }
}

fn four<'a>(counts: impl Iterator<Item = &'a CountSummary>) -> Four {
    let mut sums: BTreeMap<Tone, u64> = BTreeMap::new();
    for count in counts {
        *sums.entry(Tone::of(&count.condition)).or_default() += count.count;
    }
    let mut four = Four::default();
    sums.into_iter().for_each(|(tone, count)| four.add(tone, count));
    four
}

/// `press-1, press-2 and 3 more`; empty where nobody is named.
pub fn named(count: u64, names: &[String]) -> String {
    match count.saturating_sub(names.len() as u64) {
        more if more > 0 && !names.is_empty() => format!("{} and {more} more", names.join(", ")),
        _ => names.join(", "),
    }
}

/// As many digits as tell two packages apart.
fn short_digest(digest: &str) -> String {
    digest.rsplit(':').next().unwrap_or(digest).chars().take(12).collect()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
