//! Pins.

use super::*;
use crate::kinds::{Pin, PinnedTo};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn read(spec: &str) -> Pin {
    match spec_of(&kedge("Pin", spec)) {
        Spec::Pin(pin) => pin,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pin_of_a_version_is_read_with_its_places() {
    let pin = read(
        "  workload: hello\n  target: line\n  version: 1.4.2\n  rings: [canary]\n  clusterTypes: [factory-line]\n  until: 2026-12-01\n  reason: the camera\n",
    );
    assert_eq!(pin.to, PinnedTo::Version("1.4.2".to_owned()));
    assert_eq!((pin.target.as_deref(), pin.rings.len(), pin.cluster_types.len()), (Some("line"), 1, 1));
    assert_eq!(pin.until.as_deref(), Some("2026-12-01T00:00:00Z"));
}

#[test]
fn a_pin_of_a_commit_is_everywhere_and_without_end_unless_it_says_so() {
    let pin = read(&format!("  workload: hello\n  commit: {COMMIT}\n"));
    assert_eq!(pin.to, PinnedTo::Commit(COMMIT.to_owned()));
    assert_eq!((pin.target, pin.until, pin.rings.len(), pin.reason.as_str()), (None, None, 0, ""));
    let pin = read(&format!("  workload: hello\n  commit: {COMMIT}\n  until: 2026-12-01T18:00:00+02:00\n"));
    assert_eq!(pin.until.as_deref(), Some("2026-12-01T18:00:00+02:00"));
}

#[test]
fn a_pin_names_one_content() {
    assert_eq!(
        broken(&kedge("Pin", "  workload: hello\n")),
        [
            "4:1 !MissingField: Pin `x` has neither `spec.version` nor `spec.commit` | add `version: \"1.4.2\"`, or `commit:` with \
             a commit of the application's repository"
        ]
    );
    assert_eq!(
        broken(&kedge("Pin", &format!("  workload: hello\n  version: v1\n  commit: {COMMIT}\n"))),
        ["7:11 !InvalidValue: `spec.commit` of Pin `x` can't stand beside `version` | remove one of the two"]
    );
    assert_eq!(
        broken(&kedge("Pin", "  workload: hello\n  commit: 0123abc\n")),
        [
            "6:11 !InvalidValue: `spec.commit` of Pin `x` isn't a whole commit of 40 hexadecimal digits | write what `git rev-parse` \
             prints"
        ]
    );
    // As a number it would lose its end.
    assert!(
        broken(&kedge("Pin", "  workload: hello\n  version: 1.10\n"))[0]
            .contains("put it in quotes: `version: \"1.10\"`")
    );
}

#[test]
fn slips_of_a_pin_are_refused_with_what_was_meant() {
    let text = "  worklod: hello\n  version: v1\n  until: tomorrow\n";
    assert_eq!(
        broken(&kedge("Pin", text)),
        [
            "4:1 !MissingField: Pin `x` has no `spec.workload` | name the Workload: `workload: hello`",
            "5:3 !UnknownField: `spec.worklod` of Pin `x` isn't a field that Kedge knows | did you mean `workload`?",
            "7:10 !InvalidValue: `spec.until` of Pin `x` isn't a day or an instant: `tomorrow` | for example `2026-12-01` or \
             `2026-12-01T18:00:00Z`",
        ]
    );
}
