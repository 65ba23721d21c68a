//! Comparisons of random sides, and of the cases that people meet.

use kedge_api::comparisons::SideSummary;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn values(pairs: &[(&str, &str)]) -> Option<Vec<Arc<Values>>> {
    let value = |(key, text): &(&str, &str)| {
        let shown = if key.contains("PASSWORD") { json!("[redacted]") } else { json!(text) };
        ((*key).to_owned(), Value { exact: json!(text), shown })
    };
    Some(vec![Arc::new(pairs.iter().map(value).collect())])
}

fn place(cluster_type: &str, target: &str, version: &str, pairs: &[(&str, &str)]) -> Place {
    let run = Run {
        ring: "all".to_owned(),
        version: Some(version.to_owned()),
        repo: Some("r".to_owned()),
        commit: Some(format!("commit-of-{version}")),
        packages: format!("{target}-{version}"),
        content: Some(format!("{target}-{version}")),
        platform: Some(format!("{cluster_type}-{target}-{pairs:?}")),
    };
    Place {
        cluster_type: cluster_type.to_owned(),
        target: target.to_owned(),
        quarantined: false,
        runs: vec![run],
        values: values(pairs),
    }
}

fn side(environment: &str, places: Vec<Place>) -> Side {
    let mut side = Side { environment: environment.to_owned(), ..Side::default() };
    for place in places {
        side.cluster_types.insert(place.cluster_type.clone());
        let name = place.target.split('-').next().unwrap_or_default().to_owned();
        let workload = side.workloads.entry(name).or_default();
        workload.targets.insert(place.target.clone());
        workload.places.push(place);
    }
    side
}

fn differs(left: &Side, right: &Side) -> Vec<(String, Vec<String>)> {
    let compared = compare(left, right).into_iter();
    compared.filter(|one| !one.same).map(|one| (one.workload, one.differs)).collect()
}

fn found(name: &str, ways: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), ways.iter().map(|way| (*way).to_owned()).collect())
}

#[test]
fn names_of_targets_do_not_count_between_environments() {
    let stage = side("stage", vec![place("drone", "hello-uat", "1.0", &[("REGION", "west")])]);
    let prod = side("prod", vec![place("drone", "hello-production", "1.0", &[("REGION", "west")])]);
    assert_eq!(differs(&stage, &prod), []);
}

#[test]
fn versions_configuration_and_presence_differ() {
    let stage = side(
        "stage",
        vec![place("drone", "hello-uat", "1.1", &[("REGION", "west")]), place("drone", "new-uat", "1", &[])],
    );
    let prod = side("prod", vec![place("drone", "hello-live", "1.0", &[("REGION", "east")])]);
    assert_eq!(differs(&stage, &prod), [found("hello", &["version", "configuration"]), found("new", &["onlyLeft"])]);
    let compared = compare(&stage, &prod);
    let key = &compared[0].configuration[0];
    assert_eq!((key.key.as_str(), &key.left[0].value, &key.right[0].value), ("REGION", &json!("west"), &json!("east")));
    assert_eq!(compared[0].left.as_ref().unwrap().version.as_deref(), Some("1.1"));
}

#[test]
fn a_secret_that_differs_is_said_and_not_shown() {
    let stage = side("stage", vec![place("drone", "hello-uat", "1", &[("DB_PASSWORD", "one")])]);
    let prod = side("prod", vec![place("drone", "hello-live", "1", &[("DB_PASSWORD", "two")])]);
    let compared = compare(&stage, &prod);
    assert!(compared[0].configuration[0].redacted);
    assert_eq!(compared[0].configuration[0].left[0].value, "[redacted]");
    assert!(!serde_json::to_string(&compared).unwrap().contains("two"));
}

#[test]
fn swapped_values_of_two_cluster_types_are_not_the_same() {
    let of = |one: &str, other: &str| {
        vec![place("drone", "hello-a", "1", &[("N", one)]), place("large", "hello-a", "1", &[("N", other)])]
    };
    let compared = compare(&side("stage", of("1", "2")), &side("prod", of("2", "1")));
    let rows: Vec<_> =
        compared[0].configuration.iter().map(|row| (&row.cluster_types[0], &row.left[0].value)).collect();
    assert_eq!(rows, [(&"drone".to_owned(), &json!("1")), (&"large".to_owned(), &json!("2"))]);
}

#[test]
fn a_cluster_type_that_only_one_environment_has_is_no_difference() {
    let stage = side("stage", vec![place("drone", "hello-a", "1", &[])]);
    let both = vec![place("drone", "hello-b", "1", &[]), place("large", "hello-b", "1", &[])];
    assert_eq!(differs(&stage, &side("prod", both)), []);
    let mut has_large = stage;
    has_large.cluster_types.insert("large".to_owned());
    let both = vec![place("drone", "hello-b", "1", &[]), place("large", "hello-b", "1", &[])];
    assert_eq!(differs(&has_large, &side("prod", both)), [found("hello", &["clusterTypes"])]);
}

