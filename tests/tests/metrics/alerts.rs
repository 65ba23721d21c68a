//! The alerts, judged by Prometheus' own tool.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use kedge_tests::lab::skip;

use crate::packaging::folder;

/// None: the tool isn't here, and the test is marked as skipped.
fn promtool(arguments: &[&str]) -> Option<String> {
    let ran = Command::new("promtool").args(arguments).current_dir(folder("prometheus")).output();
    let Ok(ran) = ran else {
        skip("promtool isn't here (Debian's package prometheus)");
        return None;
    };
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "promtool {arguments:?}: {said}");
    Some(said)
}

#[test]
fn the_rules_and_the_configuration_are_valid() {
    let Some(said) = promtool(&["check", "rules", "kedge.rules.yaml"]) else { return };
    assert!(said.contains("rules found"), "{said}");
    // The token that it names is on the machine that runs Prometheus.
    promtool(&["check", "config", "--syntax-only", "prometheus.yaml"]).expect("it was there");
}

#[test]
fn every_alert_fires_for_its_reason_and_not_without_it() {
    if promtool(&["test", "rules", "kedge.test.yaml"]).is_none() {
        return;
    }
    let lines = |file: &str, before: &str| -> Vec<String> {
        let text = fs::read_to_string(folder("prometheus").join(file)).unwrap();
        let found = text.split(before).skip(1);
        found.map(|rest| rest.split([',', '\n', '}']).next().unwrap().trim().to_owned()).collect()
    };
    let alerts = lines("kedge.rules.yaml", "- alert: ");
    let tested: BTreeSet<String> = lines("kedge.test.yaml", "alertname: ").into_iter().collect();
    let all: BTreeSet<String> = alerts.iter().cloned().collect();
    assert_eq!(alerts.len(), all.len(), "each name once");
    assert_eq!(tested, all, "each has a test");
    for kind in ["summary", "description", "command"] {
        assert_eq!(lines("kedge.rules.yaml", &format!("          {kind}: ")).len(), alerts.len(), "each has a {kind}");
    }
}
