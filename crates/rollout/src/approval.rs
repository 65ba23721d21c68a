//! People who agree: whose word counts towards an approval or an override, each person once whatever the tokens and names. Called by
//! `advance`, `promote` and whoever takes their words.

use std::collections::BTreeMap;

use kedge_model::kinds::{Approval, ApproverRole};

use crate::calendar::is_of_calendar;
use crate::word::{Refused, Say, Word};

/// The role of those who may say anything.
pub const PLATFORM: &str = "platform";

/// In the sentence that says which approval is missing.
const FROM: &str = " from the ";
/// How the sentence about an override begins that isn't whole.
pub(crate) const OVERRIDDEN: &str = "overridden by";

/// Without a rule of its own, one person of the platform says that nothing to observe is fine.
pub const ONE_OF_PLATFORM: Approval = Approval { people: 1, role: ApproverRole::Platform, not_author: false };

/// The rule for what the platform team changed: no application team has a word in that, so the platform team's counts.
pub fn of_platform(rule: &Approval) -> Approval {
    Approval { role: ApproverRole::Platform, ..rule.clone() }
}

/// How far an approval is: those who count, by their ids, with their names.
pub fn people(approval: &Approval, words: &[Word], ring: &str, authors: &[&str]) -> BTreeMap<String, String> {
    words
        .iter()
        .filter(|word| matches!(&word.say, Say::Approve { ring: Some(named) } if named == ring))
        .filter(|word| counts(approval, word, authors).is_ok())
        .map(|word| (word.person.id.clone(), word.who.clone()))
        .collect()
}

/// Whether enough persons say that it counts as passed.
pub fn overridden(words: &[Word], needed: u32, about: impl Fn(&Say) -> bool) -> bool {
    let given = overriders(words, about).len();
    given > 0 && given >= needed as usize
}

/// What an override that was begun still lacks, as a sentence; none: nobody began one, or it is whole.
pub fn override_missing(words: &[Word], needed: u32, about: impl Fn(&Say) -> bool) -> Option<String> {
    let given = overriders(words, about);
    let lacks = !given.is_empty() && given.len() < needed as usize;
    lacks.then(|| format!("{OVERRIDDEN} {} of {needed} persons ({})", given.len(), names(&given)))
}

/// Refuses the second override of the same person where the policy asks for several.
pub(crate) fn overrides_once(
    words: &[Word],
    needed: u32,
    word: &Word,
    about: impl Fn(&Say) -> bool,
) -> Result<(), Refused> {
    if needed > 1 && overriders(words, about).contains_key(&word.speaker()) {
        let message = format!("{} has overridden it already; the policy asks for {needed} persons", word.who);
        return Err(Refused::new("AlreadyOverridden", message));
    }
    Ok(())
}

fn overriders(words: &[Word], about: impl Fn(&Say) -> bool) -> BTreeMap<String, String> {
    words.iter().filter(|word| about(&word.say)).map(|word| (word.speaker(), word.who.clone())).collect()
}

fn names(people: &BTreeMap<String, String>) -> String {
    people.values().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// What is missing, as a sentence; none: it is approved.
pub fn missing(approval: &Approval, words: &[Word], ring: &str, authors: &[&str]) -> Option<String> {
    let given = people(approval, words, ring, authors);
    let needed = approval.people as usize;
    if given.len() >= needed {
        return None;
    }
    let by = match given.is_empty() {
        true => String::new(),
        false => format!("; {}", approvals_given(given.len(), needed, given.values().map(String::as_str))),
    };
    let more = if given.is_empty() { "" } else { "more " };
    let not = if approval.not_author { ", not from its author" } else { "" };
    let lacks = needed - given.len();
    let approvals = if lacks == 1 { "approval" } else { "approvals" };
    Some(format!("needs {lacks} {more}{approvals}{FROM}{} team{not}{by}", role(approval.role)))
}

/// `1 of 2 approvals given (anna)`
pub fn approvals_given<'a>(given: usize, needed: usize, people: impl Iterator<Item = &'a str>) -> String {
    let people: Vec<&str> = people.collect();
    let named = if people.is_empty() { String::new() } else { format!(" ({})", people.join(", ")) };
    format!("{given} of {needed} approvals given{named}")
}

/// Whether nothing but people and the calendar hold it up: who should approve can do so before the time has come.
pub fn can_approve(waits_for: &[String]) -> bool {
    let fits = |why: &String| asks_people(why) || is_of_calendar(why) || why.starts_with(OVERRIDDEN);
    waits_for.iter().any(|why| asks_people(why)) && waits_for.iter().all(fits)
}

