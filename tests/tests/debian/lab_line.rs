//! The world of a factory line: what the hub makes of the sample for hosts.

use kedge_tests::lab::host::Network;
use kedge_tests::lab::image::Flavour;
use kedge_tests::world::line::{FIRST, Line};
use kedge_tests::world::workload::Workload;

#[test]
fn the_hub_wants_each_workload_that_a_line_is_given() {
    let Some(line) = Line::prepare(Flavour::Plain, Network::Shared, |_, _| {}) else { return };
    let before = line.entry(FIRST).expect("the first workload");
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    let now = line.entry(FIRST).expect("it stays");
    assert_eq!(before["platform"]["digest"], now["platform"]["digest"]);
    assert_ne!(before["workload"]["digest"], now["workload"]["digest"]);
    line.change_greeting("Line");
    line.add_target("hello-second", &Workload::tool("hello-second", "2.0"));
    line.remove_target("hello-second");
    kedge_tests::lab::await_true("it is no longer wanted", kedge_tests::world::SOON, || {
        line.entry("hello-second").is_none()
    });
}
