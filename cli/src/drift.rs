//! `kedge drift`: desired against reality over the whole fleet. Called by `main`.

use anyhow::Result;
use kedge_api::client::Client;
use kedge_api::conditions::ConditionSummary;
use kedge_api::drift::{DriftGroup, RealityCounts, RunningPackages};
use serde::Serialize;
use serde_json::json;

use crate::error::Exit;
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::{Format, Table, print_json, print_text, print_yaml};

/// Compare what should run with what runs, over the whole fleet
///
/// What runs is compared with the newest desired state of each cluster's ring. A cluster that runs something else differs, for
/// example because a rollout hasn't reached it or failed; one that reports drift has drifted; the state of an offline cluster is
/// unknown. Assignments that are as desired everywhere are left out, except with --all.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge drift
  kedge drift prod --workload hello
  kedge drift --all -o json

  Which clusters drifted, and what was changed there?
    kedge get conditions -e prod --drift")]
pub struct DriftArgs {
    /// Only this environment
    #[arg(value_name = "ENVIRONMENT")]
    environment: Option<String>,

    /// Only this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Only this cluster type
    #[arg(long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// Include assignments that run as desired everywhere
    #[arg(long)]
    all: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

/// As many as the hub gives at once.
const PAGE: &str = "500";
/// Clusters that are told of with what was changed there; a list shows the rest.
const DRIFTED: &str = "20";
/// Different things that run are named in a line up to so many.
const NAMED: usize = 3;

/// Everything that the question is about.
#[derive(Debug, Serialize)]
struct Drift {
    totals: RealityCounts,
    notes: Vec<String>,
    groups: Vec<DriftGroup>,
    /// Some of those that drifted, with what was changed there.
    drifted: Vec<ConditionSummary>,
}

pub fn run(args: &DriftArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    let drift = args.ask(&hub)?;
    match args.output {
        Format::Json => print_json(&json!(drift))?,
        Format::Yaml => print_yaml(&json!(drift))?,
        Format::Text => print_text(&told(&drift))?,
    }
    Ok(Exit::Success)
}

impl DriftArgs {
    fn ask(&self, hub: &Client) -> Result<Drift> {
        let narrowed = || {
            vec![
                ("environment", self.environment.clone()),
                ("workload", self.workload.clone()),
                ("clusterType", self.cluster_type.clone()),
            ]
        };
        let (mut groups, mut notes, mut cursor) = (Vec::new(), Vec::new(), None);
        let totals = loop {
            let mut asked = narrowed();
            asked.extend([("limit", Some(PAGE.to_owned())), ("cursor", cursor)]);
            let page = hub.drift(&asked)?.read()?;
            if !page.notes.is_empty() {
                notes = page.notes;
            }
            let before = groups.len();
            groups.extend(page.groups.into_iter().filter(|group| self.all || differs(group)));
            cursor = page.next;
            // Those that differ come first.
            if cursor.is_none() || (groups.len() == before && !self.all) {
                break page.totals;
            }
        };
        let mut drifted = Vec::new();
        if totals.drifted > 0 {
            let mut asked = narrowed();
            asked.extend([("drift", Some("true".to_owned())), ("limit", Some(DRIFTED.to_owned()))]);
            drifted = hub.conditions(&asked)?.read()?.items;
        }
        Ok(Drift { totals, notes, groups, drifted })
    }
}

fn differs(group: &DriftGroup) -> bool {
    let RealityCounts { differs, drifted, unknown, .. } = group.reality;
    differs + drifted + unknown + group.failed + group.converging > 0
}

fn told(drift: &Drift) -> String {
    let totals = &drift.totals;
    let mut out = format!(
        "{} as desired, {} {}, {} drifted, {} unknown\n",
        totals.as_desired,
        totals.differs,
        if totals.differs == 1 { "differs" } else { "differ" },
        totals.drifted,
        totals.unknown,
    );
    for note in &drift.notes {
        out.push_str(&format!("{}\n", one_line(note)));
    }
    if !drift.groups.is_empty() {
        let mut table = Table::default();
        let head = ["ENVIRONMENT", "ASSIGNMENT", "DESIRED", "RUNNING", "DIFFER", "DRIFTED", "FAILED", "UNKNOWN"];
        table.row(head.map(str::to_owned));
        drift.groups.iter().for_each(|group| table.row(row(group)));
        out.push('\n');
        out.push_str(&table.to_text(""));
    }
    if !drift.drifted.is_empty() {
        out.push_str("\nDrifted:\n");
        for one in &drift.drifted {
            let place = format!("{}/{}", one_line(&one.cluster_type), one_line(&one.assignment));
            let (cluster, environment) = (one_line(&one.cluster_name), one_line(&one.environment));
            let changed = one_line(one.drift.as_deref().unwrap_or_default());
            out.push_str(&format!("  {environment} {cluster} {place}: {changed}\n"));
        }
        let more = totals.drifted.saturating_sub(drift.drifted.len() as u64);
        if more > 0 {
            out.push_str(&format!("  and {more} more  > kedge get conditions --drift\n"));
        }
    }
    out
}

fn row(group: &DriftGroup) -> [String; 8] {
    let count = |count: u64| if count == 0 { "-".to_owned() } else { count.to_string() };
    [
        one_line(&group.environment),
        one_line(&group.assignment),
        content(group.desired_version.as_deref(), None, &group.desired_packages),
        running(&group.running),
        count(group.reality.differs),
        count(group.reality.drifted),
        count(group.failed),
        count(group.reality.unknown),
    ]
}

/// `1.4.2 on 58, 1.4.1 on 2`
fn running(all: &[RunningPackages]) -> String {
    let named = |one: &RunningPackages| content(one.version.as_deref(), one.commit.as_deref(), &one.packages);
    let digits = |text: &str| text.get(..10).unwrap_or(text).to_owned();
    let one = |one: &RunningPackages| {
        let (name, count) = (named(one), one.count);
        let same: Vec<&RunningPackages> = all.iter().filter(|other| named(other) == name).collect();
        if same.len() < 2 {
            return format!("{name} on {count}");
        }
        // Where the version is the same, the commit tells them apart, or else the packages do.
        let commits = same.iter().filter(|other| other.commit == one.commit).count();
        let commit = one.commit.as_deref().map(digits).filter(|_| commits == 1);
        let what = commit.unwrap_or_else(|| digits(&one.packages));
        match what == name || what.is_empty() {
            true => format!("{name} on {count}"),
            false => format!("{name} ({what}) on {count}"),
        }
    };
    let shown = all.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The version if there is one, else the commit, else the packages.
fn content(version: Option<&str>, commit: Option<&str>, packages: &str) -> String {
    if let Some(version) = version {
        return version.to_owned();
    }
    match commit.unwrap_or(packages) {
        "" => "nothing".to_owned(),
        name => name.get(..10).unwrap_or(name).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_versions_are_told_apart() {
        let runs = |commit: &str, packages: &str| RunningPackages {
            version: Some("1.0.0".to_owned()),
            commit: Some(commit.to_owned()),
            packages: packages.to_owned(),
            count: 1,
            ..RunningPackages::default()
        };
        let commits = [runs("aaaaaaaaaaff", "p1"), runs("bbbbbbbbbbff", "p2")];
        assert_eq!(running(&commits), "1.0.0 (aaaaaaaaaa) on 1, 1.0.0 (bbbbbbbbbb) on 1");
        let packages = [runs("aaaaaaaaaaff", "p1"), runs("aaaaaaaaaaff", "p2")];
        assert_eq!(running(&packages), "1.0.0 (p1) on 1, 1.0.0 (p2) on 1");
        assert_eq!(running(&[runs("aaaaaaaaaaff", "p1")]), "1.0.0 on 1");
    }
}
