//! Packed environments for tests of this module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::testing::{packed_type, source};
use kedge_model::wire::{SigningKey, Stream};

use crate::pack::Packed;
use crate::state::issuer::{Confirmations, Tomb};
use crate::store::{Store, StoreError};

/// Nobody confirms anything: tombstones stay, and each set is its own confirmed one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unconfirmed;

#[async_trait]
impl Confirmations for Unconfirmed {
    async fn confirmed_sizes(&self, _environment: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn settled(&self, _stream: &Stream, _tombstones: &[Tomb]) -> Result<BTreeSet<String>, StoreError> {
        Ok(BTreeSet::new())
    }
}

pub fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

pub fn packed(types: &[(&str, &[(&str, PackedEntry)])]) -> Packed {
    let types: BTreeMap<String, Arc<PackedType>> =
        types.iter().map(|(name, entries)| ((*name).to_owned(), Arc::new(packed_type(entries)))).collect();
    let (origins, pinned) = (BTreeMap::new(), BTreeMap::new());
    Packed {
        environment: "dev".to_owned(),
        source: source("c1"),
        types,
        origins,
        pinned,
        problems: Vec::new(),
        built: 0,
    }
}

pub async fn store(folder: &tempfile::TempDir) -> Store {
    Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap()
}
