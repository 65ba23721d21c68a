//! Every message comes back as it was, with fields of a newer version beside it or without.

use std::fmt::Debug;

use kedge_model::wire::*;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::any;

/// Through JSON and back; then with a field in every object that this version doesn't know.
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) {
    let bytes = serde_json::to_vec(message).unwrap();
    assert_eq!(&serde_json::from_slice::<T>(&bytes).unwrap(), message);
    let mut newer: Value = serde_json::from_slice(&bytes).unwrap();
    add_unknown(&mut newer);
    assert_eq!(&serde_json::from_value::<T>(newer).unwrap(), message);
}

fn add_unknown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A map of labels has people's keys: a further one isn't an unknown field.
            for (name, field) in fields.iter_mut() {
                if name != "labels" {
                    add_unknown(field);
                }
            }
            fields.insert("ofANewerVersion".to_owned(), serde_json::json!({"deep": [1, null, "x"]}));
        }
        Value::Array(items) => items.iter_mut().for_each(add_unknown),
        _ => {}
    }
}

macro_rules! every_message {
    ($($name:ident),+ $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            $(
                #[test]
                fn $name(message in any::$name()) {
                    comes_back(&message);
                }
            )+
        }
    };
}

every_message!(
    cluster,
    desired_state,
    digest,
    entry,
    envelope,
    heads,
    join_answer,
    join_request,
    key,
    key_set,
    membership,
    poll_answer,
    poll_request,
    problem,
    renew_answer,
    renew_request,
    stream,
    turn,
);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_token_comes_back_as_it_was_printed(token in any::join_token()) {
        let printed = token.to_string();
        prop_assert_eq!(&printed.parse::<JoinToken>().unwrap(), &token);
        prop_assert_eq!(&format!("  {printed}\n").parse::<JoinToken>().unwrap(), &token);
        let shown = format!("{token:?}");
        prop_assert_eq!(shown, format!("{:?}", JoinToken { secret: "another".to_owned(), ..token }));
    }

    #[test]
    fn ids_and_digests_come_back_as_they_were_printed(bytes in any::<[u8; 32]>()) {
        let (digest, cluster, key) = (Digest::from_bytes(bytes), ClusterId::of_public_key(&bytes), KeyId::of_public_key(&bytes));
        prop_assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        prop_assert_eq!(cluster.to_string().parse::<ClusterId>().unwrap(), cluster);
        prop_assert_eq!(key.to_string().parse::<KeyId>().unwrap(), key);
        prop_assert_eq!(cluster.key_id(), key);
    }

    #[test]
    fn counts_are_by_packages_and_nothing_else(one in any::entry(), other in any::entry()) {
        let same_packages = Entry { assignment: other.assignment, restart: other.restart, requires: other.requires, ..one.clone() };
        prop_assert_eq!(one.packages_key(), same_packages.packages_key());
        prop_assert_eq!(one.packages_key() == Entry { mode: other.mode.clone(), ..one.clone() }.packages_key(), one.mode == other.mode);
    }
}

#[test]
fn an_idle_poll_is_a_few_hundred_bytes() {
    let request = PollRequest {
        key_set: 3,
        membership: Sequence(12),
        generation: Generation(345),
        status: Heads { epoch: 4, nonce: "a".repeat(32), heads: vec!["b".repeat(16)] },
        look_age: 55,
        profile: Profile::Normal,
        wait: Some(55),
        holds: 0,
    };
    let answer = PollAnswer {
        time: Timestamp(1_790_000_000_000),
        next: 0,
        promise: 120,
        key_sets: Vec::new(),
        membership: None,
        state: None,
        want_status: false,
        want_proof: false,
        holds: None,
    };
    assert!(serde_json::to_vec(&request).unwrap().len() < 220);
    assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"time":1790000000000,"next":0,"promise":120}"#);
}
