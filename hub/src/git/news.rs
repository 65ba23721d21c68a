//! What is told of repositories: by webhooks, by other hubs, by this hub's own pushes, and to whoever follows changes.

use kedge_hub_types::git::RefName;
use kedge_platform::RepoKey;
use tokio::sync::broadcast;

use super::credential::Reader;
use super::{Mirrors, RepoChange, What};

impl Mirrors {
    /// What moves, fails and recovers from now on.
    pub fn changed(&self) -> broadcast::Receiver<RepoChange> {
        self.inner.around.changes.subscribe()
    }

    /// A webhook said that something was pushed. Says whether this hub follows that repository; when it doesn't, the
    /// leader is told through the database.
    pub fn nudge(&self, url: &str) -> bool {
        let Ok(address) = self.inner.around.rules.access.locate(url) else { return false };
        let key = RepoKey::new(&address.url());
        if self.nudge_key(&key) {
            return true;
        }
        let store = self.inner.around.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.add_nudge(&key).await {
                tracing::warn!(repo = %key, %error, "the leader can't be told of a push; it finds it by polling");
            }
        });
        false
    }

    /// What webhooks told other hubs. Asked by the leader.
    pub async fn take_nudges(&self) {
        match self.inner.around.store.take_nudges().await {
            Ok(repos) => {
                for repo in repos {
                    self.nudge_key(&RepoKey::new(&repo));
                }
            }
            Err(error) => tracing::debug!(%error, "webhooks of other hubs can't be asked for"),
        }
    }

    fn nudge_key(&self, key: &RepoKey) -> bool {
        let known = self.repositories();
        let mut followed = known.iter().filter(|((of, _), _)| of == key).map(|(_, followed)| followed).peekable();
        let is_known = followed.peek().is_some();
        followed.for_each(|followed| followed.repository.nudge());
        is_known
    }

    /// A webhook told of something else than a push: whoever works with the repository looks again.
    pub fn tell(&self, url: &str) {
        let Ok(address) = self.inner.around.rules.access.locate(url) else { return };
        let key = RepoKey::new(&address.url());
        if self.repositories().contains_key(&(key.clone(), Reader::Platform)) {
            let change = RepoChange { key, repo: url.to_owned(), of_platform: true, what: What::Told };
            // Nobody may be listening: this hub doesn't lead.
            let _ = self.inner.around.changes.send(change);
        }
    }

    /// This hub pushed the commit itself, outside of a reconciliation: whoever leads hears of it as of anybody's.
    pub async fn announce(&self, url: &str, branch: &str, commit: &str) {
        let key = self.key(url);
        let reference = RefName::Branch(branch.to_owned());
        let what = What::Moved { reference, commit: commit.to_owned(), forced: false };
        // Nobody may be listening: this hub doesn't lead.
        let change = RepoChange { key: key.clone(), repo: url.to_owned(), of_platform: true, what };
        let _ = self.inner.around.changes.send(change);
        if let Err(error) = self.inner.around.store.add_nudge(&key).await {
            tracing::warn!(repo = %key, %error, "a leader elsewhere can't be told of a push; it finds it by polling");
        }
    }
}
