//! A HostWorkload against its HostNamespace: what the agent would refuse on a host, by the same rules. Called by `delivered`.

mod place;

use std::collections::BTreeSet;
use std::convert::Infallible;

use kedge_host_policy::judge::{self, DebFile, Entry, Judgement, Package, Refused};
use kedge_host_policy::{Place as PolicyPlace, Refusal, Tenant, namespace, path, unit_name};
use kedge_model::decode::{self, Options};
use kedge_model::kinds::{ArtifactSource, Delivery, FileEntry, HostNamespace, HostWorkload};
use kedge_model::wire::Digest;
use kedge_model::{AssignmentId, Origin, Problem, Spec};
use kedge_platform::TreeError;
use kedge_scheduler::Files;

use super::folder::{File, Folder, binds, documents, is_yaml, text};
use place::Place;

/// What an agent says of a HostWorkload that it refuses.
const CODE: &str = "NotAllowed";
/// What an agent says of a unit that is another assignment's.
const UNIT_CODE: &str = "ConflictingUnit";
/// What an agent says of text that it can't read.
const TEXT_CODE: &str = "BadPackage";
/// Units' files are small; an agent reads no larger text.
const MAX_TEXT: u64 = 4 << 20;
/// The hub takes no larger file from Git.
const MAX_DEB: u64 = 256 << 20;

/// The files beside a HostWorkload, as far as they are the same on every host.
struct Content<'a>(&'a Folder<'a>);

/// An error says why it can't be told.
pub(super) fn check(
    id: &AssignmentId,
    files: &Files,
    delivery: &Delivery,
    folder: &Folder<'_>,
    names: &BTreeSet<&str>,
    template: impl Fn() -> Option<Origin>,
) -> Result<Vec<Problem>, String> {
    let tenant = tenant(id, files, delivery)?;
    let mut problems: Vec<Problem> = namespace::check(&tenant)
        .into_iter()
        .map(|message| Problem { origin: template(), ..Problem::error(CODE, message) })
        .collect();
    let (file, place) = find(folder)?;
    let (workload, told) = workload(&file, folder);
    problems.extend(told);
    let Some(mut workload) = workload else { return Ok(problems) };
    problems.extend(contents(&workload, &file, &place, folder));
    let is_known = tenant.given.user.is_none();
    if !is_known {
        leave_groups_out(&mut workload, &tenant.user);
    }
    let Ok(judgement) = judge::judge(&workload, &tenant, &Content(folder));
    let told = judgement.refused.iter().filter(|refused| is_known || !is_about_group(&refused.refusal));
    problems.extend(told.map(|refused| problem(refused, &file, &place, folder)));
    for (entry, message) in units_of_others(&id.target, &workload, &judgement, names) {
        let (line, column) = place.of(entry);
        problems.push(folder.at(Problem::error(UNIT_CODE, message), &file, line, column));
    }
    Ok(problems)
}

/// Units that by their names are another assignment's of the same hosts.
fn units_of_others(
    assignment: &str,
    workload: &HostWorkload,
    judgement: &Judgement,
    names: &BTreeSet<&str>,
) -> Vec<(Entry, String)> {
    let wanted = workload.units.iter().enumerate().zip(&judgement.units);
    let wanted = wanted.filter(|(_, allowed)| **allowed).map(|((at, unit), _)| (Entry::Unit(at), unit.name.as_str()));
    let brought = judgement.files.iter().enumerate().filter_map(|(at, place)| match place {
        Some(PolicyPlace::Unit { unit, named: false }) => Some((Entry::File(at), unit.as_str())),
        _ => None,
    });
    let named = judgement.named.iter().map(|(unit, at)| (Entry::File(*at), unit.as_str()));
    let mut seen = BTreeSet::new();
    let found = wanted.chain(brought).chain(named).filter_map(|(entry, unit)| {
        let owner = unit_name::other_owner(unit, assignment, names.iter().copied())?;
        let message = format!("the unit `{unit}` belongs to the assignment {owner} by its name; give it another name");
        Some((entry, unit, message))
    });
    found.filter(|(_, unit, _)| seen.insert(*unit)).map(|(entry, _, message)| (entry, message)).collect()
}

fn tenant(id: &AssignmentId, files: &Files, delivery: &Delivery) -> Result<Tenant, String> {
    // On a host, where the type is known, an assignment is the last part alone.
    let name = &*id.target;
    if binds(&files.namespace) {
        return Err(format!("the {} of {id} names values that only a host knows", Files::NAMESPACE));
    }
    let origin = Origin {
        source: std::sync::Arc::new(kedge_model::Source { repo: String::new(), revision: None }),
        file: Files::NAMESPACE.into(),
        line: 0,
        column: 0,
    };
    let options = Options { rendered: true, ..Options::default() };
    let mut objects = decode::objects(files.namespace.as_bytes(), &origin, &options).objects;
    match (objects.pop().map(|object| (object.meta.name, object.spec)), objects.is_empty()) {
        (Some((namespace, Spec::HostNamespace(given))), true) => Ok(Tenant::new(name, namespace, given)),
        (None, _) if files.namespace.trim().is_empty() => {
            let namespace = delivery.namespace.clone().unwrap_or_else(|| name.to_owned());
            Ok(Tenant::new(name, namespace, HostNamespace::default()))
        }
        _ => Err(format!("the {} of {id} doesn't hold one HostNamespace", Files::NAMESPACE)),
    }
}

