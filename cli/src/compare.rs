//! `kedge compare`: two environments, cluster types or times next to each other, by workload. Called by `main`.

use anyhow::Result;
use kedge_api::client::Client;
use kedge_api::comparisons::{
    Comparison, ComparisonTotals, PlacedValue, RunningVersion, SideSummary, WorkloadComparison,
};
use serde_json::json;

use crate::error::Exit;
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::{Format, Table, counted, print_json, print_text, print_yaml};

/// Compare two environments, two cluster types, or one of them at two times
///
/// By workload: which side has it, in which version, with which configuration. Targets have other names in each environment, so
/// their names don't count. Values that look secret are shown to the platform team only; everyone sees that they differ.
///
/// A side is an environment (stage), a cluster type of it (prod/drone), or either at a time: prod@2026-11-01T08:00:00Z,
/// prod@2026-11-01 (the start of that day, UTC), prod@2d (two days ago). At an earlier time the configuration is what was
/// published then.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What is in stage that isn't in prod yet?
    kedge compare stage prod

  Do drones and large sites run the same?
    kedge compare prod/drone prod/large

  What changed in prod since yesterday, of one workload?
    kedge compare prod@1d prod --workload hello

  Fail a pipeline when two environments differ:
    kedge compare stage prod --exit-code")]
pub struct CompareArgs {
    /// The one side
    #[arg(value_name = "LEFT")]
    left: String,

    /// The other side
    #[arg(value_name = "RIGHT")]
    right: String,

    /// Only this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Show workloads that are the same, too
    #[arg(long)]
    all: bool,

    /// Exit with 1 when something differs
    #[arg(long)]
    exit_code: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

/// Longer values are cut in the table.
const VALUE_LIMIT: usize = 60;

/// So many digits of a commit are shown.
const SHORT: usize = 10;

pub fn run(args: &CompareArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    let compared = fetch(&hub, args)?;
    match args.output {
        Format::Json => print_json(&json!(compared))?,
        Format::Yaml => print_yaml(&json!(compared))?,
        Format::Text => print_text(&to_text(&compared, args.all))?,
    }
    let ComparisonTotals { differ, only_left, only_right, .. } = compared.totals;
    Ok(if args.exit_code && differ + only_left + only_right > 0 { Exit::Invalid } else { Exit::Success })
}

/// All pages as one.
fn fetch(hub: &Client, args: &CompareArgs) -> Result<Comparison> {
    let mut whole: Option<Comparison> = None;
    let mut cursor = None;
    loop {
        let parameters = [
            ("left", Some(args.left.clone())),
            ("right", Some(args.right.clone())),
            ("workload", args.workload.clone()),
            ("differing", (!args.all).then(|| "true".to_owned())),
            ("limit", Some("500".to_owned())),
            ("cursor", cursor),
        ];
        let mut page = hub.compare(&parameters)?.read()?;
        cursor = page.next.take();
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => append(whole, page),
        }
        if cursor.is_none() {
            return Ok(whole.unwrap_or_default());
        }
    }
}

fn append(whole: &mut Comparison, page: Comparison) {
    whole.workloads.extend(page.workloads);
    whole.notes.extend(page.notes);
    whole.totals.same += page.totals.same;
    whole.totals.differ += page.totals.differ;
    whole.totals.only_left += page.totals.only_left;
    whole.totals.only_right += page.totals.only_right;
}

fn to_text(compared: &Comparison, all: bool) -> String {
    let (left, right) = (one_line(&compared.left.name), one_line(&compared.right.name));
    let mut table = Table::default();
    table.row(["WORKLOAD".to_owned(), "WHAT".to_owned(), left.clone(), right.clone()]);
    let mut shown = 0;
    for workload in compared.workloads.iter().filter(|workload| all || !workload.same) {
        shown += 1;
        for (index, row) in rows(workload, &left, &right).into_iter().enumerate() {
            let name = if index == 0 { one_line(&workload.workload) } else { String::new() };
            let [what, left, right] = row;
            table.row([name, what, left, right]);
        }
    }
    let ComparisonTotals { same, differ, only_left, only_right } = compared.totals;
    let same = usize::try_from(same).unwrap_or(usize::MAX);
    let mut text = if shown > 0 { table.to_text("") } else { String::new() };
    text.push_str(&format!(
        "{} the same, {differ} different, {only_left} only in {left}, {only_right} only in {right}\n",
        counted(same, "workload"),
    ));
    for note in &compared.notes {
        text.push_str(&format!("{}\n", one_line(note)));
    }
    text
}

/// What differs of a workload: a line for each thing.
fn rows(workload: &WorkloadComparison, left: &str, right: &str) -> Vec<[String; 3]> {
    let (one, other) = (workload.left.as_ref(), workload.right.as_ref());
    let has = |way: &str| workload.differs.iter().any(|found| found == way);
    let mut rows = Vec::new();
    let mut row = |what: &str, left: String, right: String| rows.push([what.to_owned(), left, right]);
    if has("onlyLeft") || has("onlyRight") {
        let what = format!("only in {}", if has("onlyLeft") { left } else { right });
        row(&what, versions(one), versions(other));
        return rows;
    }
    if has("version") || workload.same {
        row(if has("version") { "version" } else { "same" }, versions(one), versions(other));
    }
    if has("content") {
        row("content", packages(one), packages(other));
    }
    if has("platform") {
        row("platform files", "differ".to_owned(), "differ".to_owned());
    }
    let names = |side: Option<&SideSummary>, of: fn(&SideSummary) -> &Vec<String>| {
        side.map(|side| list(of(side))).unwrap_or_default()
    };
    if has("clusterTypes") {
        row("cluster types", names(one, |side| &side.cluster_types), names(other, |side| &side.cluster_types));
    }
    if has("targets") {
        row("targets", names(one, |side| &side.targets), names(other, |side| &side.targets));
    }
    for key in &workload.configuration {
        let types = list(&key.cluster_types);
        let on = if types.is_empty() { String::new() } else { format!(" on {types}") };
        row(&format!("{}{on}", one_line(&key.key)), values(&key.left), values(&key.right));
    }
    if workload.configuration_unknown {
        row("configuration", "can't be known".to_owned(), String::new());
    }
    rows
}

