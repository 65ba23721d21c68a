//! What people pushed: commits of main, of the environments' own branches and of the applications' sources, and what each
//! environment's branch names. Git never forgets and never dies.

use kedge_model::wire::Timestamp;
use kedge_rollout::{MainCommit, Named};

use crate::chance::{Chance, mix_all};
use crate::plan::Plan;

#[derive(Clone, Debug, Default)]
pub struct Git {
    pub main: Vec<Commit>,
    pub own: Vec<Vec<Commit>>,
    pub sources: Vec<Vec<Commit>>,
    pub named: Vec<Option<Named>>,
}

#[derive(Clone, Debug)]
pub struct Commit {
    /// It fails on so many of a thousand clusters.
    pub bad: u64,
    /// It fails the first time only.
    pub passing: bool,
    /// It puts something into quarantine.
    pub quarantines: bool,
    /// By assignment.
    pub touches: Vec<bool>,
    pub author: usize,
}

/// People write so many own commits to an environment's branch at most.
pub const OWN: u32 = 1_000;

impl Git {
    pub fn new(plan: &Plan) -> Git {
        let first = Commit::good(plan);
        let environments = plan.environments();
        let named = Named { commit: name(0), by: "person-0".to_owned(), at: Timestamp(0), why: String::new() };
        Git {
            main: vec![first.clone()],
            own: vec![Vec::new(); environments],
            sources: vec![vec![first]; plan.workloads],
            named: vec![Some(named); environments],
        }
    }

    /// The newest first, as `promote` wants them.
    pub fn log(&self) -> Vec<MainCommit> {
        let commits = self.main.iter().enumerate().rev();
        commits
            .map(|(number, commit)| MainCommit {
                commit: name(number),
                subject: String::new(),
                author: format!("person-{} <p{}@example.com>", commit.author, commit.author),
            })
            .collect()
    }

    /// What an environment's platform files hold for each assignment, on this commit of main.
    pub fn head(&self, environment: usize, main: usize, assignments: usize) -> Vec<u32> {
        (0..assignments)
            .map(|place| {
                let last = self.main[..=main].iter().rposition(|commit| commit.touches[place]).unwrap_or_default();
                let own = self.own[environment].iter().filter(|commit| commit.touches[place]).count();
                u32::try_from(last).unwrap_or_default() * OWN + u32::try_from(own).unwrap_or_default()
            })
            .collect()
    }

    /// Whether content of a part (0 the platform's, 1 the application's) fails on a cluster, and whether only once.
    pub fn fails(
        &self,
        plan: &Plan,
        environment: usize,
        assignment: usize,
        content: [u32; 2],
        cluster: usize,
    ) -> Option<bool> {
        let work = plan.assignments[assignment].1;
        let main = self.main.get((content[0] / OWN) as usize);
        let own = (content[0] % OWN).checked_sub(1).and_then(|number| {
            self.own[environment].iter().filter(|commit| commit.touches[assignment]).nth(number as usize)
        });
        let source = self.sources[work].get(content[1] as usize);
        [main, own, source].into_iter().flatten().zip(0..).find_map(|(commit, kind)| {
            let drawn = mix_all(&[plan.seed, kind, u64::from(content[usize::from(kind == 2)]), cluster as u64]);
            (drawn % 1_000 < commit.bad).then_some(commit.passing)
        })
    }
}

impl Commit {
    /// Touches everything and harms nobody.
    pub fn good(plan: &Plan) -> Commit {
        let touches = vec![true; plan.assignments.len()];
        Commit { bad: 0, passing: false, quarantines: false, touches, author: 0 }
    }

    pub fn draw(plan: &Plan, chance: &mut Chance) -> Commit {
        let bad = if chance.permille(plan.faults.bad) { *chance.pick(&[20, 100, 400, 1_000]).unwrap_or(&0) } else { 0 };
        Commit {
            bad,
            passing: chance.permille(300),
            quarantines: chance.permille(plan.faults.bad / 8),
            touches: plan.assignments.iter().map(|_| chance.permille(500)).collect(),
            author: chance.below(4),
        }
    }
}

/// Of a commit of main.
pub fn name(number: usize) -> String {
    format!("m{number}")
}

pub fn number(name: &str) -> usize {
    name.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
