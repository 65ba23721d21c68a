//! Which environment a checkout, a revision or a folder is, when nobody says so.

use std::path::Path;

use anyhow::Result;
use kedge_model::kinds::RepoRef;
use kedge_platform::{Environments, GitRepository, LoadError, environments};

use crate::control_plane::Place;
use crate::error::UsageError;
use crate::output::say;

/// As it was named, else as the branch or the folder says; a note on stderr tells when that is a guess.
pub(super) fn name(named: Option<&str>, place: &Place) -> Result<String> {
    if !place.path.exists() {
        return Err(LoadError::Missing { path: place.path.display().to_string() }.into());
    }
    if let Some(name) = named {
        return Ok(name.to_owned());
    }
    let known = if place.is_git() { environments(&place.path).unwrap_or_default() } else { Environments::default() };
    let branch = match &place.revision {
        Some(revision) => Some(revision.clone()),
        None if place.is_checkout() => {
            GitRepository::open(&place.path).and_then(|repo| repo.head()).ok().and_then(|head| head.name)
        }
        None => None,
    };
    let (name, note) = match branch {
        Some(branch) => of_branch(&known, branch),
        None => (folder_name(&place.path)?, None),
    };
    let names = known.names();
    if let Some(note) = note {
        say(&note);
    } else if !names.is_empty() && !names.contains(&name) {
        let names = names.join(", ");
        say(&format!(
            "note: `{name}` isn't an environment; name one with --environment ({names}) to check its assignments"
        ));
    }
    Ok(name)
}

/// The environment whose branch it is; a branch that none names is taken for one of the same name. Where several share
/// it, the one that is the whole branch is meant, as a checkout is read whole; a note says so when there is none.
fn of_branch(known: &Environments, branch: String) -> (String, Option<String>) {
    let on_branch: Vec<(&str, &RepoRef)> = known
        .environments
        .iter()
        .filter_map(|object| known.get(&object.meta.name))
        .map(|(object, spec)| (object.meta.name.as_str(), &spec.control_plane))
        .filter(|(_, at)| at.branch.trim() == branch)
        .collect();
    let whole: Vec<&str> = on_branch.iter().filter(|(_, at)| is_root(&at.path)).map(|(name, _)| *name).collect();
    let all: Vec<&str> = on_branch.iter().map(|(name, _)| *name).collect();
    match (whole.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => ((*only).to_owned(), None),
        ([first, ..], _) | ([], [first, ..]) => {
            let names = all.join(", ");
            let note = format!(
                "note: `{branch}` is the branch of {names}; {first} is checked, name another with --environment"
            );
            ((*first).to_owned(), Some(note))
        }
        ([], []) => (branch, None),
    }
}

fn is_root(path: &str) -> bool {
    path.trim().split('/').all(|part| part.is_empty() || part == ".")
}

fn folder_name(path: &Path) -> Result<String, UsageError> {
    let folder = path.canonicalize().ok();
    let name = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        let message = format!("`{}` has no name that an environment could have", path.display());
        UsageError::new(message, "say which environment it is with --environment")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kedge_model::decode::{self, Options};
    use kedge_model::{Origin, Source};

    use super::*;

    /// Name, branch and path of each.
    fn known(environments: &[(&str, &str, &str)]) -> Environments {
        let mut text = String::new();
        for (name, branch, path) in environments {
            text.push_str(&format!(
                "---\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: Environment\nmetadata: {{name: {name}}}\nspec: {{controlPlane: {{repo: r, branch: {branch}, path: {path}}}}}\n"
            ));
        }
        let source = Arc::new(Source { repo: "here".to_owned(), revision: None });
        let origin = Origin { source, file: "all.yaml".into(), line: 0, column: 0 };
        let decoded = decode::objects(text.as_bytes(), &origin, &Options::default());
        assert!(decoded.broken.is_empty(), "{:?}", decoded.problems);
        let environments = decoded.objects.into_iter().map(Arc::new).collect();
        Environments { environments, ..Environments::default() }
    }

    fn of(environments: &[(&str, &str, &str)], branch: &str) -> (String, Option<String>) {
        of_branch(&known(environments), branch.to_owned())
    }

    #[test]
    fn a_branch_is_the_environment_that_names_it() {
        let all = [("dev", "development", "."), ("prod", "main", "envs/prod")];
        assert_eq!(of(&all, "development"), ("dev".to_owned(), None));
        assert_eq!(of(&all, "main"), ("prod".to_owned(), None));
        assert_eq!(of(&all, "feature"), ("feature".to_owned(), None));
    }

    #[test]
    fn of_several_on_a_branch_the_one_at_its_root_is_meant() {
        let all = [("dev", "main", "envs/dev"), ("prod", "main", "./"), ("stage", "main", "envs/stage")];
        assert_eq!(of(&all, "main"), ("prod".to_owned(), None));
        let (name, note) = of(&[all[0], all[2]], "main");
        assert_eq!(name, "dev");
        assert_eq!(
            note.unwrap(),
            "note: `main` is the branch of dev, stage; dev is checked, name another with --environment"
        );
    }
}
