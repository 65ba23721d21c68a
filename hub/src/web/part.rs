//! The small parts that every page is made of: a condition's shape and word, a bar of four parts, a commit's chip, a time.

pub mod bar;
pub mod chip;
pub mod mood;
pub mod pages;
pub mod step;
pub mod when;

pub use bar::{Bar, Four};
pub use chip::Chip;
pub use mood::{Mood, Shape, State};
pub use pages::Pages;
pub use step::{Check, Step};
pub use when::When;
