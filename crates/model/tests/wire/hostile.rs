//! Bytes that nobody meant: no reader may panic, recurse without end, or make much of little.

use kedge_model::wire::*;
use proptest::prelude::*;
use serde_json::Value;

use crate::any;

/// Every message is tried on the same bytes.
fn try_all(bytes: &[u8]) {
    let _ = Envelope::from_json(bytes);
    let _ = serde_json::from_slice::<DesiredState>(bytes);
    let _ = serde_json::from_slice::<Entry>(bytes);
    let _ = serde_json::from_slice::<Membership>(bytes);
    let _ = serde_json::from_slice::<KeySet>(bytes);
    let _ = serde_json::from_slice::<Turn>(bytes);
    let _ = serde_json::from_slice::<PollRequest>(bytes);
    let _ = serde_json::from_slice::<PollAnswer>(bytes);
    let _ = serde_json::from_slice::<JoinRequest>(bytes);
    let _ = serde_json::from_slice::<JoinAnswer>(bytes);
    let _ = serde_json::from_slice::<RenewRequest>(bytes);
    let _ = serde_json::from_slice::<RenewAnswer>(bytes);
    let _ = serde_json::from_slice::<WireProblem>(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<JoinToken>();
        let _ = text.parse::<Digest>();
        let _ = text.parse::<ClusterId>();
        let _ = text.parse::<KeyId>();
        let _ = text.parse::<PackagesKey>();
    }
    let _ = VerifyingKey::new(bytes);
    let _ = SigningKey::from_pkcs8(bytes);
}

/// The paths of all scalars, as pointers.
fn scalars(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                scalars(field, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| scalars(item, &format!("{at}/{index}"), out));
        }
        _ => out.push(at.to_owned()),
    }
}

fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(serde_json::json!(-1)),
        Just(serde_json::json!(1e300)),
        Just(serde_json::json!(u64::MAX)),
        Just(serde_json::json!([[[]]])),
        Just(serde_json::json!({"mode": "apply"})),
        any::<String>().prop_map(Value::String),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        try_all(&bytes);
    }

    #[test]
    fn a_state_with_an_odd_value_is_read_or_refused(
        state in any::desired_state(), at in any::<prop::sample::Index>(), odd in odd(),
    ) {
        let mut value = serde_json::to_value(&state).unwrap();
        let mut places = Vec::new();
        scalars(&value, "", &mut places);
        if let Some(place) = value.pointer_mut(&places[at.index(places.len())]) {
            *place = odd;
        }
        try_all(&serde_json::to_vec(&value).unwrap());
    }

    #[test]
    fn a_cut_message_is_refused(state in any::desired_state(), at in any::<prop::sample::Index>()) {
        let bytes = serde_json::to_vec(&state).unwrap();
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(serde_json::from_slice::<DesiredState>(cut).is_err());
        try_all(cut);
    }

    #[test]
    fn a_cut_token_is_refused(token in any::join_token(), at in any::<prop::sample::Index>()) {
        let printed = token.to_string();
        let cut: String = printed.chars().take(at.index(printed.len())).collect();
        prop_assert!(cut.parse::<JoinToken>().is_err());
    }
}

#[test]
fn a_nest_without_end_is_refused() {
    for open in ["[", "{\"entries\":[", "{\"a\":"] {
        try_all(open.repeat(100_000).as_bytes());
    }
}

#[test]
fn a_token_longer_than_any_is_refused_undecoded() {
    let long = format!("kedge-join-1.{}", "A".repeat(1 << 20));
    assert_eq!(long.parse::<JoinToken>(), Err(JoinTokenError::Damaged));
    assert_eq!("kedge-join-2.AAAA".parse::<JoinToken>(), Err(JoinTokenError::Prefix));
    assert_eq!("".parse::<JoinToken>(), Err(JoinTokenError::Prefix));
}

#[test]
fn an_error_repeats_no_more_than_a_line_of_what_it_got() {
    let long = "x".repeat(1 << 20);
    assert!(long.parse::<Digest>().unwrap_err().to_string().len() < 300);
    assert!(long.parse::<ClusterId>().unwrap_err().to_string().len() < 300);
    let envelope = Envelope { payload_type: long, payload: Vec::new(), signatures: Vec::new() };
    assert!(envelope.open::<Membership>(&[]).unwrap_err().to_string().len() < 300);
}

#[test]
fn digits_in_capitals_or_of_the_wrong_number_are_no_id() {
    for text in ["", "sha256:", "sha256:AB", "ABCDEF0123456789ABCDEF0123456789", "abcdef0123456789abcdef012345678", "é"]
    {
        assert!(text.parse::<ClusterId>().is_err(), "{text}");
        assert!(text.parse::<Digest>().is_err(), "{text}");
    }
}
