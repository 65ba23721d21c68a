//! `/keys`: what the keyboard does.

use askama::Template;

use crate::web::frame::{Frame, Section};
use crate::web::{Show, Viewer};

#[derive(Template)]
#[template(path = "keys.html")]
pub struct Keys {
    frame: Frame,
}

pub async fn page(viewer: Viewer) -> Show<Keys> {
    Show(Keys { frame: Frame::of(&viewer, "Keys", Section::None) })
}
