//! What the holder writes beside its Lease for those that stand by: where they get the content of the desired state, and a mark that is
//! another one whenever there is other content. It rides on renewals, and they read the Lease anyway: nothing more is asked of the API
//! server.

use std::fmt;
use std::net::SocketAddr;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub address: SocketAddr,
    pub mark: String,
}

/// `10.42.0.7:7444 3f0c…`.
pub const ANNOTATION: &str = "kedge.dev/content";
/// A mark is compared and never shown.
const MAX_MARK: usize = 64;

impl Offer {
    /// None: there is none, or somebody else wrote there.
    pub fn of(lease: &Value) -> Option<Offer> {
        let (address, mark) = lease["metadata"]["annotations"][ANNOTATION].as_str()?.split_once(' ')?;
        (mark.len() <= MAX_MARK).then_some(())?;
        Some(Offer { address: address.parse().ok()?, mark: mark.to_owned() })
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.address, self.mark)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_offer_is_read_as_it_was_written_and_anything_else_is_none() {
        let lease = |text: &str| json!({"metadata": {"annotations": {ANNOTATION: text}}});
        for address in ["10.42.0.7:7444", "[fd00::7]:7444"] {
            let offer = Offer { address: address.parse().unwrap(), mark: "3f0c".to_owned() };
            assert_eq!(Offer::of(&lease(&offer.to_string())), Some(offer));
        }
        for text in ["", "10.42.0.7:7444", "leader:7444 3f0c", &format!("10.42.0.7:1 {}", "x".repeat(65))] {
            assert_eq!(Offer::of(&lease(text)), None, "{text}");
        }
        assert_eq!(Offer::of(&json!({"metadata": {}})), None);
    }
}
