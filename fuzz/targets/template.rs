//! A template, rendered for one assignment whose configuration and labels come from the same bytes.

#![no_main]

use std::collections::BTreeMap;

use kedge_goyaml::{Value, decode};
use kedge_template::{Context, Data, Limits, Template};
use libfuzzer_sys::fuzz_target;

/// As careful as the default, and small enough that one input takes milliseconds.
const LIMITS: Limits = Limits { steps: 20_000, bytes: 1 << 20, depth: 100, passes: 4 };

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The first line is the template, the rest one configuration value; most of the bytes may be either.
    let (source, rest) = text.split_once("\n%%\n").unwrap_or((text, "a: {b: [1, x]}"));
    let Ok(template) = Template::parse(source) else { return };
    let strings = |value: &str| BTreeMap::from([("purpose".to_owned(), value.to_owned())]);
    let (labels, manifests) = (strings("test"), strings(rest));
    let config: BTreeMap<String, Value> =
        [("VALUE", decode(rest).unwrap_or(Value::Null)), ("TEXT", Value::String(rest.to_owned()))]
            .map(|(key, value)| (key.to_owned(), value))
            .into();
    let context = Context {
        deployment_target_name: "hello-dev",
        namespace: "dev-drone-hello-dev",
        environment: "dev",
        workspace: "team",
        workload: "hello",
        labels: &labels,
        manifests: &manifests,
        cluster_type: "drone",
        config: &config,
    };
    if let Ok(output) = template.render(&Data::new(context), &LIMITS) {
        assert!(output.len() as u64 <= LIMITS.bytes, "{} bytes of output", output.len());
    }
});
