//! `semver` and `semverCompare`: versions and constraints with the rules of Masterminds/semver 1.5.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::function::{Function, Meter, Param};
use crate::quote::{constant, quote};
use crate::value::{Opaque, Value, Version};

use super::arguments::{Answer, fixed, text};
use super::convert::parse_int;

const STR: Param = Param::Str;
const TAIL: &str = r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const LOOSE: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?";

static VERSION: LazyLock<Regex> = LazyLock::new(|| constant(&format!(r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?{TAIL}$")));
static CONSTRAINT: LazyLock<Regex> = LazyLock::new(|| {
    constant(&format!(r"^[\t\n\f\r ]*(|=|!=|>|<|>=|=>|<=|=<|~|~>|\^)[\t\n\f\r ]*({LOOSE}{TAIL})[\t\n\f\r ]*$"))
});
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    let version = format!("({LOOSE}{TAIL})");
    constant(&format!(r"[\t\n\f\r ]*{version}[\t\n\f\r ]+-[\t\n\f\r ]+{version}[\t\n\f\r ]*"))
});

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("semver", &[STR], |_, args| Ok(Value::Opaque(Rc::new(Opaque::Version(parse(text(args, 0)?)?))))),
    fixed("semverCompare", &[STR, STR], compare),
];

/// One comparison, such as `>= 1.2`.
#[derive(Debug)]
struct Constraint {
    operator: String,
    version: Version,
    /// A part is missing or a wildcard.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

fn compare(meter: &mut Meter, args: &[Value]) -> Answer {
    let constraint = text(args, 0)?;
    meter.steps(constraint.len() as u64 / 8)?;
    let alternatives = parse_constraints(meter, constraint)?;
    let version = parse(text(args, 1)?)?;
    Ok(Value::Bool(alternatives.iter().any(|all| all.iter().all(|constraint| constraint.allows(&version)))))
}

fn group<'a>(captures: &Captures<'a>, at: usize) -> &'a str {
    captures.get(at).map_or("", |found| found.as_str())
}

/// Reads a version; the minor and patch parts may be missing.
pub(super) fn parse(text: &str) -> Result<Version, String> {
    let captures = VERSION.captures(text).ok_or_else(|| "Invalid Semantic Version".to_owned())?;
    let segment = |at: usize| {
        let digits = group(&captures, at).trim_start_matches('.');
        if digits.is_empty() {
            return Ok(0);
        }
        parse_int(digits, 10).map(i64::unsigned_abs).map_err(|_| {
            format!("Error parsing version segment: strconv.ParseInt: parsing {}: value out of range", quote(digits))
        })
    };
    Ok(Version {
        major: segment(1)?,
        minor: segment(2)?,
        patch: segment(3)?,
        prerelease: group(&captures, 5).to_owned(),
        metadata: group(&captures, 8).to_owned(),
        original: text.to_owned(),
    })
}

/// Alternatives (`||`) of comparisons that must all hold (`,`).
fn parse_constraints(meter: &mut Meter, text: &str) -> Result<Vec<Vec<Constraint>>, String> {
    let text = rewrite_ranges(meter, text)?;
    text.split("||").map(|all| all.split(',').map(parse_constraint).collect()).collect()
}

/// `1.2 - 3` becomes `>= 1.2, <= 3`.
fn rewrite_ranges(meter: &mut Meter, text: &str) -> Result<String, String> {
    let mut out = text.to_owned();
    for captures in RANGE.captures_iter(text) {
        // Each replacement copies the whole text.
        meter.steps(1 + out.len() as u64 / 64)?;
        let comparison = format!(">= {}, <= {}", group(&captures, 1), group(&captures, 11));
        out = out.replacen(group(&captures, 0), &comparison, 1);
    }
    Ok(out)
}

fn parse_constraint(text: &str) -> Result<Constraint, String> {
    let captures = CONSTRAINT.captures(text).ok_or_else(|| format!("improper constraint: {text}"))?;
    let [operator, whole, major, minor, patch, prerelease] = [1, 2, 3, 4, 5, 6].map(|at| group(&captures, at));
    let wild = |part: &str| matches!(part.trim_start_matches('.'), "x" | "X" | "*");
    let (mut dirty, mut minor_dirty, mut patch_dirty) = (true, false, false);
    let version = if wild(major) {
        "0.0.0".to_owned()
    } else if minor.is_empty() || wild(minor) {
        minor_dirty = true;
        format!("{major}.0.0{prerelease}")
    } else if wild(patch) {
        patch_dirty = true;
        format!("{major}{minor}.0{prerelease}")
    } else {
        dirty = false;
        whole.to_owned()
    };
    let version = parse(&version).map_err(|_| "constraint Parser Error".to_owned())?;
    Ok(Constraint { operator: operator.to_owned(), version, dirty, minor_dirty, patch_dirty })
}

impl Constraint {
    fn allows(&self, version: &Version) -> bool {
        let wanted = &self.version;
        let order = || order(version, wanted);
        // A constraint that names no prerelease means releases only, but for an exact `!=`.
        let foreign = !version.prerelease.is_empty() && wanted.prerelease.is_empty();
        if self.operator == "!=" && !self.dirty {
            return order().is_ne();
        }
        if foreign {
            return false;
        }
        match self.operator.as_str() {
            "!=" => version.major != wanted.major || version.minor != wanted.minor && !self.minor_dirty,
            ">" => order().is_gt(),
            "<" if !self.dirty => order().is_lt(),
            "<=" | "=<" if !self.dirty => order().is_le(),
            "<" | "<=" | "=<" => version.major <= wanted.major && (version.minor <= wanted.minor || self.minor_dirty),
            ">=" | "=>" => order().is_ge(),
            "^" => order().is_ge() && version.major == wanted.major,
            "" | "=" if !self.dirty => order().is_eq(),
            _ => self.nearly(version),
        }
    }

    /// The tilde: at least this version, in the same minor (or major) line.
    fn nearly(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if order(version, wanted).is_lt() {
            return false;
        }
        let zero = wanted.major == 0 && wanted.minor == 0 && wanted.patch == 0;
        if zero && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.major == wanted.major && (version.minor == wanted.minor || self.minor_dirty)
    }
}

/// Which of two versions comes first; metadata doesn't count, a prerelease comes before its release.
pub(super) fn order(left: &Version, right: &Version) -> Ordering {
    let numbers = |version: &Version| (version.major, version.minor, version.patch);
    numbers(left).cmp(&numbers(right)).then_with(|| match (left.prerelease.as_str(), right.prerelease.as_str()) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        (left, right) => prerelease_order(left, right),
    })
}

fn prerelease_order(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (a, b) => part_order(a.unwrap_or(""), b.unwrap_or("")),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Numbers by value and before words; the library has it that a number beside a word is smaller, an empty part smallest.
fn part_order(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    if left.is_empty() {
        return Ordering::Less;
    }
    if right.is_empty() {
        return Ordering::Greater;
    }
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Err(_), Err(_)) => {
            if left > right {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Ok(left), Ok(right)) => {
            if left > right {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
    }
}
