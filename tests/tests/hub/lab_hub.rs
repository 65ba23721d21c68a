//! The lab's hub: the real program is started, asked, stopped, killed and started again.

use kedge_tests::lab::http;
use kedge_tests::lab::hub::{Hub, Places};

fn settings(places: &Places) -> String {
    let Places { data, api, agents } = places;
    format!(
        "data = {:?}\n[api]\nlisten = \"{api}\"\n[agents]\nlisten = \"{agents}\"\naddress = \"https://{agents}\"\n",
        data.display().to_string()
    )
}

#[test]
fn a_hub_is_ready_after_a_start_a_stop_and_a_kill() {
    let Some(mut hub) = Hub::start(settings) else { return };
    assert_eq!(http::client().get(hub.url("/healthz")).send().unwrap().status(), 200);
    assert_eq!(hub.stop().code(), Some(0), "SIGTERM is a clean end");
    hub.start_again();
    hub.kill();
    assert!(http::client().get(hub.url("/healthz")).send().is_err(), "nobody answers");
    hub.start_again();
}

#[test]
fn a_configuration_with_an_unknown_key_is_refused() {
    let Some(hub) = Hub::prepare(|places| format!("{}colour = \"blue\"\n", settings(places))) else { return };
    let output = hub.command("check-config").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("colour"), "{output:?}");
}
