//! Random and regular platforms for the scheduler's tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::{
    BaseRepo, CapabilityMap, CapabilityRule, ClusterType, ConfigMap, ConfigSchema, ConfigValue, DeploymentTarget,
    Manifest, RepoRef, SchedulingPolicy, TargetSelector, Template, Workload, WorkloadRegistration,
};
use kedge_model::{Broken, Kind, Labels, Meta, Object, Origin, Platform, Problem, Requirement, Selector, Source, Spec};

pub const CLUSTER_TYPES: [&str; 4] = ["drone", "large", "small", ".github"];
pub const TEMPLATES: [&str; 4] = ["flux", "ns", "cfg", "bad"];
pub const REGISTRATIONS: [&str; 3] = ["reg-a", "reg-b", "reg-c"];
pub const WORKLOADS: [&str; 3] = ["w", "w-x", "v"];
pub const TARGETS: [&str; 4] = ["t", "x-t", "u", "../u"];
const KEYS: [&str; 5] = ["region", "edge", "purpose", "workspace", "cap"];
const VALUES: [&str; 4] = ["east", "west", "true", ""];
const CONFIG_KEYS: [&str; 4] = ["A", "B", "REGION", "l"];
const CONFIG_VALUES: [&str; 8] = [
    "x",
    "8080",
    "{a: 1, b: [x]}",
    "{a: 2, b: [y]}",
    "[{name: n, v: 1}]",
    "[{name: n, w: 2}, z]",
    "'q'",
    "{{ .Workload }}",
];

/// A small deterministic source of choices.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }
}

pub fn pick(dice: &mut Dice, from: &[&str]) -> String {
    from[dice.roll(from.len())].to_owned()
}

pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn some_labels(dice: &mut Dice, most: usize) -> Labels {
    (0..dice.roll(most + 1)).map(|_| (pick(dice, &KEYS), pick(dice, &VALUES))).collect()
}

fn selector(dice: &mut Dice) -> Selector {
    let mut selector = Selector { match_labels: some_labels(dice, 1), match_expressions: Vec::new() };
    if dice.roll(4) == 0 {
        let operator = match dice.roll(4) {
            0 => kedge_model::selector::Operator::In,
            1 => kedge_model::selector::Operator::NotIn,
            2 => kedge_model::selector::Operator::Exists,
            _ => kedge_model::selector::Operator::DoesNotExist,
        };
        let values = if operator.takes_values() { vec![pick(dice, &VALUES)] } else { Vec::new() };
        selector.match_expressions.push(Requirement { key: pick(dice, &KEYS), operator, values });
    }
    selector
}

pub fn origin(line: u32) -> Origin {
    let source = Arc::new(Source { repo: "test".to_owned(), revision: None });
    Origin { source, file: Arc::from("file.yaml"), line, column: 1 }
}

pub fn make(name: &str, labels: Labels, spec: Spec) -> Object {
    let meta = Meta { name: name.to_owned(), labels, annotations: BTreeMap::new() };
    Object { meta, spec, origin: origin(1), owner: None, stale_since: None }
}

pub fn template(name: &str, manifests: &[&str]) -> Object {
    let manifests = manifests.iter().map(|text| Manifest { text: (*text).to_owned(), line: 1 }).collect();
    make(name, Labels::new(), Spec::Template(Template { template_type: None, content_type: None, manifests }))
}

pub fn config_for(name: &str, asked: &[(&str, &str)], key: &str, value: &str) -> Object {
    let mut asked = labels(asked);
    asked.insert("platform-config".to_owned(), "true".to_owned());
    let value = ConfigValue { text: value.to_owned(), line: 9 };
    make(name, asked, Spec::ConfigMap(ConfigMap { data: BTreeMap::from([(key.to_owned(), value)]) }))
}

