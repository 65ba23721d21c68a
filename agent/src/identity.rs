//! Who this host is: its key, the certificate that a join bought, the hub it belongs to, and what that hub said first. One ledger,
//! `identity`, readable by root alone. Join writes it, link renews the certificate in it, everybody else reads.

pub mod certificate;
pub mod floors;
pub mod key;
pub mod machine;

use std::path::PathBuf;
use std::sync::Arc;

use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::{ClusterId, Digest, Envelope, KeySet, SigningKey, Timestamp};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use certificate::Validity;
use floors::{StreamGeneration, raise};
use key::HostKey;

/// A host that joined.
#[derive(Debug)]
pub struct Identity {
    joined: Joined,
    key: HostKey,
    validity: Validity,
    floors: Vec<StreamGeneration>,
}

/// What the ledger holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stored {
    pub joined: Option<Joined>,
    /// The last accepted generation of each stream, beside what the host can't do without: who loses both copies of the memory doesn't
    /// take an old state again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub floors: Vec<StreamGeneration>,
    /// A key that a join is using: kept before the request is sent, so that a lost answer can be asked for again.
    pub pending: Option<Pending>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// PKCS#8, PEM.
    pub key: String,
    /// `https://host:port`.
    pub hub: String,
    pub name: String,
    pub machine: Option<Digest>,
    /// PEM, own first.
    pub certificate: String,
    /// The newest key set of the join's answer: where `memory` begins, or begins again if it is lost.
    pub keys: KeySet,
    pub membership: Envelope,
    /// The hub's time at the join.
    pub time: Timestamp,
    /// The hub's time when it gave the certificate.
    #[serde(default)]
    pub issued: Timestamp,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub key: String,
    pub hub: String,
    /// The token's id; its secret is never kept.
    pub token: String,
    pub machine: Option<Digest>,
}

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the host's key can't be used: {0}")]
    Key(String),
    /// The hub gave it, or the disk changed it.
    #[error("the host's certificate can't be used: {0}")]
    Certificate(&'static str),
    #[error("another identity has taken this one's place: the host joined again")]
    Replaced,
}

impl Identity {
    /// Reads it and heals a broken copy; none before a join. The sentence says what was healed.
    pub fn open(disk: &Arc<dyn Disk>, paths: &Paths) -> Result<(Option<Identity>, Option<String>), IdentityError> {
        let opened = Ledger::<Stored>::open(Arc::clone(disk), &path(paths))?;
        Ok((opened.value.map(Identity::stored).transpose()?.flatten(), opened.healed))
    }

    /// For who only looks.
    pub fn read(disk: &dyn Disk, paths: &Paths) -> Result<Option<Identity>, IdentityError> {
        let stored = Ledger::<Stored>::read(disk, &path(paths))?;
        Ok(stored.map(Identity::stored).transpose()?.flatten())
    }

    fn stored(stored: Stored) -> Result<Option<Identity>, IdentityError> {
        let Some(joined) = stored.joined else { return Ok(None) };
        Ok(Some(Identity { floors: stored.floors, ..Identity::of(joined)? }))
    }

    pub fn of(joined: Joined) -> Result<Identity, IdentityError> {
        let key = HostKey::from_pem(&joined.key)?;
        let validity = fitting(&joined.certificate, &key)?;
        Ok(Identity { joined, key, validity, floors: Vec::new() })
    }

    pub fn cluster(&self) -> ClusterId {
        self.key.cluster()
    }

    pub fn signing_key(&self) -> &SigningKey {
        self.key.signing()
    }

    pub fn key(&self) -> &HostKey {
        &self.key
    }

    pub fn csr(&self) -> Result<String, IdentityError> {
        self.key.request()
    }

    pub fn hub(&self) -> &str {
        &self.joined.hub
    }

    /// The name that it joined with; a membership may say another.
    pub fn name(&self) -> &str {
        &self.joined.name
    }

    /// PEM, own first.
    pub fn certificate(&self) -> &str {
        &self.joined.certificate
    }

    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// As it is kept.
    pub fn joined(&self) -> &Joined {
        &self.joined
    }

    /// What the join's answer said: memory begins with it.
    pub fn origin(&self) -> (&KeySet, &Envelope, Timestamp) {
        (&self.joined.keys, &self.joined.membership, self.joined.time)
    }

    /// What was accepted last, of each stream.
    pub fn floors(&self) -> &[StreamGeneration] {
        &self.floors
    }

    /// Whether this is still the machine that joined. One without an id is believed.
    pub fn is_of_this_machine(&self, paths: &Paths) -> bool {
        same_machine(self.joined.machine, machine::digest(paths))
    }

    /// From then on the certificate should be renewed, by the hub's time.
    pub fn renew_at(&self) -> Timestamp {
        self.validity.renew_since(self.joined.issued)
    }

    /// Takes a renewed certificate, durably.
    pub fn renew(
        &mut self,
        disk: &Arc<dyn Disk>,
        paths: &Paths,
        certificate: String,
        issued: Timestamp,
    ) -> Result<(), IdentityError> {
        let validity = fitting(&certificate, &self.key)?;
        let mut opened = Ledger::<Stored>::open(Arc::clone(disk), &path(paths))?;
        let mut stored = opened.value.take().unwrap_or_default();
        let Some(joined) = stored.joined.as_mut().filter(|joined| joined.key == self.joined.key) else {
            return Err(IdentityError::Replaced);
        };
        (joined.certificate, joined.issued) = (certificate, issued);
        self.joined = joined.clone();
        opened.ledger.write(&stored)?;
        self.validity = validity;
        Ok(())
    }
}

