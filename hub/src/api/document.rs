//! The routes of `/api/v1` together with their description: OpenAPI is made from the code.

mod schemas;
#[cfg(test)]
mod tests;

use axum::extract::DefaultBodyLimit;
use kedge_api::error::{ErrorDetail, MEDIA_TYPE};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::Components;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response, Schema, ServerBuilder,
};
use utoipa::{PartialSchema as _, ToSchema as _};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::{
    ApiState, access, airgap, audit, caller, clusters, compare, conditions, counts, drift, evidence, fleet, history,
    holds, join, login, objects, overview, people, plan, problems, promotions, publish, rollouts, search, states,
    workloads,
};

const SCHEME: &str = "accessToken";

const DESCRIPTION: &str = "People and programs ask the hub here. Lists come in pages: follow `next` with `cursor`. \
Every list and object has a strong `ETag`; send it as `If-None-Match` and get 304 when nothing changed. To follow \
changes, send the `kedge-tick` header of an answer as `after`, with `wait=30s`. Values that look secret are shown to the \
platform team only; an application team sees what belongs to its workspaces. A resource is changed with `PATCH`; each \
action has a path of its own. A refused request is answered with problem details (RFC 9457) and a stable `code`.";

/// What can go wrong with any request.
const REFUSALS: [(&str, &str); 7] = [
    ("400", "the request can't be understood"),
    ("401", "no valid access token"),
    ("403", "the token's role doesn't allow it"),
    ("404", "there is no such thing, or it isn't the caller's"),
    ("409", "it can't be done in the present state"),
    ("429", "too many requests; see Retry-After"),
    ("503", "the database can't be reached; see Retry-After"),
];

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(caller::whoami))
        .routes(routes!(login::create_login_link))
        .routes(routes!(fleet::fleet))
        .routes(routes!(conditions::conditions))
        .routes(routes!(drift::drift))
        .routes(routes!(search::search))
        .routes(routes!(overview::workload_overview))
        .routes(routes!(workloads::workloads_overview))
        .routes(routes!(objects::environments))
        .routes(routes!(objects::environment))
        .routes(routes!(objects::cluster_types))
        .routes(routes!(objects::cluster_type))
        .routes(routes!(objects::workloads))
        .routes(routes!(objects::workload))
        .routes(routes!(objects::deployment_targets))
        .routes(routes!(objects::deployment_target))
        .routes(routes!(objects::assignments))
        .routes(routes!(objects::assignment))
        .routes(routes!(problems::problems))
        .routes(routes!(objects::findings))
        .routes(routes!(objects::repositories))
        .routes(routes!(objects::fetch_repository))
        .routes(routes!(publish::confirm_publish))
        .routes(routes!(clusters::clusters))
        .routes(routes!(clusters::cluster, clusters::change_cluster))
        .routes(routes!(airgap::sign))
        .routes(routes!(clusters::replace_cluster))
        .routes(routes!(clusters::retire_cluster))
        .routes(routes!(clusters::readmit_cluster))
        .routes(routes!(clusters::revoke_cluster))
        .routes(routes!(holds::hold))
        .routes(routes!(holds::release))
        .routes(routes!(counts::counts))
        .routes(routes!(compare::compare))
        .routes(routes!(plan::plan).layer(DefaultBodyLimit::max(plan::MAX_BODY)))
        .routes(routes!(states::desired_states))
        .routes(routes!(states::desired_state))
        .routes(routes!(states::desired_state_envelope))
        .routes(routes!(rollouts::rollouts, rollouts::start::start_rollout))
        .routes(routes!(rollouts::rollout))
        .routes(routes!(rollouts::actions::approve_rollout))
        .routes(routes!(rollouts::actions::override_rollout))
        .routes(routes!(rollouts::actions::hurry_rollout))
        .routes(routes!(rollouts::actions::pause_rollout))
        .routes(routes!(rollouts::actions::resume_rollout))
        .routes(routes!(rollouts::actions::abort_rollout))
        .routes(routes!(rollouts::actions::roll_back))
        .routes(routes!(rollouts::status::rollout_status))
        .routes(routes!(rollouts::start::operate))
        .routes(routes!(promotions::promotions))
        .routes(routes!(promotions::promotion))
        .routes(routes!(promotions::start_promotion))
        .routes(routes!(promotions::override_promotion))
        .routes(routes!(promotions::approve_promotion))
        .routes(routes!(promotions::approve_policy))
        .routes(routes!(evidence::evidence))
        .routes(routes!(evidence::one_evidence))
        .routes(routes!(history::history))
        .routes(routes!(history::commit))
        .routes(routes!(airgap::bundle))
        .routes(routes!(airgap::import).layer(DefaultBodyLimit::max(airgap::MAX_IMPORT)))
        .routes(routes!(join::join_tokens, join::create_join_token))
        .routes(routes!(join::revoke_join_token))
        .routes(routes!(access::access_tokens, access::create_access_token))
        .routes(routes!(access::revoke_access_token))
        .routes(routes!(people::people, people::add_person))
        .routes(routes!(people::set_person, people::remove_person))
        .routes(routes!(audit::audit))
}

