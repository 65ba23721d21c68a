//! How many lines of history a cluster may write: people read them, and one host mustn't write so many that those of the others
//! are lost among them. Used for what it holds and for what its documents tell.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kedge_model::wire::ClusterId;

/// Lines per writer, forgotten with time.
#[derive(Debug)]
pub struct Pace {
    /// So many at once.
    allowed: f64,
    /// One is forgotten in this time.
    forget_one: Duration,
    by_writer: Mutex<HashMap<ClusterId, Spent>>,
}

/// What a writer may write of what it wanted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub lines: usize,
    /// What was left out until now; more than 0 is one more line that says so.
    pub untold: u64,
}

#[derive(Clone, Copy, Debug)]
struct Spent {
    count: f64,
    at: Instant,
    /// Left out, and not said yet.
    untold: u64,
}

/// Writers that are remembered; members only, since each has signed.
const WRITERS: usize = 20_000;

impl Pace {
    pub fn new(allowed: u32, forget_one: Duration) -> Pace {
        Pace { allowed: f64::from(allowed), forget_one, by_writer: Mutex::default() }
    }

    /// Takes so many lines; else the seconds to wait.
    pub fn take(&self, writer: ClusterId, lines: usize, now: Instant) -> Result<(), u64> {
        let wanted = (lines as f64).clamp(1.0, self.allowed);
        self.with(writer, now, |spent| {
            let over = spent.count + wanted - self.allowed;
            if over > 0.0 {
                return Err((over * self.forget_one.as_secs_f64()).ceil() as u64);
            }
            spent.count += wanted;
            Ok(())
        })
    }

    /// Takes as many lines as are left: what is told can't wait. What is left out is counted until there is a line for the number.
    pub fn take_some(&self, writer: ClusterId, lines: usize, now: Instant) -> Granted {
        if lines == 0 {
            return Granted { lines: 0, untold: 0 };
        }
        self.with(writer, now, |spent| {
            let left = (self.allowed - spent.count).max(0.0) as usize;
            if spent.untold == 0 && lines <= left {
                spent.count += lines as f64;
                return Granted { lines, untold: 0 };
            }
            let told = lines.min(left.saturating_sub(1));
            spent.untold = spent.untold.saturating_add((lines - told) as u64);
            if left == 0 {
                return Granted { lines: 0, untold: 0 };
            }
            spent.count += (told + 1) as f64;
            Granted { lines: told, untold: std::mem::take(&mut spent.untold) }
        })
    }

    fn with<T>(&self, writer: ClusterId, now: Instant, take: impl FnOnce(&mut Spent) -> T) -> T {
        let mut by_writer = self.by_writer.lock().unwrap_or_else(PoisonError::into_inner);
        if by_writer.len() >= WRITERS {
            by_writer.retain(|_, spent| self.left_of(spent, now) > 0.0);
        }
        let spent = by_writer.entry(writer).or_insert(Spent { count: 0.0, at: now, untold: 0 });
        spent.count = self.left_of(spent, now);
        spent.at = now;
        take(spent)
    }

    /// What isn't forgotten yet.
    fn left_of(&self, spent: &Spent, now: Instant) -> f64 {
        let forgotten = now.saturating_duration_since(spent.at).as_secs_f64() / self.forget_one.as_secs_f64();
        (spent.count - forgotten).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_changes_its_holds_all_the_time_waits_and_others_do_not() {
        let pace = Pace::new(128, Duration::from_secs(20));
        let (one, other) = (ClusterId::of_public_key(&[1; 32]), ClusterId::of_public_key(&[2; 32]));
        let now = Instant::now();
        let told: usize = (0..150).filter(|_| pace.take(one, 60, now).is_ok()).count() * 60;
        assert_eq!(told, 120);
        assert!(pace.take(one, 60, now).is_err_and(|seconds| seconds > 60));
        assert_eq!(pace.take(other, 1, now), Ok(()));
        assert_eq!(pace.take(one, 1, now + Duration::from_secs(60)), Ok(()), "it is forgiven with time");
    }

    #[test]
    fn what_is_left_out_is_counted_and_said_once() {
        let pace = Pace::new(10, Duration::from_secs(10));
        let cluster = ClusterId::of_public_key(&[1; 32]);
        let now = Instant::now();
        let some = |lines, seconds| {
            let granted = pace.take_some(cluster, lines, now + Duration::from_secs(seconds));
            (granted.lines, granted.untold)
        };
        assert_eq!(some(4, 0), (4, 0));
        assert_eq!(some(9, 0), (5, 4), "and the sixth says so");
        assert_eq!(some(3_900, 0), (0, 0));
        assert_eq!(some(0, 60), (0, 0));
        assert_eq!(some(2, 60), (2, 3_900));
        assert_eq!(some(2, 60), (2, 0));
    }
}