/// Keeps what was accepted last of each stream, durably. It only grows. Nothing happens when another identity has taken this one's place.
pub fn keep_floors(
    disk: &Arc<dyn Disk>,
    paths: &Paths,
    cluster: ClusterId,
    accepted: &[StreamGeneration],
) -> Result<(), IdentityError> {
    let mut opened = Ledger::<Stored>::open(Arc::clone(disk), &path(paths))?;
    let Some(mut stored) = opened.value.take() else { return Ok(()) };
    let Some(joined) = &stored.joined else { return Ok(()) };
    if HostKey::from_pem(&joined.key)?.cluster() != cluster {
        return Ok(());
    }
    let before = stored.floors.clone();
    raise(&mut stored.floors, accepted);
    if stored.floors != before {
        opened.ledger.write(&stored)?;
    }
    Ok(())
}

/// A host that joined by hand becomes its cluster's agent: the identity is the cluster's from now on, and no longer the machine's.
pub fn hand_over(
    disk: &Arc<dyn Disk>,
    paths: &Paths,
    from: Option<Digest>,
    to: Option<Digest>,
) -> Result<(), IdentityError> {
    let opened = Ledger::<Stored>::open(Arc::clone(disk), &path(paths))?;
    let (mut ledger, Some(mut stored)) = (opened.ledger, opened.value) else { return Ok(()) };
    if let Some(joined) = stored.joined.as_mut().filter(|joined| same_machine(joined.machine, from)) {
        joined.machine = to;
        ledger.write(&stored)?;
    }
    Ok(())
}

/// Where the ledger is.
pub fn path(paths: &Paths) -> PathBuf {
    paths.state().join("identity")
}

/// A machine without an id, then or now, can't be told from another.
pub fn same_machine(then: Option<Digest>, now: Option<Digest>) -> bool {
    !matches!((then, now), (Some(then), Some(now)) if then != now)
}

/// A certificate of another key would lock the host out.
fn fitting(pem: &str, key: &HostKey) -> Result<Validity, IdentityError> {
    let chain = certificate::chain(pem).ok_or(IdentityError::Certificate("it can't be read"))?;
    let own = chain.first().ok_or(IdentityError::Certificate("it is empty"))?;
    if certificate::public_key(own) != Some(*key.signing().public().as_bytes()) {
        return Err(IdentityError::Certificate("it is for another key"));
    }
    Validity::of(own).ok_or(IdentityError::Certificate("its dates can't be read"))
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Joined({} at {})", self.name, self.hub)
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({} at {})", self.token, self.hub)
    }
}

#[cfg(test)]
mod tests {
    use kedge_durable::fake::{Power, every_cut};
    use kedge_model::wire::Stream;

    use super::*;
    use crate::link::fake::Authority;
    use crate::link::fake::authority::{DAY, now};

    #[test]
    fn a_power_cut_while_renewing_leaves_the_old_certificate_or_the_new_one() {
        let (hub, paths) = (Authority::new(), Paths::below(std::path::Path::new("/root")));
        let old = hub.identity("https://hub:1", &Stream::new("dev", "drone", "all")).joined;
        let key = HostKey::from_pem(&old.key).unwrap();
        let renewed = hub.certify(&key.request().unwrap(), (now().0, now().0 + 900 * DAY));
        let checked = every_cut(
            |disk| {
                disk.make_folder(&paths.state()).unwrap();
                let mut ledger = Ledger::open(Arc::new(disk.clone()), &path(&paths)).unwrap().ledger;
                ledger.write(&Stored { joined: Some(old.clone()), pending: None, ..Stored::default() }).unwrap();
            },
            |disk| Identity::of(old.clone()).unwrap().renew(&disk, &paths, renewed.clone(), now()),
            |disk, power| {
                let found = Identity::read(disk, &paths).unwrap().unwrap();
                assert_eq!(found.cluster(), key.cluster());
                assert!(
                    found.certificate() == renewed || power == Power::Cut && found.certificate() == old.certificate
                );
            },
        );
        assert!(checked > 10, "{checked}");
    }

    #[test]
    fn an_identity_that_was_handed_over_is_the_clusters_and_another_machines_isnt() {
        let (hub, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let (paths, disk) = (Paths::below(folder.path()), Arc::new(kedge_durable::RealDisk) as Arc<dyn Disk>);
        let [node, other, cluster] = ["node", "other", "cluster"].map(|id| Some(Digest::of(id.as_bytes())));
        hand_over(&disk, &paths, node, cluster).unwrap();
        let joined = hub.identity("https://hub:1", &Stream::new("dev", "drone", "all")).joined;
        let mut ledger = Ledger::open(Arc::clone(&disk), &path(&paths)).unwrap().ledger;
        ledger
            .write(&Stored { joined: Some(Joined { machine: node, ..joined }), pending: None, ..Stored::default() })
            .unwrap();
        hand_over(&disk, &paths, other, cluster).unwrap();
        assert_eq!(Identity::read(&*disk, &paths).unwrap().unwrap().joined().machine, node);
        hand_over(&disk, &paths, node, cluster).unwrap();
        assert_eq!(Identity::read(&*disk, &paths).unwrap().unwrap().joined().machine, cluster);
    }

    #[test]
    fn a_machine_without_an_id_is_believed() {
        let (a, b) = (Some(Digest::of(b"a")), Some(Digest::of(b"b")));
        assert!(same_machine(None, a) && same_machine(a, None) && same_machine(a, a) && !same_machine(a, b));
    }
}
