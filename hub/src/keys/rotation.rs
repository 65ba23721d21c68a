//! How keys change: announced (agents learn of it), activated (it signs), retired (it signs no more). Each step is the
//! next key set, signed by the key that is active before the step. The same for the certificate authority: the first in
//! the list issues. Called by `kedge-hub keys`, beside a running hub, which follows.

use kedge_model::wire::{Digest, Envelope, Key, KeyId, KeySet, KeyState};

use super::authority;
use super::{Keys, KeysError};
use crate::store::{Store, now};

/// What `kedge-hub keys list` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub what: What,
    /// All digits.
    pub id: String,
    pub state: &'static str,
    /// Whether the private half is in this hub's folder.
    pub here: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    SigningKey,
    Authority,
}

impl Keys {
    pub fn list(&self) -> Result<Vec<Listed>, KeysError> {
        let set = self.key_set();
        let mut listed: Vec<Listed> = set
            .keys
            .iter()
            .map(|key| Listed {
                what: What::SigningKey,
                id: key.id.to_string(),
                state: say(key.state),
                here: self.folder.holds_signing_key(key.id),
            })
            .collect();
        for (position, pem) in set.authorities.iter().enumerate() {
            let fingerprint = fingerprint(pem)?;
            listed.push(Listed {
                what: What::Authority,
                id: fingerprint.hex(),
                state: if position == 0 { "issues" } else { "trusted" },
                here: self.folder.holds_authority_key(fingerprint),
            });
        }
        Ok(listed)
    }

    /// A new signing key that agents may learn of; it signs nothing yet.
    pub async fn announce_key(&self, store: &Store) -> Result<KeyId, KeysError> {
        let key = self.folder.make_signing_key()?;
        let mut set = self.next();
        set.keys.push(Key { id: key.id(), public: key.public(), state: KeyState::Announced });
        self.add(set, store).await?;
        Ok(key.id())
    }

    /// From now on this key signs. The one before stays active until it is retired, for hubs that lack the new file.
    pub async fn activate_key(&self, id: KeyId, store: &Store) -> Result<(), KeysError> {
        if !self.folder.holds_signing_key(id) {
            return Err(KeysError::NoSigningKey { ids: vec![id], folder: self.folder.path().to_owned() });
        }
        let mut set = self.next();
        let key = find(&mut set, id)?;
        match key.state {
            KeyState::Announced => key.state = KeyState::Active,
            state => return Err(KeysError::WrongState(id.to_string(), say(state))),
        }
        self.add(set, store).await
    }

    /// The key signs nothing any more; what it signed stays good.
    pub async fn retire_key(&self, id: KeyId, store: &Store) -> Result<(), KeysError> {
        let mut set = self.next();
        let others = set.keys.iter().any(|key| key.id != id && key.state == KeyState::Active);
        let key = find(&mut set, id)?;
        match key.state {
            KeyState::Retired => return Err(KeysError::WrongState(id.to_string(), say(key.state))),
            KeyState::Active if !others => {
                return Err(KeysError::WrongState(id.to_string(), "the only active key: activate another one first"));
            }
            _ => key.state = KeyState::Retired,
        }
        self.add(set, store).await
    }

    /// A new authority that agents may learn of; the one in use vouches for it, for agents that are away meanwhile.
    pub async fn announce_authority(&self, store: &Store) -> Result<Digest, KeysError> {
        let pem = self.folder.make_authority()?;
        let made = self.folder.authority(&pem)?.ok_or_else(|| KeysError::Unknown("the new authority".to_owned()))?;
        let issuing = self.authority();
        let voucher = issuing.vouch_for(&made).map_err(KeysError::NoAuthority)?;
        self.folder.keep_voucher(made.fingerprint(), issuing.fingerprint(), &voucher)?;
        let mut set = self.next();
        set.authorities.push(pem);
        self.add(set, store).await?;
        Ok(made.fingerprint())
    }

    /// From now on this authority issues.
    pub async fn activate_authority(&self, id: Digest, store: &Store) -> Result<(), KeysError> {
        if !self.folder.holds_authority_key(id) {
            return Err(KeysError::NoAuthorityKey { ids: vec![id], folder: self.folder.path().to_owned() });
        }
        let mut set = self.next();
        match position(&set, id)? {
            0 => return Err(KeysError::WrongState(id.to_string(), "issuing already")),
            position => set.authorities[..=position].rotate_right(1),
        }
        self.add(set, store).await
    }

    /// Agents trust it no more. The hub still takes its certificates, to renew them.
    pub async fn retire_authority(&self, id: Digest, store: &Store) -> Result<(), KeysError> {
        let mut set = self.next();
        match position(&set, id)? {
            0 => return Err(KeysError::WrongState(id.to_string(), "the one that issues: activate another one first")),
            position => set.authorities.remove(position),
        };
        self.add(set, store).await
    }

    fn next(&self) -> KeySet {
        let known = self.key_set();
        KeySet { version: known.version + 1, created_at: now(), ..KeySet::clone(&known) }
    }

    async fn add(&self, set: KeySet, store: &Store) -> Result<(), KeysError> {
        let envelope: Envelope = self.sign(&set).map_err(KeysError::Sign)?;
        if !store.add_key_set(set.version, &envelope).await? {
            return Err(KeysError::Overtaken(set.version));
        }
        self.refresh(store).await?;
        Ok(())
    }
}

fn find(set: &mut KeySet, id: KeyId) -> Result<&mut Key, KeysError> {
    set.keys.iter_mut().find(|key| key.id == id).ok_or_else(|| KeysError::Unknown(id.to_string()))
}

fn position(set: &KeySet, id: Digest) -> Result<usize, KeysError> {
    for (position, pem) in set.authorities.iter().enumerate() {
        if fingerprint(pem)? == id {
            return Ok(position);
        }
    }
    Err(KeysError::Unknown(id.to_string()))
}

fn fingerprint(pem: &str) -> Result<Digest, KeysError> {
    authority::fingerprint(pem).map_err(KeysError::NoAuthority)
}

fn say(state: KeyState) -> &'static str {
    match state {
        KeyState::Announced => "announced",
        KeyState::Active => "active",
        KeyState::Retired => "retired",
    }
}