#[test]
fn other_content_of_one_version_counts_within_an_environment() {
    let before = side("prod", vec![place("drone", "hello-a", "1", &[])]);
    let mut after = before.clone();
    for place in &mut after.workloads.get_mut("hello").unwrap().places {
        place.runs[0].content = Some("other".to_owned());
        place.runs[0].platform = Some("other".to_owned());
    }
    assert_eq!(differs(&before, &after), [found("hello", &["content", "platform"])]);
    after.environment = "stage".to_owned();
    assert_eq!(differs(&before, &after), []);
}

#[test]
fn a_configuration_that_cannot_be_known_is_not_compared() {
    let before = side("prod", vec![place("drone", "hello-a", "1", &[("A", "b")])]);
    let mut after = before.clone();
    after.workloads.get_mut("hello").unwrap().places[0].values = None;
    let compared = compare(&before, &after);
    assert!(compared[0].same && compared[0].configuration_unknown);
}

fn sides() -> impl Strategy<Value = Side> {
    let place = ("[ab]", "(h|w)-[xy]", "[12]", prop::collection::btree_map("[KP]", "[12]", 0..3), any::<bool>())
        .prop_map(|(cluster_type, target, version, pairs, known)| {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let mut made = place(&cluster_type, &target, &version, &pairs);
            if !known {
                made.values = None;
            }
            made
        });
    ("(dev|prod)", prop::collection::vec(place, 0..8)).prop_map(|(environment, places)| {
        let once: BTreeMap<(String, String), Place> =
            places.into_iter().map(|place| ((place.cluster_type.clone(), place.target.clone()), place)).collect();
        side(&environment, once.into_values().collect())
    })
}

fn mirrored(ways: &[String]) -> BTreeSet<&str> {
    let swap = |way: &'_ String| match way.as_str() {
        "onlyLeft" => "onlyRight",
        "onlyRight" => "onlyLeft",
        "version" => "version",
        "content" => "content",
        "platform" => "platform",
        "configuration" => "configuration",
        "clusterTypes" => "clusterTypes",
        _ => "targets",
    };
    ways.iter().map(swap).collect()
}

proptest! {
    #[test]
    fn a_side_is_the_same_as_itself(one in sides()) {
        prop_assert!(compare(&one, &one).iter().all(|workload| workload.same));
    }

    #[test]
    fn both_directions_say_the_same(one in sides(), other in sides()) {
        let (there, back) = (compare(&one, &other), compare(&other, &one));
        prop_assert_eq!(there.len(), back.len());
        for (there, back) in there.iter().zip(&back) {
            prop_assert_eq!(&there.workload, &back.workload);
            prop_assert_eq!(there.differs.iter().map(String::as_str).collect::<BTreeSet<_>>(), mirrored(&back.differs));
            prop_assert_eq!((&there.left, &there.right), (&back.right, &back.left));
            let swapped: Vec<_> = back.configuration.iter().map(|row| (&row.key, &row.cluster_types, &row.right, &row.left)).collect();
            let rows: Vec<_> = there.configuration.iter().map(|row| (&row.key, &row.cluster_types, &row.left, &row.right)).collect();
            prop_assert_eq!(rows, swapped);
        }
    }

    #[test]
    fn what_is_said_to_be_the_same_has_the_same_versions(one in sides(), other in sides()) {
        for workload in compare(&one, &other).into_iter().filter(|workload| workload.same) {
            let (left, right) = (workload.left.unwrap(), workload.right.unwrap());
            let versions = |run: &SideSummary| run.versions.iter().map(|one| one.version.clone()).collect::<BTreeSet<_>>();
            prop_assert_eq!(versions(&left), versions(&right));
        }
    }
}

#[test]
fn rings_of_one_target_with_different_values_are_named() {
    let mut both = place("drone", "hello-a", "1", &[("N", "1")]);
    both.runs[0].ring = "canary".to_owned();
    both.runs.push(Run { ring: "rest".to_owned(), ..both.runs[0].clone() });
    both.values.as_mut().unwrap().extend(values(&[("N", "2")]).unwrap());
    let compared =
        compare(&side("stage", vec![both]), &side("prod", vec![place("drone", "hello-b", "1", &[("N", "2")])]));
    let rings: Vec<_> = compared[0].configuration[0].left.iter().map(|one| one.rings.join(" ")).collect();
    assert_eq!(rings, ["canary", "rest"]);
}
