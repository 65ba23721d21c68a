//! A small fleet with fixed keys, and a network in which everything is said at once, for the tests of this crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::*;
use kedge_status::{Header, Nonce, PAYLOAD_TYPE};

use crate::{Action, Message, Node, Settings};

pub const SITE: &str = "berlin-2";
pub const START: Timestamp = Timestamp(1_790_000_000_000);

pub struct Hub {
    pub key: SigningKey,
    pub keys: KeySet,
}

pub struct Agent {
    pub key: SigningKey,
    pub id: ClusterId,
}

pub fn signing(seed: u16) -> SigningKey {
    let mut bytes = [7; 32];
    bytes[..2].copy_from_slice(&seed.to_be_bytes());
    SigningKey::from_seed(&bytes).unwrap()
}

pub fn key_set(version: u64, keys: &[(&SigningKey, KeyState)]) -> KeySet {
    let keys = keys.iter().map(|(key, state)| Key { id: key.id(), public: key.public(), state: *state });
    KeySet { version, created_at: START, keys: keys.collect(), authorities: vec!["PEM".to_owned()] }
}

pub fn hub() -> Hub {
    let key = signing(60_000);
    Hub { keys: key_set(1, &[(&key, KeyState::Active)]), key }
}

pub fn agent(number: u16) -> Agent {
    let key = signing(number);
    Agent { id: ClusterId::of_public_key(key.public().as_bytes()), key }
}

pub fn stream(name: &str) -> Stream {
    Stream::new("prod", name, Stream::ALL)
}

pub fn membership(of: &Agent, sequence: u64) -> Membership {
    Membership {
        cluster: of.id,
        name: format!("host-{}", &of.id.to_string()[..6]),
        stream: stream("drone"),
        labels: BTreeMap::new(),
        site: Some(SITE.to_owned()),
        sequence: Sequence(sequence),
        issued_at: START,
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    }
}

impl Hub {
    pub fn sign<T: Payload>(&self, message: &T) -> Envelope {
        Envelope::sign(message, &self.key).unwrap()
    }

    pub fn member(&self, of: &Agent) -> Envelope {
        self.sign(&membership(of, 1))
    }

    pub fn state(&self, stream: Stream, generation: u64, blobs: &[Digest]) -> Envelope {
        let package = |digest: &Digest, artifacts: &[Digest]| PackageRef {
            digest: *digest,
            size: 1,
            repo: "https://git.example.com/shop.git".to_owned(),
            commit: "0".repeat(40),
            artifacts: artifacts.iter().map(|digest| BlobRef { digest: *digest, size: 1 }).collect(),
        };
        let parameters = ApplyParameters {
            to: kedge_model::kinds::Destination::Host,
            namespace: None,
            scope: kedge_model::kinds::Scope::Namespace,
            conflicts: kedge_model::kinds::Conflicts::Fail,
            service_account: None,
            timeout_seconds: 300,
            soak_seconds: 0,
            rollback: kedge_model::kinds::Rollback::Auto,
            drift: kedge_model::kinds::Drift::Repair,
        };
        let none = Digest::of(b"platform");
        let entries = blobs.first().map(|first| Entry {
            assignment: "shop-prod".to_owned(),
            mode: Mode::Apply(Box::new(Packages {
                parameters,
                platform: package(&none, &[]),
                workload: package(first, &blobs[1..]),
                version: None,
            })),
            restart: 0,
            requires: Vec::new(),
        });
        self.sign(&DesiredState {
            stream,
            generation: Generation(generation),
            created_at: START,
            confirmed: 1,
            entries: entries.into_iter().collect(),
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        })
    }

    pub fn turn(&self, of: &Agent, generation: u64, after: i64) -> Envelope {
        self.sign(&Turn {
            cluster: of.id,
            stream: stream("drone"),
            generation: Generation(generation),
            issued_at: Timestamp(START.0 + after),
            asked: None,
        })
    }

    pub fn node(&self, of: &Agent) -> Node {
        let seed = u64::from_be_bytes(of.key.public().as_bytes()[..8].try_into().unwrap());
        let settings = Settings { me: of.id, site: SITE.to_owned(), seed, carries: true };
        let mut node = Node::new(settings, self.keys.clone(), START);
        node.put(self.member(of)).unwrap();
        node
    }
}

impl Agent {
    pub fn status(&self, epoch: u64, changes: u64, nonce: u8) -> Envelope {
        self.status_of(self.id, epoch, changes, nonce)
    }

