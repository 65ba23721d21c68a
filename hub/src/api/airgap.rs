//! Files that cross an air gap: a host's request is signed, a bundle is made for clusters, and what they send back is read. For the
//! platform team; every one of them is in the audit log.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use kedge_api::imports::{ImportSummary, ImportedItem, SignRequest, SignedCluster};
use kedge_model::wire::{ClusterId, Generation};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::clusters::{check_labels, check_site, check_type, find};
use super::page::moment;
use super::services::SignWish;
use super::tag::Streamed;
use crate::airgap::{Import, Imported, Order, Outcome, Since, Whom};
use crate::store::catalog::Visible;

/// For whom a bundle is, and what it leaves out.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BundleQuery {
    pub environment: String,
    /// All members of this type; or `cluster`.
    pub cluster_type: Option<String>,
    /// One cluster, by id or name.
    pub cluster: Option<String>,
    /// Leave out what they have: `reported` to run, or named by a generation (`12`, or by ring: `canary:12,rest:9`).
    pub since: Option<String>,
}

/// Who may import; asked before the file is read, which is large and may take its time.
#[derive(Debug)]
pub struct Importer(Caller);

impl<S: Send + Sync> FromRequestParts<S> for Importer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Importer, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        caller.platform("importing status")?;
        Ok(Importer(caller))
    }
}

/// Documents of thousands of clusters.
pub const MAX_IMPORT: usize = 64 * 1024 * 1024;
/// As it is seen below `/api/v1`.
pub const IMPORT: &str = "/status/import";
const CONTENT_TYPE: &str = "application/vnd.kedge.bundle";

/// Make a host a member by the request that it wrote, and answer with the file for it.
#[utoipa::path(post, path = "/clusters/sign", tag = "air gap", request_body = SignRequest,
    responses((status = OK, body = SignedCluster)))]
pub async fn sign(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<SignRequest>, JsonRejection>,
) -> Result<Json<SignedCluster>, ApiError> {
    if let Ok(Json(body)) = &body {
        caller.asked.set("cluster.sign", body.name.as_deref().unwrap_or_default(), &body.environment);
    }
    caller.platform("letting clusters in")?;
    let body = body?.0;
    check_labels(&body.labels)?;
    check_site(body.site.as_deref())?;
    check_type(&state, &body.environment, &body.cluster_type).await?;
    let detail = json!({"clusterType": body.cluster_type, "labels": body.labels, "site": body.site});
    let wish = SignWish {
        environment: body.environment.clone(),
        cluster_type: body.cluster_type,
        labels: body.labels,
        site: body.site.filter(|site| !site.is_empty()),
        name: body.name,
    };
    let mut tx = state.store.write().await?;
    let signed = state.services.sign_request(&mut tx, &body.request, wish).await?;
    let label = format!("{} ({})", signed.name, signed.cluster);
    tx.audit(&caller.did("cluster.sign", &label, &body.environment, detail)).await?;
    tx.commit().await?;
    state.services.cluster_changed(&signed.cluster).await;
    let cluster = signed.cluster.to_string();
    Ok(Json(SignedCluster { cluster, name: signed.name, again: signed.again, answer: signed.answer }))
}

/// A bundle for clusters that no network reaches, as one file.
#[utoipa::path(get, path = "/bundle", tag = "air gap", params(BundleQuery),
    responses((status = OK, description = "the bundle", content_type = "application/vnd.kedge.bundle", body = Vec<u8>)))]
pub async fn bundle(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<BundleQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    caller.platform("exporting bundles")?;
    let query = query?.0;
    let order = order(&state, &query).await?;
    let export = state.services.export(&order).await?;
    let streams: Vec<String> = export.streams.iter().map(ToString::to_string).collect();
    let detail = json!({
        "clusters": export.clusters, "streams": streams, "blobs": export.blobs(), "leftOut": export.left_out,
        "bytes": export.length(), "since": query.since,
    });
    let whom = query.cluster.or(query.cluster_type).unwrap_or_default();
    state.store.audit(&caller.did("bundle.export", &whom, &query.environment, detail)).await?;
    let length = export.length();
    let mut response = Response::new(Body::from_stream(export.pour()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Streamed);
    Ok(response)
}

/// Take in what an agent without a network sent back in a file.
#[utoipa::path(post, path = "/status/import", tag = "air gap",
    request_body(content = Vec<u8>, content_type = "application/vnd.kedge.bundle"),
    responses((status = OK, body = ImportSummary)))]
