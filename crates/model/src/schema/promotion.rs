//! Schemas of how changes move: PromotionPolicies and Pins.

use serde_json::{Value, json};

use super::delivery::duration;
use super::platform::selector;
use super::{flag, list, object, text, word, words};

const SHARE: &str = "^(100(\\.0{1,2})?|[0-9]{1,2}(\\.[0-9]{1,2})?)%$";

pub(super) fn policy() -> Value {
    let mut environments = list("The chain, in order.", &environment());
    environments["minItems"] = json!(1);
    object(
        "How a commit of `main` goes from environment to environment.",
        &["environments"],
        &[
            ("promoter", words("Who writes `base-repo.yaml`; `kedge` when not written.", &["kedge", "external"])),
            ("environments", environments),
        ],
    )
}

fn environment() -> Value {
    let mut rings = list("In order; without any there is one of all clusters.", &ring());
    rings["minItems"] = json!(1);
    let mut fields = vec![
        ("name", word("An Environment of the control plane.")),
        ("after", names("Those that a commit passes first; the one listed before when not written, `[]` for none.")),
        ("rings", rings),
        ("windows", list("When changes may begin; without any, always.", &window())),
        ("freezes", list("Days on which nothing begins.", &freeze())),
        ("counts", counted()),
        ("offline", words("Whether offline clusters leave a rollout complete.", &["complete", "incomplete"])),
        ("late", words("What a failure does after the gate has passed.", &["show", "reopen"])),
    ];
    let people = json!({"type": "integer", "minimum": 1, "description": "How many; 1 when not written."});
    fields.push(("override", object("Who must override a gate, each with a reason.", &[], &[("people", people)])));
    fields.extend(rules());
    object("An environment, and what must hold before a change leaves it.", &["name"], &fields)
}

fn ring() -> Value {
    let mut fields = vec![
        ("name", json!({"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[^/\\x00-\\x1f]+$"})),
        ("selector", selector()),
        ("share", json!({"type": "string", "pattern": SHARE, "description": "A part of the clusters: `10%`."})),
    ];
    fields.extend(rules());
    let mut schema = object(
        "A part of the clusters. The last ring takes those that no other takes. What isn't written here is as in the environment.",
        &["name"],
        &fields,
    );
    schema["not"] = json!({"properties": {"selector": {"type": "object"}, "share": {"type": "string"}}, "required": ["selector", "share"]});
    schema
}

