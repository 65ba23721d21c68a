//! The account that a workload's objects are applied as, where the Delivery names none: made in the workload's namespace before it is
//! acted as, and again when a right of it is missing. A namespace that is neither the assignment's nor open to workloads gets none.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::put::{PATIENCE, Trouble};
use super::{ApplyContext, refusal};
use crate::cluster::ASSIGNMENT;
use crate::cluster::metadata::Partial;
use crate::cluster::request::{Call, METADATA, collection};
use crate::cluster::retry::persist;
use crate::content::kubernetes::accounts::{self, ACCOUNT, BINDINGS, SHARED, TO_AGENT, TO_WORKLOAD, WORKLOADS};
use crate::goal::ObjectGoal;
use crate::record::Failure;

/// Namespaces in which it was made since the applier began.
#[derive(Debug, Default)]
pub(super) struct Made {
    namespaces: Mutex<BTreeSet<String>>,
    /// The objects of a step come together, and one makes it for all.
    turn: tokio::sync::Mutex<()>,
}

/// Whether the account is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Account {
    There,
    /// Nor is its namespace.
    NoNamespace,
}

/// Other fields than those of what is applied.
const MANAGER: &str = "kedge-account";
/// What an object needs to be applied, compared and pruned.
const VERBS: &str = "[get, list, watch, create, patch, delete]";

impl Made {
    pub(super) fn forget(&self, namespace: &str) {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }

    fn has(&self, namespace: &str) -> bool {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).contains(namespace)
    }

    fn add(&self, namespace: &str) {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.to_owned());
    }
}

impl ApplyContext {
    /// The account that this object is applied as, if that is the agent's to make and it wasn't made yet.
    pub(super) async fn make_account(&self, goal: &ObjectGoal) -> Result<Account, Failure> {
        let Some(namespace) = goal.account.as_deref().and_then(accounts::namespace) else { return Ok(Account::There) };
        if self.accounts.has(namespace) {
            return Ok(Account::There);
        }
        let _turn = self.accounts.turn.lock().await;
        if self.accounts.has(namespace) {
            return Ok(Account::There);
        }
        if self.admit(goal, namespace).await? == Account::NoNamespace {
            return Ok(Account::NoNamespace);
        }
        for (path, object) in objects(namespace) {
            let call = Call::patch(format!("{path}?fieldManager={MANAGER}&force=true"), object.to_string().into());
            let made = persist(PATIENCE, &*self.gate, || self.cluster.call::<Value>(&call)).await;
            made.map_err(|error| {
                let what = format!("the account of the namespace {namespace}");
                let failure = refusal::failure(&what, error);
                with_way_out(failure, None)
            })?;
        }
        self.accounts.add(namespace);
        Ok(Account::There)
    }

    /// Whether workloads of the object's assignment may be in this namespace: it is the assignment's own, or open to all.
    async fn admit(&self, goal: &ObjectGoal, namespace: &str) -> Result<Account, Failure> {
        let call = Call::get(format!("/api/v1/namespaces/{namespace}")).with_accept(METADATA);
        let found = persist(PATIENCE, &*self.gate, || self.cluster.call::<Partial>(&call)).await;
        let labels = match found {
            Ok(found) => found.metadata.labels,
            Err(error) if error.code() == Some(404) => return Ok(Account::NoNamespace),
            Err(error) => return Err(self.failure(goal, Trouble::Api(error))),
        };
        let own = serde_json::from_slice::<Partial>(&self.content(goal)?).ok();
        let own = own.and_then(|content| content.metadata.labels.get(ASSIGNMENT).cloned()).unwrap_or_default();
        if labels.get(ASSIGNMENT) == Some(&own) || labels.get(WORKLOADS).is_some_and(|value| value == SHARED) {
            return Ok(Account::There);
        }
        let message = format!(
            "the namespace {namespace} isn't this assignment's: let its platform package bring the Namespace, or label it with \
             {ASSIGNMENT}={own} if it is for this assignment alone, or with {WORKLOADS}={SHARED} if any workload may be put there"
        );
        Err(Failure::new("Forbidden", message))
    }
}

