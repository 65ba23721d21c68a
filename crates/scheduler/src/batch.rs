//! Renders many pairs at once, on every core. Pairs of one cluster type share what doesn't depend on the target, and
//! those with the same chosen ConfigMaps share the composed configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread;

use kedge_model::{AssignmentId, Broken, Origin, Problem, Severity};
use kedge_template::Limits;

use crate::applies::{self, Place, Residual};
use crate::broken::{Scope, scope_of};
use crate::cluster_type::ClusterTypeState;
use crate::compose::Candidates;
use crate::config::Config;
use crate::render::render;
use crate::schedule::{Assignment, Configuration, Outcome};
use crate::schema::{Compiled, Labelled};
use crate::target::Target;

/// Below this many pairs a second thread costs more than it brings.
const WORTH_A_THREAD: usize = 256;

/// All that rendering reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub places: &'a BTreeMap<Arc<str>, ClusterTypeState>,
    pub targets: &'a BTreeMap<Arc<str>, Arc<Target>>,
    pub configs: &'a BTreeMap<Arc<str>, Arc<Config>>,
    pub schemas: &'a BTreeMap<Arc<str>, Arc<Labelled>>,
    pub own_schemas: &'a HashMap<String, Arc<Compiled>>,
    pub broken: &'a [Broken],
}

/// What all pairs of a cluster type have in common.
struct Row<'a> {
    name: &'a str,
    state: &'a ClusterTypeState,
    candidates: Candidates<'a>,
    schemas: Vec<(Residual<'a>, &'a Labelled)>,
    broken: Vec<(Residual<'a>, &'a Broken)>,
    composed: HashMap<Vec<u32>, Arc<Configuration>>,
    verdicts: HashMap<(Vec<u32>, Vec<usize>), Arc<Verdict>>,
}

