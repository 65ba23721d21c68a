//! Who looks: an access token opens a session, a cookie carries it, and a form that changes something proves that it came from
//! one of our pages.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use askama::Template;
use axum::extract::ConnectInfo;
use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use kedge_model::shown::is_hidden;
use kedge_model::wire::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::frame::{Frame, Section};
use super::{Show, WebError, links};
use crate::api::answer::ApiError;
use crate::api::caller::{check_time, same_bytes};
use crate::api::limit::Whose;
use crate::api::{ApiState, Caller, gate};
use crate::store::api::access::AccessToken;
use crate::store::now;
use crate::store::sessions::{Secret, SessionKind};

/// A person who is logged in.
#[derive(Clone, Debug)]
pub struct Viewer {
    pub caller: Caller,
    /// Goes into every form.
    pub csrf: String,
    /// How many problems there are, for every page's frame; none: it isn't known just now.
    pub problems: Option<u64>,
}

/// A session that the database knows, of a token that is still good.
#[derive(Clone, Debug)]
pub struct Proven {
    secret: Secret,
    token: AccessToken,
}

impl Proven {
    pub fn token_id(&self) -> &str {
        &self.token.id
    }

    /// Whether the session and its token are still good: for who is told things for a while.
    pub async fn stands(&self, state: &ApiState) -> Result<bool, ApiError> {
        let token = state.store.session(&self.secret.hash(), now()).await?;
        Ok(token.is_some_and(|token| check_time(&token).is_ok()))
    }
}

/// A form of ours, sent by a person who is logged in.
#[derive(Debug)]
pub struct Confirmed<T> {
    pub viewer: Viewer,
    pub form: T,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: Frame,
    next: String,
    wrong: Option<ApiError>,
}

/// Whom a link would log in.
#[derive(Template)]
#[template(path = "follow.html")]
struct FollowPage {
    frame: Frame,
    who: String,
    role: &'static str,
    /// Who is logged in now, if that is somebody else.
    instead_of: Option<String>,
    action: String,
}

/// Where to go after.
#[derive(Debug, Default, Deserialize)]
pub struct LoginQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub struct LoginForm {
    token: String,
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct Proof {
    #[serde(default)]
    csrf: String,
}

/// A screen on a wall stays logged in for a week; a revoked token ends its sessions at once.
const LIFE_S: i64 = 7 * 24 * 3600;
/// Over TLS a browser takes this name only for the whole host and only over TLS.
const SECURE_COOKIE: &str = "__Host-kedge";
const PLAIN_COOKIE: &str = "kedge";
/// The largest form is a pasted plan.
const MAX_FORM: usize = super::MAX_FORM;

impl FromRequestParts<ApiState> for Viewer {
    type Rejection = WebError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Viewer, WebError> {
        let address = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = shown(address.map(|peer| peer.0.ip()));
        let to_login = || {
            // What was sent is lost; the page it was sent from isn't.
            let next = parts.uri.path_and_query().map_or("/", |next| next.as_str());
            WebError::Login { next: if parts.method == axum::http::Method::GET { next } else { "/" }.to_owned() }
        };
        let proven = match parts.extensions.get::<Proven>() {
            Some(proven) => Some(proven.clone()),
            None => prove(state, &parts.headers).await?,
        };
        let Proven { secret, token } = proven.ok_or_else(to_login)?;
        let caller = Caller::of_token(state, token, &address).map_err(|_| to_login())?;
        if let Err(seconds) = state.limits.take(Whose::Token(caller.token.clone()), Instant::now()) {
            return Err(gate::too_many(seconds).into());
        }
        // Who sends a form sees no frame, and a number isn't worth a page.
        let problems = match parts.method {
            axum::http::Method::GET => state.problems.count(state, &caller).await.ok(),
            _ => None,
        };
        Ok(Viewer { caller, csrf: secret.word_for_forms(), problems })
    }
}

impl<T: DeserializeOwned> FromRequest<ApiState> for Confirmed<T> {
    type Rejection = WebError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Confirmed<T>, WebError> {
        from_our_page(state, request.headers())?;
        let (mut parts, body) = request.into_parts();
        let viewer = Viewer::from_request_parts(&mut parts, state).await?;
        let bytes = axum::body::to_bytes(body, MAX_FORM).await.map_err(|_| {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "the form holds more than half a megabyte")
        })?;
        let again = |bytes| Request::from_parts(parts.clone(), axum::body::Body::from(bytes));
        let Form(proof) = Form::<Proof>::from_request(again(bytes.clone()), state).await?;
        if !same_bytes(proof.csrf.as_bytes(), viewer.csrf.as_bytes()) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "ForeignForm", "this form wasn't made for this session")
                .hint("go back, load the page again, and send it once more")
                .into());
        }
        let Form(form) = Form::<T>::from_request(again(bytes), state).await?;
        Ok(Confirmed { viewer, form })
    }
}

