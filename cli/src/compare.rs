//! `kedge compare`: two environments, cluster types or times next to each other, by workload. Called by `main`.

use anyhow::Result;
use serde_json::{Value, json};

use crate::error::Exit;
use crate::get::columns::text;
use crate::hub::{Hub, HubArgs};
use crate::output::{Format, Table, counted, print_json, print_text, print_yaml};

/// Show what differs between two environments, two cluster types, or one at two times
///
/// By workload: which side has it, in which version, with which configuration. Targets have other names in each environment,
/// so their names don't count. Values that look secret are shown to the platform team only; that they differ is said to all.
///
/// A side is an environment (stage), a cluster type of it (prod/drone), or either at a time: prod@2026-11-01T08:00:00Z,
/// prod@2026-11-01 (the beginning of that day, UTC), prod@2d (so long ago). At an earlier time the configuration is what was
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
        Format::Json => print_json(&compared)?,
        Format::Yaml => print_yaml(&compared)?,
        Format::Text => print_text(&to_text(&compared, args.all))?,
    }
    let differs = ["differ", "onlyLeft", "onlyRight"].iter().any(|key| count(&compared["totals"][*key]) > 0);
    Ok(if args.exit_code && differs { Exit::Invalid } else { Exit::Success })
}

/// All pages as one.
fn fetch(hub: &Hub, args: &CompareArgs) -> Result<Value> {
    let mut whole: Option<Value> = None;
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
        let mut page = hub.get(&["compare"], &parameters)?.document;
        cursor = page["next"].as_str().map(str::to_owned);
        if let Some(fields) = page.as_object_mut() {
            fields.remove("next");
        }
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => append(whole, &page),
        }
        if cursor.is_none() {
            return Ok(whole.unwrap_or_default());
        }
    }
}

fn append(whole: &mut Value, page: &Value) {
    for list in ["workloads", "notes"] {
        let Some(more) = page[list].as_array() else { continue };
        match whole[list].as_array_mut() {
            Some(all) => all.extend(more.iter().cloned()),
            None => whole[list] = json!(more),
        }
    }
    for key in ["same", "differ", "onlyLeft", "onlyRight"] {
        whole["totals"][key] = json!(count(&whole["totals"][key]) + count(&page["totals"][key]));
    }
}

fn to_text(compared: &Value, all: bool) -> String {
    let (left, right) = (text(&compared["left"]["name"]), text(&compared["right"]["name"]));
    let mut table = Table::default();
    table.row(["WORKLOAD".to_owned(), "WHAT".to_owned(), left.clone(), right.clone()]);
    let mut shown = 0;
    for workload in compared["workloads"].as_array().into_iter().flatten() {
        if workload["same"] == true && !all {
            continue;
        }
        shown += 1;
        for (index, row) in rows(workload, &left, &right).into_iter().enumerate() {
            let name = if index == 0 { text(&workload["workload"]) } else { String::new() };
            let [what, left, right] = row;
            table.row([name, what, left, right]);
        }
    }
    let totals = &compared["totals"];
    let of = |key: &str| usize::try_from(count(&totals[key])).unwrap_or(usize::MAX);
    let mut text = if shown > 0 { table.to_text("") } else { String::new() };
    text.push_str(&format!(
        "{} the same, {} different, {} only in {left}, {} only in {right}\n",
        counted(of("same"), "workload"),
        of("differ"),
        of("onlyLeft"),
        of("onlyRight"),
    ));
    for note in compared["notes"].as_array().into_iter().flatten() {
        text.push_str(&format!("{}\n", self::text(note)));
    }
    text
}

