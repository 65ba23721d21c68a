//! For who reaches the hub: the others' signs of life and documents go up, and what the hub answers goes into the store, from where each
//! gets its own.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Envelope, MemberAnswer, SiteAnswer, SiteRequest};
use kedge_peer::{Name, Taken};
use tokio::time::Instant;

use super::{Driver, Ended};
use crate::link::{LinkError, Next};

/// After that the hub may answer again; meanwhile another one carries.
const UNREACHABLE: Duration = Duration::from_secs(60);
/// Documents that wait to be brought up: one of each member.
const MAX_UPLOADS: usize = 256;
/// A revoked peer comes and goes; so many are remembered.
const MAX_TURNED_AWAY: usize = 256;

impl Driver {
    pub(super) fn carry(&mut self, signs: Vec<Envelope>) {
        let (link, since) = (Arc::clone(&self.place.link), self.left);
        self.under_way.spawn(async move {
            let request = SiteRequest { presences: signs, since };
            let result = link.site(&request).await;
            Ended::Carried { signs: request.presences, result }
        });
    }

    pub(super) fn carried(&mut self, signs: &[Envelope], result: Result<SiteAnswer, LinkError>) {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(error = error.sentence(), signs = signs.len(), "the site can't be carried for now");
                let now = self.now();
                self.node.not_carried(signs, now);
                self.unreachable_until = Some(Instant::now() + UNREACHABLE);
                return;
            }
        };
        self.unreachable_until = None;
        tracing::debug!(signs = signs.len(), "carried for the site");
        let SiteAnswer { key_sets, states, members, tick, .. } = answer;
        self.left = tick;
        // In this order: each is judged by what came before it.
        let memberships: Vec<Envelope> = members.iter().filter_map(|member| member.membership.clone()).collect();
        for envelope in key_sets.into_iter().chain(memberships).chain(states) {
            self.put(envelope);
        }
        members.into_iter().for_each(|member| self.take_member(member));
    }

    fn take_member(&mut self, member: MemberAnswer) {
        let MemberAnswer { cluster, holds, turn, want_status, refused, .. } = member;
        for envelope in holds.into_iter().chain(turn) {
            self.put(envelope);
        }
        if want_status {
            self.node.lacks(cluster);
        }
        match refused.as_deref() {
            // Its certificate may be good by its dates; the hub no longer takes it.
            Some(why @ ("Revoked" | "Retired" | "UnknownCluster" | "Replaced" | "OtherSite")) => {
                if self.turned_away.len() < MAX_TURNED_AWAY
                    && self.turned_away.insert(cluster, why.to_owned()).is_none()
                {
                    tracing::warn!(peer = %cluster, why, "the hub no longer takes this peer: nothing is shared with it");
                }
                self.node.lost(cluster);
                self.lines.remove(&cluster);
            }
            Some(why) => tracing::debug!(peer = %cluster, why, "the hub doesn't take a sign of life"),
            None => {
                self.turned_away.remove(&cluster);
            }
        }
    }

    /// What the hub or a file said; it is judged as if anybody had.
    pub(super) fn put(&mut self, envelope: Envelope) -> Option<Taken> {
        match self.node.put(envelope) {
            Ok(taken) => {
                if let Taken::New(name) = &taken {
                    self.arrived(name);
                }
                Some(taken)
            }
            Err(why) => {
                tracing::debug!(%why, "what was said for another isn't taken");
                None
            }
        }
    }

    fn arrived(&mut self, name: &Name) {
        self.bring(name);
        if matches!(name, Name::State(_) | Name::Membership(_)) {
            self.count_content();
        }
    }

    pub(super) fn upload(&mut self, document: Envelope) {
        if self.uploads.len() < MAX_UPLOADS {
            self.uploads.push_back(document);
        }
    }

    /// One at a time, over the connection that polls use.
    pub(super) fn upload_next(&mut self) {
        if self.uploading {
            return;
        }
        let Some(document) = self.uploads.pop_front() else { return };
        self.uploading = true;
        let link = Arc::clone(&self.place.link);
        self.under_way.spawn(async move {
            let result = link.send(&document).await;
            Ended::Uploaded { document, result }
        });
    }

    pub(super) fn uploaded(&mut self, document: &Envelope, result: Result<(), LinkError>) {
        self.uploading = false;
        let Err(error) = result else { return };
        tracing::warn!(error = error.sentence(), "the hub didn't take another's document");
        if !matches!(error.next(), Next::Drop | Next::Rarely) {
            self.unreachable_until = Some(Instant::now() + UNREACHABLE);
            // The hub asks for it again with the next sign of life of its owner; holds wait here.
            if document.payload_type != kedge_status::PAYLOAD_TYPE {
                self.upload(document.clone());
            }
        }
    }
}
