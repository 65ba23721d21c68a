//! Who asks: an access token becomes a caller with a role, and the role says what it sees and does.

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use kedge_api::people::WhoAmI;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Person, Say, Word};

use super::ApiState;
use super::answer::{ApiError, NamedToken};
use super::attempt::Asked;
use crate::store::api::access::AccessToken;
use crate::store::api::audit::AuditEntry;
use crate::store::catalog::Visible;
use crate::store::now;
use crate::store::tokens::{NewToken, Role};

/// A token that was checked, and where the request came from.
#[derive(Clone, Debug)]
pub struct Caller {
    pub token: String,
    /// The id of whose it is.
    pub person: String,
    /// The person's name.
    pub name: String,
    /// As an administrator set them.
    pub emails: Vec<String>,
    /// Names and addresses that were taken away not long ago.
    pub former: Vec<String>,
    pub role: Role,
    pub workspaces: Vec<String>,
    pub made_at: i64,
    pub expires_at: Option<i64>,
    pub address: String,
    /// What the request is about, for the audit log when it is refused.
    pub(super) asked: Asked,
}

/// How often the last use of a token is written down.
const USE_NOTED_MS: i64 = 5 * 60 * 1000;

impl Caller {
    /// The caller of a request with an `Authorization` header; none when it has no such header.
    pub async fn of(state: &ApiState, headers: &HeaderMap, address: &str) -> Result<Option<Caller>, ApiError> {
        let Some(header) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
        let text = header.to_str().ok().and_then(|text| text.split_once(' '));
        let sent = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let text = sent.unwrap_or_default();
        Caller::with_token(state, text, address).await.map(Some)
    }

    /// The caller whose access token this is.
    pub async fn with_token(state: &ApiState, text: &str, address: &str) -> Result<Caller, ApiError> {
        let presented = NewToken::parse(text).ok_or_else(|| {
            unauthorized("BadToken", "this is no access token").hint("one begins with `kedge_`; a join token isn't one")
        })?;
        let known = state.store.access_token(&presented.id).await?;
        let hash = presented.secret_hash();
        // One answer for an unknown id and a wrong secret, and the same work: nobody learns which ids exist.
        let stored = known.as_ref().map_or("", |token| token.secret_hash.as_str());
        let fits = same_bytes(hash.as_bytes(), stored.as_bytes());
        if let Some(token) = known.as_ref().filter(|_| fits) {
            return Caller::of_token(state, token.clone(), address);
        }
        let unknown = unauthorized("UnknownToken", "the hub doesn't know this access token")
            .hint("ask an administrator for one: `kedge access create`");
        Err(ApiError { named: known.as_ref().map(named), ..unknown })
    }

    /// The caller behind a token that was proven before.
    pub fn of_token(state: &ApiState, token: AccessToken, address: &str) -> Result<Caller, ApiError> {
        check_time(&token).map_err(|refused| ApiError { named: Some(named(&token)), ..refused })?;
        note_use(state, &token);
        Ok(Caller {
            token: token.id,
            person: token.person,
            name: token.person_name,
            emails: token.emails,
            former: token.former,
            made_at: token.created_at,
            role: token.role,
            workspaces: token.workspaces,
            expires_at: token.expires_at,
            address: address.to_owned(),
            asked: Asked::default(),
        })
    }

    /// After a wait: whether the token is still good.
    pub async fn check_again(&self, state: &ApiState) -> Result<(), ApiError> {
        let token = state.store.access_token(&self.token).await?;
        check_time(&token.ok_or_else(|| unauthorized("UnknownToken", "the hub doesn't know this access token"))?)
    }

    pub fn visible(&self) -> Visible {
        match self.role {
            Role::Viewer | Role::Platform | Role::Administrator => Visible::All,
            Role::Application => Visible::Workspaces(self.workspaces.clone()),
        }
    }

    pub fn sees_secrets(&self) -> bool {
        self.role == Role::Platform
    }

