//! Artifacts, such as models: kept by content, switched by a symlink, and switched back with a change that fails.

use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::line::{FIRST, Line};
use kedge_tests::world::workload::Workload;
use ring::digest::{SHA256, digest};

/// A workload with a model of so many bytes.
fn with_model(version: &str, byte: u8) -> Workload {
    let model = vec![byte; 5 << 20];
    let sum: String = digest(&SHA256, &model).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut workload = Workload::tool(FIRST, version);
    workload.artifacts.push(format!("{{path: /srv/{FIRST}/model, file: model.bin, sha256: {sum}}}"));
    workload.content.insert("model.bin".to_owned(), model);
    workload
}

#[test]
fn a_model_is_switched_with_its_change_and_back_with_a_rollback_and_its_user_reads_it() {
    let Some(line) = Line::start() else { return };
    line.deliver(FIRST, &with_model("1.0", b'a'));
    line.await_converged(FIRST);
    let read = || {
        line.host.sh(&format!("setpriv --reuid=$(stat -c %U /srv/{FIRST}) --clear-groups head -c 3 /srv/{FIRST}/model"))
    };
    let link = || line.host.sh(&format!("readlink /srv/{FIRST}/model"));
    assert_eq!(read(), "aaa");
    let first = link();

    let before = Fingerprint::of(&line.host);
    line.deliver(FIRST, &with_model("3.0", b'b'));
    line.await_failed(FIRST, "HealthCheck");
    assert_eq!((read().as_str(), link()), ("aaa", first.clone()));
    before.assert_same(&Fingerprint::of(&line.host), "after the rollback");

    line.deliver(FIRST, &with_model("2.0", b'b'));
    line.await_converged(FIRST);
    assert_eq!(read(), "bbb");
    assert_ne!(link(), first);
}
