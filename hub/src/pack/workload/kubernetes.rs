//! Manifests for Kubernetes, read natively: a plain folder of YAML, or a kustomization that only lists resources. The
//! package holds them below `manifests/`, without what isn't an object to apply.

use gix::ObjectId;
use kedge_model::Problem;
use kedge_model::wire::Digest;

use super::descriptor::{self, Document, Versions};
use super::kustomization::{self, Kustomization};
use super::program::{self, Program};
use super::{Made, Place, Read};
use crate::pack::archive::{Contents, MAX_FILES};
use crate::pack::fault::Fault;
use crate::pack::objects::{Item, ItemKind};
use crate::pack::platform::in_folder;
use crate::pack::reconciler::text;

/// Where an agent finds them.
pub const FOLDER: &str = "manifests";
/// What the output of a program is called there.
const RENDERED: &str = "manifests/rendered.yaml";

/// etcd takes objects of 1.5 MiB; a file may hold several.
const MAX_FILE: u64 = kedge_model::decode::MAX_FILE_BYTES as u64;
/// Deeper than anybody nests folders of manifests.
const MAX_DEPTH: usize = 20;

/// Everything met on a walk.
struct Gather<'a> {
    place: &'a Place<'a>,
    contents: Contents,
    versions: Versions,
    objects: usize,
    seen: usize,
}

/// What a folder itself asks for.
enum Ask {
    Plain(Vec<Item>),
    Listed(Vec<String>),
    Kustomize,
    Helm,
}

pub(in crate::pack) fn read(place: &Place<'_>) -> Result<Read, Fault> {
    let mut gather =
        Gather { place, contents: Contents::default(), versions: Versions::default(), objects: 0, seen: 0 };
    let read = match gather.ask(place.folder, "")? {
        Ask::Kustomize => return program::job(place, Program::Kustomize).map(Read::Render),
        Ask::Helm => return program::job(place, Program::Helm).map(Read::Render),
        ask => gather.take(place.folder, "", ask, 0),
    };
    read?;
    gather.finish().map(Read::Ready)
}

/// The output of a program as a package.
pub(in crate::pack) fn rendered(output: Vec<u8>, file: &kedge_model::Origin) -> Result<Made, Fault> {
    let mut made = Made::default();
    let (mut kept, mut versions) = (Vec::new(), Versions::default());
    let documents = descriptor::documents(&output, file)?;
    for document in &documents {
        if !versions.read(&document.node) {
            check_object(document, file)?;
            kept.push(document.text);
        }
    }
    made.version = versions.best();
    if kept.is_empty() {
        return Err(nothing(file));
    }
    let less = (kept.len() < documents.len()).then(|| without(&kept));
    made.contents.add(RENDERED, less.unwrap_or(output), false)?;
    Ok(made)
}

