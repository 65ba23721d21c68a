//! `./tests/bench schedule`: a platform of about 100,000 assignments from scratch, then one value that touches one
//! assignment and one that touches a hundredth. Progress on stderr, one line of JSON on stdout.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_model::kinds::{
    ClusterType, ConfigMap, ConfigValue, DeploymentTarget, Manifest, SchedulingPolicy, TargetSelector, Template,
    Workload,
};
use kedge_model::{Labels, Meta, Object, Origin, Platform, Selector, Source, Spec};
use kedge_scheduler::{Change, Scheduler};

/// 316 × 316 is close to 100,000.
const SIDE: usize = 316;

/// Half of them apply to everything or to a region, half to a tenth of the targets.
const CONFIG_MAPS: usize = 50;

/// What Kalypso's own code takes for one assignment on this kind of machine.
const KALYPSO_MS: f64 = 0.6;

const RECONCILER: [&str; 2] = [
    r#"apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: {{ .Environment }}.{{ .Workspace }}.{{ index .Labels "application" }}.{{ .DeploymentTargetName }}.{{ .ClusterType }}
  namespace: flux-system
spec:
  interval: 30s
  url: {{ .Manifests.repo }}
  ref:
    branch: {{ .Manifests.branch }}
  secretRef:
    name: repo-secret
"#,
    r#"apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {{ .Environment }}.{{ .Workspace }}.{{ index .Labels "application" }}.{{ .DeploymentTargetName }}.{{ .ClusterType }}
  namespace: flux-system
spec:
  interval: 30s
  targetNamespace: {{ .Namespace }}
  sourceRef:
    kind: GitRepository
    name: {{ .Environment }}.{{ .Workspace }}.{{ index .Labels "application" }}.{{ .DeploymentTargetName }}.{{ .ClusterType }}
  path: {{ .Manifests.path }}
  prune: true
"#,
];

