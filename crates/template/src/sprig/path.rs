//! Go's `path`: names with slashes, without a look at any disk.

use crate::function::{Function, Param};
use crate::value::Value;

use super::arguments::{fixed, give, text};

const STR: Param = Param::Str;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("base", &[STR], |meter, args| give(meter, base(text(args, 0)?))),
    fixed("dir", &[STR], |meter, args| {
        let path = text(args, 0)?;
        give(meter, clean(&path[..path.rfind('/').map_or(0, |at| at + 1)]))
    }),
    fixed("clean", &[STR], |meter, args| give(meter, clean(text(args, 0)?))),
    fixed("ext", &[STR], |meter, args| {
        let name = text(args, 0)?.rsplit('/').next().unwrap_or_default();
        give(meter, name.rfind('.').map_or("", |at| &name[at..]))
    }),
    fixed("isAbs", &[STR], |_, args| Ok(Value::Bool(text(args, 0)?.starts_with('/')))),
];

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    match path.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => "/",
        Some(name) => name,
    }
}

/// The shortest name for the same place: no empty, `.` or avoidable `..` parts.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, joined) => format!("/{joined}"),
        (false, joined) if joined.is_empty() => ".".to_owned(),
        (false, joined) => joined,
    }
}
