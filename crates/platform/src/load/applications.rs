//! The applications of an environment: for each registration in force its repository is read, and the Workloads in it
//! are its own. What fails there concerns nobody else.

use std::sync::Arc;

use kedge_model::kinds::WorkloadRegistration;
use kedge_model::{EmptyInput, Object, Platform, Problem, Spec};

use super::bases::{Trees, failure};
use super::layers::Layers;
use super::{fail, note_empty};
use crate::ignore::Ignore;
use crate::read::Batch;
use crate::repositories::Request;
use crate::tree::clean_path;

pub(super) fn load(platform: &mut Platform, registrations: &[Arc<Object>], trees: &mut Trees<'_>) {
    for object in registrations {
        let Spec::WorkloadRegistration(registration) = &object.spec else { continue };
        let name = object.meta.name.as_str();
        match read(object, registration, trees) {
            Ok(batch) => {
                if batch.is_empty() {
                    let message = format!("{} brings no Workload", object.id());
                    let problem = Problem::warning("NothingFound", message).at(object.origin.clone());
                    let problem = problem.hint("its `path` names the folder that holds the Workload's file");
                    note_empty(platform, EmptyInput::Registration(name.to_owned()), problem);
                }
                add(platform, name, batch);
            }
            Err(problem) => {
                platform.problems.push((*problem).clone());
                fail(platform, Some(name), vec![*problem]);
            }
        }
    }
}

fn read(object: &Object, registration: &WorkloadRegistration, trees: &mut Trees<'_>) -> Result<Batch, Box<Problem>> {
    let at = &registration.workload;
    let request = Request::new(&at.repo, &at.branch, None);
    let cache = trees.cache();
    let tree =
        trees.open(&request).map_err(|error| Box::new(failure(object, &error, error.hint(), "RepositoryFailed")))?;
    clean_path(&at.path)
        .and_then(|path| Batch::read(tree, &path, Ignore::environment(), Some(&object.meta.name), cache))
        .map_err(|error| Box::new(failure(object, &error, error.hint(), error.code())))
}

fn add(platform: &mut Platform, registration: &str, mut batch: Batch) {
    platform.problems.append(&mut batch.problems);
    fail(platform, Some(registration), batch.failures);
    let mut layers = Layers::default();
    layers.add(batch.objects, batch.broken);
    platform.objects.append(&mut layers.objects);
    platform.broken.append(&mut layers.broken);
    platform.problems.append(&mut layers.problems);
    fail(platform, Some(registration), layers.failures);
}
