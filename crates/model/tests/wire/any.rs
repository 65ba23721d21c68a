//! Any message: strategies for every type of the wire.

use kedge_model::Labels;
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::*;
use proptest::prelude::*;

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z][a-z0-9-]{0,20}", 1 => any::<String>()]
}

fn some_text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(text())
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

pub fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

fn generation() -> impl Strategy<Value = Generation> {
    any::<u64>().prop_map(Generation)
}

pub fn stream() -> impl Strategy<Value = Stream> {
    (text(), text(), text()).prop_map(|(environment, cluster_type, ring)| Stream { environment, cluster_type, ring })
}

pub fn key() -> impl Strategy<Value = VerifyingKey> {
    any::<[u8; 32]>().prop_map(|public| VerifyingKey::new(&public).unwrap())
}

pub fn cluster() -> impl Strategy<Value = ClusterId> {
    any::<[u8; 32]>().prop_map(|public| ClusterId::of_public_key(&public))
}

pub fn envelope() -> impl Strategy<Value = Envelope> {
    let signature = (key(), prop::collection::vec(any::<u8>(), 0..70));
    let signature = signature.prop_map(|(key, sig)| Signature { keyid: key.id(), sig });
    let signatures = prop::collection::vec(signature, 0..3);
    (text(), prop::collection::vec(any::<u8>(), 0..100), signatures)
        .prop_map(|(payload_type, payload, signatures)| Envelope { payload_type, payload, signatures })
}

fn package() -> impl Strategy<Value = PackageRef> {
    let blob = (digest(), any::<u64>()).prop_map(|(digest, size)| BlobRef { digest, size });
    (digest(), any::<u64>(), text(), text(), prop::collection::vec(blob, 0..3))
        .prop_map(|(digest, size, repo, commit, artifacts)| PackageRef { digest, size, repo, commit, artifacts })
}

fn parameters() -> impl Strategy<Value = ApplyParameters> {
    let choices = (
        prop_oneof![Just(Destination::Kubernetes), Just(Destination::Host)],
        prop_oneof![Just(Scope::Namespace), Just(Scope::Cluster)],
        prop_oneof![Just(Conflicts::Fail), Just(Conflicts::Take)],
        prop_oneof![Just(Rollback::Auto), Just(Rollback::Never)],
        prop_oneof![Just(Drift::Repair), Just(Drift::Report), Just(Drift::Ignore)],
    );
    (choices, some_text(), some_text(), any::<u64>(), any::<u64>()).prop_map(
        |((to, scope, conflicts, rollback, drift), namespace, service_account, timeout_seconds, soak_seconds)| {
            ApplyParameters {
                to,
                namespace,
                scope,
                conflicts,
                service_account,
                timeout_seconds,
                soak_seconds,
                rollback,
                drift,
            }
        },
    )
}

fn mode() -> impl Strategy<Value = Mode> {
    let apply =
        (parameters(), package(), package(), some_text()).prop_map(|(parameters, platform, workload, version)| {
            Mode::Apply(Box::new(Packages { parameters, platform, workload, version }))
        });
    let object = (text(), text(), some_text(), text()).prop_map(|(api_version, kind, namespace, name)| ObjectRef {
        api_version,
        kind,
        namespace,
        name,
    });
    let observe =
        (prop::collection::vec(object, 0..3), some_text(), digest()).prop_map(|(objects, expected_commit, content)| {
            Mode::Observe(Observation { objects, expected_commit, content })
        });
    prop_oneof![apply, observe]
}

pub fn entry() -> impl Strategy<Value = Entry> {
    (text(), mode(), prop_oneof![Just(0), any::<u64>()], texts())
        .prop_map(|(assignment, mode, restart, requires)| Entry { assignment, mode, restart, requires })
}

pub fn desired_state() -> impl Strategy<Value = DesiredState> {
    let tombstones = || {
        let one = (text(), generation()).prop_map(|(assignment, since)| Tombstone { assignment, since });
        prop::collection::vec(one, 0..3)
    };
    let source = (text(), text(), text(), text()).prop_map(|(repo, branch, path, commit)| PlatformSource {
        repo,
        branch,
        path,
        commit,
    });
    let numbers = (generation(), time(), any::<u64>(), any::<bool>());
    let entries = prop::collection::vec(entry(), 0..4);
    (stream(), numbers, entries, tombstones(), tombstones(), prop::option::of(source), texts()).prop_map(
        |(stream, (generation, created_at, confirmed, turns), entries, removed, unmanaged, source, requires)| {
            DesiredState {
                stream,
                generation,
                created_at,
                confirmed,
                entries,
                removed,
                unmanaged,
                source,
                turns,
                requires,
            }
        },
    )
}

