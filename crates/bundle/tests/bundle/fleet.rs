//! A fleet of a test: its keys, and bundles that it signs.

use std::io::Cursor;

use kedge_bundle::{Index, Reader, Sealed, Writer, fingerprint};
use kedge_model::wire::{Digest, Envelope, Key, KeySet, KeyState, SigningKey, Timestamp};

pub struct Fleet {
    pub key: SigningKey,
    pub keys: KeySet,
    pub first: Envelope,
}

impl Fleet {
    pub fn new(seed: u8) -> Fleet {
        let key = SigningKey::from_seed(&[seed; 32]).unwrap();
        let keys = set(1, &[(&key, KeyState::Active)], seed);
        let first = Envelope::sign(&keys, &key).unwrap();
        Fleet { key, keys, first }
    }

    pub fn index(&self, blobs: &[&[u8]]) -> Index {
        let mut index = Index::new(fingerprint(&self.keys).unwrap(), Timestamp(7));
        index.key_sets.push(self.first.clone());
        for blob in blobs {
            index.add_blob(Digest::of(blob), blob.len() as u64);
        }
        index
    }

    pub fn bundle(&self, blobs: &[&[u8]]) -> Vec<u8> {
        write(&self.index(blobs), &self.key, blobs)
    }
}

pub fn set(version: u64, keys: &[(&SigningKey, KeyState)], authority: u8) -> KeySet {
    let keys = keys.iter().map(|(key, state)| Key { id: key.id(), public: key.public(), state: *state }).collect();
    // A certificate is only a name here: any bytes do.
    let body = ["AAAA", "BBBB", "CCCC", "DDDD"][usize::from(authority) % 4];
    let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    KeySet { version, created_at: Timestamp(1), keys, authorities: vec![pem] }
}

pub fn write(index: &Index, key: &SigningKey, blobs: &[&[u8]]) -> Vec<u8> {
    let sealed = Sealed::seal(index, key).unwrap();
    let length = sealed.length();
    let mut writer = Writer::new(Vec::new(), sealed).unwrap();
    for blob in blobs {
        writer.write(*blob).unwrap();
    }
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, length);
    bytes
}

pub fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, kedge_bundle::BundleError> {
    Reader::open(Cursor::new(bytes))
}