/// The file with the HostWorkload, and where its entries stand.
fn find(folder: &Folder<'_>) -> Result<(File, Place), String> {
    let entries = folder.list(&folder.path).map_err(|error| error.to_string())?;
    let paths = match folder.listed(&entries)? {
        Some(paths) => paths,
        None => entries.into_iter().map(|entry| entry.path).filter(|path| is_yaml(path)).collect(),
    };
    let mut found = Vec::new();
    for path in paths {
        // Other YAML of the folder may be content of `files`.
        let Ok(file) = folder.yaml(&path) else { continue };
        let Ok(documents) = documents(&file) else { continue };
        let of_host = |document: &super::folder::Document| text(&document.node, &["kind"]) == Some("HostWorkload");
        if let Some(document) = documents.into_iter().find(of_host) {
            found.push((file, Place::new(document)));
        }
    }
    let shown = if folder.path.is_empty() { "." } else { &folder.path };
    match (found.pop(), found.is_empty()) {
        (Some(found), true) => Ok(found),
        (None, _) => Err(format!("there is no HostWorkload in `{}`", shown.escape_debug())),
        (Some(_), false) => Err(format!("there are several HostWorkloads in `{}`", shown.escape_debug())),
    }
}

/// As strictly as the hub reads it, and what was said of it. None: it can't be read.
fn workload(file: &File, folder: &Folder<'_>) -> (Option<HostWorkload>, Vec<Problem>) {
    let decoded = decode::objects(file.text.as_bytes(), &folder.origin(&file.path), &Options::default());
    let workload = decoded.objects.into_iter().find_map(|object| match object.spec {
        Spec::HostWorkload(workload) => Some(workload),
        _ => None,
    });
    (workload.filter(|_| !decoded.problems.iter().any(Problem::is_error)), decoded.problems)
}

/// Files that it names and that the hub couldn't pack, or an agent couldn't read.
fn contents(workload: &HostWorkload, file: &File, place: &Place, folder: &Folder<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut look = |entry: Entry, named: &str, is_unit: bool| {
        let problem = match folder.bytes(named, MAX_DEB) {
            // A model may be large, and the hub alone says how large.
            Err(TreeError::TooLarge { .. }) => return,
            Err(error) => Problem { hint: error.hint(), ..Problem::error(error.code(), error.to_string()) },
            Ok(bytes) if is_unit && std::str::from_utf8(&bytes).is_err() => {
                let shown = named.escape_debug();
                Problem::error(TEXT_CODE, format!("`{shown}` isn't UTF-8, and systemd reads text"))
            }
            Ok(_) => return,
        };
        let (line, column) = place.of(entry);
        problems.push(folder.at(problem, file, line, column));
    };
    for (at, entry) in workload.files.iter().enumerate() {
        look(Entry::File(at), &entry.file, path::below_systemd(&entry.path).is_some());
    }
    for (at, entry) in workload.artifacts.iter().enumerate() {
        if let ArtifactSource::File(named) = &entry.source {
            look(Entry::Artifact(at), named, false);
        }
    }
    problems
}

/// In which group a user is that the platform team named is the host's to say.
fn leave_groups_out(workload: &mut HostWorkload, user: &str) {
    for entry in &mut workload.files {
        if entry.owner.as_deref().and_then(|owner| owner.split_once(':')).is_some_and(|(owner, _)| owner == user) {
            entry.owner = Some(user.to_owned());
        }
    }
}

fn is_about_group(refusal: &Refusal) -> bool {
    refusal.line.is_some() && ["`Group=", "`SocketGroup="].iter().any(|key| refusal.reason.starts_with(key))
}

fn problem(refused: &Refused, file: &File, place: &Place, folder: &Folder<'_>) -> Problem {
    let Refusal { reason, way_out, line } = &refused.refusal;
    let mut problem = Problem::error(CODE, reason.clone());
    problem.hint.clone_from(way_out);
    if let (Some(named), Some(line)) = (&refused.file, line)
        && let Ok(named) = folder.yaml(&folder.path_of(named))
    {
        return folder.at(problem, &named, u32::try_from(line.number).unwrap_or_default(), 0);
    }
    let (line, column) = place.of(refused.entry);
    folder.at(problem, file, line, column)
}

fn as_bound(line: &str) -> String {
    if binds(line) { "#\n".to_owned() } else { format!("{}\n", line.replace("$${", "${")) }
}

impl Package for Content<'_> {
    type Error = Infallible;

    /// None too for a file that isn't there, which stops the assignment at the hub.
    fn text(&self, file: &FileEntry) -> Result<Option<String>, Infallible> {
        let read = self.0.bytes(&file.file, MAX_TEXT).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(match file.template {
            // What a line says with values that only a host knows is judged there.
            true => read.map(|text| text.lines().map(as_bound).collect()),
            false => read,
        })
    }

    /// Its name is in the deb, and its digest is what is allowed or not.
    fn deb(&self, file: &str) -> Result<Option<DebFile>, Infallible> {
        let read = self.0.bytes(file, MAX_DEB).ok();
        Ok(read.map(|bytes| DebFile { name: None, digest: Digest::of(&bytes) }))
    }
}