    /// A status document that says it is of this cluster.
    pub fn status_of(&self, cluster: ClusterId, epoch: u64, changes: u64, nonce: u8) -> Envelope {
        let header = Header {
            cluster,
            key: self.key.public(),
            epoch,
            nonce: Nonce([nonce; 16]),
            changes,
            written_at: START,
            clock_offset: None,
            requires: Vec::new(),
        };
        let header = serde_json::to_vec(&header).unwrap();
        let mut payload = u32::try_from(header.len()).unwrap().to_be_bytes().to_vec();
        payload.extend(header);
        payload.extend(b"a body that nobody here reads");
        Envelope::sign_bytes(PAYLOAD_TYPE, payload, &self.key)
    }

    pub fn holds(&self, on: &Agent, sequence: u64) -> Envelope {
        Envelope::sign(&holds(on, sequence), &self.key).unwrap()
    }

    pub fn presence(&self, at: i64) -> Envelope {
        let poll = PollRequest {
            key_set: 1,
            membership: Sequence(1),
            generation: Generation(1),
            status: Heads::default(),
            look_age: 1,
            profile: Profile::Normal,
            wait: None,
            holds: 0,
        };
        let presence = Presence { key: self.key.public(), at: Timestamp(START.0 + at), poll };
        Envelope::sign(&presence, &self.key).unwrap()
    }
}

pub fn holds(on: &Agent, sequence: u64) -> HoldDocument {
    let entry =
        HoldEntry { assignment: "shop-prod".to_owned(), by: "anna".to_owned(), reason: String::new(), since: START };
    HoldDocument { cluster: on.id, sequence, written_at: START, holds: vec![entry] }
}

/// Nodes that hear each other at once, unless a cable is cut.
#[derive(Default)]
pub struct Net {
    pub nodes: BTreeMap<ClusterId, Node>,
    pub now: Timestamp,
    pub cut: BTreeSet<(ClusterId, ClusterId)>,
    /// Who said how much, in bytes of messages, both ways.
    pub bytes: usize,
    pub messages: usize,
    /// What the drivers were told, but for sends.
    pub told: Vec<(ClusterId, Action)>,
}

impl Net {
    /// Everybody found everybody.
    pub fn of(hub: &Hub, agents: &[Agent]) -> Net {
        let mut net = Net { now: START, ..Net::default() };
        for agent in agents {
            net.nodes.insert(agent.id, hub.node(agent));
        }
        net.meet();
        net
    }

    pub fn meet(&mut self) {
        let all: Vec<ClusterId> = self.nodes.keys().copied().collect();
        for node in self.nodes.values_mut() {
            for peer in &all {
                node.found(*peer, self.now);
            }
        }
    }

    pub fn node(&mut self, agent: &Agent) -> &mut Node {
        self.nodes.get_mut(&agent.id).unwrap()
    }

    pub fn cut(&mut self, one: &Agent, other: &Agent) {
        self.cut.extend([(one.id, other.id), (other.id, one.id)]);
    }

    pub fn run(&mut self, seconds: i64) {
        let end = Timestamp(self.now.0 + seconds * 1_000);
        for _ in 0..200_000 {
            let (wake, id) = self.nodes.iter().map(|(id, node)| (node.wake(), *id)).min().unwrap();
            if wake > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(wake);
            let actions = self.nodes.get_mut(&id).unwrap().tick(self.now);
            self.follow(id, actions);
        }
        panic!("the nodes never rest");
    }

    fn follow(&mut self, id: ClusterId, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    let answer = self.say(id, to, &message);
                    let node = self.nodes.get_mut(&id).unwrap();
                    let next = match answer {
                        Some(answer) => node.answered(to, answer, self.now),
                        None => node.failed(to, self.now),
                    };
                    self.follow(id, next);
                }
                other => self.told.push((id, other)),
            }
        }
    }

    /// What `to` answers, as bytes on a wire.
    pub fn say(&mut self, from: ClusterId, to: ClusterId, message: &Message) -> Option<Message> {
        let bytes = message.to_json().unwrap();
        self.bytes += bytes.len();
        self.messages += 1;
        if self.cut.contains(&(from, to)) {
            return None;
        }
        let (answer, actions) = self.nodes.get_mut(&to)?.heard(from, Message::from_json(&bytes).unwrap(), self.now);
        self.follow(to, actions);
        let bytes = answer?.to_json().unwrap();
        self.bytes += bytes.len();
        Some(Message::from_json(&bytes).unwrap())
    }

    /// What each has, but for the bytes.
    pub fn stores(&self) -> Vec<Vec<(crate::Name, crate::Version)>> {
        let listed = |node: &Node| node.store().documents().map(|(name, version, _)| (name.clone(), version)).collect();
        self.nodes.values().map(listed).collect()
    }

    pub fn told_by(&self, agent: &Agent) -> impl Iterator<Item = &Action> {
        self.told.iter().filter(|(id, _)| *id == agent.id).map(|(_, action)| action)
    }
}