fn rules() -> [(&'static str, Value); 5] {
    let approval = object(
        "Who must approve before a change begins; `people: 0`: no approval.",
        &[],
        &[
            ("people", json!({"type": "integer", "minimum": 0, "description": "How many; 1 when not written."})),
            ("role", words("Of which role; `platform` when not written.", &["platform", "application"])),
            ("notAuthor", flag("Whether the author of the change doesn't count; `true` when not written.")),
        ],
    );
    let failure = object(
        "What failures do.",
        &[],
        &[
            ("budget", amount("So many may fail; 0 when not written.", 0)),
            ("then", words("What more than that do; `pause` when not written.", &["pause", "rollback"])),
        ],
    );
    [
        ("gate", gate()),
        ("soak", duration("How long the gate must hold; 10m when not written.")),
        ("approval", approval),
        ("failure", failure),
        ("maxUnavailable", amount("So many clusters change at once; 25% when not written.", 1)),
    ]
}

fn gate() -> Value {
    let converged = json!({"type": "string", "pattern": SHARE, "description": "Of those reached, the least part that is Converged; 100% when not written."});
    object(
        "The conditions that a ring must meet before a change continues.",
        &[],
        &[
            ("converged", converged),
            ("reached", amount("So many must be reached; 50% when not written.", 0)),
            ("failed", amount("At most so many are Failed; 0 when not written.", 0)),
            ("empty", words("Where there is no cluster: `wait` for a person, or `pass`.", &["wait", "pass"])),
            ("checks", list("Questions to something outside.", &check())),
        ],
    )
}

fn check() -> Value {
    let http = object(
        "A call whose JSON answer holds a value.",
        &["url"],
        &[
            ("url", web_address()),
            (
                "pointer",
                json!({"type": "string", "pattern": "^(/([^~]|~[01])*)?$", "description": "A JSON Pointer; the whole answer when not written."}),
            ),
            ("equals", json!({"description": "The value that must be there, of any type."})),
        ],
    );
    let mut http = http;
    http["required"] = json!(["url", "equals"]);
    let prometheus = object(
        "A query whose answer is neither empty nor zero.",
        &["url", "query"],
        &[("url", web_address()), ("query", word("PromQL."))],
    );
    let status = object(
        "A status of the commit on its Git server.",
        &["context"],
        &[("context", word("The name of the status."))],
    );
    let mut schema = object(
        "One question.",
        &["name"],
        &[
            ("name", word("For those who wait for it.")),
            ("http", http),
            ("prometheus", prometheus),
            ("commitStatus", status),
            ("every", duration("How often it is asked; 30s when not written.")),
            ("timeout", duration("How long an answer may take; 10s when not written.")),
        ],
    );
    let ways = ["http", "prometheus", "commitStatus"];
    schema["oneOf"] =
        ways.iter().map(|way| json!({"properties": {*way: {"type": "object"}}, "required": [way]})).collect();
    schema
}

fn window() -> Value {
    let day = "(mon|tue|wed|thu|fri|sat|sun)";
    let mut days = list(
        "Days of the week; all of them when not written.",
        &json!({"type": "string", "pattern": format!("^{day}(-{day})?$")}),
    );
    days["minItems"] = json!(1);
    let time = |description: &str| json!({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$", "description": description});
    object(
        "A time of the week.",
        &[],
        &[
            ("days", days),
            ("from", time("`\"09:00\"`; the day's beginning when not written.")),
            ("to", time("`\"17:00\"`; the day's end when not written. Before `from` it is on the next day.")),
            ("timeZone", word("A name such as `Europe/Berlin`; `UTC` when not written.")),
        ],
    )
}

fn freeze() -> Value {
    let date = |description: &str| json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": description});
    object(
        "Days on which nothing begins.",
        &["from", "to"],
        &[
            ("from", date("The first day.")),
            ("to", date("The last day, which belongs to it.")),
            ("timeZone", word("A name such as `Europe/Berlin`; `UTC` when not written.")),
            ("reason", text("Why.")),
        ],
    )
}

fn counted() -> Value {
    object(
        "Which part of what changed decides; everything when not written.",
        &[],
        &[("clusterTypes", names("Cluster types.")), ("workloads", names("Workloads."))],
    )
}

pub(super) fn pin() -> Value {
    let day = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))?$";
    let mut schema = object(
        "What is kept where, and until when.",
        &["workload"],
        &[
            ("workload", word("The Workload.")),
            ("target", text("One deployment target of it; all of them when not written.")),
            ("version", word("A version of the workload: `\"1.4.2\"`.")),
            (
                "commit",
                json!({"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$", "description": "A commit of the workload's repository."}),
            ),
            ("rings", names("Rings of the environment; all of them when not written.")),
            ("clusterTypes", names("Cluster types; all of them when not written.")),
            (
                "until",
                json!({"type": "string", "pattern": day, "description": "A day (its beginning in UTC) or an instant; until it is deleted when not written."}),
            ),
            ("reason", text("Why; shown wherever it matters.")),
        ],
    );
    schema["oneOf"] = ["version", "commit"]
        .iter()
        .map(|way| json!({"properties": {*way: {"type": "string"}}, "required": [way]}))
        .collect();
    schema
}

fn names(description: &str) -> Value {
    list(description, &json!({"type": "string", "minLength": 1}))
}

fn amount(description: &str, least: u64) -> Value {
    let pattern = format!("^([0-9]+|{})$", &SHARE[1..SHARE.len() - 1]);
    json!({"type": ["string", "integer", "null"], "pattern": pattern, "minimum": least, "description": description})
}

fn web_address() -> Value {
    json!({"type": "string", "pattern": "^https?://[^/\\s]\\S*$", "description": "Begins with `https://` or `http://`."})
}
