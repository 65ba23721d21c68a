//! Which function a name stands for: sprig's first, then Kalypso's four, then Go's own. The parser asks it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::function::Function;
use crate::syntax::{Builtin, Callee};
use crate::{kalypso, sprig};

static FUNCTIONS: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    kalypso::FUNCTIONS.iter().chain(sprig::functions()).map(|function| (function.name, function)).collect()
});

#[derive(Debug)]
pub(crate) enum Lookup {
    Found(Callee),
    /// Known, and not allowed for this reason.
    Refused(&'static str),
    Unknown,
}

pub(crate) fn find(name: &str) -> Lookup {
    if let Some((_, reason)) = sprig::REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Lookup::Refused(reason);
    }
    if let Some(function) = FUNCTIONS.get(name) {
        return Lookup::Found(Callee::Function(function));
    }
    Builtin::find(name).map_or(Lookup::Unknown, |builtin| Lookup::Found(Callee::Builtin(builtin)))
}
