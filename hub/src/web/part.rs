//! The small parts that every page is made of: a condition's shape and word, a bar of four parts, a commit's chip, a time, a
//! place in a file, the filters of a list.

pub mod bar;
pub mod chip;
pub mod filters;
pub mod pages;
pub mod place;
pub mod said;
pub mod step;
pub mod text;
pub mod tone;
pub mod when;

pub use bar::{Bar, Four};
pub use chip::Chip;
pub use filters::Filters;
pub use pages::Pages;
pub use place::Place;
pub use said::Said;
pub use step::{Check, Step};
pub use text::Text;
pub use tone::{Shape, State, Tone};
pub use when::When;
