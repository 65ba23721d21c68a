//! The order of Debian's versions (`epoch:upstream-revision`), as the policy manual defines it. The resolution of a change asks it
//! whether something would be downgraded.

use std::cmp::Ordering;

/// Which of two versions is older.
pub fn compare(one: &str, other: &str) -> Ordering {
    let ((epoch, upstream, revision), (other_epoch, other_upstream, other_revision)) = (split(one), split(other));
    compare_numbers(epoch, other_epoch)
        .then_with(|| compare_parts(upstream, other_upstream))
        .then_with(|| compare_parts(revision, other_revision))
}

/// Whether a string can be a version: what may be given to apt behind `name=`.
pub fn is_version(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".+-:~".contains(&byte);
    text.len() <= 256 && text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(allowed)
}

fn split(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// By turns a part without digits, where `~` is before the end and letters are before the rest, and a number.
fn compare_parts(mut one: &str, mut other: &str) -> Ordering {
    while !one.is_empty() || !other.is_empty() {
        let ((text, rest), (other_text, other_rest)) = (take(one, false), take(other, false));
        let longest = text.len().max(other_text.len());
        for at in 0..longest {
            let order = weight(text.as_bytes().get(at)).cmp(&weight(other_text.as_bytes().get(at)));
            if order != Ordering::Equal {
                return order;
            }
        }
        let ((number, rest), (other_number, other_rest)) = (take(rest, true), take(other_rest, true));
        let order = compare_numbers(number, other_number);
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
    Ordering::Equal
}

fn take(text: &str, digits: bool) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

/// Numbers of any length.
fn compare_numbers(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

fn weight(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(*letter),
        Some(other) => i32::from(*other) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_are_ordered_as_the_policy_says() {
        let ascending = [
            "0~~",
            "0~~a",
            "0~",
            "0",
            "0.9",
            "1.0~rc1-1",
            "1.0",
            "1.0-0.1",
            "1.0-1~bpo12+1",
            "1.0-1",
            "1.0-1+b1",
            "1.0a",
            "1.0+dfsg",
            "1.2",
            "1.10",
            "1:0.1",
            "2:0",
        ];
        for (at, pair) in ascending.windows(2).enumerate() {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{at}: {pair:?}");
        }
        assert_eq!(compare("0:1.0-0", "1.0"), Ordering::Equal);
        assert_eq!(compare("1.00", "1.0"), Ordering::Equal);
    }

    #[test]
    fn an_option_is_no_version() {
        assert!(is_version("1:2.3~rc1+dfsg-4"));
        for wrong in ["", "-y", "1 2", "1=2", "a/b", "~1"] {
            assert!(!is_version(wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn order_is_total(one in "[0-9a-z.+~:-]{0,10}", two in "[0-9a-z.+~:-]{0,10}", three in "[0-9a-z.+~:-]{0,10}") {
            prop_assert_eq!(compare(&one, &two), compare(&two, &one).reverse());
            if compare(&one, &two) != Ordering::Greater && compare(&two, &three) != Ordering::Greater {
                prop_assert_ne!(compare(&one, &three), Ordering::Greater);
            }
        }

        #[test]
        fn any_text_is_compared_without_panic(one in ".{0,20}", two in ".{0,20}") {
            _ = compare(&one, &two);
        }
    }
}