/// What the schemas said of a configuration.
#[derive(Default)]
struct Verdict {
    reasons: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// Renders the pairs, in their order. A pair whose cluster type or target is gone is left out.
pub fn render_all(inputs: Inputs<'_>, pairs: &[(AssignmentId, Vec<Arc<str>>)]) -> Vec<Arc<Assignment>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(pairs.len().div_ceil(WORTH_A_THREAD));
    if threads <= 1 {
        return render_some(inputs, pairs);
    }
    thread::scope(|scope| {
        let workers: Vec<_> = pairs
            .chunks(pairs.len().div_ceil(threads))
            .map(|part| (part, scope.spawn(move || render_some(inputs, part))))
            .collect();
        // A worker that dies would take its pairs with it; they are then done here, where the fault shows.
        workers
            .into_iter()
            .flat_map(|(part, worker)| worker.join().unwrap_or_else(|_| render_some(inputs, part)))
            .collect()
    })
}

fn render_some(inputs: Inputs<'_>, pairs: &[(AssignmentId, Vec<Arc<str>>)]) -> Vec<Arc<Assignment>> {
    let limits = Limits::default();
    let mut row: Option<Row<'_>> = None;
    let mut done = Vec::with_capacity(pairs.len());
    for (id, policies) in pairs {
        if row.as_ref().is_none_or(|row| row.name != &*id.cluster_type) {
            row = Row::new(inputs, &id.cluster_type);
        }
        if let (Some(row), Some(target)) = (row.as_mut(), inputs.targets.get(&id.target)) {
            done.push(Arc::new(row.assignment(inputs, id, target, policies, &limits)));
        }
    }
    done
}

impl<'a> Row<'a> {
    fn new(inputs: Inputs<'a>, name: &str) -> Option<Row<'a>> {
        let (name, state) = inputs.places.get_key_value(name)?;
        let place = Place { name, labels: &state.labels };
        Some(Row {
            name,
            state,
            candidates: Candidates::on(place, inputs.configs.values().map(|config| &**config)),
            schemas: inputs
                .schemas
                .values()
                .filter_map(|schema| Some((applies::residual(&schema.labels, place)?, &**schema)))
                .collect(),
            broken: inputs
                .broken
                .iter()
                .filter_map(|broken| match scope_of(broken) {
                    Scope::Nowhere => None,
                    Scope::Everywhere => Some((Vec::new(), broken)),
                    Scope::Labels(labels) => Some((applies::residual(labels, place)?, broken)),
                })
                .collect(),
            composed: HashMap::new(),
            verdicts: HashMap::new(),
        })
    }

    fn assignment(
        &mut self,
        inputs: Inputs<'_>,
        id: &AssignmentId,
        target: &Arc<Target>,
        policies: &[Arc<str>],
        limits: &Limits,
    ) -> Assignment {
        let chosen = self.candidates.chosen(target.tenancy());
        let configuration = match self.composed.get(&chosen) {
            Some(configuration) => Arc::clone(configuration),
            None => {
                let configuration = Arc::new(Configuration::of(self.candidates.compose(&chosen)));
                self.composed.insert(chosen.clone(), Arc::clone(&configuration));
                configuration
            }
        };
        let (outcome, warnings) = match self.unread(target) {
            // A cause hides its consequences: what is missing would break schemas and templates too.
            reasons if !reasons.is_empty() => (Outcome::Quarantined(reasons), Vec::new()),
            _ => self.outcome(inputs, id, target, &chosen, &configuration, limits),
        };
        let mut assignment = Assignment {
            id: id.clone(),
            target: Arc::clone(target),
            policies: policies.to_vec(),
            configuration,
            outcome,
            warnings,
        };
        name_assignment(&mut assignment);
        assignment
    }

    /// What would have a say here and can't be read.
    fn unread(&self, target: &Target) -> Vec<Problem> {
        let here = self.broken.iter().filter(|(rest, _)| applies::satisfied(rest, target.tenancy()));
        here.map(|(_, broken)| broken.problem.clone()).collect()
    }

    fn outcome(
        &mut self,
        inputs: Inputs<'_>,
        id: &AssignmentId,
        target: &Target,
        chosen: &[u32],
        configuration: &Configuration,
        limits: &Limits,
    ) -> (Outcome, Vec<Problem>) {
        let verdict = self.verdict(chosen, target, configuration);
        let mut reasons = verdict.reasons.clone();
        reasons.extend(configuration.too_much.iter().map(|key| self.too_much(chosen, key)));
        for schema in target.schemas.iter().filter_map(|text| inputs.own_schemas.get(text)) {
            reasons.extend(self.judge(chosen, configuration, schema, "the workload's own schema", &target.origin));
        }
        let rendered = render(id, target, &self.state.writers, &configuration.values, limits);
        let mut warnings = rendered.warnings;
        warnings.extend(verdict.warnings.iter().cloned());
        let outcome = match rendered.files {
            Ok(files) if reasons.is_empty() => Outcome::Rendered(files),
            files => {
                reasons.extend(files.err().into_iter().flatten());
                Outcome::Quarantined(reasons)
            }
        };
        (outcome, warnings)
    }

    /// ConfigSchemas that apply to the target, asked once for all targets with the same answer.
    fn verdict(&mut self, chosen: &[u32], target: &Target, configuration: &Configuration) -> Arc<Verdict> {
        let asked: Vec<usize> = self
            .schemas
            .iter()
            .enumerate()
            .filter(|(_, (rest, _))| applies::satisfied(rest, target.tenancy()))
            .map(|(index, _)| index)
            .collect();
        let asking = (chosen.to_vec(), asked);
        if let Some(known) = self.verdicts.get(&asking) {
            return Arc::clone(known);
        }
        let mut verdict = Verdict::default();
        for (_, schema) in asking.1.iter().filter_map(|index| self.schemas.get(*index)) {
            let whose = format!("ConfigSchema {}", schema.name);
            for problem in self.judge(chosen, configuration, &schema.schema, &whose, &schema.origin) {
                if schema.warns {
                    verdict.warnings.push(Problem { severity: Severity::Warning, ..problem });
                } else {
                    verdict.reasons.push(problem);
                }
            }
        }
        let verdict = Arc::new(verdict);
        self.verdicts.insert(asking, Arc::clone(&verdict));
        verdict
    }

    /// What a schema says of a configuration, at the place where the value was written.
    fn judge(
        &self,
        chosen: &[u32],
        configuration: &Configuration,
        schema: &Compiled,
        whose: &str,
        at: &Origin,
    ) -> Vec<Problem> {
        if let Some(fault) = schema.fault() {
            return vec![unusable(whose, fault, at)];
        }
        let violations = schema.violations(&configuration.values).into_iter();
        violations
            .map(|violation| {
                let message = format!("the configuration breaks {whose}: {}", violation.text);
                let problem = Problem::error("SchemaViolated", message);
                let hint = if violation.text.ends_with("is not of type \"string\"") {
                    "text that reads as a number is one to a schema: let it ask for a number"
                } else {
                    "fix the value, or relax the schema"
                };
                match violation.key.and_then(|key| self.candidates.last_place(chosen, &key)) {
                    Some(place) => problem.at(place).also_at(at.clone()).hint(hint),
                    None => problem
                        .at(at.clone())
                        .hint("add the value to a ConfigMap that applies here; `kedge explain` shows which do"),
                }
            })
            .collect()
    }

    fn too_much(&self, chosen: &[u32], key: &str) -> Problem {
        let message =
            format!("merging the lists of `{key}` takes too long: too many of their items have the same name");
        let problem = Problem::error("ValueTooLarge", message).hint("give the items names of their own");
        match self.candidates.last_place(chosen, key) {
            Some(place) => problem.at(place),
            None => problem,
        }
    }
}

/// A schema that can't validate anything.
pub fn unusable(whose: &str, fault: &str, at: &Origin) -> Problem {
    Problem::error("SchemaUnusable", format!("{whose} can't be used: {fault}")).at(at.clone())
}

fn name_assignment(assignment: &mut Assignment) {
    let name = assignment.id.to_string();
    let reasons = match &mut assignment.outcome {
        Outcome::Quarantined(reasons) => reasons.as_mut_slice(),
        Outcome::Rendered(_) => &mut [],
    };
    for problem in reasons.iter_mut().chain(&mut assignment.warnings) {
        problem.assignment = Some(name.clone());
    }
}