pub async fn import(
    State(state): State<ApiState>,
    Importer(caller): Importer,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ImportSummary>, ApiError> {
    let body = body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", format!("a file has at most {MAX_IMPORT} bytes"))
        }
        status => ApiError::new(status, "BadBody", error.to_string()),
    })?;
    let import = state.services.import(body).await?;
    let refused = import.items.iter().filter(|item| matches!(item.outcome, Outcome::Refused { .. })).count();
    let detail = json!({"items": import.items.len(), "refused": refused, "writtenAt": moment(import.written_at.0)});
    state.store.audit(&caller.did("status.import", &import.writer.to_string(), "", detail)).await?;
    Ok(Json(view(&state, import).await?))
}

/// What the query means, with the cluster found by its name.
async fn order(state: &ApiState, query: &BundleQuery) -> Result<Order, ApiError> {
    let environment = query.environment.clone();
    let whom = match (&query.cluster_type, &query.cluster) {
        (Some(cluster_type), None) => {
            check_type(state, &environment, cluster_type).await?;
            Whom::ClusterType(cluster_type.clone())
        }
        (None, Some(name)) => {
            let (id, seen) = find(state, &Visible::All, name).await?;
            if seen.environment != environment {
                let message = format!("cluster {} is in environment {}", seen.name, seen.environment);
                return Err(ApiError::conflict("OtherEnvironment", message));
            }
            Whom::Cluster(id)
        }
        _ => return Err(ApiError::invalid("BadSelection", "name a `clusterType` or a `cluster`, one of both")),
    };
    let since = query.since.as_deref().map(parse_since).transpose();
    let since = since.map_err(|why| ApiError::invalid("BadSince", format!("`since`: {why}")))?.unwrap_or_default();
    Ok(Order { environment, whom, since })
}

fn parse_since(text: &str) -> Result<Since, String> {
    let generation = |text: &str| match text.trim().parse::<u64>() {
        Ok(number) => Ok(Generation(number)),
        Err(_) => Err(format!("`{text}` is neither `reported` nor a generation")),
    };
    match text.trim() {
        "reported" => Ok(Since::Reported),
        rings if rings.contains(':') => {
            let pair = |part: &str| match part.rsplit_once(':') {
                Some((ring, number)) => Ok((ring.trim().to_owned(), generation(number)?)),
                None => Err(format!("`{part}` isn't RING:GENERATION")),
            };
            Ok(Since::Rings(rings.split(',').map(pair).collect::<Result<_, String>>()?))
        }
        number => Ok(Since::Generation(generation(number)?)),
    }
}

async fn view(state: &ApiState, import: Import) -> Result<ImportSummary, ApiError> {
    let mut ids: Vec<String> = import.items.iter().filter_map(|item| item.cluster).map(|id| id.to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut names = BTreeMap::new();
    for some in ids.chunks(super::page::MAX_LIMIT) {
        names.extend(state.store.cluster_names(&Visible::All, some).await?);
    }
    let items = import.items.into_iter().map(|item| imported(item, &names)).collect();
    Ok(ImportSummary { writer: import.writer.to_string(), written_at: moment(import.written_at.0), items })
}

fn imported(item: Imported, names: &BTreeMap<String, String>) -> ImportedItem {
    let cluster = item.cluster.as_ref().map(ClusterId::to_string);
    let name = cluster.as_ref().and_then(|id| names.get(id)).cloned();
    let (what, observed_at) = (item.what.as_str().to_owned(), item.observed_at.map(|at| moment(at.0)));
    let outcome = item.outcome.as_str().to_owned();
    let (reason, message) = match item.outcome {
        Outcome::Refused { reason, message } => (Some(reason.to_owned()), Some(message)),
        _ => (None, None),
    };
    ImportedItem { cluster, name, what, observed_at, outcome, reason, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_what_is_reported_or_a_generation_also_by_ring() {
        assert_eq!(parse_since("reported"), Ok(Since::Reported));
        assert_eq!(parse_since(" 12 "), Ok(Since::Generation(Generation(12))));
        let rings = BTreeMap::from([("canary".to_owned(), Generation(12)), ("rest".to_owned(), Generation(9))]);
        assert_eq!(parse_since("canary:12,rest:9"), Ok(Since::Rings(rings)));
        for wrong in ["", "yesterday", "a:b", "canary:1,2", "-1"] {
            assert!(parse_since(wrong).is_err(), "{wrong}");
        }
    }
}