/// `1.1.0 (c0ffee0123)`, several when rings or targets have different ones.
fn versions(side: Option<&SideSummary>) -> String {
    let Some(side) = side else { return String::new() };
    let name = |one: &RunningVersion| {
        let commit = one.commit.as_deref().map(|commit| commit.get(..SHORT).unwrap_or(commit));
        match (&one.version, commit) {
            (Some(version), Some(commit)) => format!("{version} ({commit})"),
            (Some(version), None) => version.clone(),
            (None, commit) => commit.unwrap_or("no version").to_owned(),
        }
    };
    match side.versions.is_empty() {
        true => "nothing packed".to_owned(),
        false => side.versions.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

fn packages(side: Option<&SideSummary>) -> String {
    let short = |name: &String| {
        let name = one_line(name);
        name.get(..SHORT).unwrap_or(&name).to_owned()
    };
    side.map(|side| side.packages.iter().map(short).collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

/// `"west"`, or with the targets where they differ.
fn values(all: &[PlacedValue]) -> String {
    // Rings of one target have different values, or targets do.
    let by_ring = all.windows(2).all(|pair| pair[0].targets == pair[1].targets);
    let place = |one: &PlacedValue| match by_ring && !one.rings.is_empty() {
        true => format!("{} in ring {}", list(&one.targets), list(&one.rings)),
        false => list(&one.targets),
    };
    let shown = |one: &PlacedValue| match all.len() {
        1 => cut(&one.value.to_string()),
        _ => format!("{} ({})", cut(&one.value.to_string()), place(one)),
    };
    match all.is_empty() {
        true => "not set".to_owned(),
        false => all.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn compared() -> Comparison {
        let side = |version: &str| {
            json!({"targets": ["hello-a"], "clusterTypes": ["drone"], "packages": ["p"],
            "versions": [{"version": version, "commit": "0123456789abcdef", "clusterTypes": [], "rings": [], "targets": []}]})
        };
        let compared = json!({
            "left": {"name": "stage", "environment": "stage"}, "right": {"name": "prod", "environment": "prod"},
            "totals": {"same": 1, "differ": 1, "onlyLeft": 1, "onlyRight": 0},
            "workloads": [
                {"workload": "hello", "same": false, "differs": ["version", "configuration"], "left": side("1.1.0"),
                 "right": side("1.0.0"), "configuration": [
                    {"key": "REGION", "clusterTypes": ["drone"], "redacted": false,
                     "left": [{"value": "west", "targets": ["hello-a"]}],
                     "right": [{"value": "east", "targets": ["hello-b"]}, {"value": 1, "targets": ["hello-c"]}]},
                    {"key": "SITE", "clusterTypes": [], "redacted": false, "left": [{"value": "x", "targets": []}], "right": []}]},
                {"workload": "new", "same": false, "differs": ["onlyLeft"], "left": side("2"), "configuration": []},
                {"workload": "still", "same": true, "differs": [], "left": side("3"), "right": side("3"), "configuration": []},
            ],
        });
        serde_json::from_value(compared).unwrap()
    }

    #[test]
    fn differences_stand_next_to_each_other() {
        insta::assert_snapshot!(to_text(&compared(), true), @r#"
        WORKLOAD  WHAT             stage               prod
        hello     version          1.1.0 (0123456789)  1.0.0 (0123456789)
                  REGION on drone  "west"              "east" (hello-b), 1 (hello-c)
                  SITE             "x"                 not set
        new       only in stage    2 (0123456789)
        still     same             3 (0123456789)      3 (0123456789)
        1 workload the same, 1 different, 1 only in stage, 0 only in prod
        "#);
        assert!(!to_text(&compared(), false).contains("still"));
    }

    #[test]
    fn rings_of_one_target_are_told_apart_and_changes_by_hand_are_noted() {
        let at = |value: &str, ring: &str| PlacedValue {
            value: json!(value),
            targets: vec!["hello-edge".to_owned()],
            rings: vec![ring.to_owned()],
        };
        let side = [at("Hello", "canary"), at("Three", "rest")];
        assert_eq!(values(&side), "\"Hello\" (hello-edge in ring canary), \"Three\" (hello-edge in ring rest)");
        let mut compared = compared();
        compared.notes = vec!["drone/hello-edge of prod was changed on 1 cluster (press-1): …".to_owned()];
        assert!(to_text(&compared, false).ends_with("was changed on 1 cluster (press-1): …\n"));
    }

    #[test]
    fn pages_become_one_answer() {
        let mut whole = compared();
        append(&mut whole, compared());
        assert_eq!((whole.workloads.len(), whole.totals.same), (6, 2));
    }
}
