//! A thin uplink that all share, and a LAN that loses packets.

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::hall::Hall;

/// Of one package, with headers, polls and documents.
const MOST_TIMES: f64 = 1.2;

#[test]
fn a_package_crosses_a_thin_uplink_once_for_all_and_a_lossy_lan_delivers_it() {
    // Polls are to be a small part of what passes.
    let Some(mut hall) = Hall::start_with(4, |settings| settings.wait = "30s".to_owned()) else { return };
    if !hall.site.lose(5) {
        return;
    }
    hall.site.limit_uplink("256kbit");
    hall.run(&[0, 1, 2, 3]);
    hall.await_converged(&[0, 1, 2, 3]);

    let (text, before) = (noise(480_000), hall.site.uplink_bytes());
    hall.plant.push_app("dev", &text);
    hall.await_text(&[0, 1, 2, 3], &text);
    let passed = hall.site.uplink_bytes().since(before);
    hall.await_converged(&[0, 1, 2, 3]);
    let lan: Vec<u64> = (0..4).map(|host| hall.site.lan_bytes(host).received).collect();
    println!("over the uplink {passed:?}, over the LAN {lan:?}");
    // Packed, a digit is half a byte.
    let size = text.len() as f64 / 2.0;
    assert!(passed.received as f64 >= size, "the uplink is counted: {passed:?}");
    assert!(passed.received as f64 <= size * MOST_TIMES, "{passed:?}\n{:?}", hall.peers(3));
}

/// Hexadecimal digits of which no program makes less than half as many bytes; less than a MiB, so that they are packed.
fn noise(bytes: usize) -> String {
    let mut all = vec![0; bytes];
    SystemRandom::new().fill(&mut all).unwrap();
    all.iter().map(|byte| format!("{byte:02x}")).collect()
}
