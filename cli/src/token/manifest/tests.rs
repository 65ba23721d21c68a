//! What `--manifest` prints, and that the chart says the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;

use super::*;

const CHART: [(&str, &str); 2] = [
    ("account", include_str!("../../../../packaging/kubernetes/chart/templates/account.yaml")),
    ("agent", include_str!("../../../../packaging/kubernetes/chart/templates/agent.yaml")),
];
const CHART_RIGHTS: &str = include_str!("../../../../packaging/kubernetes/chart/templates/rights.yaml");
const CHART_CACHES: &str = include_str!("../../../../packaging/kubernetes/chart/templates/caches.yaml");
const CHART_SETTINGS: &str = include_str!("../../../../packaging/kubernetes/chart/templates/settings.yaml");
const VALUES: &str = include_str!("../../../../packaging/kubernetes/chart/values.yaml");
const KUSTOMIZATIONS: [&str; 4] = [
    include_str!("../../../../packaging/kubernetes/manifests/kustomization.yaml"),
    include_str!("../../../../packaging/kubernetes/manifests/base/kustomization.yaml"),
    include_str!("../../../../packaging/kubernetes/manifests/apply/kustomization.yaml"),
    include_str!("../../../../packaging/kubernetes/manifests/observe/kustomization.yaml"),
];

fn manifest(mode: Mode) -> Manifest<'static> {
    Manifest { token: "kedge-join.1: x", mode, image: None, name: None }
}

/// Each object as `Kind name`, with its value.
fn objects(text: &str) -> Vec<(String, Value)> {
    let documents = kedge_goyaml::split(text).into_iter().map(|(text, _)| kedge_goyaml::decode(text).unwrap());
    let named = documents.filter(|value| *value != Value::Null).map(|value| {
        let kind = value.get("kind").and_then(Value::as_str).unwrap().to_owned();
        let name = value.get("metadata").and_then(|metadata| metadata.get("name")?.as_str()).unwrap().to_owned();
        (format!("{kind} {name}"), value)
    });
    named.collect()
}

fn names(text: &str) -> Vec<String> {
    objects(text).into_iter().map(|(name, _)| name).collect()
}

/// `a.b.c`, with numbers for items of lists.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('/').fold(value, |value, part| match (value, part.parse::<usize>()) {
        (Value::List(items), Ok(index)) => &items[index],
        _ => value.get(part).unwrap_or_else(|| panic!("no {part} of {path}")),
    })
}

#[test]
fn one_command_brings_everything_in_an_order_that_a_cluster_takes() {
    assert_eq!(
        names(&manifest(Mode::Apply).to_text()),
        [
            "Namespace kedge-system",
            "ServiceAccount kedge-agent",
            "Role kedge-agent",
            "RoleBinding kedge-agent",
            "ClusterRole kedge-agent",
            "ClusterRoleBinding kedge-agent",
            "ClusterRole kedge-agent-apply",
            "ClusterRole kedge-agent-platform",
            "ClusterRole kedge-workload",
            "ClusterRoleBinding kedge-agent-apply",
            "Secret kedge-join-token",
            "PriorityClass kedge-agent",
            "Deployment kedge-applier",
            "Service kedge-applier",
            "ServiceAccount kedge-cache",
            "DaemonSet kedge-agent",
        ]
    );
    let observed = names(&manifest(Mode::Observe).to_text());
    assert_eq!(observed.last().unwrap(), "Deployment kedge-applier", "there is no content to keep");
}

#[test]
fn token_image_and_name_are_where_the_agent_finds_them() {
    let manifest =
        Manifest { image: Some("registry.example/a@sha256:0f"), name: Some("plant-7"), ..manifest(Mode::Apply) };
    let objects = objects(&manifest.to_text());
    let find = |name: &str| &objects.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(at(find("Secret kedge-join-token"), "stringData/join-token").as_str(), Some("kedge-join.1: x"));
    assert_eq!(at(find("ConfigMap kedge-agent"), "data/agent.toml").as_str(), Some("name = \"plant-7\"\n"));
    for pods in ["Deployment kedge-applier", "DaemonSet kedge-agent"] {
        let container = at(find(pods), "spec/template/spec/containers/0");
        assert_eq!(at(container, "image").as_str(), Some("registry.example/a@sha256:0f"), "{pods}");
    }
}

#[test]
fn a_cache_has_no_account_of_anybody_and_sees_neither_token_nor_identity() {
    let text = manifest(Mode::Apply).to_text();
    let objects = objects(&text);
    let find = |name: &str| &objects.iter().find(|(found, _)| found == name).unwrap().1;
    let pod = at(find("DaemonSet kedge-agent"), "spec/template/spec");
    assert_eq!(at(pod, "serviceAccountName").as_str(), Some("kedge-cache"));
    assert_eq!(at(pod, "automountServiceAccountToken"), &Value::Bool(false));
    let Value::List(volumes) = at(pod, "volumes") else { panic!() };
    let secrets: Vec<_> = volumes.iter().filter_map(|one| one.get("secret")?.get("secretName")?.as_str()).collect();
    assert_eq!(secrets, ["kedge-cache"]);
    assert!(volumes.iter().all(|one| one.get("projected").is_none() && one.get("hostPath").is_none()));
    for (name, value) in objects.iter().filter(|(name, _)| name.contains("Binding ")) {
        assert!(!kedge_goyaml::encode(value, 2).contains("kedge-cache"), "{name}");
    }
}