/// The account and its bindings, each at its address.
fn objects(namespace: &str) -> Vec<(String, Value)> {
    let metadata =
        |name: &str| json!({"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "kedge"}});
    let mut all = vec![(
        format!("{}/{ACCOUNT}", collection("", "v1", "serviceaccounts", Some(namespace))),
        // A pod gets its token only when its manifest asks for it.
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(ACCOUNT), "automountServiceAccountToken": false}),
    )];
    let rbac = "rbac.authorization.k8s.io";
    for (name, role) in BINDINGS {
        all.push((
            format!("{}/{name}", collection(rbac, "v1", "rolebindings", Some(namespace))),
            json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata(name),
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
            }),
        ));
    }
    all
}

/// A refusal for want of rights names the rule that is missing, and who can give it how. `account`: as whom it was tried; none: the agent
/// itself.
pub(super) fn with_way_out(mut failure: Failure, account: Option<&str>) -> Failure {
    if failure.reason != "Forbidden" {
        return failure;
    }
    let way = |rule: &str| match account {
        Some(user) if accounts::namespace(user).is_none() => format!("give {user} {rule}"),
        Some(_) => format!(
            "the platform can allow it to all workloads with a ClusterRole labelled {TO_WORKLOAD}: \"true\" and {rule}"
        ),
        None => format!(
            "an administrator can allow it to the agent with a ClusterRole labelled {TO_AGENT}: \"true\" and {rule}"
        ),
    };
    let more = if failure.message.contains("cannot impersonate resource") {
        // The agent may not act as the account that the Delivery names.
        let name = account.and_then(|user| user.rsplit(':').next()).unwrap_or_default();
        format!(
            "an administrator can let the agent act as it with a ClusterRole labelled {TO_AGENT}: \"true\" and the rule `apiGroups: \
             [\"\"], resources: [serviceaccounts], resourceNames: [{name}], verbs: [impersonate]`"
        )
    } else if failure.message.contains("RBAC permissions not currently held") {
        let who = if account.is_some() { "a workload" } else { "the agent" };
        format!("{who} can't give rights that it doesn't have itself; {}", way("those rules"))
    } else {
        match missing(&failure.message) {
            Some((group, resource)) => {
                way(&format!("the rule `apiGroups: [{group:?}], resources: [{resource}], verbs: {VERBS}`"))
            }
            None => return failure,
        }
    };
    failure.message = format!("{}; {more}", failure.message);
    failure
}

/// The group and the resource of which the server says that they may not be used.
fn missing(message: &str) -> Option<(&str, &str)> {
    let after = |words: &str| message.split_once(words)?.1.split_once('"').map(|(name, _)| name);
    Some((after("in API group \"")?, after(" resource \"")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(account: Option<&str>, message: &str) -> String {
        with_way_out(Failure::new("Forbidden", message), account).message
    }

    #[test]
    fn a_refusal_names_the_missing_rule_and_who_can_give_it() {
        let message =
            "quota: User \"u\" cannot patch resource \"resourcequotas\" in API group \"\" in the namespace \"shop\"";
        let own = accounts::user("shop");
        let rule = "the rule `apiGroups: [\"\"], resources: [resourcequotas], verbs: [get, list, watch, create, patch, delete]`";
        let workload = "the platform can allow it to all workloads with a ClusterRole labelled kedge.dev/aggregate-to-workload: \"true\" and";
        assert_eq!(said(Some(&own), message), format!("{message}; {workload} {rule}"));
        let agent = "an administrator can allow it to the agent with a ClusterRole labelled kedge.dev/aggregate-to-agent: \"true\" and";
        assert_eq!(said(None, message), format!("{message}; {agent} {rule}"));
        let named = "system:serviceaccount:shop:deployer";
        assert_eq!(said(Some(named), message), format!("{message}; give {named} {rule}"));
        let grant = "x is attempting to grant RBAC permissions not currently held";
        let more = format!("{grant}; a workload can't give rights that it doesn't have itself; {workload} those rules");
        assert_eq!(said(Some(&own), grant), more);
        let act = "serviceaccounts \"bob\" is forbidden: User \"agent\" cannot impersonate resource \"serviceaccounts\" in API group \"\"";
        let told = said(Some("system:serviceaccount:shop:bob"), act);
        assert!(
            told.contains("labelled kedge.dev/aggregate-to-agent") && told.contains("resourceNames: [bob]"),
            "{told}"
        );
        assert_eq!(said(None, "no such words"), "no such words");
        let other = Failure::new("Rejected", message);
        assert_eq!(with_way_out(other.clone(), None), other);
    }
}