impl Gather<'_> {
    fn ask(&mut self, folder: ObjectId, path: &str) -> Result<Ask, Fault> {
        let items = self.place.objects.list(folder, &self.shown(path))?;
        self.seen += items.len();
        if self.seen > MAX_FILES {
            let message = format!("there are more than {MAX_FILES} files and folders below `{}`", self.place.path);
            return Err(Fault::of(Problem::error("PackageTooLarge", message).at(self.place.origin.clone())));
        }
        if items.iter().any(|item| item.name == "Chart.yaml" && item.kind.is_file()) {
            return Ok(Ask::Helm);
        }
        for name in kustomization::NAMES {
            let Some(item) = items.iter().find(|item| item.name == name) else { continue };
            let file = join(path, name);
            self.check_kind(item, &file)?;
            let bytes = self.place.objects.read(item.id, &file, MAX_FILE)?;
            let read = kustomization::read(&bytes, &in_folder(self.place.origin, &file));
            return Ok(match read? {
                Kustomization::Resources(paths) => Ask::Listed(paths),
                Kustomization::Other => Ask::Kustomize,
            });
        }
        Ok(Ask::Plain(items))
    }

    fn take(&mut self, folder: ObjectId, path: &str, ask: Ask, depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            let message = format!("`{}` lies more than {MAX_DEPTH} folders deep", self.shown(path));
            return Err(Fault::of(Problem::error("PackageTooLarge", message).at(self.place.origin.clone())));
        }
        match ask {
            Ask::Plain(items) => items.into_iter().try_for_each(|item| self.plain(item, path, depth)),
            Ask::Listed(paths) => paths.iter().try_for_each(|listed| self.listed(folder, path, listed, depth)),
            Ask::Kustomize | Ask::Helm => {
                let message = format!(
                    "the folder `{}` needs kustomize or helm and no kustomization of its own leads to it",
                    self.shown(path)
                );
                Err(Fault::of(
                    Problem::error("NestedKustomization", message)
                        .at(self.place.origin.clone())
                        .hint("let the Delivery's `path` name the folder, or list it in a kustomization.yaml above"),
                ))
            }
        }
    }

    fn plain(&mut self, item: Item, path: &str, depth: usize) -> Result<(), Fault> {
        // `.github`, `.gitignore`: never manifests.
        if item.name.starts_with('.') {
            return Ok(());
        }
        let here = join(path, &item.name);
        match item.kind {
            ItemKind::Folder => {
                let ask = self.ask(item.id, &here)?;
                self.take(item.id, &here, ask, depth + 1)
            }
            kind if kind.is_file() && !(here.ends_with(".yaml") || here.ends_with(".yml")) => Ok(()),
            _ => self.file(&item, &here),
        }
    }

    fn listed(&mut self, folder: ObjectId, path: &str, listed: &str, depth: usize) -> Result<(), Fault> {
        let here = join(path, listed);
        let Some(item) = self.place.objects.item(folder, listed)? else {
            let message = format!("the kustomization lists `{listed}`, which does not exist");
            return Err(Fault::of(
                Problem::error("ResourceMissing", message)
                    .at(in_folder(self.place.origin, &join(path, kustomization::NAMES[0])))
                    .hint("add the file, or take it off the list"),
            ));
        };
        if item.kind != ItemKind::Folder {
            return self.file(&item, &here);
        }
        match self.ask(item.id, &here)? {
            // As kustomize says it.
            Ask::Plain(_) => {
                let message = format!("the kustomization lists the folder `{here}`, which has no kustomization.yaml");
                Err(Fault::of(
                    Problem::error("ResourceMissing", message)
                        .at(self.place.origin.clone())
                        .hint("list its files one by one, or add a kustomization.yaml there"),
                ))
            }
            ask => self.take(item.id, &here, ask, depth + 1),
        }
    }

    fn file(&mut self, item: &Item, path: &str) -> Result<(), Fault> {
        self.check_kind(item, path)?;
        let origin = in_folder(self.place.origin, path);
        let bytes = self.place.objects.read(item.id, path, MAX_FILE)?;
        let documents = descriptor::documents(&bytes, &origin)?;
        let mut kept = Vec::new();
        let mut left_out = false;
        for document in &documents {
            if self.versions.read(&document.node) {
                left_out = true;
                continue;
            }
            check_object(document, &origin)?;
            kept.push(document.text);
        }
        self.objects += kept.len();
        if kept.is_empty() {
            return Ok(());
        }
        let bytes = if left_out { without(&kept) } else { bytes.clone() };
        Ok(self.contents.add(&format!("{FOLDER}/{path}"), bytes, false)?)
    }

    fn check_kind(&self, item: &Item, path: &str) -> Result<(), Fault> {
        if item.kind.is_file() {
            return Ok(());
        }
        let message = format!("`{}` is {}, which is never followed", path.escape_debug(), item.kind.describe());
        Err(Fault::of(
            Problem::error("NotAFile", message)
                .at(in_folder(self.place.origin, path))
                .hint("put the file itself there, or list the files to deliver in a kustomization.yaml"),
        ))
    }

    fn finish(self) -> Result<Made, Fault> {
        if self.objects == 0 {
            return Err(nothing(self.place.origin));
        }
        Ok(Made { contents: self.contents, version: self.versions.best(), ..Made::default() })
    }

    fn shown(&self, path: &str) -> String {
        match join(self.place.path, path) {
            shown if shown.is_empty() => ".".to_owned(),
            shown => shown,
        }
    }
}

/// Whether a document is something that can be applied.
pub(in crate::pack) fn check_object(document: &Document<'_>, file: &kedge_model::Origin) -> Result<(), Fault> {
    let node = &document.node;
    let at = file.at(document.first_line + node.line, node.column);
    let (version, kind) = (text(node, &["apiVersion"]), text(node, &["kind"]));
    let (Some(version), Some(kind)) = (version, kind) else {
        return Err(Fault::of(
            Problem::error("NotAnObject", "the document is not a Kubernetes object: it has no `apiVersion` and `kind`")
                .at(at)
                .hint("list the files to deliver in a kustomization.yaml, if this one isn't a manifest"),
        ));
    };
    if version.starts_with("kedge.dev/") || version.starts_with("scheduler.kalypso.io/") {
        let message = format!("a {kind} ({version}) can't be delivered to Kubernetes");
        return Err(Fault::of(Problem::error("KindNotAllowed", message)
            .at(at)
            .hint("a HostWorkload needs a Delivery with `to: host`; other kinds of the platform belong into its own repository")));
    }
    let named = text(node, &["metadata", "name"]).is_some_and(|name| !name.is_empty());
    if !named && !kind.ends_with("List") {
        return Err(Fault::of(Problem::error("NameMissing", format!("the {kind} has no `metadata.name`")).at(at)));
    }
    Ok(())
}

/// The other documents of a file.
fn without(kept: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in kept {
        if !out.is_empty() && !text.starts_with("---") {
            out.extend_from_slice(b"---\n");
        }
        out.extend_from_slice(text.as_bytes());
        if !text.ends_with('\n') {
            out.push(b'\n');
        }
    }
    out
}

/// No object would mean to remove all that runs, and absence never deletes.
fn nothing(file: &kedge_model::Origin) -> Fault {
    Fault::of(
        Problem::error("NothingToDeliver", "there is no object to deliver")
            .at(file.clone())
            .hint("fix the Delivery's `path`, or add manifests; to remove a workload, remove its target"),
    )
}

fn join(folder: &str, name: &str) -> String {
    match (folder.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// What names the rendering of a program: the same inputs give the same name.
pub(in crate::pack) fn rendering_key(root: ObjectId, path: &str, release: &str, namespace: &str) -> Digest {
    Digest::of(format!("{root}\0{path}\0{release}\0{namespace}").as_bytes())
}
