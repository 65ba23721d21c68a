//! Makes Git follow what was decided: the environment's branch names the commit that was let in, by a push or, where the
//! branch takes none, by a pull request. Called by a pass, again and again; a failure of one environment holds up no other.

use std::collections::BTreeMap;

use kedge_hub_types::platform::Environment;
use kedge_model::kinds::Promoter;
use kedge_rollout::{Chain, Standing};

use super::branches::{At, BranchError, Edit, Wrote};
use super::facts::{Base, Branch};
use super::request::{Ask, AskError, Asked};
use super::{PassError, PromotionController, message};
use crate::platform::base;
use crate::store::Term;
use crate::store::promotion::{PromotionRow, PromotionSave};

/// What is left to do for an environment.
enum Lacks {
    Nothing,
    /// Its branch shall name the current commit.
    Record,
    /// Only a person can.
    Person(String),
}

impl PromotionController {
    /// Brings every branch to name its current commit. Gives the rows as they are then.
    pub(super) async fn follow(
        &self,
        term: Term,
        chain: &Chain,
        mut rows: BTreeMap<String, PromotionRow>,
        environments: &BTreeMap<String, Environment>,
        branches: BTreeMap<String, Branch>,
    ) -> Result<BTreeMap<String, PromotionRow>, PassError> {
        let mut save = PromotionSave::default();
        let mut moved = false;
        for (name, standing) in &chain.environments {
            let Some(row) = rows.get_mut(name) else { continue };
            let before = row.clone();
            match (environments.get(name), branches.get(name)) {
                (Some(environment), Some(branch)) => {
                    self.follow_one(term, chain, environment, standing, branch, row).await?;
                }
                (None, _) => row.trouble = Some(format!("there is no Environment {name} below `.environments/`")),
                (_, None) => row.trouble = Some("its branch can't be fetched".to_owned()),
            }
            if *row != before {
                moved = true;
                if let Some(trouble) = row.trouble.as_ref().filter(|trouble| before.trouble.as_ref() != Some(trouble)) {
                    tracing::warn!(environment = name, trouble, "the environment's branch doesn't follow");
                }
                save.rows.insert(name.clone(), row.clone());
            }
        }
        self.store.save_promotions(term, &save).await?;
        if moved {
            self.moved.send_modify(|count| *count += 1);
        }
        Ok(rows)
    }

    async fn follow_one(
        &self,
        term: Term,
        chain: &Chain,
        environment: &Environment,
        standing: &Standing,
        branch: &Branch,
        row: &mut PromotionRow,
    ) -> Result<(), PassError> {
        let Some(current) = &standing.current else { return Ok(()) };
        let at = At { repo: &environment.control_plane.repo, branch: environment.control_plane.branch.trim() };
        if let Base::Here(written) = &branch.base
            && written.commit().as_ref() == Some(current)
        {
            if row.in_force.as_ref() != Some(current) || row.trouble.is_some() {
                self.branches.forget_request(&self.store, term, &environment.name, at.repo).await?;
            }
            (row.in_force, row.trouble) = (Some(current.clone()), None);
            return Ok(());
        }
        match lacks(chain, standing, branch, row) {
            Lacks::Nothing => row.trouble = None,
            Lacks::Person(what) => row.trouble = Some(what),
            Lacks::Record => {
                let edit = Edit::Base {
                    path: environment.control_plane.path.clone(),
                    control_plane: self.written_as(branch),
                    main: self.main.clone(),
                    commit: current.clone(),
                };
                let rules = chain.policy.environment(&environment.name);
                let after = rules.map(|rules| rules.after.as_slice()).unwrap_or_default();
                let told =
                    standing.promotion(current).map(|promotion| message::commit(&environment.name, promotion, after));
                let text = told.unwrap_or_else(|| format!("Promote main {current} to {}\n", environment.name));
                match self.record(term, environment, at, &edit, current, &text).await {
                    Ok(None) => (row.in_force, row.trouble) = (Some(current.clone()), None),
                    Ok(Some(waits)) => row.trouble = Some(waits),
                    Err(error) => {
                        let hint = match &error {
                            AskError::Branch(error) => error.hint(),
                            AskError::Forge(error) => error.hint(),
                            AskError::Store(_) => None,
                        };
                        let mut trouble = chain_of(&error);
                        if let Some(hint) = hint {
                            trouble = format!("{trouble}; {hint}");
                        }
                        if let AskError::Store(error) = error {
                            return Err(error.into());
                        }
                        row.trouble = Some(trouble);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the commit to the branch, or asks for it. None: the branch names it.
    async fn record(
        &self,
        term: Term,
        environment: &Environment,
        at: At<'_>,
        edit: &Edit,
        commit: &str,
        text: &str,
    ) -> Result<Option<String>, AskError> {
        let name = environment.name.as_str();
        match self.branches.write(at, edit, text).await {
            Ok(Wrote::Unchanged) => {}
            Ok(Wrote::Pushed(pushed)) => {
                tracing::info!(environment = name, commit, pushed, "the environment's branch names the commit");
            }
            Err(BranchError::Protected { .. }) => {
                let ask = Ask { environment: name, at, edit, commit, message: text };
                return Ok(match self.branches.ask(&self.store, term, ask).await? {
                    Asked::Done => None,
                    Asked::Open { url } => Some(format!("its branch takes no push: merge the pull request {url}")),
                    Asked::BranchPushed { branch } => {
                        Some(format!("its branch takes no push: merge the branch {branch} into {}", at.branch))
                    }
                    Asked::Declined { url } => Some(format!(
                        "the pull request {url} was closed: open it again, or name another commit in {}",
                        base::FILE
                    )),
                    Asked::Foreign { branch } => {
                        Some(format!("somebody pushed to {branch}: merge it into {}, or delete it", at.branch))
                    }
                });
            }
            Err(error) => return Err(error.into()),
        }
        self.branches.forget_request(&self.store, term, name, at.repo).await?;
        Ok(None)
    }

    /// The control plane's address as the environment writes it, so that a new file says what the others say.
    fn written_as(&self, branch: &Branch) -> String {
        match &branch.base {
            Base::Here(written) => written.base.repo.repo.clone(),
            _ => self.control_plane.clone(),
        }
    }
}

fn lacks(chain: &Chain, standing: &Standing, branch: &Branch, row: &PromotionRow) -> Lacks {
    let external = chain.policy.promoter == Promoter::External;
    match &branch.base {
        Base::Elsewhere { repo } => Lacks::Person(format!(
            "its BaseRepo main leads to {repo}, not to the control plane's repository: nothing is promoted to it"
        )),
        Base::Unclear { why } => Lacks::Person(format!("its BaseRepo main can't be read: {why}")),
        // Kalypso's workflows write it.
        _ if external => Lacks::Nothing,
        // Without a commit it would follow main's head wherever Kedge isn't asked.
        Base::Here(written) if written.commit().is_none() => Lacks::Record,
        // The branch has named it, and a person wrote something else since: shown, and left as it is.
        _ if row.in_force == standing.current => Lacks::Nothing,
        _ => Lacks::Record,
    }
}

fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let line = next.to_string();
        if !text.contains(&line) {
            text = format!("{text}: {line}");
        }
        cause = next.source();
    }
    text
}
