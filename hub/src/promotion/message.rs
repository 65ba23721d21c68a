//! What the hub's commit of a promotion says: which commit of main, what it is, who agreed, what was skipped. Pure.

use std::fmt::Write as _;

use kedge_rollout::{Promotion, Say};

use super::facts::line;
use super::statuses::short;

/// Skipped commits that a message names; the rest is a number.
const NAMED: usize = 20;

/// A commit's whole message; its first line is a pull request's title.
pub fn commit(environment: &str, promotion: &Promotion, after: &[String]) -> String {
    let subject = if promotion.subject.is_empty() { "(no subject)" } else { promotion.subject.as_str() };
    let mut what = format!("{}\n", line(subject));
    if !promotion.author.is_empty() {
        let _ = writeln!(what, "by {}", line(&promotion.author));
    }
    let mut why = String::new();
    // Whoever overrode is named below.
    if !after.is_empty() && !promotion.overridden_before(1) {
        let _ = writeln!(why, "Passed: {}", after.join(", "));
    }
    for word in &promotion.words {
        let verb = match &word.say {
            Say::Approve { .. } => "Approved",
            Say::Override { .. } => "Overridden",
            Say::Now => "Let in at once",
            _ => continue,
        };
        let _ = write!(why, "{verb} by: {}", line(&word.who));
        match word.reason.trim() {
            "" => why.push('\n'),
            reason => _ = writeln!(why, " ({})", line(reason)),
        }
    }
    if !promotion.skipped.is_empty() {
        let shown: Vec<&str> = promotion.skipped.iter().take(NAMED).map(|commit| short(commit)).collect();
        let more = match promotion.skipped.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(why, "Skipped: {}{more}", shown.join(", "));
    }
    if !why.is_empty() {
        why.push('\n');
    }
    format!(
        "Promote main {} to {environment}\n\n{what}\n{why}Kedge-Promotion: {environment}\nKedge-Main-Commit: {}\n",
        short(&promotion.commit),
        promotion.commit
    )
}

#[cfg(test)]
mod tests {
    use kedge_model::wire::Timestamp;
    use kedge_rollout::{Person, PromotionPhase, Word};

    use super::*;

    #[test]
    fn a_message_says_what_who_and_what_was_skipped() {
        let word = |who: &str, say, reason: &str| Word {
            who: who.to_owned(),
            person: Person::new(who, &[]),
            role: "platform".to_owned(),
            at: Timestamp(0),
            reason: reason.to_owned(),
            say,
            new_token: false,
        };
        let promotion: Promotion = serde_json::from_value(serde_json::json!({
            "commit": "abcdef1234abcdef1234abcdef1234abcdef1234",
            "subject": "Raise the\nvalue",
            "author": "Ann <ann@example.org>",
            "phase": PromotionPhase::Entered,
            "createdAt": Timestamp(0),
            "words": [word("bob", Say::Approve { ring: None }, "looks good\r\n")],
            "skipped": ["1111111111", "2222222222"],
            "heard": 1,
        }))
        .unwrap();
        let told = commit("stage", &promotion, &["dev".to_owned()]);
        assert_eq!(
            told,
            "Promote main abcdef1 to stage\n\nRaise thevalue\nby Ann <ann@example.org>\n\nPassed: dev\n\
             Approved by: bob (looks good)\nSkipped: 1111111, 2222222\n\nKedge-Promotion: stage\n\
             Kedge-Main-Commit: abcdef1234abcdef1234abcdef1234abcdef1234\n"
        );
        let overridden = Promotion { words: vec![word("bob", Say::Override { ring: None }, "urgent")], ..promotion };
        let told = commit("stage", &overridden, &["dev".to_owned()]);
        assert!(told.contains("Overridden by: bob (urgent)") && !told.contains("Passed"), "{told}");
    }
}
