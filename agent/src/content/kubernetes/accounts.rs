//! The account of a workload's namespace: what it is called and what it is bound to. The content says as whom objects are applied, and
//! the applier makes the account before it acts as it.

pub use kedge_model::kubernetes::{ACCOUNT, BINDINGS, TO_AGENT, TO_WORKLOAD};

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
