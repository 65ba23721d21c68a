//! Files that were damaged, forged, mixed up or made to lead astray: each is refused and said, and nothing changes.

use std::os::unix::fs::symlink;

use kedge_bundle::{Index, Sealed, fingerprint};
use kedge_model::wire::{Digest, Envelope, Key, KeySet, KeyState, SigningKey, Timestamp};
use kedge_tests::world::plant::{LINE, MOVED_WITHIN};

use crate::island::{Island, altered};

/// Refused with these words, by an exit code that isn't success; and nothing moved.
#[track_caller]
fn refused(island: &Island, file: &str, words: &str) {
    let before = island.picture();
    let run = island.host(&["import", file]);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(run.code == 1 || run.code == 3, "{file}: {run:?}");
    assert!(said.contains(words), "{file}: `{words}` isn't said: {said}");
    assert_eq!(island.picture(), before, "{file} changed something");
}

#[test]
fn what_isnt_the_hubs_own_whole_and_newest_word_is_refused_and_changes_nothing() {
    let Some(island) = Island::settled() else { return };
    let first = island.bundle("v1.kedge", &[]);
    let generation = island.plant.entry("dev", LINE, "all").unwrap().0;
    island.plant.push_app("dev", "version 2");
    island.plant.await_so("the hub wants version 2", MOVED_WITHIN, |plant| {
        plant.entry("dev", LINE, "all").is_some_and(|(now, _)| now > generation)
    });
    let good = island.bundle("v2.kedge", &[]);
    let length = std::fs::metadata(&good).unwrap().len() as usize;
    let there = |name: &str| island.stick.path().join(name);

    // One byte, anywhere; the end cut off; something behind it.
    refused(&island, &altered(&good, &there("a.kedge"), |bytes| bytes[0] ^= 1), "this isn't a Kedge bundle");
    for at in [20, 200, length / 3] {
        let changed = altered(&good, &there("b.kedge"), |bytes| bytes[at] ^= 1);
        let run = island.host(&["import", &changed]);
        assert_eq!(run.code, 1, "byte {at}: {run:?}");
    }
    refused(&island, &altered(&good, &there("c.kedge"), |bytes| bytes.truncate(length - 1)), "the bundle is cut");
    refused(&island, &altered(&good, &there("d.kedge"), |bytes| bytes.truncate(12)), "the bundle is cut");
    refused(&island, &altered(&good, &there("e.kedge"), |bytes| bytes.clear()), "this isn't a Kedge bundle");
    refused(&island, &altered(&good, &there("f.kedge"), |bytes| bytes.push(0)), "longer than it says");
    // A wrong blob under a right digest, also one that is here already.
    refused(
        &island,
        &altered(&good, &there("g.kedge"), |bytes| *bytes.last_mut().unwrap() ^= 1),
        "not what its digest says",
    );
    assert_eq!(island.text().as_deref(), Some("version 1"));
    // A length beyond all reason.
    let endless = altered(&good, &there("h.kedge"), |bytes| bytes[8..16].copy_from_slice(&u64::MAX.to_be_bytes()));
    refused(&island, &endless, "the index is 18446744073709551615 bytes long");

    // Another fleet's, and one that says it is ours.
    let stranger = there("i.kedge");
    std::fs::write(&stranger, foreign()).unwrap();
    refused(&island, &stranger.display().to_string(), "the bundle is of another fleet");

    // Parts: one is missing in the middle, at the end, at the beginning.
    let parts = island.bundle("parts.kedge", &["--split", "2KiB"]);
    let count = (1..).take_while(|number| std::path::Path::new(&format!("{parts}.{number:03}")).exists()).count();
    assert!(count > 3, "{count} parts");
    for number in [2, count, 1] {
        let (part, away) = (format!("{parts}.{number:03}"), there("away"));
        std::fs::rename(&part, &away).unwrap();
        let run = island.host(&["import", &format!("{parts}.003")]);
        assert!(run.code == 1 && run.stderr.contains(&format!("{number:03} of the bundle is missing")), "{run:?}");
        std::fs::rename(&away, &part).unwrap();
    }

    // The newest is taken; an older one afterwards isn't.
    island.host_ok(&["import", &parts]);
    island.await_text("version 2");
    refused(&island, &first, "is not above");
    assert_eq!(island.text().as_deref(), Some("version 2"));
    assert!(island.is_converged());
}

