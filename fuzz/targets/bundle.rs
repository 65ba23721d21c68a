//! A bundle from a stick: whole as a stranger wrote it, and an index of a stranger's choice behind a valid signature.

#![no_main]

use std::io::{Cursor, sink};

use kedge_bundle::{Index, JoinAnswerFile, JoinRequestFile, MAGIC, Reader};
use kedge_model::wire::{Envelope, Payload as _, SigningKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    look(bytes.to_vec());
    if let Ok(envelope) = Envelope::from_json(bytes) {
        _ = JoinRequestFile::open(&envelope);
        _ = JoinAnswerFile::open(&envelope);
    }
    if let Some(signed) = signed(bytes) {
        look(signed);
    }
});

fn look(bytes: Vec<u8>) {
    let Ok(reader) = Reader::open(Cursor::new(bytes)) else { return };
    _ = reader.writer();
    let Ok(mut bundle) = reader.look() else { return };
    let blobs: Vec<_> = bundle.index().blobs.iter().map(|blob| blob.digest).collect();
    for digest in blobs.iter().take(10) {
        _ = bundle.copy(digest, &mut sink(), |_| ());
    }
    _ = bundle.check(|_| ());
}

/// The same bytes as the index of a container that is otherwise right.
fn signed(index: &[u8]) -> Option<Vec<u8>> {
    let key = SigningKey::from_seed(&[7; 32]).ok()?;
    let envelope = Envelope::sign_bytes(Index::TYPE, index.to_vec(), &key).to_json().ok()?;
    let mut container = MAGIC.to_vec();
    container.extend_from_slice(&(envelope.len() as u64).to_be_bytes());
    container.extend_from_slice(&envelope);
    Some(container)
}
