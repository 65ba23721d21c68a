//! The functions of sprig 2.22 that give the same answer each time, with Go's results. The registry hands them to the
//! parser; what reads the machine, the clock or chance is refused by name.

mod arguments;
mod case;
mod convert;
mod date;
mod defaults;
mod dict;
mod encode;
mod equal;
mod json;
mod list;
mod merge;
pub mod method;
mod numeric;
mod opaque;
mod path;
mod pattern;
mod regexp;
mod semver;
mod text;
pub mod time;
mod url;
mod words;
mod wrap;

use crate::function::Function;
use crate::printer;
use crate::value::Value;

const MACHINE: &str = "it reads the machine that renders";
const CLOCK: &str = "it reads the clock and gives another answer each time";
const CHANCE: &str = "it gives another answer each time";
const SECRET: &str = "it makes a secret, which must not be in Git";

/// The names of sprig that templates may not use, and why.
pub const REFUSED: &[(&str, &str)] = &[
    ("ago", CLOCK),
    ("buildCustomCert", SECRET),
    ("derivePassword", SECRET),
    ("encryptAES", CHANCE),
    ("env", MACHINE),
    ("expandenv", MACHINE),
    ("genCA", CHANCE),
    ("genPrivateKey", CHANCE),
    ("genSelfSignedCert", CHANCE),
    ("genSignedCert", CHANCE),
    ("getHostByName", MACHINE),
    ("now", CLOCK),
    ("randAlpha", CHANCE),
    ("randAlphaNum", CHANCE),
    ("randAscii", CHANCE),
    ("randNumeric", CHANCE),
    ("shuffle", CHANCE),
    ("uuidv4", CHANCE),
];

static GROUPS: [&[Function]; 16] = [
    case::FUNCTIONS,
    convert::FUNCTIONS,
    date::FUNCTIONS,
    defaults::FUNCTIONS,
    dict::FUNCTIONS,
    encode::FUNCTIONS,
    json::FUNCTIONS,
    list::FUNCTIONS,
    merge::FUNCTIONS,
    numeric::FUNCTIONS,
    path::FUNCTIONS,
    regexp::FUNCTIONS,
    semver::FUNCTIONS,
    text::FUNCTIONS,
    url::FUNCTIONS,
    wrap::FUNCTIONS,
];

/// Every function of sprig that is allowed.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    GROUPS.into_iter().flatten()
}

/// Go's `%v`.
fn print(value: &Value) -> String {
    printer::sprint(std::slice::from_ref(value))
}

#[cfg(test)]
mod tests;
