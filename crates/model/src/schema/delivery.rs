//! Schemas of what Kedge delivers: Deliveries, HostWorkloads, HostNamespaces.

use serde_json::{Value, json};

use super::{flag, list, object, text, word, words};

pub(super) fn delivery() -> Value {
    let reference = json!({
        "type": "object",
        "description": "One of the three; without `ref` it is the branch `main`.",
        "properties": {
            "branch": {"type": "string", "minLength": 1},
            "tag": {"type": "string", "minLength": 1},
            "commit": {"type": "string", "minLength": 1},
        },
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": false,
    });
    let source = object(
        "Where the content is.",
        &["repo"],
        &[
            ("repo", word("The URL of the repository.")),
            ("ref", reference),
            ("path", text("A folder inside the repository; `.` is all of it.")),
        ],
    );
    let mut fields = vec![
        ("source", source),
        ("to", words("What it is applied to.", &["kubernetes", "host"])),
        ("namespace", text("Without it, the assignment's own.")),
        ("scope", words("Which objects it may have; `namespace` when not written.", &["namespace", "cluster"])),
        ("conflicts", words("When somebody else manages a field; `fail` when not written.", &["fail", "take"])),
        ("serviceAccount", text("The account that applies it.")),
    ];
    fields.extend(bounds());
    object("Where a workload's content is and how it is applied.", &["source", "to"], &fields)
}

fn bounds() -> [(&'static str, Value); 4] {
    [
        ("timeout", duration("How long a change may take until it is healthy.")),
        ("soak", duration("How long it must stay healthy before it counts.")),
        ("rollback", words("Whether a failed change is taken back.", &["auto", "never"])),
        ("drift", words("What happens to drift.", &["repair", "report", "ignore"])),
    ]
}

pub(super) fn duration(description: &str) -> Value {
    let pattern = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
    json!({"type": "string", "pattern": pattern, "description": description})
}

pub(super) fn host_workload() -> Value {
    let mut fields = vec![
        ("debs", list("Packages.", &deb())),
        ("files", list("Files of the manifests folder and where they go.", &file())),
        ("artifacts", list("Large content with a known digest.", &artifact())),
        ("units", list("systemd units and the state they should have.", &unit())),
        ("health", list("How health is seen.", &health())),
    ];
    fields.extend(bounds());
    object("What the host runs.", &[], &fields)
}

fn deb() -> Value {
    json!({"oneOf": [
        object("An exact version from the host's apt sources.", &["name", "version"], &[
            ("name", word("The package.")),
            ("version", word("The exact version.")),
        ]),
        object("A `.deb` of the manifests folder.", &["file"], &[("file", inside())]),
    ]})
}

fn file() -> Value {
    object(
        "A file.",
        &["path", "file"],
        &[
            ("path", absolute()),
            ("file", inside()),
            ("owner", text("`user` or `user:group`; without it, the namespace's user.")),
            ("mode", mode()),
            ("template", flag("Whether the agent fills in what the host knows.")),
        ],
    )
}

fn artifact() -> Value {
    let mut schema = object(
        "Large content with a known digest.",
        &["path", "sha256"],
        &[("path", absolute()), ("url", word("Fetched by the hub.")), ("file", inside()), ("sha256", sha256())],
    );
    schema["oneOf"] = json!([{"required": ["url"]}, {"required": ["file"]}]);
    schema
}

fn unit() -> Value {
    object(
        "A unit.",
        &["name"],
        &[
            ("name", word("For example `web.service`.")),
            ("enabled", flag("Started with the host; `true` when not written.")),
            ("running", flag("Runs now; `true` when not written.")),
            ("restartOn", list("Files, artifacts and debs whose change restarts it.", &json!({"type": "string"}))),
        ],
    )
}

fn health() -> Value {
    let mut schema = object(
        "One check.",
        &[],
        &[
            ("unit", word("The unit is active.")),
            ("http", word("The URL answers with success.")),
            (
                "tcp",
                json!({"type": "string", "pattern": "^.+:[0-9]+$", "description": "`host:port` accepts a connection."}),
            ),
            (
                "exec",
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The program ends with 0."}),
            ),
            ("hub", json!({"enum": [true], "description": "The hub can be reached."})),
            ("timeout", duration("How long one check may take.")),
        ],
    );
    let ways = ["unit", "http", "tcp", "exec", "hub"];
    schema["oneOf"] = ways.iter().map(|way| json!({"required": [way]})).collect();
    schema
}

fn sha256() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "What `sha256sum` prints."})
}

pub(super) fn host_namespace() -> Value {
    let folder = object("A folder.", &["path"], &[("path", absolute()), ("mode", mode())]);
    let limits = object(
        "Limits of the namespace; what isn't written has none.",
        &[],
        &[
            ("cpu", amount("Cores: `2`, `0.5`, `500m`.", "^([0-9]+m|[0-9]+(\\.[0-9]{1,3})?)$")),
            ("memory", amount("Bytes: `512Mi`.", "^[0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?$")),
            ("tasks", json!({"type": "integer", "minimum": 0, "description": "Processes and threads."})),
            ("disk", amount("Bytes: `10Gi`.", "^[0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?$")),
        ],
    );
    let names = |what: &str| list(what, &json!({"type": "string"}));
    let allow = object(
        "What a HostWorkload may have beyond its own folders, units and user.",
        &[],
        &[
            ("debs", names("Packages of the host's apt sources, by name.")),
            ("debFiles", list("Package files of a manifests folder, by digest.", &sha256())),
            ("paths", list("Paths.", &absolute())),
            ("units", names("Units.")),
        ],
    );
    object(
        "The namespace on a host.",
        &[],
        &[
            ("user", text("Without it a user of its own is made.")),
            ("folders", list("Folders that the namespace has.", &folder)),
            ("limits", limits),
            ("allow", allow),
        ],
    )
}

fn amount(description: &str, pattern: &str) -> Value {
    json!({"type": ["string", "number", "null"], "pattern": pattern, "minimum": 0, "description": description})
}

fn mode() -> Value {
    json!({"type": "string", "pattern": "^[0-7]{3,4}$", "description": "Permission bits in quotes: `\"0644\"`."})
}

fn absolute() -> Value {
    json!({"type": "string", "pattern": "^/", "description": "A path from `/`."})
}

fn inside() -> Value {
    json!({"type": "string", "pattern": "^[^/]", "description": "A path inside the manifests folder."})
}