/// The page that asks for a token.
pub async fn ask(query: Result<Query<LoginQuery>, QueryRejection>) -> Result<Response, WebError> {
    let next = inside(&query?.0.next);
    Ok(Show(LoginPage { frame: Frame::bare("Log in", Section::None), next, wrong: None }).into_response())
}

pub async fn log_in(
    State(state): State<ApiState>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Result<Response, WebError> {
    from_our_page(&state, &headers)?;
    let form = form?.0;
    let next = inside(&form.next);
    let address = peer.map(|peer| peer.0.0.ip());
    match Caller::with_token(&state, form.token.trim(), &shown(address)).await {
        Ok(caller) => open(&state, &caller.token, &next, address).await,
        Err(wrong) if wrong.status == StatusCode::UNAUTHORIZED => {
            state.note_failed_login(address, &wrong).await;
            let page = LoginPage { frame: Frame::bare("Log in", Section::None), next, wrong: Some(wrong) };
            Ok((StatusCode::UNAUTHORIZED, Show(page)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// A link works once. Followed from another site, or by a browser in which somebody else is logged in, it asks first: nobody is to
/// act as another person without having noticed.
pub async fn follow_link(
    State(state): State<ApiState>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    before: Option<Extension<Proven>>,
    method: Method,
    headers: HeaderMap,
    code: Result<Path<String>, PathRejection>,
) -> Result<Response, WebError> {
    // Who only looks whether there is something, as a preview of a message does, doesn't use it up.
    if method != Method::GET {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (code, address) = (code?.0, peer.map(|peer| peer.0.0.ip()));
    let token = match Secret::parse(&code) {
        Some(secret) => state.store.link(&secret.hash(), now()).await?,
        None => None,
    };
    let Some(token) = token else { return Err(link_used(&state, address).await) };
    let known = state.store.access_token(&token).await?.ok_or_else(|| ApiError::not_found("such access token"))?;
    let other = before.map(|before| before.0.token).filter(|before| before.person != known.person);
    if other.is_none() && !is_foreign(&headers) {
        return enter(&state, &code, address).await;
    }
    let page = FollowPage {
        frame: Frame::bare("Log in", Section::None),
        who: known.person_name,
        role: known.role.as_str(),
        instead_of: other.map(|other| other.person_name),
        action: format!("/login/{}", links::part(&code)),
    };
    Ok(Show(page).into_response())
}

/// The button of the page that asked.
pub async fn take_link(
    State(state): State<ApiState>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    code: Result<Path<String>, PathRejection>,
) -> Result<Response, WebError> {
    from_our_page(&state, &headers)?;
    enter(&state, &code?.0, peer.map(|peer| peer.0.0.ip())).await
}

/// Uses a link up.
async fn enter(state: &ApiState, code: &str, address: Option<IpAddr>) -> Result<Response, WebError> {
    let token = match Secret::parse(code) {
        Some(secret) => {
            let mut tx = state.store.write().await?;
            let token = tx.take_link(&secret.hash(), now()).await?;
            tx.commit().await?;
            token
        }
        None => None,
    };
    match token {
        Some(token) => open(state, &token, "/", address).await,
        None => Err(link_used(state, address).await),
    }
}

async fn link_used(state: &ApiState, address: Option<IpAddr>) -> WebError {
    let used = ApiError::new(StatusCode::GONE, "LinkUsed", "this link was used already, or its ten minutes are over")
        .hint("`kedge open` makes a new one; or log in with your access token");
    state.note_failed_login(address, &used).await;
    used.into()
}

pub async fn log_out(
    State(state): State<ApiState>,
    headers: HeaderMap,
    confirmed: Confirmed<serde_json::Map<String, serde_json::Value>>,
) -> Result<Response, WebError> {
    if let Some(secret) = carried(&state, &headers) {
        let mut tx = state.store.write().await?;
        tx.end_session(&secret.hash()).await?;
        tx.audit(&confirmed.viewer.caller.did("session.end", "", "", serde_json::Value::Null)).await?;
        tx.commit().await?;
    }
    let mut response = Redirect::to("/login").into_response();
    set_cookie(&state, &mut response, "", 0);
    Ok(response)
}

/// Begins a session of a token that was proven.
async fn open(state: &ApiState, token: &str, next: &str, address: Option<IpAddr>) -> Result<Response, WebError> {
    let (secret, at) = (Secret::generate(), now());
    let until = Timestamp(at.0.saturating_add(LIFE_S * 1000));
    let known = state.store.access_token(token).await?.ok_or_else(|| ApiError::not_found("such access token"))?;
    let caller = Caller::of_token(state, known, &shown(address))?;
    let mut tx = state.store.write().await?;
    tx.insert_session(SessionKind::Session, &secret.hash(), token, until, at).await?;
    tx.audit(&caller.did("session.begin", "", "", json!({"until": crate::api::page::moment(until.0)}))).await?;
    tx.commit().await?;
    let mut response = Redirect::to(next).into_response();
    set_cookie(state, &mut response, secret.text(), LIFE_S);
    Ok(response)
}

/// Lax: a link in a colleague's message shows the page; a foreign form doesn't carry it.
fn set_cookie(state: &ApiState, response: &mut Response, value: &str, seconds: i64) {
    let (name, secure) = if state.secure { (SECURE_COOKIE, "; Secure") } else { (PLAIN_COOKIE, "") };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
        // No proxy keeps it for others.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

fn carried(state: &ApiState, headers: &HeaderMap) -> Option<Secret> {
    let wanted = if state.secure { SECURE_COOKIE } else { PLAIN_COOKIE };
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).and_then(|(_, value)| Secret::parse(value))
}

/// The session that a request carries, if it is one that hasn't ended.
pub async fn prove(state: &ApiState, headers: &HeaderMap) -> Result<Option<Proven>, ApiError> {
    let Some(secret) = carried(state, headers) else { return Ok(None) };
    let token = state.store.session(&secret.hash(), now()).await?;
    Ok(token.filter(|token| check_time(token).is_ok()).map(|token| Proven { secret, token }))
}

fn shown(address: Option<IpAddr>) -> String {
    address.map(|address| address.to_canonical().to_string()).unwrap_or_default()
}

/// Whether the browser says that another site led here. What was typed, or opened from a terminal, comes from none.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get(header::HeaderName::from_static("sec-fetch-site")).and_then(|value| value.to_str().ok());
    site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

/// Browsers say where a form came from; one that doesn't is let through to the other proofs. Where people reach the hub is what
/// the configuration says, or else whatever host they named.
fn from_our_page(state: &ApiState, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let foreign_site = is_foreign(headers);
    let foreign_origin = match (&state.public_url, text(header::ORIGIN)) {
        (_, None) => false,
        (Some(public), Some(origin)) => !origin.eq_ignore_ascii_case(public),
        (None, Some(origin)) => text(header::HOST).is_some_and(|host| {
            let of = origin.split_once("://").map_or(origin, |(_, of)| of);
            !of.eq_ignore_ascii_case(host)
        }),
    };
    if foreign_site || foreign_origin {
        let foreign = ApiError::new(StatusCode::FORBIDDEN, "ForeignForm", "this form was sent from another site");
        return Err(match &state.public_url {
            Some(public) => foreign.hint(format!("this hub's page is at {public} (`public_url` of its configuration)")),
            None => foreign
                .hint("behind a proxy that changes the host, set `public_url` in [api] of the hub's configuration"),
        });
    }
    Ok(())
}

/// After logging in people go to a page of ours, wherever the address says.
fn inside(next: &str) -> String {
    let ours = next.starts_with('/') && !next.starts_with("//") && !next.contains(|c: char| c == '\\' || is_hidden(c));
    if ours { next.to_owned() } else { "/".to_owned() }
}
