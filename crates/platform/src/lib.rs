//! Reads a control plane, a folder or a Git repository at a revision, and everything that it names, into a
//! [`kedge_model::Platform`]. Used by the CLI on a checkout and by the hub on its mirrors.
//!
//! - [`load`](load()) is the way in: a [`ControlPlane`], the environment's name, and where repositories are found.
//! - [`Repositories`] is that place: [`Sources`] reads the file of `--sources` and never leaves the machine,
//!   [`Fetch`] goes to the addresses themselves and keeps mirrors in a cache.
//! - [`Tree`] is what is read: [`FolderTree`] and [`GitTree`], or one of them with other files over it ([`OverlayTree`]).
//!
//! What is wrong with one file, object or repository is data in the platform; an error means that there is none.

pub mod cache;
pub mod fetch;
pub mod grant;
pub mod ignore;
pub mod load;
pub mod policy;
pub mod read;
pub mod repositories;
pub mod sources;
pub mod tree;
pub mod walk;

#[cfg(test)]
mod testing;

pub use cache::Cache;
pub use fetch::Fetch;
pub use fetch::mirror::{Limits, Link, Mirror, Want};
pub use grant::Grant;
pub use load::{
    ControlPlane, Environments, LoadError, environments, is_main_branch, load, load_applications, load_tree,
};
pub use policy::{DeclaredPolicy, PolicyState, check_chain, check_environment, check_pin_rings, check_pins};
pub use repositories::{RepoError, RepoKey, Repositories, Request};
pub use sources::{Sources, SourcesError};
pub use tree::folder::{FolderTree, is_git_repository};
pub use tree::git::{CommitNote, GitError, GitRepository, GitTree, Revision};
pub use tree::overlay::OverlayTree;
pub use tree::{Tree, TreeError};
