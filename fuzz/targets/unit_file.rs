//! A tenant's unit file. What is accepted has no command whose program word systemd would read in another way than we do.

#![no_main]

use std::sync::LazyLock;

use kedge_host_policy::{Tenant, unit_file};
use libfuzzer_sys::fuzz_target;

static TENANT: LazyLock<Tenant> = LazyLock::new(|| Tenant {
    assignment: "hello-edge".to_owned(),
    namespace: "prod-drone-hello-edge".to_owned(),
    user: "kedge-0123456789ab".to_owned(),
    group: "kedge-0123456789ab".to_owned(),
    slice: "kedge-0123456789ab.slice".to_owned(),
    given: Default::default(),
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let wrong = unit_file::check(text, "hello-edge.service", &TENANT);
    // Continued lines are for the test in the booted host, and sections of other programs (`X-…`) mean nothing to systemd.
    if !wrong.is_empty() || text.contains('\\') || text.contains("[X-") {
        return;
    }
    for line in text.lines().map(str::trim) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let Some(program) = value.split_whitespace().next() else { continue };
        if key.trim_end().starts_with("Exec") && !line.starts_with(['#', ';']) && !key.contains("Search") {
            let word = program.trim_start_matches(['@', ':', '-']);
            assert!(!word.starts_with(['+', '!', '|', '"', '\'']), "accepted: {line:?}");
        }
    }
});
