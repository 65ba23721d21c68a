//! What the node wants done, and how an exchange that it wanted ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kedge_model::wire::ClusterId;
use kedge_peer::{Action, Message, Misbehavior, Name};
use tokio::time::Instant;

use super::super::dial::{self, DialError, Line};
use super::{Driver, Ended};

/// Connections that are kept open for the next exchange.
const MAX_LINES: usize = 8;
/// Less than the other side waits.
const IDLE: Duration = Duration::from_secs(300);
/// The same of who isn't the uplink: it isn't asked again soon, and an open line costs both sides memory.
const IDLE_OTHERS: Duration = Duration::from_secs(45);

impl Driver {
    pub(super) fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message } => self.send(to, &message),
                Action::Took(name) => self.took(&name),
                Action::Carry(signs) => self.carry(signs),
                Action::Upload(document) => self.upload(document),
                Action::Dropped { peer, why } => self.dropped(peer, &why),
            }
        }
    }

    fn send(&mut self, to: ClusterId, message: &Message) {
        let (kept, addresses) = (self.lines.remove(&to), self.table.addresses(&to));
        let (link, message) = (Arc::clone(&self.place.link), message.to_json());
        self.under_way.spawn(async move {
            let result = async {
                let message = Bytes::from(message.map_err(|_| DialError::Nowhere(to))?);
                if let Some((mut line, _)) = kept.filter(|(line, _)| line.connection.is_open())
                    && let Ok(answer) = line.sync(message.clone()).await
                {
                    return Ok((line, answer));
                }
                // A kept one that the other side had closed is worth a fresh one.
                let mutual = link.mutual()?;
                let mut line: Line = dial::dial_to(&mutual, to, &addresses).await?;
                let answer = line.sync(message).await?;
                Ok((line, answer))
            };
            Ended::Synced { to, result: result.await }
        });
    }

    pub(super) fn synced(&mut self, to: ClusterId, result: Result<(Line, Bytes), DialError>) {
        let now = self.now();
        let actions = match result {
            Ok((line, answer)) => {
                self.table.prove(to, line.address, now);
                self.keep(line);
                match Message::from_json(&answer) {
                    Ok(message) => self.node.answered(to, message, now),
                    Err(error) => self.node.accuse(to, Misbehavior::Unreadable(error.to_string()), now),
                }
            }
            Err(error) => {
                if let DialError::Another { address, .. } = &error {
                    self.table.disprove(&to, *address);
                }
                tracing::debug!(peer = %to, %error, "a peer doesn't answer");
                self.node.failed(to, now)
            }
        };
        self.perform(actions);
        self.show_content();
    }

    fn dropped(&mut self, peer: ClusterId, why: &Misbehavior) {
        let name = self.node.store().member(&peer).map_or_else(|| peer.to_string(), |member| member.name.clone());
        tracing::warn!(peer = %peer, name, why = %why, "a peer lied and is left alone for a while");
        self.lines.remove(&peer);
        self.news.lies = Some(format!("peer {name} is left alone for a while: {why}"));
        self.has_news = true;
    }

    fn took(&mut self, name: &Name) {
        tracing::debug!(document = %name, "a peer brought a document");
        self.bring(name);
        if matches!(name, Name::State(_) | Name::Membership(_)) {
            self.count_content();
        }
    }

    pub(super) fn keep(&mut self, line: Line) {
        if line.connection.is_open() {
            self.lines.insert(line.cluster, (line, Instant::now()));
        }
        while self.lines.len() > MAX_LINES {
            let oldest = self.lines.iter().min_by_key(|(_, (_, since))| *since).map(|(cluster, _)| *cluster);
            oldest.and_then(|oldest| self.lines.remove(&oldest));
        }
    }

    pub(super) fn close_idle(&mut self) {
        let uplink = self.node.uplink();
        self.lines.retain(|cluster, (line, since)| {
            let most = if Some(*cluster) == uplink { IDLE } else { IDLE_OTHERS };
            line.connection.is_open() && since.elapsed() < most
        });
    }
}
