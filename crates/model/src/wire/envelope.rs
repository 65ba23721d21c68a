//! The signed envelope around everything that must be believed: DSSE with Ed25519 over the exact bytes. Hub, agents and
//! holders of documents sign with a `SigningKey`; a reader opens with the keys that it pinned.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KeyId;

/// What a payload is: the type names the message and its version.
pub trait Payload: Serialize + for<'de> Deserialize<'de> {
    const TYPE: &'static str;
}

/// Bytes, what they are, and who signed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub payload_type: String,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
    pub signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub keyid: KeyId,
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub sig: Vec<u8>,
}

/// A private Ed25519 key. Never printed.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    id: KeyId,
}

/// A public Ed25519 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    public: [u8; 32],
    id: KeyId,
}

#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the envelope holds `{found}`, not `{expected}`")]
    Type { found: String, expected: &'static str },
    #[error("no signature of a trusted key: signed by {}", .0.iter().map(KeyId::to_string).collect::<Vec<_>>().join(", "))]
    Untrusted(Vec<KeyId>),
    #[error("the signature of key {0} does not fit the content")]
    Forged(KeyId),
    #[error("the envelope has {0} signatures, more than {MAX_SIGNATURES}")]
    TooMany(usize),
    #[error("the payload can't be read")]
    Payload(#[source] serde_json::Error),
    #[error("the envelope can't be read")]
    Json(#[source] serde_json::Error),
    #[error("the private key can't be read: {0}")]
    Key(String),
}

/// One of a set and its successor is the most that is needed; a bound for who sends thousands.
pub const MAX_SIGNATURES: usize = 8;

impl Envelope {
    /// Signs a message. Its bytes are made once, here, and never again.
    pub fn sign<T: Payload>(message: &T, key: &SigningKey) -> Result<Envelope, EnvelopeError> {
        let payload = serde_json::to_vec(message).map_err(EnvelopeError::Payload)?;
        Ok(Envelope::sign_bytes(T::TYPE, payload, key))
    }

    /// Signs bytes that are what the type says.
    pub fn sign_bytes(payload_type: &str, payload: Vec<u8>, key: &SigningKey) -> Envelope {
        let sig = key.sign(&pre_authentication(payload_type, &payload));
        Envelope {
            payload_type: payload_type.to_owned(),
            payload,
            signatures: vec![Signature { keyid: key.id(), sig }],
        }
    }

    /// The message, if one of these keys signed it.
    pub fn open<T: Payload>(&self, keys: &[VerifyingKey]) -> Result<T, EnvelopeError> {
        serde_json::from_slice(self.verify(T::TYPE, keys)?).map_err(EnvelopeError::Payload)
    }

    /// The bytes, if one of these keys signed them as this type.
    pub fn verify(&self, payload_type: &'static str, keys: &[VerifyingKey]) -> Result<&[u8], EnvelopeError> {
        if self.payload_type != payload_type {
            let found = self.payload_type.chars().take(100).collect();
            return Err(EnvelopeError::Type { found, expected: payload_type });
        }
        if self.signatures.len() > MAX_SIGNATURES {
            return Err(EnvelopeError::TooMany(self.signatures.len()));
        }
        let signed = pre_authentication(&self.payload_type, &self.payload);
        let mut forged = None;
        for signature in &self.signatures {
            let Some(key) = keys.iter().find(|key| key.id == signature.keyid) else { continue };
            if key.verifies(&signed, &signature.sig) {
                return Ok(&self.payload);
            }
            forged = Some(signature.keyid);
        }
        match forged {
            Some(key) => Err(EnvelopeError::Forged(key)),
            None => Err(EnvelopeError::Untrusted(self.signatures.iter().map(|signature| signature.keyid).collect())),
        }
    }

    pub fn from_json(bytes: &[u8]) -> Result<Envelope, EnvelopeError> {
        serde_json::from_slice(bytes).map_err(EnvelopeError::Json)
    }

    pub fn to_json(&self) -> Result<Vec<u8>, EnvelopeError> {
        serde_json::to_vec(self).map_err(EnvelopeError::Json)
    }
}

/// What DSSE signs: the type and the bytes, each with its length, so that neither can pass for the other.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

impl SigningKey {
    /// A new key, as PKCS#8.
    pub fn generate() -> Result<Vec<u8>, EnvelopeError> {
        let made = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new());
        Ok(made.map_err(|_| EnvelopeError::Key("no random numbers".to_owned()))?.as_ref().to_vec())
    }

    pub fn from_pkcs8(bytes: &[u8]) -> Result<SigningKey, EnvelopeError> {
        let pair =
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes).map_err(|why| EnvelopeError::Key(why.to_string()))?;
        SigningKey::of_pair(pair)
    }

    /// The key that 32 secret bytes stand for (RFC 8032's seed): test vectors.
    pub fn from_seed(seed: &[u8; 32]) -> Result<SigningKey, EnvelopeError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|why| EnvelopeError::Key(why.to_string()))?;
        SigningKey::of_pair(pair)
    }

    fn of_pair(pair: Ed25519KeyPair) -> Result<SigningKey, EnvelopeError> {
        let id = VerifyingKey::new(pair.public_key().as_ref())?.id;
        Ok(SigningKey { pair, id })
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    pub fn public(&self) -> VerifyingKey {
        let mut public = [0; 32];
        public.iter_mut().zip(self.pair.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        VerifyingKey { public, id: self.id }
    }

    fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

impl VerifyingKey {
    pub fn new(public: &[u8]) -> Result<VerifyingKey, EnvelopeError> {
        let public: [u8; 32] =
            public.try_into().map_err(|_| EnvelopeError::Key(format!("{} bytes instead of 32", public.len())))?;
        Ok(VerifyingKey { public, id: KeyId::of_public_key(&public) })
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.public
    }

    fn verifies(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.public).verify(bytes, signature).is_ok()
    }
}

impl Serialize for VerifyingKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_base64(&self.public, serializer)
    }
}

impl<'de> Deserialize<'de> for VerifyingKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VerifyingKey, D::Error> {
        VerifyingKey::new(&from_base64(deserializer)?).map_err(serde::de::Error::custom)
    }
}

pub(super) fn to_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

pub(super) fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}