fn config_labels(dice: &mut Dice) -> Labels {
    let mut asked = some_labels(dice, 2);
    if dice.roll(5) != 0 {
        asked.insert("platform-config".to_owned(), "true".to_owned());
    }
    match dice.roll(8) {
        0 => drop(asked.insert("cluster-type".to_owned(), pick(dice, &CLUSTER_TYPES))),
        1 => drop(asked.insert("workload".to_owned(), pick(dice, &WORKLOADS))),
        2 => drop(
            asked
                .insert("deployment-target".to_owned(), format!("{}-{}", pick(dice, &WORKLOADS), pick(dice, &TARGETS))),
        ),
        _ => {}
    }
    asked
}

/// A random object of a random kind. Names come from small pools, so that edits meet.
pub fn object(dice: &mut Dice) -> Object {
    let some = |dice: &mut Dice| some_labels(dice, 3);
    match dice.roll(13) {
        0 | 1 => {
            let spec = ClusterType {
                reconciler: pick(dice, &TEMPLATES),
                namespace_service: pick(dice, &TEMPLATES),
                config_type: (dice.roll(3) != 0).then(|| pick(dice, &["cfg", "configmap", "envFile", "nosuch"])),
            };
            let labels = some(dice);
            make(&pick(dice, &CLUSTER_TYPES), labels, Spec::ClusterType(spec))
        }
        2 => {
            let text = [
                "{{ .Namespace }} {{ .ConfigData.A }}\n",
                "n: {{ .Labels }}\n",
                "{{ toYaml .ConfigData }}",
                "{{ .Nope }}",
                "{{ if }}",
                "",
            ];
            template(&pick(dice, &TEMPLATES), &[text[dice.roll(6)], text[dice.roll(6)]])
        }
        3 | 4 => {
            let spec = SchedulingPolicy {
                targets: TargetSelector {
                    workspace: (dice.roll(3) == 0).then(|| pick(dice, &["team", "other"])),
                    labels: selector(dice),
                },
                cluster_types: selector(dice),
            };
            make(&pick(dice, &["p1", "p2", "p3"]), Labels::new(), Spec::SchedulingPolicy(spec))
        }
        5 | 6 => {
            let data = (0..dice.roll(4))
                .map(|_| (pick(dice, &CONFIG_KEYS), ConfigValue { text: pick(dice, &CONFIG_VALUES), line: 5 }))
                .collect();
            let labels = config_labels(dice);
            make(&pick(dice, &["c1", "c2", "c3", "c4"]), labels, Spec::ConfigMap(ConfigMap { data }))
        }
        7 => {
            let keys = ["A", "region.east.A", "region.east.purpose.true.A", "odd.A", "cluster-type.drone.B"];
            let data = (0..dice.roll(4))
                .map(|_| (pick(dice, &keys), ConfigValue { text: pick(dice, &CONFIG_VALUES), line: 6 }))
                .collect();
            let labels = config_labels(dice);
            make("azure-app-config-1", labels, Spec::ConfigMap(ConfigMap { data }))
        }
        8 => {
            let schemas = [r#"{"required": ["A"]}"#, r#"{"properties": {"B": {"type": "string"}}}"#, "no"];
            let spec = ConfigSchema { schema: schemas[dice.roll(3)].to_owned() };
            let labels = some_labels(dice, 2);
            let mut object = make(&pick(dice, &["s1", "s2"]), labels, Spec::ConfigSchema(spec));
            if dice.roll(3) == 0 {
                object.meta.annotations.insert("kedge.dev/enforce".to_owned(), "warn".to_owned());
            }
            object
        }
        9 => {
            let spec = WorkloadRegistration {
                workload: RepoRef::default(),
                workspace: (dice.roll(4) != 0).then(|| pick(dice, &["team", "other"])),
                sources: Vec::new(),
            };
            make(&pick(dice, &REGISTRATIONS), Labels::new(), Spec::WorkloadRegistration(spec))
        }
        10 => {
            let rules = (0..dice.roll(3))
                .map(|line| CapabilityRule {
                    when: selector(dice),
                    add: labels(&[("cap", "true"), ("edge", "west")]),
                    line: line as u32,
                })
                .collect();
            make(&pick(dice, &["m1", "m2"]), Labels::new(), Spec::CapabilityMap(CapabilityMap { rules }))
        }
        11 => {
            let commit = (dice.roll(3) != 0).then(|| format!("{:040x}", dice.roll(1 << 20)));
            make("main", Labels::new(), Spec::BaseRepo(BaseRepo { repo: RepoRef::default(), commit }))
        }
        _ => workload(dice),
    }
}

fn workload(dice: &mut Dice) -> Object {
    let targets = (0..dice.roll(4))
        .map(|line| DeploymentTarget {
            name: pick(dice, &TARGETS),
            labels: some_labels(dice, 3),
            environment: pick(dice, &["dev", "dev", "dev", "prod"]),
            manifests: BTreeMap::from([("repo".to_owned(), "r".to_owned())]),
            config_schemas: if dice.roll(6) == 0 { vec![r#"{"required": ["B"]}"#.to_owned()] } else { Vec::new() },
            line: line as u32,
        })
        .collect();
    let labels = some_labels(dice, 2);
    let spec = Spec::Workload(Workload { targets, config_schemas: Vec::new() });
    let mut object = make(&pick(dice, &WORKLOADS), labels, spec);
    object.owner = (dice.roll(5) != 0).then(|| pick(dice, &REGISTRATIONS));
    object
}

pub fn broken(dice: &mut Dice) -> Broken {
    let kind = [Kind::ConfigMap, Kind::ConfigSchema, Kind::Template, Kind::ClusterType][dice.roll(4)];
    Broken {
        kind: Some(kind),
        name: (dice.roll(4) != 0)
            .then(|| if kind == Kind::Template { pick(dice, &TEMPLATES) } else { "c1".to_owned() }),
        owner: None,
        labels: (dice.roll(4) != 0).then(|| config_labels(dice)),
        problem: Problem::error("NotYaml", "can't be read").at(origin(3)),
    }
}

pub fn platform(dice: &mut Dice) -> Platform {
    let mut platform = Platform { environment: "dev".to_owned(), ..Platform::default() };
    for object in [
        template("flux", &["{{ .Namespace }}"]),
        template("ns", &["ns"]),
        template("cfg", &["{{ toYaml .ConfigData }}"]),
    ] {
        platform.objects.insert(object.id(), Arc::new(object));
    }
    for _ in 0..dice.roll(30) {
        let object = object(dice);
        platform.objects.insert(object.id(), Arc::new(object));
    }
    platform
}

/// Every target on every cluster type.
pub fn grid(cluster_types: usize, targets: usize) -> Platform {
    let mut platform = Platform { environment: "dev".to_owned(), ..Platform::default() };
    let mut put = |object: Object| drop(platform.objects.insert(object.id(), Arc::new(object)));
    put(template("flux", &["{{ .Namespace }}\n"]));
    put(template("cfg", &["{{ toYaml .ConfigData }}"]));
    for index in 0..cluster_types {
        let spec = ClusterType {
            reconciler: "flux".into(),
            namespace_service: "flux".into(),
            config_type: Some("cfg".into()),
        };
        put(make(&format!("ct-{index}"), Labels::new(), Spec::ClusterType(spec)));
    }
    let targets = (0..targets)
        .map(|index| DeploymentTarget {
            name: format!("t{index}"),
            labels: Labels::new(),
            environment: "dev".to_owned(),
            manifests: BTreeMap::new(),
            config_schemas: Vec::new(),
            line: 0,
        })
        .collect();
    put(make("w", Labels::new(), Spec::Workload(Workload { targets, config_schemas: Vec::new() })));
    let everything = SchedulingPolicy { targets: TargetSelector::default(), cluster_types: Selector::default() };
    put(make("all", Labels::new(), Spec::SchedulingPolicy(everything)));
    platform
}
