//! The removal guard: whether a cluster type's next set of assignments may be published without a person's word. Pure;
//! called by `plan`.
//!
//! The rule. The confirmed set of a cluster type is everything that was published since a person last confirmed it (at
//! first: since the first publish). A set that passes adds to it and takes nothing away, so that removals add up however
//! small each is; more than half of the confirmed set missing waits, and so does more than half of what is published going
//! at once. A confirmation makes the next set the confirmed one. A rename is a removal and an addition: the old name counts as gone. What moves to another cluster type is gone here.

use std::collections::BTreeSet;

/// Names of assignments: a target's full name, as its folder is called.
pub type Names = BTreeSet<String>;

/// What happens to a cluster type's next set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, and this is the confirmed set from then on.
    Passes(Names),
    /// A person is asked first.
    Waits(Removal),
}

/// What a person has to agree to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Confirmed and missing in the next set.
    pub gone: Names,
    /// The size of the confirmed set.
    pub of: usize,
}

/// `published` is what the branch holds now; `approved` are names that a person agreed to lose: enough when nothing else
/// is gone.
pub fn judge(confirmed: &Names, published: &Names, next: &Names, approved: Option<&Names>) -> Verdict {
    let gone: Names = confirmed.difference(next).cloned().collect();
    if approved.is_some_and(|approved| gone.is_subset(approved)) {
        return Verdict::Passes(next.clone());
    }
    let at_once = published.difference(next).count();
    match gone.len() * 2 > confirmed.len() || at_once * 2 > published.len() {
        true => Verdict::Waits(Removal { gone, of: confirmed.len() }),
        false => Verdict::Passes(confirmed.union(next).cloned().collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where all that is confirmed is published.
    fn judge_all(confirmed: &Names, next: &Names, approved: Option<&Names>) -> Verdict {
        judge(confirmed, confirmed, next, approved)
    }

    fn names(text: &str) -> Names {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn half_may_go_and_more_than_half_waits() {
        assert_eq!(judge_all(&names("a b c d"), &names("a b"), None), Verdict::Passes(names("a b c d")));
        let removal = Removal { gone: names("b c d"), of: 4 };
        assert_eq!(judge_all(&names("a b c d"), &names("a"), None), Verdict::Waits(removal));
        assert!(matches!(judge_all(&names("a"), &names(""), None), Verdict::Waits(_)));
    }

    #[test]
    fn a_first_set_and_a_growing_set_are_confirmed() {
        assert_eq!(judge_all(&names(""), &names("a b"), None), Verdict::Passes(names("a b")));
        assert_eq!(judge_all(&names("a"), &names("a b c"), None), Verdict::Passes(names("a b c")));
        assert_eq!(judge_all(&names("a b c"), &names("b c"), None), Verdict::Passes(names("a b c")));
    }

    #[test]
    fn all_renamed_at_once_waits_although_the_number_is_the_same() {
        assert!(matches!(judge_all(&names("a b c"), &names("x y z"), None), Verdict::Waits(_)));
    }

    #[test]
    fn an_approval_covers_what_was_shown_and_nothing_more() {
        let approved = names("b c d");
        assert_eq!(judge_all(&names("a b c d"), &names("a"), Some(&approved)), Verdict::Passes(names("a")));
        assert_eq!(judge_all(&names("a b c d"), &names("a b e"), Some(&approved)), Verdict::Passes(names("a b e")));
        assert!(matches!(judge_all(&names("a b c d"), &names(""), Some(&approved)), Verdict::Waits(_)));
    }

    proptest! {
        /// However a set comes and goes, at most half of all that was published since the last word of a person is
        /// missing, and what waits leaves the published set alone.
        #[test]
        fn no_sequence_of_small_removals_passes_unnoticed(steps in prop::collection::vec(prop::collection::btree_set("[a-h]", 0..8), 1..40)) {
            let (mut confirmed, mut published, mut ever) = (Names::new(), Names::new(), Names::new());
            for next in steps {
                if let Verdict::Passes(set) = judge(&confirmed, &published, &next, None) {
                    ever.extend(next.iter().cloned());
                    prop_assert_eq!(&set, &ever);
                    prop_assert!(published.difference(&next).count() * 2 <= published.len(), "more than half at once");
                    (confirmed, published) = (set, next);
                }
                prop_assert!(ever.difference(&published).count() * 2 <= ever.len());
            }
        }
    }
}
