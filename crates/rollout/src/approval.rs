//! People who agree: whose word counts towards an approval, each once. Called by `advance`, `promote` and whoever takes their words.

use std::collections::BTreeSet;

use kedge_model::kinds::{Approval, ApproverRole};

use crate::word::{Refused, Say, Word};

/// The role of those who may say anything.
pub const PLATFORM: &str = "platform";

/// Begins the sentence that says which approval is missing.
const APPROVED_BY: &str = "approved by ";

/// Without a rule of its own, one person of the platform says that nothing to observe is fine.
pub const ONE_OF_PLATFORM: Approval = Approval { people: 1, role: ApproverRole::Platform, not_author: false };

/// The rule for what the platform team changed: no application team has a word in that, so the platform team's counts.
pub fn of_platform(rule: &Approval) -> Approval {
    Approval { role: ApproverRole::Platform, ..rule.clone() }
}

/// How far an approval is: names of those who count, sorted.
pub fn people(approval: &Approval, words: &[Word], ring: &str, authors: &[&str]) -> BTreeSet<String> {
    words
        .iter()
        .filter(|word| matches!(&word.say, Say::Approve { ring: Some(named) } if named == ring))
        .filter(|word| counts(approval, word, authors).is_ok())
        .map(|word| word.who.trim().to_lowercase())
        .collect()
}

/// What is missing, as a sentence; none: it is approved.
pub fn missing(approval: &Approval, words: &[Word], ring: &str, authors: &[&str]) -> Option<String> {
    let given = people(approval, words, ring, authors);
    let needed = approval.people as usize;
    if given.len() >= needed {
        return None;
    }
    let by: Vec<&str> = given.iter().map(String::as_str).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    let not = if approval.not_author { ", not its author" } else { "" };
    Some(format!("{APPROVED_BY}{} of {needed} of the role {}{not}{by}", given.len(), role(approval.role)))
}

/// Whether a reason to wait is that people haven't approved.
pub fn asks_people(why: &str) -> bool {
    why.contains(APPROVED_BY)
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
    if approval.not_author && authors.iter().any(|author| is_author(author, &word.who)) {
        return Err(Refused::new(
            "OwnChange",
            format!("{} wrote the change; the policy asks for somebody else's approval", word.who),
        ));
    }
    Ok(())
}

/// Whether the author `Name <mail>` and the name of a token are the same person: by name or by mail, in any case.
pub fn is_author(author: &str, who: &str) -> bool {
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

    fn word(who: &str, role: &str) -> Word {
        Word {
            who: who.to_owned(),
            role: role.to_owned(),
            at: Timestamp(1),
            reason: String::new(),
            say: Say::Approve { ring: Some("prod".to_owned()) },
        }
    }

    #[test]
    fn an_author_is_known_by_name_or_mail_in_any_case() {
        let author = "Anna Berg <anna@example.com>";
        for same in ["anna berg", "ANNA@example.com", "Anna Berg <other@example.com>", "anna <anna@example.com>"] {
            assert!(is_author(author, same), "{same}");
        }
        for other in ["anna", "", "berg", "ann@example.com", " "] {
            assert!(!is_author(author, other), "{other}");
        }
        assert!(is_author("robot", "Robot"));
        assert!(!is_author("<>", ""));
    }

    #[test]
    fn people_count_once_and_only_in_their_role() {
        let two = Approval { people: 2, role: ApproverRole::Platform, not_author: true };
        let mut words = vec![word("anna", "platform"), word("Anna", "platform"), word("ben", "application")];
        assert_eq!(
            missing(&two, &words, "prod", &["Carl <c@example.com>"]).as_deref(),
            Some("approved by 1 of 2 of the role platform, not its author (anna)")
        );
        words.push(word("carl", "platform"));
        assert!(missing(&two, &words, "prod", &["Carl <c@example.com>"]).is_some_and(|why| asks_people(&why)));
        assert!(!asks_people("a window"));
        assert_eq!(missing(&two, &words, "prod", &["Dora <d@example.com>"]), None);
        assert!(missing(&two, &words, "other", &[]).is_some());
    }
}
