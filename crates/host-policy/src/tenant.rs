//! The tenant of an assignment, from the HostNamespace that the platform team gave it. Pure: whether its user is on the host already,
//! and in which group, is the host's to say.

use kedge_model::kinds::HostNamespace;
use kedge_model::wire::Digest;

/// Whose workload it is, and what the platform team gave it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub assignment: String,
    /// The HostNamespace's name.
    pub namespace: String,
    pub user: String,
    pub group: String,
    /// `kedge-….slice`.
    pub slice: String,
    pub given: HostNamespace,
}

/// `kedge-` and so many digits of the name's hash: a user's name has at most 32 characters.
const HASH_DIGITS: usize = 12;
/// What the comment of every namespace's account begins with; older agents wrote no more than this.
pub const MARK: &str = "Kedge namespace";

impl Tenant {
    /// With a group of the user's own name, which a new user gets.
    pub fn new(assignment: &str, namespace: String, mut given: HostNamespace) -> Tenant {
        for folder in &mut given.folders {
            trim(&mut folder.path);
        }
        given.allow.paths.iter_mut().for_each(trim);
        let user = given.user.clone().unwrap_or_else(|| user_of(&namespace));
        Tenant {
            assignment: assignment.to_owned(),
            slice: slice_of(&namespace),
            namespace,
            group: user.clone(),
            user,
            given,
        }
    }
}

/// The user of a namespace that names none.
pub fn user_of(namespace: &str) -> String {
    format!("kedge-{}", hash(namespace))
}

/// The comment of an account that is a namespace's: by it the agent knows whose a user is, also when its own memory is lost.
pub fn mark_of(namespace: &str) -> String {
    match is_plain(namespace) {
        true => format!("{MARK} {namespace}"),
        false => format!("{MARK} {}", hash(namespace)),
    }
}

/// `/srv/app/` is `/srv/app`.
fn trim(path: &mut String) {
    path.truncate(path.trim_end_matches('/').len().max(1));
}

fn hash(namespace: &str) -> String {
    let mut hex = Digest::of(namespace.as_bytes()).hex();
    hex.truncate(HASH_DIGITS);
    hex
}

/// In a slice's name a dash means "inside of", and one tenant's slice must not be in another's.
fn slice_of(namespace: &str) -> String {
    match is_plain(namespace) {
        true => format!("kedge-{}.slice", namespace.replace('-', "_")),
        false => format!("kedge-{}.slice", hash(namespace)),
    }
}

fn is_plain(namespace: &str) -> bool {
    namespace.len() <= 128
        && namespace.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_tenants_are_never_inside_of_each_other() {
        assert_eq!(slice_of("a-b"), "kedge-a_b.slice");
        assert_ne!(slice_of("a_b"), slice_of("a-b"));
        assert!(slice_of("Ä").starts_with("kedge-") && !slice_of("Ä").contains('_'));
    }

    #[test]
    fn a_mark_fits_into_a_line_of_passwd() {
        assert_eq!(mark_of("dev-vm-hello"), "Kedge namespace dev-vm-hello");
        assert!(!mark_of("a:b\n").contains([':', '\n']));
    }

    #[test]
    fn a_tenant_without_a_named_user_has_one_of_its_own() {
        let tenant = Tenant::new("hello-test", "dev-vm-hello".to_owned(), HostNamespace::default());
        assert!(tenant.user.starts_with("kedge-") && tenant.user.len() <= 32, "{}", tenant.user);
        assert_eq!(tenant.user, tenant.group);
    }
}
