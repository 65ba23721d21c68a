//! Why a file that crosses an air gap isn't signed, made or taken, as the API says it.

use http::StatusCode;
use kedge_bundle::BundleError;
use kedge_hub_types::causes::chain;

use super::refuse;
use crate::agents::SignError;
use crate::airgap::{ExportError, ImportError};
use crate::api::ApiError;

pub fn unsigned(error: SignError) -> ApiError {
    match error {
        SignError::Fleet(error) => refuse(error),
        SignError::Request(_) => ApiError::invalid("BadRequest", error.to_string())
            .hint("write it again on the host: `kedge-agent request -o FILE`"),
        SignError::AlreadyAMember(_) => {
            ApiError::conflict("AlreadyAMember", error.to_string()).hint("move it with `kedge cluster move`")
        }
        SignError::MachineChanged => ApiError::conflict("MachineChanged", error.to_string())
            .hint("remove the agent's state folder on the copy, and write a new request there"),
        SignError::AtOnce => ApiError::unavailable(error.to_string()),
        SignError::Certificate(_) => internal(&error),
    }
}

pub fn unexported(error: ExportError) -> ApiError {
    match error {
        ExportError::Store(error) => error.into(),
        ExportError::Nobody => ApiError::new(StatusCode::NOT_FOUND, "NobodyThere", error.to_string())
            .hint("let a host in first: `kedge token sign`, or `kedge token create`"),
        ExportError::TooMany => {
            ApiError::conflict("TooMany", error.to_string()).hint("make bundles for single clusters: `--cluster NAME`")
        }
        ExportError::NoState(_) => ApiError::conflict("NoState", error.to_string())
            .hint("check with `kedge describe environment` whether the environment was published"),
        ExportError::NoGeneration(..) => {
            ApiError::invalid("NoGeneration", error.to_string()).hint("leave `--since` out, or say `--since reported`")
        }
        ExportError::ManyStreams(_) => ApiError::invalid("ManyStreams", error.to_string()),
        ExportError::Gone(..) => ApiError::conflict("Gone", error.to_string())
            .hint("it is packed again with the next change of its environment"),
        ExportError::Bundle(BundleError::IndexTooLarge(_) | BundleError::Malformed(_)) => {
            ApiError::conflict("TooMany", chain(&error)).hint("make bundles for single clusters: `--cluster NAME`")
        }
        ExportError::Bundle(_) => internal(&error),
    }
}

pub fn unimported(error: ImportError) -> ApiError {
    match error {
        ImportError::Store(error) => error.into(),
        ImportError::File(BundleError::Io(_) | BundleError::File { .. }) => internal(&error),
        ImportError::File(ref file) => {
            let refused = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "BadFile", chain(&error));
            match file.hint() {
                Some(hint) => refused.hint(hint),
                None => refused.hint("it should be what `kedge-agent export` wrote"),
            }
        }
        ImportError::Stranger(_) => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "UnknownCluster", error.to_string())
                .hint("is it of another fleet?")
        }
        ImportError::ShutOut(_) => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Revoked", error.to_string()),
    }
}

fn internal(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "a file for across the air gap failed");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", "the hub failed; see its log for the reason")
}
