//! What people may say to a rollout, and what follows at once. Called by the hub's API; `advance` reads the words later.

use super::{Phase, Progress, RingState, Rollout};
use crate::approval::{ONE_OF_PLATFORM, OVERRIDDEN, PLATFORM, counts, override_missing, overrides_once, people};
use crate::word::{Refused, Say, Word};

/// More words than this are refused: a script gone wild must not fill the database. Ending it is always possible.
pub const WORDS: usize = 1_000;

/// Takes a person's word, or says why not.
pub fn hear(rollout: &Rollout, word: Word) -> Result<Rollout, Refused> {
    if !matches!(word.say, Say::Approve { .. }) && word.role != PLATFORM {
        let message =
            format!("only the role {PLATFORM} may {}; {} has the role {}", word.say.verb(), word.who, word.role);
        return Err(Refused::new("RoleNeeded", message));
    }
    if rollout.words.len() >= WORDS && !matches!(word.say, Say::Abort | Say::Rollback) {
        return Err(Refused::new(
            "TooManyWords",
            format!("{WORDS} words were said about this rollout; abort or roll back"),
        ));
    }
    let mut next = rollout.clone();
    let say = match &word.say {
        Say::Rollback => roll_back(&mut next, &word)?,
        // Its clusters keep what they have: it goes on from there.
        Say::Resume if matches!(rollout.phase, Phase::Aborted { .. }) => resume(&mut next)?,
        say if rollout.ended() => return Err(ended(rollout, say)),
        Say::Approve { ring } => approve(rollout, ring.as_deref(), &word)?,
        Say::Override { ring } => overrule(&mut next, ring.as_deref(), &word)?,
        Say::Now => now(rollout)?,
        Say::Pause => pause(&mut next, &word)?,
        Say::Resume => resume(&mut next)?,
        Say::Abort => {
            next.phase = Phase::Aborted { by: word.who.clone(), at: word.at };
            quiet(&mut next);
            Say::Abort
        }
    };
    next.words.push(Word { say, ..word }.about(rollout.created_at));
    Ok(next)
}

fn approve(rollout: &Rollout, named: Option<&str>, word: &Word) -> Result<Say, Refused> {
    if let Phase::Stopped { why, .. } = &rollout.phase {
        let message = format!("it has stopped ({why}): resume, override or roll back");
        return Err(Refused::new("Stopped", message));
    }
    let ring = find(rollout, named)?;
    let rule = rollout.approval(&ring.ring);
    let (rule, said) = match (ring.state, rule) {
        (RingState::Waiting, Some(rule)) => (rule, rollout.words.as_slice()),
        (RingState::Rolling, rule) if ring.empty => {
            (rule.unwrap_or(ONE_OF_PLATFORM), rollout.words.get(ring.heard..).unwrap_or_default())
        }
        (RingState::Waiting, None) => {
            return Err(Refused::new("NothingToApprove", format!("the ring {} needs no approval", ring.ring)));
        }
        (RingState::Rolling, _) => {
            let message = format!("the ring {} has begun and waits for its gate; override it with a reason", ring.ring);
            return Err(Refused::new("NothingToApprove", message));
        }
        (RingState::Passed | RingState::Stopped | RingState::Returned, _) => {
            return Err(Refused::new("NothingToApprove", format!("the ring {} has passed", ring.ring)));
        }
    };
    let authors = [rollout.cause.author.as_str()];
    counts(&rule, word, &authors)?;
    if people(&rule, said, &ring.ring, &authors).contains_key(&word.person.id) {
        let message = format!("{} has approved the ring {} already; the policy counts people", word.who, ring.ring);
        return Err(Refused::new("AlreadyApproved", message));
    }
    Ok(Say::Approve { ring: Some(ring.ring.clone()) })
}

