//! From a path of a tree to the objects that are written below it. Called by `load` for the environment, for each
//! BaseRepo and for each application.

use kedge_model::decode::{self, Options};
use kedge_model::{Broken, Decoded, Object, Problem};

use crate::ignore::Ignore;
use crate::tree::{FILE_LIMIT, Tree, TreeError};
use crate::walk::{Walk, place, problem};

/// What one path of one tree holds.
#[derive(Debug, Default)]
pub struct Batch {
    pub objects: Vec<Object>,
    pub broken: Vec<Broken>,
    /// Everything that is wrong or worth knowing, once each.
    pub problems: Vec<Problem>,
    /// Those that mean that not everything was read.
    pub failures: Vec<Problem>,
}

impl Batch {
    /// Reads every YAML file below `path`. Of an application only its Workloads are taken.
    pub fn read(tree: &dyn Tree, path: &str, ignore: Ignore, application: Option<&str>) -> Result<Batch, TreeError> {
        let walk = Walk::below(tree, path, ignore)?;
        let options = Options { application: application.map(str::to_owned) };
        let mut batch = Batch { problems: walk.warnings, failures: walk.failures, ..Batch::default() };
        batch.problems.extend(batch.failures.iter().cloned());
        for file in &walk.files {
            match tree.read(file, FILE_LIMIT) {
                Ok(bytes) => batch.add(decode::objects(&bytes, &place(tree, file), &options)),
                Err(TreeError::TooLarge { size, .. }) => {
                    batch.add(decode::too_large(&tree.beginning(file), size, &place(tree, file), &options));
                }
                Err(error) => batch.refuse(tree, file, &error, application),
            }
        }
        Ok(batch)
    }

    /// Nothing was written there at all, not even something broken.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.broken.is_empty() && self.failures.is_empty()
    }

    fn add(&mut self, decoded: Decoded) {
        self.failures.extend(decoded.broken.iter().map(|broken| broken.problem.clone()));
        self.objects.extend(decoded.objects);
        self.broken.extend(decoded.broken);
        self.problems.extend(decoded.problems);
    }

    /// A file that can't be read may hold anything.
    fn refuse(&mut self, tree: &dyn Tree, file: &str, error: &TreeError, application: Option<&str>) {
        let problem = problem(tree, file, error);
        let owner = application.map(str::to_owned);
        self.broken.push(Broken { kind: None, name: None, owner, labels: None, problem: problem.clone() });
        self.problems.push(problem.clone());
        self.failures.push(problem);
    }
}
