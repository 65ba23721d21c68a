//! Names of systemd units: what is one, and whose it is.

/// What a workload may bring or name as its own. Mounts, swaps, slices and scopes change more than a workload.
const OWN_TYPES: [&str; 5] = ["service", "socket", "timer", "path", "target"];
const TYPES: [&str; 10] =
    ["service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope"];
/// systemd's own limit.
const MAX_NAME: usize = 255;
/// Debian's own, whoever is called so.
const SYSTEMS: &str = "systemd-";

/// Whether it can be a unit's name at all; `-…` would be an option.
pub fn check(name: &str) -> Result<(), String> {
    let shown: String = name.chars().take(100).flat_map(char::escape_debug).collect();
    let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_' | b'.' | b'\\' | b'-' | b'@');
    let fits = name.len() <= MAX_NAME && name.bytes().all(letters) && !name.starts_with(['-', '.', '@']);
    match fits && split(name).is_some_and(|(stem, kind)| !stem.is_empty() && TYPES.contains(&kind)) {
        true => Ok(()),
        false => Err(format!("`{shown}` can't be a unit's name, such as `web.service`")),
    }
}

/// `<assignment>.service`, `<assignment>-x.timer`, `<assignment>@….service`.
pub fn is_own(name: &str, assignment: &str) -> bool {
    let Some((stem, kind)) = split(name) else { return false };
    let Some(rest) = stem.strip_prefix(assignment) else { return false };
    // A name that ends with a dash means all units that begin so: `x-.service.d`.
    let is_one = !stem.split('@').next().unwrap_or_default().ends_with('-');
    OWN_TYPES.contains(&kind) && is_one && !is_systems(name) && (rest.is_empty() || rest.starts_with(['-', '@']))
}

/// The other assignment that a unit called like `assignment`'s belongs to: the longest name has it.
pub fn other_owner<'n>(unit: &str, assignment: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let longer = names.into_iter().filter(|name| name.len() > assignment.len() && name.starts_with(assignment));
    longer.filter(|name| is_own(unit, name)).max_by_key(|name| name.len())
}

/// A name of systemd's own units.
pub fn is_systems(name: &str) -> bool {
    name.starts_with(SYSTEMS)
}

/// Whether it is that program's unit: `x.service`, `x@1.service`, `x.service.d`.
pub fn is(name: &str, program: &str) -> bool {
    name.split(['.', '@', ':']).next() == Some(program)
}

/// Whether an entry of an allow list means it: by name, and a template means its instances.
pub fn fits(name: &str, allowed: &str) -> bool {
    let template = || {
        let (stem, kind) = split(name)?;
        let (prefix, _) = stem.split_once('@')?;
        Some(format!("{prefix}@.{kind}"))
    };
    name == allowed || template().as_deref() == Some(allowed)
}

/// `x@.service` of `x@1.service`.
pub fn template_of(name: &str) -> Option<String> {
    let (stem, kind) = split(name)?;
    let (prefix, instance) = stem.split_once('@')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{kind}"))
}

/// The name and its type.
pub fn split(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.')
}
