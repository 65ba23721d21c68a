//! Versions of workloads, ordered by SemVer with pre-releases where they can be read so. Called by whoever shows or compares them.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

use semver::Version;

/// `1.0.1-alpha.1` is before `1.0.1`; a leading `v` and build metadata don't matter. What isn't a version comes before all versions,
/// by text in which numbers count as numbers.
pub fn compare(one: &str, other: &str) -> Ordering {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => one.cmp_precedence(&other),
        (None, None) => natural(one, other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

fn parse(text: &str) -> Option<Version> {
    let text = text.trim();
    Version::parse(text.strip_prefix(['v', 'V']).unwrap_or(text)).ok()
}

/// `build-9` is before `build-10`; texts that differ in leading zeros only are ordered by text.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one.chars().peekable(), other.chars().peekable());
    loop {
        let order = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return one.cmp(other),
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let (a, b) = (number(&mut left), number(&mut right));
                a.len().cmp(&b.len()).then(a.cmp(&b))
            }
            (a, b) => {
                left.next();
                right.next();
                a.cmp(&b)
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits from here on, without leading zeros: of any length, so never parsed.
fn number(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut digits = String::new();
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        if digit != '0' || !digits.is_empty() {
            digits.push(digit);
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_follow_semver_with_pre_releases() {
        let ordered = [
            "",
            "build-9",
            "build-10",
            "latest",
            "0.9.0",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1-alpha.1",
            "v1.0.1",
            "1.2.0",
            "1.10.0",
        ];
        for (place, one) in ordered.iter().enumerate() {
            for (other_place, other) in ordered.iter().enumerate() {
                assert_eq!(compare(one, other), place.cmp(&other_place), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_leading_v_and_build_metadata_do_not_matter() {
        assert_eq!(compare("v1.2.3", "1.2.3"), Ordering::Equal);
        assert_eq!(compare("1.2.3+build.7", "V1.2.3+other"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn the_order_is_total(mut texts in proptest::collection::vec("v?[0-9a.+-]{0,8}", 3)) {
            texts.sort_by(|one, other| compare(one, other));
            prop_assert_ne!(compare(&texts[0], &texts[1]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[1], &texts[2]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[0], &texts[2]), Ordering::Greater);
            prop_assert_eq!(compare(&texts[0], &texts[2]), compare(&texts[2], &texts[0]).reverse());
        }
    }
}
