//! Which hub a simulated agent believes: judged by the real agent's own rules.

use std::sync::Arc;

use kedge_agent::clock::{Clock as _, SystemClock};
use kedge_agent::identity::key::HostKey;
use kedge_agent::link::era::Era;
use kedge_agent::link::trust;
pub use kedge_agent::link::trust::Trust;
use rustls::ClientConfig;

use super::identity::Identity;

/// Settings of connections; with a certificate and its key, or without.
pub fn settings(trust: Trust, own: Option<(&str, &Identity)>) -> Arc<ClientConfig> {
    let era = Era::new(Arc::new(SystemClock), SystemClock.now());
    let key = own.map(|(_, identity)| HostKey::from_pem(&identity.pair().serialize_pem()).expect("a key"));
    let own = own.zip(key.as_ref()).map(|((pem, _), key)| (pem, key));
    trust::settings(trust, Arc::new(era), own).expect("a certificate that fits its key")
}