/// The gate of the ring that waits counts as passed; of one that hasn't begun, its approval.
fn overrule(next: &mut Rollout, named: Option<&str>, word: &Word) -> Result<Say, Refused> {
    if word.reason.trim().is_empty() {
        return Err(Refused::new("ReasonNeeded", "an override needs a written reason: it stays in the evidence"));
    }
    let stopped = match &next.phase {
        Phase::Stopped { ring, .. } => Some(ring.clone()),
        _ => None,
    };
    let ring = find(next, named.or(stopped.as_deref()))?.clone();
    let in_turn =
        stopped.as_ref() == Some(&ring.ring) || next.current().is_some_and(|current| current.ring == ring.ring);
    if !in_turn {
        let message = format!("the ring {} isn't waiting; only the ring that waits can be overridden", ring.ring);
        return Err(Refused::new("NotItsTurn", message));
    }
    let needed = next.policy.override_people;
    let about = |say: &Say| matches!(say, Say::Override { ring: Some(named) } if *named == ring.ring);
    let said = next.overrides_of(&ring);
    overrides_once(&said, needed, word, about)?;
    let this = Say::Override { ring: Some(ring.ring.clone()) };
    let said: Vec<Word> = said.into_iter().chain([Word { say: this.clone(), ..word.clone() }]).collect();
    if let Some(half) = override_missing(&said, needed, about) {
        if let Some(progress) = next.rings.iter_mut().find(|progress| progress.ring == ring.ring) {
            progress.waits_for.retain(|why| !why.starts_with(OVERRIDDEN));
            progress.waits_for.push(half);
        }
        return Ok(this);
    }
    if stopped.is_some() {
        start_again(next);
    }
    if let Some(progress) = next.rings.iter_mut().find(|progress| progress.ring == ring.ring) {
        progress.forgive = progress.state.is_new();
    }
    next.accept = true;
    Ok(this)
}

fn now(rollout: &Rollout) -> Result<Say, Refused> {
    if rollout.words.iter().any(|word| word.say == Say::Now) {
        return Err(Refused::new("AlreadySaid", "windows and freezes don't hold it up already"));
    }
    Ok(Say::Now)
}

fn pause(next: &mut Rollout, word: &Word) -> Result<Say, Refused> {
    match &next.phase {
        Phase::Paused { by, .. } => Err(Refused::new("AlreadyPaused", format!("{by} has paused it already"))),
        Phase::Stopped { why, .. } => Err(Refused::new("Stopped", format!("it has stopped already: {why}"))),
        _ => {
            next.phase = Phase::Paused { by: word.who.clone(), at: word.at };
            Ok(Say::Pause)
        }
    }
}

fn resume(next: &mut Rollout) -> Result<Say, Refused> {
    if next.phase == Phase::Active {
        return Err(Refused::new("NothingToResume", "it is neither paused, stopped nor aborted"));
    }
    start_again(next);
    Ok(Say::Resume)
}

fn roll_back(next: &mut Rollout, word: &Word) -> Result<Say, Refused> {
    match &next.phase {
        Phase::Superseded { .. } => return Err(ended(next, &word.say)),
        Phase::RolledBack { why, .. } => {
            return Err(Refused::new("AlreadyRolledBack", format!("it was rolled back already: {why}")));
        }
        _ => {}
    }
    for ring in next.rings.iter_mut().filter(|ring| ring.state.is_new()) {
        ring.state = RingState::Returned;
    }
    quiet(next);
    let why = if word.reason.trim().is_empty() { String::new() } else { format!(": {}", word.reason.trim()) };
    next.phase = Phase::RolledBack { why: format!("by {}{why}", word.who), at: word.at };
    Ok(Say::Rollback)
}

/// Active again; what has failed by now no longer counts against the budget.
fn start_again(next: &mut Rollout) {
    for ring in &mut next.rings {
        if ring.state == RingState::Stopped {
            ring.state = if ring.passed_at.is_some() { RingState::Passed } else { RingState::Rolling };
        }
        ring.forgive = ring.state.is_new();
    }
    quiet(next);
    next.phase = Phase::Active;
}

fn quiet(next: &mut Rollout) {
    for ring in &mut next.rings {
        ring.waits_for.clear();
    }
}

fn find<'a>(rollout: &'a Rollout, named: Option<&str>) -> Result<&'a Progress, Refused> {
    match named {
        Some(name) => {
            rollout.ring(name).ok_or_else(|| Refused::new("NoSuchRing", format!("the rollout has no ring {name}")))
        }
        None => rollout.current().ok_or_else(|| Refused::new("NothingWaits", "every ring has passed")),
    }
}

fn ended(rollout: &Rollout, say: &Say) -> Refused {
    let how = match &rollout.phase {
        Phase::Complete { .. } => "is complete".to_owned(),
        Phase::RolledBack { why, .. } => format!("was rolled back: {why}"),
        Phase::Aborted { by, .. } => format!("was aborted by {by}"),
        Phase::Superseded { by, .. } => {
            return Refused::new("Superseded", format!("superseded by rollout {by}: {} that one", say.verb()));
        }
        Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. } => "goes on".to_owned(),
    };
    Refused::new("Ended", format!("there is nothing to {}: it {how}", say.verb()))
}