    /// Refuses who isn't of the platform team.
    pub fn platform(&self, what: &str) -> Result<(), ApiError> {
        if self.role == Role::Platform {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("{what} is for the platform team; this token's role is {}", self.role)))
    }

    /// Whether it may read and nothing else, but for people and their tokens.
    pub fn only_looks(&self) -> bool {
        matches!(self.role, Role::Viewer | Role::Administrator)
    }

    /// Refuses who isn't an administrator.
    pub fn administrator(&self, what: &str) -> Result<(), ApiError> {
        if self.role == Role::Administrator {
            return Ok(());
        }
        let message = format!("{what} is for administrators; this token's role is {}", self.role);
        Err(ApiError::forbidden(message)
            .hint("ask an administrator; where there is none, `kedge-hub administrator` on the hub's host makes one"))
    }

    /// Refuses who neither makes tokens nor runs the platform.
    pub fn sees_people(&self, what: &str) -> Result<(), ApiError> {
        if self.role == Role::Administrator { Ok(()) } else { self.platform(what) }
    }

    /// Whether it reads people's e-mail addresses.
    pub fn sees_addresses(&self) -> bool {
        matches!(self.role, Role::Platform | Role::Administrator)
    }

    /// What this person says now.
    pub fn word(&self, say: Say, reason: &str) -> Word {
        Word {
            who: self.name.clone(),
            person: Person {
                id: self.person.clone(),
                emails: self.emails.clone(),
                former: self.former.clone(),
                token_made_at: Some(Timestamp(self.made_at)),
            },
            role: self.role.as_str().to_owned(),
            at: now(),
            reason: reason.to_owned(),
            say,
            new_token: false,
        }
    }

    /// Refuses application teams: what isn't about workspaces.
    pub fn not_application(&self, what: &str) -> Result<(), ApiError> {
        if self.role != Role::Application {
            return Ok(());
        }
        Err(ApiError::forbidden(format!(
            "{what} is for the platform team and viewers; this token is an application team's"
        )))
    }

    /// The audit's entry of a write that is done.
    pub fn did(&self, action: &str, object: &str, environment: &str, detail: serde_json::Value) -> AuditEntry {
        AuditEntry {
            token: self.token.clone(),
            person: self.person.clone(),
            who: self.name.clone(),
            role: self.role.as_str().to_owned(),
            action: action.to_owned(),
            object: object.to_owned(),
            environment: environment.to_owned(),
            detail,
            address: self.address.clone(),
            result: "done".to_owned(),
        }
    }
}

/// The gate put it there.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, ApiError> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(no_token)
    }
}

/// Who the token belongs to, and what it may do.
#[utoipa::path(get, path = "/whoami", tag = "access", responses((status = OK, body = WhoAmI)))]
pub async fn whoami(caller: Caller) -> axum::Json<WhoAmI> {
    axum::Json(WhoAmI {
        token: caller.token,
        person: caller.person,
        name: caller.name,
        emails: caller.emails,
        role: caller.role.as_str().to_owned(),
        workspaces: caller.workspaces,
        expires_at: caller.expires_at.map(super::page::moment),
        hub: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub fn no_token() -> ApiError {
    unauthorized("NoToken", "the request carries no access token").hint("log in: `kedge login URL`")
}

pub fn unauthorized(reason: &'static str, message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, reason, message)
}

fn named(token: &AccessToken) -> Box<NamedToken> {
    let (id, person, person_name) = (token.id.clone(), token.person.clone(), token.person_name.clone());
    Box::new(NamedToken { id, person, person_name })
}

/// Neither revoked nor expired.
pub fn check_time(token: &AccessToken) -> Result<(), ApiError> {
    if token.revoked_at.is_some() {
        return Err(unauthorized("TokenRevoked", "this access token was revoked"));
    }
    if token.expires_at.is_some_and(|until| until <= now().0) {
        return Err(unauthorized("TokenExpired", "this access token has expired")
            .hint("ask an administrator for a new one: `kedge access create`"));
    }
    Ok(())
}

/// Takes the same time wherever two texts differ.
pub fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |found, (a, b)| found | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// Written beside the request: nobody waits for it, and a lost one does no harm.
fn note_use(state: &ApiState, token: &AccessToken) {
    let at = now().0;
    if token.last_used.is_none_or(|before| at - before > USE_NOTED_MS) {
        let (store, id) = (state.store.clone(), token.id.clone());
        tokio::spawn(async move {
            if let Err(error) = store.note_use_of_access_token(&id, at).await {
                tracing::debug!(token = id, %error, "the use of an access token isn't noted");
            }
        });
    }
}
