//! Questions about the whole fleet: the glance, conditions, problems, drift, comparisons, history and the audit log.

use super::{Answer, Client, ClientError, Pages, Parameters};
use crate::audit::AuditEntry;
use crate::comparisons::Comparison;
use crate::conditions::ConditionSummary;
use crate::counts::Counts;
use crate::drift::DriftSummary;
use crate::fleet::FleetSummary;
use crate::history::{HistoryEntry, Timeline};
use crate::page::Page;
use crate::problems::ProblemList;

impl Client {
    pub fn fleet(&self, parameters: &Parameters<'_>) -> Result<Answer<FleetSummary>, ClientError> {
        self.get(&["fleet"], parameters)
    }

    pub fn counts(&self, parameters: &Parameters<'_>) -> Result<Answer<Counts>, ClientError> {
        self.get(&["counts"], parameters)
    }

    /// One page.
    pub fn conditions(&self, parameters: &Parameters<'_>) -> Result<Answer<Page<ConditionSummary>>, ClientError> {
        self.get(&["conditions"], parameters)
    }

    /// One page.
    pub fn problems(&self, parameters: &Parameters<'_>) -> Result<Answer<ProblemList>, ClientError> {
        self.get(&["problems"], parameters)
    }

    /// One page.
    pub fn drift(&self, parameters: &Parameters<'_>) -> Result<Answer<DriftSummary>, ClientError> {
        self.get(&["drift"], parameters)
    }

    /// One page.
    pub fn compare(&self, parameters: &Parameters<'_>) -> Result<Answer<Comparison>, ClientError> {
        self.get(&["compare"], parameters)
    }

    pub fn history(&self, parameters: &Parameters<'_>) -> Pages<'_, HistoryEntry> {
        self.pages(&["history"], parameters)
    }

    pub fn timeline(&self, commit: &str) -> Result<Answer<Timeline>, ClientError> {
        self.get(&["history", "commits", commit], &[])
    }

    /// One page.
    pub fn audit(&self, parameters: &Parameters<'_>) -> Result<Answer<Page<AuditEntry>>, ClientError> {
        self.get(&["audit"], parameters)
    }
}
