//! Persons: whom access tokens belong to, and what approvals count. Administrators add and remove them.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_api::page::Page;
use kedge_api::people::{NewPersonRequest, PersonSummary, SetPersonRequest};
use kedge_model::name::check_person_name;
use serde_json::json;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::page::{self, ListQuery, Listed, moment};
use crate::store::now;
use crate::store::people::{PersonRow, Shared};

/// A name that fits in a line of the log.
const MAX_NAME: usize = 100;
const MAX_EMAILS: usize = 20;
const MAX_EMAIL: usize = 254;
/// Those that still count as a person's: none is forgotten to make place, or notAuthor would forget whose a change is.
const MAX_FORMER: usize = 100;

/// Add a person.
#[utoipa::path(post, path = "/people", tag = "access", request_body = NewPersonRequest,
    responses((status = CREATED, body = PersonSummary, description = "the new person")))]
pub async fn add_person(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<NewPersonRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<PersonSummary>), ApiError> {
    caller.administrator("adding people")?;
    let NewPersonRequest { name, emails } = body?.0;
    let person = PersonRow::new(name.trim(), &emails, &caller.person);
    check(&person.name, &person.emails)?;
    let mut tx = state.store.write().await?;
    // One after the other: two of one name can't be added at once.
    tx.tick().await?;
    if let Some(shared) = tx.shared(&person.id, &person.name, &person.emails).await? {
        return Err(refuse(shared));
    }
    tx.insert_person(&person).await?;
    let detail = json!({"name": person.name, "emails": person.emails});
    tx.audit(&caller.did("person.add", &person.id, "", detail)).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(view(person))))
}

/// People.
#[utoipa::path(get, path = "/people", tag = "access", params(ListQuery),
    responses((status = OK, body = Page<PersonSummary>, description = "a page of people")))]
pub async fn people(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Listed<PersonSummary>, ApiError> {
    caller.sees_people("the list of people")?;
    let query = query?.0.paging();
    let limit = query.limit()?;
    let tick = state.ticks.current(&state.store).await?;
    let after = query.from::<String>()?.unwrap_or_default();
    let mut found = state.store.people(&after, i64::try_from(limit + 1).unwrap_or(i64::MAX)).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.id));
    Ok(Listed { page: Page { items: found.into_iter().map(view).collect(), removed: Vec::new(), next }, tick })
}

/// Change a person's name or addresses.
#[utoipa::path(patch, path = "/people/{person}", tag = "access", params(("person" = String, Path)),
    request_body = SetPersonRequest, responses((status = OK, body = PersonSummary, description = "as it is now")))]
pub async fn set_person(
    State(state): State<ApiState>,
    caller: Caller,
    person: Result<Path<String>, PathRejection>,
    body: Result<Json<SetPersonRequest>, JsonRejection>,
) -> Result<Json<PersonSummary>, ApiError> {
    caller.administrator("changing people")?;
    let id = named(&state, &person?.0).await?.id;
    let SetPersonRequest { name, emails } = body?.0;
    let mut tx = state.store.write().await?;
    // One after the other: no change of somebody else's goes unseen.
    tx.tick().await?;
    let person = tx.person(&id).await?.ok_or_else(|| ApiError::not_found(format!("person {id}")))?;
    let before = json!({"name": person.name, "emails": person.emails});
    let name = name.map_or_else(|| person.name.clone(), |name| name.trim().to_owned());
    let lower = |emails: Vec<String>| emails.iter().map(|email| email.trim().to_lowercase()).collect();
    let emails = emails.map_or_else(|| person.emails.clone(), lower);
    check(&name, &emails)?;
    let person = person.changed(name, emails, now().0);
    if person.former.len() > MAX_FORMER {
        let message = format!("{id} had {MAX_FORMER} other names and addresses within ninety days: no further one");
        return Err(ApiError::conflict("TooManyChanges", message));
    }
    if let Some(shared) = tx.shared(&person.id, &person.name, &person.emails).await? {
        return Err(refuse(shared));
    }
    if !tx.set_person(&person).await? {
        return Err(ApiError::not_found(format!("person {}", person.id)));
    }
    let detail = json!({"before": before, "after": {"name": person.name, "emails": person.emails}});
    tx.audit(&caller.did("person.set", &person.id, "", detail)).await?;
    tx.commit().await?;
    Ok(Json(view(person)))
}

/// Remove a person and revoke all of that person's tokens at once. Decisions and history stay.
#[utoipa::path(delete, path = "/people/{person}", tag = "access", params(("person" = String, Path)),
    responses((status = NO_CONTENT, description = "it is removed")))]
pub async fn remove_person(
    State(state): State<ApiState>,
    caller: Caller,
    person: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    caller.administrator("removing people")?;
    let person = named(&state, &person?.0).await?;
    let mut tx = state.store.write().await?;
    let Some(tokens) = tx.remove_person(&person.id, now().0).await? else {
        return Err(ApiError::not_found(format!("person {}", person.id)));
    };
    tx.audit(&caller.did("person.remove", &person.id, "", json!({"name": person.name, "tokens": tokens}))).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The person with this id or name.
pub async fn named(state: &ApiState, text: &str) -> Result<PersonRow, ApiError> {
    let mut found = state.store.people_called(text).await?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(ApiError::not_found(format!("person {text}"))
            .hint("`kedge person list` has their names and ids; `kedge person add` adds one")),
        count => {
            let ids: Vec<&str> = found.iter().map(|person| person.id.as_str()).collect();
            Err(ApiError::conflict("SeveralPeople", format!("{count} people have the name {text}"))
                .hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}

fn check(name: &str, emails: &[String]) -> Result<(), ApiError> {
    if let Err(why) = check_person_name(name) {
        let hint = "two people mustn't look the same in the audit log";
        return Err(ApiError::invalid("BadName", format!("`name`: {why}")).hint(hint));
    }
    if name.len() > MAX_NAME {
        let message = format!("`name` is plain text of up to {MAX_NAME} bytes: the audit log shows it");
        return Err(ApiError::invalid("BadName", message));
    }
    let address = |email: &String| {
        let (local, host) = email.split_once('@').unwrap_or_default();
        let plain = |c: char| !c.is_control() && !c.is_whitespace() && !"<>,;\"".contains(c);
        !local.is_empty() && !host.is_empty() && email.len() <= MAX_EMAIL && email.chars().all(plain)
    };
    if emails.len() > MAX_EMAILS || !emails.iter().all(address) {
        let message = format!("`emails` are up to {MAX_EMAILS} addresses: `anna@example.com`");
        return Err(ApiError::invalid("BadEmail", message));
    }
    Ok(())
}

fn refuse(shared: Shared) -> ApiError {
    match shared {
        Shared::Name { with } => ApiError::conflict("NameTaken", format!("{with} has this name already"))
            .hint("a person may have several tokens: `kedge access create --person`"),
        Shared::Email { email, with } => {
            ApiError::conflict("EmailTaken", format!("{email} is an address of {with} already: that is one person"))
        }
    }
}

fn view(person: PersonRow) -> PersonSummary {
    PersonSummary {
        id: person.id,
        name: person.name,
        emails: person.emails,
        created_at: moment(person.created_at),
        created_by: person.created_by,
        removed_at: person.removed_at.map(moment),
    }
}