#[test]
fn nothing_is_allowed_that_is_everything() {
    for (name, value) in objects(&manifest(Mode::Apply).to_text()) {
        let Some(Value::List(rules)) = value.get("rules") else { continue };
        for rule in rules {
            let Value::List(verbs) = at(rule, "verbs") else { panic!("{name}") };
            let verbs: Vec<_> = verbs.iter().map(|verb| verb.as_str().unwrap()).collect();
            let all = |key: &str| rule.get(key).is_some_and(|list| kedge_goyaml::encode(list, 2).contains('*'));
            assert!(!verbs.contains(&"*"), "{name}");
            assert!(!all("resources") || verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)), "{name}");
            let strong = verbs.iter().any(|verb| ["bind", "escalate", "impersonate"].contains(verb));
            assert!(!strong || rule.get("resourceNames").is_some(), "{name}");
        }
    }
}

#[test]
fn an_observer_may_write_nothing_but_its_own_lease_and_secrets() {
    let objects = objects(&manifest(Mode::Observe).to_text());
    let mut checked = 0;
    for (name, value) in objects.iter().filter(|(name, _)| name.starts_with("ClusterRole ")) {
        let Value::List(rules) = at(value, "rules") else { panic!("{name}") };
        for rule in rules {
            let Value::List(verbs) = at(rule, "verbs") else { panic!("{name}") };
            checked += verbs.len();
            assert!(verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap())), "{name}");
        }
    }
    assert!(checked >= 5);
}

#[test]
fn the_agent_runs_without_any_privilege() {
    let objects = objects(&manifest(Mode::Apply).to_text());
    let mut checked = 0;
    for (name, value) in &objects {
        if !name.starts_with("Deployment ") && !name.starts_with("DaemonSet ") {
            continue;
        }
        let pod = at(value, "spec/template/spec");
        assert_eq!(at(pod, "securityContext/runAsNonRoot"), &Value::Bool(true));
        assert_eq!(at(pod, "securityContext/seccompProfile/type").as_str(), Some("RuntimeDefault"));
        let container = at(pod, "containers/0");
        assert_eq!(at(container, "securityContext/readOnlyRootFilesystem"), &Value::Bool(true));
        assert_eq!(at(container, "securityContext/allowPrivilegeEscalation"), &Value::Bool(false));
        assert_eq!(at(container, "securityContext/capabilities/drop/0").as_str(), Some("ALL"));
        assert_eq!(at(container, "image").as_str(), Some(IMAGE));
        checked += 1;
    }
    assert_eq!(checked, 2);
}

#[test]
fn what_could_mean_something_in_yaml_is_no_image_and_no_name() {
    for wrong in ["", "a b", "a\nb: c", "-x", "{a}", "a#b"] {
        assert!(parse_image(wrong).is_err() && parse_name(wrong).is_err() == (wrong != "-x"), "{wrong:?}");
    }
    assert!(parse_image("kedge-agent:0.1.0").is_ok() && parse_name("plant-7").is_ok());
}

#[test]
fn the_kustomizations_name_every_file() {
    let named: BTreeSet<&str> =
        KUSTOMIZATIONS.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("  - ")).collect();
    assert_eq!(
        named,
        BTreeSet::from([
            "apply",
            "../base",
            "rights.yaml",
            "namespace.yaml",
            "account.yaml",
            "agent.yaml",
            "caches.yaml"
        ])
    );
}

/// What the chart's expressions come to with its own values; each value is checked against `values.yaml`.
fn rendered(template: &str) -> String {
    let values = kedge_goyaml::decode(VALUES).unwrap();
    let mut text = template.replace("{{ .Release.Namespace }}", "kedge-system");
    for key in ["image", "pullPolicy", "cacheSize"] {
        text = text.replace(&format!("{{{{ .Values.{key} }}}}"), at(&values, key).as_str().unwrap());
    }
    for (key, indent) in [("resources", 12), ("nodeSelector", 8), ("tolerations", 8)] {
        let gap = " ".repeat(indent);
        let lines: Vec<String> = VALUES
            .lines()
            .skip_while(|line| *line != format!("{key}:"))
            .skip(1)
            .take_while(|line| line.starts_with("  "))
            .map(|line| format!("{gap}{}", &line[2..]))
            .collect();
        text = text.replace(&format!("{gap}{{{{- toYaml .Values.{key} | nindent {indent} }}}}"), &lines.join("\n"));
    }
    text
}

#[test]
fn the_chart_makes_the_same_objects_as_the_manifests() {
    let [_, account, agent] = BASE;
    for ((name, template), manifest) in CHART.into_iter().zip([account, agent]) {
        kedge_template::Template::parse(template).unwrap();
        assert_eq!(rendered(template), manifest, "{name}");
    }
    let [_, observe, apply, wrong] = CHART_RIGHTS.split("{{- ").collect::<Vec<_>>()[..4].try_into().unwrap();
    let branch = |text: &str| rendered(text.split_once(" }}\n").unwrap().1);
    assert_eq!((branch(observe), branch(apply)), (OBSERVE.to_owned(), APPLY.to_owned()));
    assert!(wrong.starts_with("else }}"));
    kedge_template::Template::parse(CHART_RIGHTS).unwrap();
    kedge_template::Template::parse(CHART_CACHES).unwrap();
    let caches = CHART_CACHES.strip_prefix("{{- if eq .Values.mode \"apply\" }}\n").unwrap();
    assert_eq!(rendered(caches.strip_suffix("{{- end }}\n").unwrap()), CACHES);
    kedge_template::Template::parse(CHART_SETTINGS).unwrap();
}