/// Whether a reason to wait is that people haven't approved.
pub fn asks_people(why: &str) -> bool {
    why.contains("needs ") && why.contains(" approval") && why.contains(FROM)
}

/// Whether this word may count at all.
pub fn counts(approval: &Approval, word: &Word, authors: &[&str]) -> Result<(), Refused> {
    let wanted = role(approval.role);
    if word.role != wanted {
        return Err(Refused::new(
            "RoleNeeded",
            format!("this approval is for the role {wanted}; {} has the role {}", word.who, word.role),
        ));
    }
    counts_as_person(approval.not_author, word, authors, "the change")
}

/// The same without the role.
pub fn counts_as_person(not_author: bool, word: &Word, authors: &[&str], what: &str) -> Result<(), Refused> {
    if word.person.id.is_empty() {
        let message = format!("{} approved before the hub knew persons: approve it again", word.who);
        return Err(Refused::new("NoPerson", message));
    }
    if !not_author {
        return Ok(());
    }
    if authors.iter().any(|author| is_author(author, &word.who, &word.person.emails)) {
        return Err(Refused::new(
            "OwnChange",
            format!("{} wrote {what}; the policy asks for somebody else's approval", word.who),
        ));
    }
    if authors.iter().any(|author| is_author(author, "", &word.person.former)) {
        return Err(Refused::new(
            "OwnChange",
            format!(
                "{} wrote {what}, under a name or an address that was changed since; the policy asks for somebody else's approval",
                word.who
            ),
        ));
    }
    // Who isn't known by an address can't be told from the author.
    if word.person.emails.is_empty() {
        return Err(Refused::new(
            "NoEmail",
            format!(
                "the policy asks for an approval of somebody who didn't write {what}, and the hub knows no e-mail address of {}: \
                 an administrator sets it with `kedge person set`",
                word.who
            ),
        ));
    }
    Ok(())
}

/// Whether the author `Name <mail>` is this person: by one of its addresses, or by its name, in any case.
pub fn is_author(author: &str, who: &str, emails: &[String]) -> bool {
    emails.iter().any(|email| is_named(author, email)) || is_named(author, who)
}

fn is_named(author: &str, who: &str) -> bool {
    let who = who.trim().to_lowercase();
    let author = author.trim().to_lowercase();
    if who.is_empty() {
        return false;
    }
    let (name, mail) = match author.split_once('<') {
        Some((name, mail)) => (name.trim(), mail.trim_end_matches('>').trim()),
        None => (author.as_str(), ""),
    };
    let (who_name, who_mail) = match who.split_once('<') {
        Some((name, mail)) => (name.trim(), mail.trim_end_matches('>').trim()),
        None => (who.as_str(), who.as_str()),
    };
    (!name.is_empty() && name == who_name) || (!mail.is_empty() && mail == who_mail) || author == who
}

pub fn role(role: ApproverRole) -> &'static str {
    match role {
        ApproverRole::Platform => PLATFORM,
        ApproverRole::Application => "application",
    }
}

#[cfg(test)]
mod tests {
    use kedge_model::wire::Timestamp;

    use super::*;
    use crate::word::Person;

    fn word(id: &str, who: &str, role: &str) -> Word {
        let email = format!("{id}@example.com");
        Word {
            who: who.to_owned(),
            person: Person::new(id, &[&email]),
            role: role.to_owned(),
            at: Timestamp(1),
            reason: String::new(),
            say: Say::Approve { ring: Some("prod".to_owned()) },
            new_token: false,
        }
    }

    #[test]
    fn an_author_is_known_by_name_or_mail_in_any_case() {
        let author = "Anna Berg <anna@example.com>";
        for same in ["anna berg", "ANNA@example.com", "Anna Berg <other@example.com>", "anna <anna@example.com>"] {
            assert!(is_author(author, same, &[]), "{same}");
            assert!(is_author(author, "", &[same.to_owned()]), "{same}");
        }
        for other in ["anna", "", "berg", "ann@example.com", " "] {
            assert!(!is_author(author, other, &[]), "{other}");
        }
        assert!(is_author("robot", "Robot", &[]));
        assert!(!is_author("<>", "", &[]));
    }

    const TWO: Approval = Approval { people: 2, role: ApproverRole::Platform, not_author: true };

