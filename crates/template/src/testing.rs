//! The assignment that unit tests render: target `w-t` on cluster type `ct` in `dev`.

use std::collections::BTreeMap;

use crate::{Config, Context, Data};

pub(crate) fn with_data<T>(labels: &[(&str, &str)], config: &dyn Config, run: impl FnOnce(&Data<'_>) -> T) -> T {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let (labels, manifests) = (map(labels), map(&[("repo", "r")]));
    run(&Data::new(Context {
        deployment_target_name: "w-t",
        namespace: "dev-ct-w-t",
        environment: "dev",
        workspace: "ws",
        workload: "w",
        labels: &labels,
        manifests: &manifests,
        cluster_type: "ct",
        config,
    }))
}
