//! `kedge-hub administrator`: adds a person who makes people and tokens, and prints the token. For a hub that has no
//! administrator, or whose administrators lost theirs; who may read the hub's database may do this. Works beside a running
//! hub.

use clap::Args;
use kedge_model::name::check_person_name;
use kedge_model::wire::Timestamp;
use serde_json::json;

use super::Settings;
use super::output::line;
use crate::run::join_store;
use crate::store::api::audit::AuditEntry;
use crate::store::people::{PersonRow, Shared};
use crate::store::tokens::{Grant, NewToken, Role};
use crate::store::{Store, now};

/// Add an administrator, who can add people and create tokens, and print the token
///
/// An administrator adds people, creates access tokens and reads as a viewer, but can't approve or move anything. The audit log
/// records that the token was created on the hub's host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub administrator --config /etc/kedge/hub.toml --name anna > anna.token")]
pub(super) struct AdministratorArgs {
    #[command(flatten)]
    settings: Settings,
    /// The new person's name; it must be unique
    #[arg(long, value_name = "NAME", default_value = "administrator")]
    name: String,
}

#[derive(Debug, thiserror::Error)]
enum AdministratorError {
    #[error("a person named `{0}` is there already: choose another name with --name")]
    NameTaken(String),
    #[error("a name is plain text of up to {MAX_NAME} bytes")]
    BadName,
}

const MAX_NAME: usize = 100;
/// A token that nobody renews was forgotten: it ends by itself.
const LIFE_MS: i64 = 365 * 24 * 3600 * 1000;

pub(super) async fn run(args: AdministratorArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    let store = join_store(&config).await?;
    let token = add(&store, args.name.trim()).await?;
    store.close().await;
    eprintln!("{} may now make people and tokens, for a year: kedge login URL < TOKEN-FILE", args.name.trim());
    line!("{token}")?;
    Ok(())
}

async fn add(store: &Store, name: &str) -> anyhow::Result<String> {
    if name.len() > MAX_NAME || check_person_name(name).is_err() {
        return Err(AdministratorError::BadName.into());
    }
    let (person, token) = (PersonRow::new(name, &[], ""), NewToken::generate());
    let expires = Some(Timestamp(now().0.saturating_add(LIFE_MS)));
    let mut tx = store.write().await?;
    tx.tick().await?;
    if let Some(Shared::Name { .. } | Shared::Email { .. }) = tx.shared(&person.id, name, &[]).await? {
        return Err(AdministratorError::NameTaken(name.to_owned()).into());
    }
    tx.insert_person(&person).await?;
    let role = Role::Administrator;
    let grant = Grant { person: &person.id, name, role, workspaces: &[], expires, created_by: "" };
    tx.insert_api_token(&token, &grant).await?;
    tx.audit(&entry("person.add", &person.id, json!({"name": name}))).await?;
    let detail = json!({"person": person.id, "personName": name, "name": name, "role": role.as_str()});
    tx.audit(&entry("access-token.create", &token.id, detail)).await?;
    tx.commit().await?;
    Ok(token.text())
}

/// Nobody is logged in at the hub's host: the Unix user stands for it.
fn entry(action: &str, object: &str, detail: serde_json::Value) -> AuditEntry {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let user = user.map_or_else(|| nix::unistd::getuid().to_string(), |user| user.name);
    AuditEntry {
        token: String::new(),
        person: String::new(),
        who: format!("{user} on the hub's host"),
        role: "host".to_owned(),
        action: action.to_owned(),
        object: object.to_owned(),
        environment: String::new(),
        detail,
        address: String::new(),
        result: "done".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::api::audit::AuditFilter;
    use crate::store::test_database;

    #[tokio::test]
    async fn the_host_adds_an_administrator_and_the_audit_says_so() {
        let (_folder, store) = test_database::sqlite().await;
        let text = add(&store, "anna").await.unwrap();
        let token = NewToken::parse(&text).unwrap();
        let stored = store.access_token(&token.id).await.unwrap().unwrap();
        assert_eq!((stored.role, stored.person_name.as_str()), (Role::Administrator, "anna"));
        assert!(store.has_administrator().await.unwrap());
        let audited = store.audit_page(&AuditFilter { limit: 10, ..AuditFilter::default() }).await.unwrap();
        assert!(audited.iter().all(|entry| entry.entry.who.ends_with("on the hub's host")));
        assert_eq!(audited.len(), 2);
        assert!(add(&store, "Anna").await.is_err());
    }
}