#[test]
fn a_stick_with_tricks_and_other_peoples_files_leads_nowhere() {
    let Some(island) = Island::settled() else { return };
    let folder = island.stick.path().join("tricks");
    std::fs::create_dir(&folder).unwrap();
    let there = folder.display().to_string();
    symlink("/etc/passwd", folder.join("link.kedge")).unwrap();
    symlink(island.on_stick("first.kedge"), folder.join("out.kedge")).unwrap();
    std::fs::create_dir(folder.join("folder.kedge")).unwrap();
    nix::unistd::mkfifo(&folder.join("pipe.kedge"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused(&island, &there, "holds no bundle");
    refused(&island, "/dev/zero", "not a file");

    // Named by itself each is told what it is.
    refused(&island, &island.on_stick("request.kedge"), "a host's request to join");
    let status = island.on_stick("status.kedge");
    island.host_ok(&["export", "-o", &status]);
    refused(&island, &status, "goes to the hub");
    std::fs::write(folder.join("junk.kedge"), b"{\"payloadType\": 7}").unwrap();
    refused(&island, &folder.join("junk.kedge").display().to_string(), "can't be read");

    // The hub takes no file that was changed, and no bundle of its own for a status.
    for wrong in [
        altered(&status, &island.stick.path().join("x.kedge"), |bytes| bytes[60] ^= 1),
        altered(&status, &island.stick.path().join("y.kedge"), |bytes| bytes.truncate(bytes.len() - 1)),
        island.on_stick("first.kedge"),
        island.on_stick("request.kedge"),
    ] {
        let run = island.kedge(&["status", "import", &wrong]);
        assert_eq!(run.code, 1, "{wrong}: {run:?}");
    }
    // Nor a request that somebody else wrote into.
    let forged =
        altered(&island.on_stick("request.kedge"), &island.stick.path().join("z.kedge"), |bytes| bytes[90] ^= 1);
    let run = island.kedge(&["token", "sign", &forged, "-e", "dev", "-t", LINE, "-o", &island.on_stick("no.kedge")]);
    assert!(run.code != 0 && !island.stick.path().join("no.kedge").exists(), "{run:?}");
}

#[test]
fn an_answer_that_isnt_for_this_host_or_of_this_authority_makes_no_member() {
    let (Some(island), Some(other)) = (Island::start(), kedge_tests::lab::root_agent::RootAgent::without_network("x"))
    else {
        return;
    };
    let (request, answer) = (island.on_stick("theirs.kedge"), island.on_stick("theirs-answer.kedge"));
    let asked = other.command(&["request", "--name", "dev-other-1", "-o", &request]).output().unwrap();
    assert!(asked.status.success());
    let signed = island.kedge(&["token", "sign", &request, "-e", "dev", "-t", LINE, "-o", &answer]);
    assert_eq!(signed.code, 0, "{signed:?}");
    let run = island.host(&["import", &answer]);
    assert!(run.code == 1 && run.stderr.contains("this host has made no request"), "{run:?}");

    let own = island.on_stick("own.kedge");
    island.host_ok(&["request", "--name", crate::island::BOX, "-o", &own]);
    let run = island.host(&["import", &answer]);
    assert!(run.code == 1 && run.stderr.contains("and this host asked as"), "{run:?}");
    let own_answer = island.on_stick("own-answer.kedge");
    let signed = island.kedge(&["token", "sign", &own, "-e", "dev", "-t", LINE, "-o", &own_answer]);
    assert_eq!(signed.code, 0, "{signed:?}");
    let elsewhere = Digest::of(b"another authority").to_string();
    let run = island.host(&["import", &own_answer, "--authority", &elsewhere]);
    assert!(run.code == 1 && run.stderr.contains("not from the authority"), "{run:?}");
    let run = island.host(&["status"]);
    assert!(format!("{}{}", run.stdout, run.stderr).contains("join"), "still no member: {run:?}");
    // In a folder each host takes its own.
    island.host_ok(&["import", &island.stick.path().display().to_string()]);
}

/// A bundle of a fleet that nobody here knows.
fn foreign() -> Vec<u8> {
    let key = SigningKey::from_seed(&[42; 32]).unwrap();
    let keys = KeySet {
        version: 1,
        created_at: Timestamp(1),
        keys: vec![Key { id: key.id(), public: key.public(), state: KeyState::Active }],
        authorities: vec!["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()],
    };
    let mut index = Index::new(fingerprint(&keys).unwrap(), Timestamp(1));
    index.key_sets.push(Envelope::sign(&keys, &key).unwrap());
    Sealed::seal(&index, &key).unwrap().into_head()
}
