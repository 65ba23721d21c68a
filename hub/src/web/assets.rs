//! The style sheet, the script and the icon, in the binary. Their addresses hold a digest of their text, so that a browser may
//! keep them for good.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kedge_model::wire::Digest;

use crate::api::ApiState;

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const STYLE: Asset =
    Asset { name: "kedge.css", kind: "text/css; charset=utf-8", text: include_str!("../../assets/kedge.css") };
const SCRIPT: Asset =
    Asset { name: "kedge.js", kind: "text/javascript; charset=utf-8", text: include_str!("../../assets/kedge.js") };
const ICON: Asset = Asset { name: "kedge.svg", kind: "image/svg+xml", text: include_str!("../../assets/kedge.svg") };

/// Where the pages find them.
pub static STYLE_PATH: LazyLock<String> = LazyLock::new(|| STYLE.path());
pub static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| SCRIPT.path());
pub static ICON_PATH: LazyLock<String> = LazyLock::new(|| ICON.path());

/// So many digits tell two versions apart.
const DIGITS: usize = 12;

impl Asset {
    fn path(&self) -> String {
        let digits = Digest::of(self.text.as_bytes()).hex();
        format!("/assets/{}/{}", digits.get(..DIGITS).unwrap_or_default(), self.name)
    }
}

pub fn routes() -> Router<ApiState> {
    Router::new().route("/assets/{digest}/{name}", get(asset)).route("/favicon.ico", get(async || answer(&ICON)))
}

/// Another digest is of another version: the page that asks for it is older or newer than this hub.
async fn asset(Path((_, name)): Path<(String, String)>) -> Response {
    match [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name) {
        Some(asset) => answer(asset),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer(asset: &Asset) -> Response {
    let headers = [(header::CONTENT_TYPE, asset.kind), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, asset.text).into_response()
}