    #[test]
    fn people_count_once_and_only_in_their_role() {
        let mut words = vec![word("anna", "Anna", "platform"), word("ben", "ben", "application")];
        assert_eq!(
            missing(&TWO, &words, "prod", &["Carl <carl@example.com>"]).as_deref(),
            Some("needs 1 more approval from the platform team, not from its author; 1 of 2 approvals given (Anna)")
        );
        words.push(word("carl", "carl", "platform"));
        assert!(missing(&TWO, &words, "prod", &["Carl <carl@example.com>"]).is_some_and(|why| asks_people(&why)));
        assert!(!asks_people("a window"));
        assert_eq!(missing(&TWO, &words, "prod", &["Dora <d@example.com>"]), None);
        assert!(missing(&TWO, &words, "other", &[]).is_some());
    }

    #[test]
    fn an_approval_can_be_given_before_the_time_has_come_but_not_before_its_turn() {
        let waits = |why: &[&str]| can_approve(&why.iter().map(|why| (*why).to_owned()).collect::<Vec<_>>());
        let people = "needs 2 approvals from the platform team";
        assert!(
            waits(&[people]) && waits(&[people, "frozen from 2026-12-20 to 2027-01-03; it opens 2027-01-03T23:00:00Z"])
        );
        assert!(waits(&[people, "outside its time windows"]));
        assert!(!waits(&[]) && !waits(&["frozen from 2026-12-20 to 2027-01-03"]));
        assert!(!waits(&[people, "the ring canary before it"]));
    }

    #[test]
    fn one_person_with_two_names_is_one_and_two_of_one_name_are_two() {
        let names = [word("anna", "Anna", "platform"), word("anna", "Totally Else", "platform")];
        assert!(missing(&TWO, &names, "prod", &[]).is_some());
        let namesakes = [word("anna", "Anna", "platform"), word("other", "Anna", "platform")];
        assert_eq!(missing(&TWO, &namesakes, "prod", &[]), None);
    }

    #[test]
    fn an_author_under_another_name_is_known_by_the_address() {
        let approver = word("anna", "release robot", "platform");
        let refused = counts(&TWO, &approver, &["A. Berg <anna@example.com>"]).unwrap_err();
        assert_eq!(refused.reason, "OwnChange");
        let mut unknown = approver.clone();
        unknown.person.emails.clear();
        assert_eq!(counts(&TWO, &unknown, &["Carl <carl@example.com>"]).unwrap_err().reason, "NoEmail");
        assert!(counts(&Approval { not_author: false, ..TWO }, &unknown, &["Anna <anna@example.com>"]).is_ok());
    }

    #[test]
    fn an_author_whose_address_or_name_was_changed_is_still_the_author() {
        let mut approver = word("anna", "anna", "platform");
        approver.person.former = vec!["n@b.c".to_owned(), "Old Name".to_owned()];
        for own in ["N <n@b.c>", "old name <x@y.z>"] {
            let refused = counts(&TWO, &approver, &[own]).unwrap_err();
            assert_eq!(refused.reason, "OwnChange");
            assert!(refused.message.contains("changed since"), "{refused}");
        }
        assert!(counts(&TWO, &approver, &["Carl <carl@example.com>"]).is_ok());
        assert!(counts(&Approval { not_author: false, ..TWO }, &approver, &["N <n@b.c>"]).is_ok());
        // By what somebody was known nobody is told apart now.
        approver.person.emails.clear();
        assert_eq!(counts(&TWO, &approver, &["Carl <carl@example.com>"]).unwrap_err().reason, "NoEmail");
    }

    #[test]
    fn a_word_from_before_persons_approves_nothing() {
        let mut old = word("", "anna", "platform");
        old.person = Person::default();
        assert_eq!(counts(&ONE_OF_PLATFORM, &old, &[]).unwrap_err().reason, "NoPerson");
        assert!(missing(&ONE_OF_PLATFORM, &[old], "prod", &[]).is_some());
    }

    #[test]
    fn an_override_of_two_needs_two_persons() {
        let over = |id: &str, who: &str| Word { say: Say::Override { ring: None }, ..word(id, who, "platform") };
        let any = |say: &Say| matches!(say, Say::Override { .. });
        let twice = [over("anna", "anna"), over("anna", "Anna the second")];
        assert!(overridden(&twice, 1, any) && !overridden(&twice, 2, any));
        assert_eq!(overrides_once(&twice, 2, &twice[0], any).unwrap_err().reason, "AlreadyOverridden");
        assert!(override_missing(&twice, 2, any).unwrap().starts_with("overridden by 1 of 2 persons"));
        let two = [over("anna", "anna"), over("ben", "ben")];
        assert!(overridden(&two, 2, any) && override_missing(&two, 2, any).is_none());
        assert!(!overridden(&[], 0, any));
    }
}
