//! Names on a Kubernetes cluster that the agent gives and `kedge validate` knows: the account of a workload's namespace, and the labels
//! that give it more rights.

/// The account's name in every namespace. The agent may impersonate accounts of this name.
pub const ACCOUNT: &str = "kedge-workload";
/// Its bindings, and the ClusterRoles that they are to: the cluster's own `admin`, and what the platform adds for all workloads.
pub const BINDINGS: [(&str, &str); 2] = [("kedge-workload", "admin"), ("kedge-workload-more", "kedge-workload")];
/// What puts a ClusterRole's rules into the ClusterRole `kedge-workload`, and into the agent's own.
pub const TO_WORKLOAD: &str = "kedge.dev/aggregate-to-workload";
pub const TO_AGENT: &str = "kedge.dev/aggregate-to-agent";