pub fn membership() -> impl Strategy<Value = Membership> {
    let labels = prop::collection::btree_map(text(), text(), 0..3).prop_map(|map| map.into_iter().collect::<Labels>());
    let lists = (texts(), texts(), texts());
    let rest = (any::<u64>(), time(), any::<bool>(), any::<bool>());
    (cluster(), text(), stream(), labels, some_text(), lists, rest).prop_map(
        |(cluster, name, stream, labels, site, (remove, unmanage, requires), (sequence, issued_at, relay, retired))| {
            Membership {
                cluster,
                name,
                stream,
                labels,
                site,
                sequence: Sequence(sequence),
                issued_at,
                remove,
                unmanage,
                relay,
                retired,
                requires,
            }
        },
    )
}

pub fn turn() -> impl Strategy<Value = Turn> {
    (cluster(), stream(), generation(), time(), prop::option::of(time())).prop_map(
        |(cluster, stream, generation, issued_at, asked)| Turn { cluster, stream, generation, issued_at, asked },
    )
}

pub fn key_set() -> impl Strategy<Value = KeySet> {
    let state = prop_oneof![Just(KeyState::Announced), Just(KeyState::Active), Just(KeyState::Retired)];
    let key = (key(), state).prop_map(|(public, state)| Key { id: public.id(), public, state });
    (any::<u64>(), time(), prop::collection::vec(key, 0..4), texts())
        .prop_map(|(version, created_at, keys, authorities)| KeySet { version, created_at, keys, authorities })
}

pub fn heads() -> impl Strategy<Value = Heads> {
    (any::<u64>(), text(), texts()).prop_map(|(epoch, nonce, heads)| Heads { epoch, nonce, heads })
}

pub fn poll_request() -> impl Strategy<Value = PollRequest> {
    let numbers = (any::<u64>(), any::<u64>(), generation(), any::<u64>());
    let profile = prop_oneof![Just(Profile::Normal), Just(Profile::Low)];
    (numbers, heads(), profile, prop::option::of(any::<u64>())).prop_map(
        |((key_set, membership, generation, look_age), status, profile, wait)| PollRequest {
            key_set,
            membership: Sequence(membership),
            generation,
            status,
            look_age,
            profile,
            wait,
            holds: 0,
        },
    )
}

pub fn poll_answer() -> impl Strategy<Value = PollAnswer> {
    let some = || prop::option::of(envelope());
    let numbers = (time(), any::<u64>(), any::<u64>(), any::<bool>(), any::<bool>());
    (numbers, prop::collection::vec(envelope(), 0..3), some(), some()).prop_map(
        |((time, next, promise, want_status, want_proof), key_sets, membership, state)| PollAnswer {
            time,
            next,
            promise,
            key_sets,
            membership,
            state,
            want_status,
            want_proof,
            holds: None,
        },
    )
}

pub fn problem() -> impl Strategy<Value = WireProblem> {
    (text(), text(), some_text()).prop_map(|(reason, message, hint)| WireProblem { reason, message, hint })
}

pub fn join_token() -> impl Strategy<Value = JoinToken> {
    (text(), digest(), text(), text()).prop_map(|(hub, authority, id, secret)| JoinToken { hub, authority, id, secret })
}

pub fn join_request() -> impl Strategy<Value = JoinRequest> {
    let facts = (text(), text(), text()).prop_map(|(agent_version, architecture, system)| Facts {
        agent_version,
        architecture,
        system,
    });
    (text(), text(), text(), text(), prop::option::of(digest()), facts).prop_map(
        |(token_id, secret, csr, name, machine, facts)| JoinRequest { token_id, secret, csr, name, machine, facts },
    )
}

pub fn join_answer() -> impl Strategy<Value = JoinAnswer> {
    (text(), prop::collection::vec(envelope(), 0..3), envelope(), time())
        .prop_map(|(certificate, key_sets, membership, time)| JoinAnswer { certificate, key_sets, membership, time })
}

pub fn renew_request() -> impl Strategy<Value = RenewRequest> {
    text().prop_map(|csr| RenewRequest { csr })
}

pub fn renew_answer() -> impl Strategy<Value = RenewAnswer> {
    (text(), time()).prop_map(|(certificate, time)| RenewAnswer { certificate, time })
}
