//! `kedge drift`: desired against reality over the whole fleet. Called by `main`.

use anyhow::Result;
use serde_json::{Value, json};

use crate::error::Exit;
use crate::get::columns::text;
use crate::hub::{Hub, HubArgs};
use crate::output::{Format, Table, print_json, print_text, print_yaml};

/// Show what should run against what does, over the whole fleet
///
/// What runs is compared with the newest desired state of each cluster's ring. A cluster that runs something else differs, for
/// example because a rollout hasn't reached it or failed; one that tells of changes by hand has drifted; of one that is silent
/// nothing is known. Assignments that are as desired everywhere are left out, except with --all.
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

    /// Also what is as desired everywhere
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

pub fn run(args: &DriftArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    let document = args.ask(&hub)?;
    match args.output {
        Format::Json => print_json(&document)?,
        Format::Yaml => print_yaml(&document)?,
        Format::Text => print_text(&told(&document))?,
    }
    Ok(Exit::Success)
}

impl DriftArgs {
    fn ask(&self, hub: &Hub) -> Result<Value> {
        let narrowed = || {
            vec![
                ("environment", self.environment.clone()),
                ("workload", self.workload.clone()),
                ("clusterType", self.cluster_type.clone()),
            ]
        };
        let (mut groups, mut cursor) = (Vec::new(), None);
        let mut notes = json!([]);
        let totals = loop {
            let mut asked = narrowed();
            asked.extend([("limit", Some(PAGE.to_owned())), ("cursor", cursor)]);
            let mut page = hub.get(&["drift"], &asked)?.document;
            if page["notes"].is_array() {
                notes = page["notes"].take();
            }
            let is_shown = |group: &&Value| self.all || differs(group);
            let found = page["groups"].as_array().into_iter().flatten();
            let before = groups.len();
            groups.extend(found.filter(is_shown).cloned());
            cursor = page["next"].as_str().map(str::to_owned);
            // Those that differ come first.
            if cursor.is_none() || (groups.len() == before && !self.all) {
                break page["totals"].take();
            }
        };
        let mut drifted = json!([]);
        if totals["drifted"].as_u64().unwrap_or_default() > 0 {
            let mut asked = narrowed();
            asked.extend([("drift", Some("true".to_owned())), ("limit", Some(DRIFTED.to_owned()))]);
            drifted = hub.get(&["conditions"], &asked)?.document["items"].take();
        }
        Ok(json!({"totals": totals, "notes": notes, "groups": groups, "drifted": drifted}))
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn differs(group: &Value) -> bool {
    ["differs", "drifted", "failed", "unknown", "converging"].iter().any(|field| number(&group[field]) > 0)
}

fn told(document: &Value) -> String {
    let totals = &document["totals"];
    let mut out = format!(
        "{} as desired, {} {}, {} drifted, {} unknown\n",
        number(&totals["asDesired"]),
        number(&totals["differs"]),
        if number(&totals["differs"]) == 1 { "differs" } else { "differ" },
        number(&totals["drifted"]),
        number(&totals["unknown"]),
    );
    for note in document["notes"].as_array().into_iter().flatten().map(text) {
        out.push_str(&format!("{note}\n"));
    }
    let groups: Vec<&Value> = document["groups"].as_array().into_iter().flatten().collect();
    if !groups.is_empty() {
        let mut table = Table::default();
        let head = ["ENVIRONMENT", "ASSIGNMENT", "DESIRED", "RUNNING", "DIFFER", "DRIFTED", "FAILED", "UNKNOWN"];
        table.row(head.map(str::to_owned));
        groups.iter().for_each(|group| table.row(row(group)));
        out.push('\n');
        out.push_str(&table.to_text(""));
    }
    let drifted: Vec<&Value> = document["drifted"].as_array().into_iter().flatten().collect();
    if !drifted.is_empty() {
        out.push_str("\nDrifted:\n");
        for one in &drifted {
            let place = format!("{}/{}", text(&one["clusterType"]), text(&one["assignment"]));
            let (cluster, environment) = (text(&one["clusterName"]), text(&one["environment"]));
            out.push_str(&format!("  {environment} {cluster} {place}: {}\n", text(&one["drift"])));
        }
        let more = number(&totals["drifted"]).saturating_sub(drifted.len() as u64);
        if more > 0 {
            out.push_str(&format!("  and {more} more  > kedge get conditions --drift\n"));
        }
    }
    out
}

fn row(group: &Value) -> [String; 8] {
    let count = |field: &str| match number(&group[field]) {
        0 => "-".to_owned(),
        count => count.to_string(),
    };
    [
        text(&group["environment"]),
        text(&group["assignment"]),
        content(&group["desiredVersion"], &Value::Null, &group["desiredPackages"]),
        running(&group["running"]),
        count("differs"),
        count("drifted"),
        count("failed"),
        count("unknown"),
    ]
}

/// `1.4.2 on 58, 1.4.1 on 2`
fn running(value: &Value) -> String {
    let all: Vec<&Value> = value.as_array().into_iter().flatten().collect();
    let named = |one: &Value| content(&one["version"], &one["commit"], &one["packages"]);
    let digits = |text: &Value| text.as_str().map(|text| text.get(..10).unwrap_or(text).to_owned());
    let one = |one: &&Value| {
        let (name, count) = (named(one), number(&one["count"]));
        let same: Vec<&&Value> = all.iter().filter(|other| named(other) == name).collect();
        if same.len() < 2 {
            return format!("{name} on {count}");
        }
        // Where the version is the same, the commit tells them apart, or else the packages do.
        let commits = same.iter().filter(|other| other["commit"] == one["commit"]).count();
        let commit = digits(&one["commit"]).filter(|_| commits == 1);
        let what = commit.or_else(|| digits(&one["packages"])).unwrap_or_default();
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
fn content(version: &Value, commit: &Value, packages: &Value) -> String {
    if let Some(version) = version.as_str() {
        return version.to_owned();
    }
    match (commit.as_str(), packages.as_str()) {
        (Some(name), _) | (None, Some(name)) if !name.is_empty() => name.get(..10).unwrap_or(name).to_owned(),
        _ => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_versions_are_told_apart() {
        let runs = |commit: &str, packages: &str| json!({"version": "1.0.0", "commit": commit, "packages": packages, "count": 1});
        let commits = json!([runs("aaaaaaaaaaff", "p1"), runs("bbbbbbbbbbff", "p2")]);
        assert_eq!(running(&commits), "1.0.0 (aaaaaaaaaa) on 1, 1.0.0 (bbbbbbbbbb) on 1");
        let packages = json!([runs("aaaaaaaaaaff", "p1"), runs("aaaaaaaaaaff", "p2")]);
        assert_eq!(running(&packages), "1.0.0 (p1) on 1, 1.0.0 (p2) on 1");
        assert_eq!(running(&json!([runs("aaaaaaaaaaff", "p1")])), "1.0.0 on 1");
    }
}
