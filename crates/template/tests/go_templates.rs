//! Runs the one-line templates of `go-templates.json`, from the folder that KEDGE_KALYPSO names, and compares every
//! output and every error text with what Kalypso's own code gave.

use std::collections::BTreeMap;
use std::path::Path;

use kedge_template::{Context, Data, Limits, Template};

/// A configuration value by Kalypso's rule: quoted text, a map or a list, else the text itself.
fn config_value(text: &str) -> kedge_goyaml::Value {
    use kedge_goyaml::Value;
    let trimmed = text.trim();
    if trimmed.starts_with('\'') && trimmed.ends_with('\'') {
        return Value::String(trimmed.trim_matches('\'').to_owned());
    }
    match kedge_goyaml::decode(text) {
        Ok(value @ (Value::List(_) | Value::Map(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// Our bound is lower than Go's.
fn expected_error(text: &str) -> String {
    text.replace("exceeded maximum template depth (100000)", "exceeded maximum template depth (100)")
}

#[test]
fn every_go_template_gives_kalypsos_result() {
    let Some(folder) = std::env::var_os("KEDGE_KALYPSO") else {
        println!("KEDGE-SKIP every_go_template_gives_kalypsos_result: KEDGE_KALYPSO is not set");
        return;
    };
    let text = std::fs::read_to_string(Path::new(&folder).join("go-templates.json")).expect("go-templates.json");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let config: BTreeMap<String, kedge_goyaml::Value> = file["data"]
        .as_object()
        .expect("data")
        .iter()
        .map(|(key, value)| (key.clone(), config_value(value.as_str().expect("text"))))
        .collect();
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let labels = map(&[("workload", "w"), ("workspace", "ws")]);
    let manifests = map(&[("repo", "r")]);
    let mut failures = Vec::new();
    let cases = file["cases"].as_array().expect("cases");
    for case in cases {
        let source = case["template"].as_str().expect("template");
        let data = Data::new(Context {
            deployment_target_name: "w-t",
            namespace: "dev-ct-w-t",
            environment: "dev",
            workspace: "ws",
            workload: "w",
            labels: &labels,
            manifests: &manifests,
            cluster_type: "ct",
            config: &config,
        });
        let rendered = Template::parse(source).and_then(|template| template.render(&data, &Limits::default()));
        let (ours, expected) = match (&rendered, case["output"].as_str()) {
            (Ok(output), expected) => (output.clone(), expected.map(str::to_owned)),
            (Err(error), _) => (error.to_string(), case["error"].as_str().map(expected_error)),
        };
        if Some(&ours) != expected.as_ref() {
            failures.push(format!("{source}\n  ours {ours}\n  Go's {case}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
