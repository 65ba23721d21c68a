//! A new bare repository and its commits, written with gix: no work tree, no `git` program, nothing read from the
//! machine's Git configuration. Used by `init`.

use std::fs;
use std::path::Path;

use gix::bstr::BStr;
use gix::objs::tree::EntryKind;
use gix::refs::transaction::{PreviousValue, RefEdit};
use gix::{ObjectId, ThreadSafeRepository};

const AUTHOR: &str = "Kedge";
const EMAIL: &str = "kedge@localhost";

/// A bare repository that is being made.
pub(super) struct NewRepository {
    repository: gix::Repository,
    /// Seconds since 1970 and the offset, as Git writes them.
    time: String,
}

/// A file of a commit.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub path: String,
    pub text: String,
}

impl NewRepository {
    /// Makes the folder; `branch` is what `HEAD` will point to.
    pub fn create(path: &Path, branch: &str, seconds: u64) -> gix::Result<NewRepository> {
        let repository = ThreadSafeRepository::init_opts(
            path,
            gix::create::Kind::Bare,
            gix::create::Options::default(),
            gix::open::Options::isolated(),
        )?
        .to_thread_local();
        // Examples of hooks, of no use to a reader of the sample.
        fs::remove_dir_all(path.join("hooks")).map_err(gix::Error::from_error)?;
        let new = NewRepository { repository, time: format!("{seconds} +0000") };
        if branch != gix::init::DEFAULT_BRANCH_NAME {
            new.point_head_to(branch)?;
        }
        Ok(new)
    }

    /// Commits `files` on top of `parent`, whose own files stay, and moves the branch there.
    pub fn commit(
        &self,
        branch: &str,
        message: &str,
        files: &[Content],
        parent: Option<ObjectId>,
    ) -> gix::Result<ObjectId> {
        let base = match parent {
            Some(parent) => self.repository.find_commit(parent)?.tree_id()?.detach(),
            None => ObjectId::empty_tree(self.repository.object_hash()),
        };
        let mut tree = self.repository.edit_tree(base)?;
        for file in files {
            let kind = if file.path.ends_with(".sh") { EntryKind::BlobExecutable } else { EntryKind::Blob };
            let blob = self.repository.write_blob(&file.text)?;
            tree.upsert(file.path.as_str(), kind, blob)?;
        }
        let tree = tree.write()?;
        let reference = format!("refs/heads/{branch}");
        let id =
            self.repository.commit_as(self.signature(), self.signature(), reference.as_str(), message, tree, parent)?;
        Ok(id.detach())
    }

    fn point_head_to(&self, branch: &str) -> gix::Result<()> {
        let head = full_name("HEAD")?;
        let target = full_name(&format!("refs/heads/{branch}"))?;
        let edit = RefEdit::update(head, target, PreviousValue::Any, "");
        self.repository.edit_references_as(Some(edit), Some(self.signature()))?;
        Ok(())
    }

    fn signature(&self) -> gix::actor::SignatureRef<'_> {
        gix::actor::SignatureRef { name: BStr::new(AUTHOR), email: BStr::new(EMAIL), time: &self.time }
    }
}

fn full_name(name: &str) -> gix::Result<gix::refs::FullName> {
    gix::refs::FullName::try_from(name).map_err(gix::Error::from_error)
}