const NAMESPACE: [&str; 1] = [r"apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Namespace }}
  labels:
    environment: {{ .Environment }}
    workspace: {{ .Workspace }}
    workload: {{ .Workload }}
    deploymentTarget: {{ .DeploymentTargetName }}
"];

const CONFIG: [&str; 1] = [r"apiVersion: v1
kind: ConfigMap
metadata:
  name: platform-config
  namespace: {{ .Namespace }}
data:
{{ toYaml .ConfigData | indent 2 }}
"];

fn main() {
    if let Some(side) = std::env::args().nth(1) {
        return measure(side.parse().unwrap());
    }
    let small = run_child(32);
    let middle = run_child(100);
    let full = run_child(SIDE);
    let per = |field: &str, of: &BTreeMap<String, f64>| of[field] / of["assignments"];
    eprintln!("µs and kB for one assignment, so that linear growth shows as equal figures:");
    for figures in [&small, &middle, &full] {
        eprintln!(
            "{:>8} assignments: {:6.1} µs {:6.2} kB",
            figures["assignments"],
            per("full_ms", figures) * 1000.0,
            per("grown_mb", figures) * 1024.0
        );
    }
    let kalypso = full["assignments"] * KALYPSO_MS;
    eprintln!(
        "from scratch {:.1} times faster than Kalypso's {KALYPSO_MS} ms each; one assignment {:.0} times cheaper; a hundredth {:.2} % of it",
        kalypso / full["full_ms"],
        full["full_ms"] / full["one_ms"],
        100.0 * full["percent_ms"] / full["full_ms"]
    );
    println!(
        r#"{{"assignments": {}, "full_ms": {:.1}, "one_ms": {:.4}, "percent_ms": {:.3}, "rss_mb": {:.1}}}"#,
        full["assignments"], full["full_ms"], full["one_ms"], full["percent_ms"], full["rss_mb"]
    );
}

/// Each size in a process of its own, so that memory is that size's alone.
fn run_child(side: usize) -> BTreeMap<String, f64> {
    eprintln!("scheduling {side} cluster types × {side} targets …");
    let output = Command::new(std::env::current_exe().unwrap()).arg(side.to_string()).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_once(' ').unwrap()).map(|(k, v)| (k.to_owned(), v.parse().unwrap())).collect()
}

fn measure(side: usize) {
    let platform = platform(side);
    let before = memory_mb("VmRSS");
    let start = Instant::now();
    let mut scheduler = Scheduler::new(platform);
    let full = start.elapsed();
    let count = scheduler.schedule().assignments.len();
    let rss = memory_mb("VmRSS");
    let text: usize = scheduler.schedule().files().map(|(_, text)| text.len()).sum();
    if side == SIDE {
        let rendered = text as f64 / 1e6;
        eprintln!(
            "memory: {rss:.0} MB now, {:.0} MB at most; {rendered:.0} MB of it are the rendered files, {before:.0} MB the platform and the program, the rest ids, maps and shared configuration",
            memory_mb("VmHWM")
        );
    }
    let one = [("cluster-type", "type-0007"), ("deployment-target", "app-target-0007")];
    let hundredth = [("slice", "s003")];
    let (one_ms, one_touched) = median(&mut scheduler, "zz-one", &one);
    let (percent_ms, percent_touched) = median(&mut scheduler, "zz-hundredth", &hundredth);
    if side == SIDE {
        assert_eq!(one_touched, 1);
        assert!(percent_touched * 100 >= count, "{percent_touched} is less than a hundredth");
        eprintln!("the two edits touch {one_touched} and {percent_touched} assignments");
    }
    println!("assignments {count}");
    println!("full_ms {}", millis(full));
    println!("one_ms {one_ms}");
    println!("percent_ms {percent_ms}");
    println!("rss_mb {}", memory_mb("VmHWM"));
    println!("grown_mb {}", rss - before);
}

/// The same ConfigMap with another value each time; the median of eleven.
fn median(scheduler: &mut Scheduler, name: &str, asked: &[(&str, &str)]) -> (f64, usize) {
    let mut touched = 0;
    let mut times: Vec<f64> = (0..11)
        .map(|round| {
            let object = Arc::new(config(name, asked, "EDITED", &format!("value {round}")));
            let start = Instant::now();
            let delta = scheduler.update([Change::Upsert(object)]);
            let took = millis(start.elapsed());
            touched = delta.changed.len();
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], touched)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn memory_mb(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn object(name: &str, labels: Labels, spec: Spec) -> Object {
    let source = Arc::new(Source { repo: "https://example.com/control-plane".to_owned(), revision: None });
    let origin = Origin { source, file: Arc::from("platform.yaml"), line: 1, column: 1 };
    let meta = Meta { name: name.to_owned(), labels, annotations: BTreeMap::new() };
    Object { meta, spec, origin, owner: None, stale_since: None }
}

fn template(name: &str, manifests: &[&str]) -> Object {
    let manifests = manifests.iter().map(|text| Manifest { text: (*text).to_owned(), line: 1 }).collect();
    object(name, Labels::new(), Spec::Template(Template { template_type: None, content_type: None, manifests }))
}

fn config(name: &str, asked: &[(&str, &str)], key: &str, value: &str) -> Object {
    let mut labels = labels(asked);
    labels.insert("platform-config".to_owned(), "true".to_owned());
    let data = BTreeMap::from([(key.to_owned(), ConfigValue { text: value.to_owned(), line: 1 })]);
    object(name, labels, Spec::ConfigMap(ConfigMap { data }))
}

/// Every target on every cluster type; regions, slices of a hundredth, and values that override each other.
fn platform(side: usize) -> Platform {
    let mut platform = Platform { environment: "prod".to_owned(), ..Platform::default() };
    let mut put = |object: Object| drop(platform.objects.insert(object.id(), Arc::new(object)));
    put(template("flux", &RECONCILER));
    put(template("namespace", &NAMESPACE));
    put(template("configmap", &CONFIG));
    for index in 0..side {
        let spec = ClusterType {
            reconciler: "flux".to_owned(),
            namespace_service: "namespace".to_owned(),
            config_type: Some("configmap".to_owned()),
        };
        let region = format!("region-{}", index % 4);
        let name = format!("type-{index:04}");
        put(object(&name, labels(&[("region", &region), ("tier", "edge")]), Spec::ClusterType(spec)));
    }
    let targets = (0..side)
        .map(|index| DeploymentTarget {
            name: format!("target-{index:04}"),
            labels: labels(&[
                ("application", "greeting"),
                ("slice", &format!("s{:03}", index % 100)),
                ("group", &format!("g{}", index % 10)),
            ]),
            environment: "prod".to_owned(),
            manifests: BTreeMap::from(
                [("repo", "https://example.com/app-gitops"), ("branch", "prod"), ("path", "./functional-test")]
                    .map(|(key, value)| (key.to_owned(), value.to_owned())),
            ),
            config_schemas: Vec::new(),
            line: 1,
        })
        .collect();
    put(object("app", Labels::new(), Spec::Workload(Workload { targets, config_schemas: Vec::new() })));
    let everything = SchedulingPolicy { targets: TargetSelector::default(), cluster_types: Selector::default() };
    put(object("everything", Labels::new(), Spec::SchedulingPolicy(everything)));
    for index in 0..CONFIG_MAPS {
        let name = format!("config-{index:02}");
        let key = format!("KEY_{}", index % 20);
        let region = format!("region-{}", index % 4);
        let group = format!("g{}", index % 10);
        let value = format!("value {index} of the platform");
        match index % 4 {
            0 => put(config(&name, &[], &key, &value)),
            1 => put(config(&name, &[("region", &region)], &key, &value)),
            2 => put(config(&name, &[("group", &group)], &key, &value)),
            _ => put(config(
                &name,
                &[("region", &region), ("group", &group)],
                "nested",
                &format!("{{k{index}: [a, b]}}"),
            )),
        }
    }
    platform
}
