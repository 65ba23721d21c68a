//! Owners by name and the numbers behind them. Below `--root` nothing has an owner but whoever runs the agent.

use nix::unistd::{Gid, Group, Uid, User};

use crate::goal::Owner;
use crate::record::Failure;

/// The numbers of an owner; none: it stays as it is.
pub fn ids(owner: &Owner) -> Result<Option<(Uid, Gid)>, Failure> {
    if owner.user.is_empty() {
        return Ok(None);
    }
    let unknown =
        |kind: &str, name: &str| Failure::new("UserFailed", format!("there is no {kind} `{name}` on this host"));
    let uid = match User::from_name(&owner.user) {
        Ok(Some(user)) => user.uid,
        _ => Uid::from_raw(owner.user.parse().map_err(|_| unknown("user", &owner.user))?),
    };
    let gid = match Group::from_name(&owner.group) {
        Ok(Some(group)) => group.gid,
        _ => Gid::from_raw(owner.group.parse().map_err(|_| unknown("group", &owner.group))?),
    };
    Ok(Some((uid, gid)))
}

/// The names of the numbers; a number without a name stays a number.
pub fn names(uid: u32, gid: u32) -> Owner {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name);
    Owner { user, group }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_to_each_other() {
        assert_eq!(names(0, 0), Owner::root());
        assert_eq!(ids(&Owner::root()).unwrap(), Some((Uid::from_raw(0), Gid::from_raw(0))));
        let nobody_knows = names(4_000_000_001, 4_000_000_002);
        assert_eq!(nobody_knows.user, "4000000001");
        assert_eq!(ids(&nobody_knows).unwrap(), Some((Uid::from_raw(4_000_000_001), Gid::from_raw(4_000_000_002))));
        assert_eq!(ids(&Owner::default()).unwrap(), None);
        let missing = Owner { user: "kedge-no-such-user".to_owned(), group: "root".to_owned() };
        assert_eq!(ids(&missing).unwrap_err().reason, "UserFailed");
    }
}
