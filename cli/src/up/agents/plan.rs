//! Which agents there are for a number of them: every environment, then every cluster type and ring, then more of production. Pure.

/// An agent's place in the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub environment: &'static str,
    pub cluster_type: &'static str,
    /// In production: gets a change first.
    pub canary: bool,
}

/// Cluster types of the sample.
const TYPES: [&str; 3] = ["drone", "factory-line", "large"];
/// Environment, and whether it is the canary, for each type in turn.
const FIRST: [(&str, bool); 4] = [("dev", false), ("stage", false), ("prod", true), ("prod", false)];
/// Those beyond the first dozen.
const FURTHER: [(&str, bool); 4] = [("prod", false), ("prod", false), ("stage", false), ("dev", false)];

/// The first of a longer list are those of a shorter one, so that a fleet can grow.
pub fn members(count: usize) -> Vec<Member> {
    let first = TYPES.iter().flat_map(|kind| FIRST.iter().map(move |slot| (*kind, *slot)));
    let further = FURTHER.iter().cycle().flat_map(|slot| TYPES.iter().map(move |kind| (*kind, *slot)));
    let mut members: Vec<Member> = Vec::with_capacity(count);
    for (cluster_type, (environment, canary)) in first.chain(further).take(count) {
        let same = |member: &&Member| member.environment == environment && member.cluster_type == cluster_type;
        let number = members.iter().filter(same).count() + 1;
        members.push(Member {
            name: format!("{environment}-{cluster_type}-{number}"),
            environment,
            cluster_type,
            canary,
        });
    }
    members
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_dozen_covers_every_type_in_every_environment_and_both_rings() {
        let members = members(12);
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        insta::assert_snapshot!(names.join(" "), @"dev-drone-1 stage-drone-1 prod-drone-1 prod-drone-2 dev-factory-line-1 stage-factory-line-1 prod-factory-line-1 prod-factory-line-2 dev-large-1 stage-large-1 prod-large-1 prod-large-2");
        assert_eq!(members.iter().filter(|member| member.canary).count(), 3);
    }

    #[test]
    fn few_agents_cover_the_environments_first() {
        let environments: BTreeSet<&str> = members(3).iter().map(|member| member.environment).collect();
        assert_eq!(environments.len(), 3);
    }

    #[test]
    fn a_fleet_grows_without_renaming_anybody() {
        let all = members(200);
        assert_eq!(all.iter().map(|member| &member.name).collect::<BTreeSet<_>>().len(), 200);
        for count in 0..200 {
            assert_eq!(members(count), all[..count]);
        }
    }
}