/// The description of `/api/v1`, as `docs/openapi.json` has it.
pub fn openapi() -> OpenApi {
    let (_, routes) = routes().split_for_parts();
    let info = InfoBuilder::new().title("Kedge hub").version("v1").description(Some(DESCRIPTION));
    let info = info
        .license(Some(
            LicenseBuilder::new().name(env!("CARGO_PKG_LICENSE")).identifier(Some(env!("CARGO_PKG_LICENSE"))).build(),
        ))
        .build();
    let mut api = OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url("/api/v1").build()]))
        .paths(routes.paths)
        .components(routes.components)
        .security(Some([SecurityRequirement::new(SCHEME, Vec::<String>::new())]))
        .build();
    let components = api.components.get_or_insert_default();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("kedge_<id>_<secret>")
        .description(Some("An access token: `kedge access create`"))
        .build();
    components.security_schemes.insert(SCHEME.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
    components.schemas.insert(ErrorDetail::name().into_owned(), ErrorDetail::schema());
    schemas::refer(components);
    for operation in api.paths.paths.values_mut().flat_map(operations) {
        describe_answers(operation, components);
        for (status, why) in REFUSALS {
            let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorDetail::name()))).build();
            let mut response = Response::new(why);
            response.content.insert(MEDIA_TYPE.to_owned(), RefOr::T(body));
            operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
        }
    }
    schemas::leave_out_unused(&mut api);
    api
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    [get, put, post, delete, options, head, patch, trace].into_iter().flatten()
}

/// OpenAPI wants a sentence for every answer. One that has none of its own says what its body is, or else what was asked.
fn describe_answers(operation: &mut Operation, components: &Components) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        if !response.description.is_empty() {
            continue;
        }
        let body = response.content.values().find_map(|content| match content {
            RefOr::T(content) => content.schema.as_ref(),
            RefOr::Ref(_) => None,
        });
        let of_body = body.and_then(|schema| description(schema, components));
        let asked = operation.summary.as_deref().or(operation.description.as_deref());
        response.description = of_body.or(asked).unwrap_or_default().to_owned();
    }
}

/// What a schema says of itself, or of what it refers to.
fn description<'a>(schema: &'a RefOr<Schema>, components: &'a Components) -> Option<&'a str> {
    let schema = match schema {
        RefOr::T(schema) => schema,
        RefOr::Ref(to) => {
            let name = to.ref_location.rsplit('/').next()?;
            match components.schemas.get(name)? {
                RefOr::T(schema) => schema,
                RefOr::Ref(_) => return None,
            }
        }
    };
    let said = match schema {
        Schema::Object(object) => object.description.as_deref(),
        Schema::Array(array) => array.description.as_deref(),
        Schema::OneOf(choice) => choice.description.as_deref(),
        Schema::AllOf(parts) => parts.description.as_deref(),
        Schema::AnyOf(choice) => choice.description.as_deref(),
        _ => None,
    };
    said.filter(|said| !said.is_empty())
}
