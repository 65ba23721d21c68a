//! The account of a workload's namespace: what it is called and what it is bound to. The content says as whom objects are applied, and
//! the applier makes the account before it acts as it.

/// Its name in every namespace. The agent may impersonate accounts of this name.
pub const ACCOUNT: &str = "kedge-workload";
/// Its bindings, and the ClusterRoles that they are to: the cluster's own `admin`, and what the platform adds for all workloads.
pub const BINDINGS: [(&str, &str); 2] = [("kedge-workload", "admin"), ("kedge-workload-more", "kedge-workload")];
/// What puts a ClusterRole's rules into the ClusterRole `kedge-workload`, and into the agent's own.
pub const TO_WORKLOAD: &str = "kedge.dev/aggregate-to-workload";
pub const TO_AGENT: &str = "kedge.dev/aggregate-to-agent";
/// On a namespace that isn't of one assignment: workloads may be put there.
pub const WORKLOADS: &str = "kedge.dev/workloads";
pub const SHARED: &str = "shared";

const USERS: &str = "system:serviceaccount:";

/// As the API server calls it.
pub fn user(namespace: &str) -> String {
    format!("{USERS}{namespace}:{ACCOUNT}")
}

/// Whose account it is; none: somebody else's than the agent's to make.
pub fn namespace(user: &str) -> Option<&str> {
    user.strip_prefix(USERS)?.strip_suffix(ACCOUNT)?.strip_suffix(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_agents_own_accounts_are_known_by_their_namespace() {
        assert_eq!(namespace(&user("shop")), Some("shop"));
        for other in
            ["system:serviceaccount:shop:deployer", "system:serviceaccount:shop:x-kedge-workload", "kedge-workload"]
        {
            assert_eq!(namespace(other), None, "{other}");
        }
    }
}
