//! What an agent that observes may write: its own Lease and its own Secrets.

use kedge_tests::world::harbour::Harbour;

/// The API server wrote down every request of the agent's account.
pub(crate) fn assert_only_own_things_were_written(harbour: &Harbour) {
    let own = harbour.own_namespace();
    let asked = harbour.kubernetes.audited(&own);
    assert!(asked.iter().any(|one| one.verb == "watch"), "it watches: {asked:?}");
    let is_own = |uri: &str| {
        let places = [
            format!("/apis/coordination.k8s.io/v1/namespaces/{own}/leases"),
            format!("/api/v1/namespaces/{own}/secrets"),
            // A question about its own rights changes nothing.
            "/apis/authorization.k8s.io/v1/selfsubject".to_owned(),
        ];
        places.iter().any(|place| uri.starts_with(place))
    };
    let strange: Vec<_> = asked.iter().filter(|one| one.is_write() && !is_own(&one.uri)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