/// What differs of a workload: a line for each thing.
fn rows(workload: &Value, left: &str, right: &str) -> Vec<[String; 3]> {
    let (one, other) = (&workload["left"], &workload["right"]);
    let has = |way: &str| workload["differs"].as_array().is_some_and(|ways| ways.iter().any(|found| found == way));
    let mut rows = Vec::new();
    let mut row = |what: &str, left: String, right: String| rows.push([what.to_owned(), left, right]);
    if has("onlyLeft") || has("onlyRight") {
        let what = format!("only in {}", if has("onlyLeft") { left } else { right });
        row(&what, versions(one), versions(other));
        return rows;
    }
    if has("version") || workload["same"] == true {
        row(if has("version") { "version" } else { "same" }, versions(one), versions(other));
    }
    if has("content") {
        row("content", packages(one), packages(other));
    }
    if has("platform") {
        row("platform files", "differ".to_owned(), "differ".to_owned());
    }
    for (way, what, key) in [("clusterTypes", "cluster types", "clusterTypes"), ("targets", "targets", "targets")] {
        if has(way) {
            row(what, list(&one[key]), list(&other[key]));
        }
    }
    for key in workload["configuration"].as_array().into_iter().flatten() {
        let types = list(&key["clusterTypes"]);
        let on = if types.is_empty() { String::new() } else { format!(" on {types}") };
        row(&format!("{}{on}", text(&key["key"])), values(&key["left"]), values(&key["right"]));
    }
    if workload["configurationUnknown"] == true {
        row("configuration", "can't be known".to_owned(), String::new());
    }
    rows
}

/// `1.1.0 (c0ffee0123)`, several when rings or targets have different ones.
fn versions(side: &Value) -> String {
    let names: Vec<String> = side["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let commit = one["commit"].as_str().map(|commit| commit.get(..SHORT).unwrap_or(commit).to_owned());
            match (one["version"].as_str(), commit) {
                (Some(version), Some(commit)) => format!("{version} ({commit})"),
                (Some(version), None) => version.to_owned(),
                (None, commit) => commit.unwrap_or_else(|| "no version".to_owned()),
            }
        })
        .collect();
    match (names.is_empty(), side.is_object()) {
        (false, _) => names.join(", "),
        (true, true) => "nothing packed".to_owned(),
        (true, false) => String::new(),
    }
}

fn packages(side: &Value) -> String {
    let short = |name: &Value| {
        let name = text(name);
        name.get(..SHORT).unwrap_or(&name).to_owned()
    };
    side["packages"].as_array().into_iter().flatten().map(short).collect::<Vec<_>>().join(", ")
}

/// `"west"`, or with the targets where they differ.
fn values(side: &Value) -> String {
    let all = side.as_array().map(Vec::as_slice).unwrap_or_default();
    // Rings of one target have different values, or targets do.
    let by_ring = all.windows(2).all(|pair| pair[0]["targets"] == pair[1]["targets"]);
    let place = |one: &Value| match one["rings"].as_array() {
        Some(rings) if by_ring && !rings.is_empty() => {
            format!("{} in ring {}", list(&one["targets"]), list(&one["rings"]))
        }
        _ => list(&one["targets"]),
    };
    let shown = |one: &Value| match all.len() {
        1 => cut(&one["value"].to_string()),
        _ => format!("{} ({})", cut(&one["value"].to_string()), place(one)),
    };
    match all.is_empty() {
        true => "not set".to_owned(),
        false => all.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn list(names: &Value) -> String {
    names.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn count(number: &Value) -> u64 {
    number.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared() -> Value {
        let side = |version: &str| {
            json!({"targets": ["hello-a"], "clusterTypes": ["drone"], "packages": ["p"],
            "versions": [{"version": version, "commit": "0123456789abcdef"}]})
        };
        json!({
            "left": {"name": "stage"}, "right": {"name": "prod"},
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
        })
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
        let at = |value: &str, ring: &str| json!({"value": value, "targets": ["hello-edge"], "rings": [ring]});
        let side = json!([at("Hello", "canary"), at("Three", "rest")]);
        assert_eq!(values(&side), "\"Hello\" (hello-edge in ring canary), \"Three\" (hello-edge in ring rest)");
        let mut compared = compared();
        compared["notes"] = json!(["drone/hello-edge of prod was changed on 1 cluster (press-1): …"]);
        assert!(to_text(&compared, false).ends_with("was changed on 1 cluster (press-1): …\n"));
    }

    #[test]
    fn pages_become_one_answer() {
        let mut whole = compared();
        append(&mut whole, &compared());
        assert_eq!((whole["workloads"].as_array().unwrap().len(), &whole["totals"]["same"]), (6, &json!(2)));
    }
}
