//! What the scheduler has to be told to get from one platform to the next. Pure.

use std::sync::Arc;

use kedge_model::Platform;
use kedge_scheduler::Change;

/// The edits that make `to` out of `from`. Objects that are shared cost nothing.
pub fn changes(from: &Platform, to: &Platform) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (from.objects.iter().peekable(), to.objects.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (Some((before, _)), Some((after, _))) if before < after => {
                changes.push(Change::Remove((*before).clone()));
                old.next();
            }
            (Some((before, one)), Some((after, other))) if before == after => {
                if !Arc::ptr_eq(one, other) && one != other {
                    changes.push(Change::Upsert(Arc::clone(other)));
                }
                old.next();
                new.next();
            }
            (_, Some((_, object))) => {
                changes.push(Change::Upsert(Arc::clone(object)));
                new.next();
            }
            (Some((before, _)), None) => {
                changes.push(Change::Remove((*before).clone()));
                old.next();
            }
            (None, None) => break,
        }
    }
    if from.broken != to.broken {
        changes.push(Change::Broken(to.broken.clone()));
    }
    if from.failing != to.failing {
        changes.push(Change::Failing(to.failing.clone()));
    }
    if from.published != to.published {
        changes.push(Change::Published(to.published.clone()));
    }
    if from.problems != to.problems {
        changes.push(Change::Problems(to.problems.clone()));
    }
    changes
}

#[cfg(test)]
mod tests {
    use kedge_model::decode::{self, Options};
    use kedge_model::{Origin, Source};
    use kedge_scheduler::Scheduler;
    use proptest::prelude::*;

    use super::*;

    fn platform(values: &[(u8, u8)]) -> Platform {
        let mut platform = Platform { environment: "dev".to_owned(), ..Platform::default() };
        for (name, value) in values {
            let text =
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{name}}}\ndata: {{k: \"{value}\"}}\n");
            let source = Arc::new(Source { repo: "r".to_owned(), revision: None });
            let origin = Origin { source, file: "f.yaml".into(), line: 0, column: 0 };
            for object in decode::objects(text.as_bytes(), &origin, &Options::default()).objects {
                platform.objects.insert(object.id(), Arc::new(object));
            }
        }
        platform
    }

    proptest! {
        #[test]
        fn the_changes_lead_from_one_platform_to_the_other(
            one in prop::collection::vec((0u8..8, 0u8..3), 0..8), other in prop::collection::vec((0u8..8, 0u8..3), 0..8),
        ) {
            let (from, to) = (platform(&one), platform(&other));
            let mut scheduler = Scheduler::new(from.clone());
            scheduler.update(changes(&from, &to));
            prop_assert_eq!(scheduler.platform(), &to);
            prop_assert!(changes(&to, &to).is_empty());
        }
    }
}
