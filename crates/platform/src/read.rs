//! From a path of a tree to the objects that are written below it. Called by `load` for the environment, for each
//! BaseRepo and for each application.

use std::sync::Arc;

use kedge_model::decode::{self, Options};
use kedge_model::{Broken, Object, Problem};

use crate::cache::{Cache, Read};
use crate::ignore::Ignore;
use crate::tree::{FILE_LIMIT, Tree, TreeError};
use crate::walk::{Walk, place, problem};

/// What one path of one tree holds.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub objects: Vec<Arc<Object>>,
    pub broken: Vec<Broken>,
    /// Everything that is wrong or worth knowing, once each.
    pub problems: Vec<Problem>,
    /// Those that mean that not everything was read.
    pub failures: Vec<Problem>,
}

impl Batch {
    /// Reads every YAML file below `path`. Of an application only its Workloads are taken.
    pub fn read(
        tree: &dyn Tree,
        path: &str,
        ignore: Ignore,
        application: Option<&str>,
        cache: Option<&Cache>,
    ) -> Result<Batch, TreeError> {
        match cache {
            Some(cache) => {
                let about = (path, application, u8::from(ignore.leaves_tools_out()));
                let batch = cache.batch(tree, about, || Batch::fresh(tree, path, ignore, application, Some(cache)))?;
                Ok(Arc::unwrap_or_clone(batch))
            }
            None => Batch::fresh(tree, path, ignore, application, None),
        }
    }

    fn fresh(
        tree: &dyn Tree,
        path: &str,
        ignore: Ignore,
        application: Option<&str>,
        cache: Option<&Cache>,
    ) -> Result<Batch, TreeError> {
        let walk = Walk::below(tree, path, ignore)?;
        let mut batch = Batch { problems: walk.warnings, failures: walk.failures, ..Batch::default() };
        batch.problems.extend(batch.failures.iter().cloned());
        for file in &walk.files {
            match cache {
                Some(cache) => batch.add(&cache.file(tree, file, application, || read_file(tree, file, application))),
                None => batch.add(&read_file(tree, file, application)),
            }
        }
        Ok(batch)
    }

    /// Nothing was written there at all, not even something broken.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.broken.is_empty() && self.failures.is_empty()
    }

    /// Something was met that wasn't looked into: a link, a folder that can't be listed. Broken objects are each a failure too.
    pub(crate) fn is_partial(&self) -> bool {
        self.failures.len() > self.broken.len()
    }

    fn add(&mut self, read: &Read) {
        self.failures.extend(read.broken.iter().map(|broken| broken.problem.clone()));
        self.objects.extend(read.objects.iter().cloned());
        self.broken.extend(read.broken.iter().cloned());
        self.problems.extend(read.problems.iter().cloned());
    }
}

fn read_file(tree: &dyn Tree, file: &str, application: Option<&str>) -> Read {
    let options =
        Options { application: application.map(str::to_owned), is_time_zone: Some(is_time_zone), ..Options::default() };
    let decoded = match tree.read(file, FILE_LIMIT) {
        Ok(bytes) => decode::objects(&bytes, &place(tree, file), &options),
        Err(TreeError::TooLarge { size, .. }) => {
            decode::too_large(&tree.beginning(file), size, &place(tree, file), &options)
        }
        Err(error) => return unreadable(problem(tree, file, &error), options.application),
    };
    let objects = decoded.objects.into_iter().map(Arc::new).collect();
    Read { objects, broken: decoded.broken, problems: decoded.problems }
}

fn is_time_zone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok()
}

/// A file that can't be read may hold anything.
fn unreadable(problem: Problem, owner: Option<String>) -> Read {
    let broken = Broken { kind: None, name: None, owner, labels: None, problem: problem.clone() };
    Read { objects: Vec::new(), broken: vec![broken], problems: vec![problem] }
}
