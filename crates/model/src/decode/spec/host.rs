//! HostWorkloads and HostNamespaces. What they may name is the agent's to judge; here only what could never be.

use super::delivery::{bounds, duration};
use super::{each, optional};
use crate::decode::fields::{Fields, Value};
use crate::decode::notes::Notes;
use crate::kinds::{
    Allow, Artifact, ArtifactSource, Deb, FileEntry, Folder, HealthCheck, HealthProbe, HostNamespace, HostWorkload,
    Limits, Unit,
};
use crate::quantity::{parse_bytes, parse_cores};
use crate::shown::is_hidden;

pub(super) fn host_workload(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<HostWorkload> {
    let debs = each(fields.take("debs"), notes, deb);
    let files = each(fields.take("files"), notes, file);
    let artifacts = each(fields.take("artifacts"), notes, artifact);
    let units = each(fields.take("units"), notes, unit);
    let health = each(fields.take("health"), notes, health);
    let bounds = bounds(fields, notes);
    let (debs, files, artifacts, units, health, bounds) = (debs?, files?, artifacts?, units?, health?, bounds?);
    Some(HostWorkload {
        debs,
        files,
        artifacts,
        units,
        health,
        timeout: bounds.timeout,
        soak: bounds.soak,
        rollback: bounds.rollback,
        drift: bounds.drift,
    })
}

fn deb(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Deb> {
    let mut fields = value.fields(notes)?;
    if let Some(file) = fields.take("file") {
        fields.finish(notes);
        return inside(&file, notes).map(Deb::File);
    }
    let hint = "write `name` and `version` of a package, or `file` for one of the manifests folder";
    let name = fields.need("name", notes, hint).and_then(|value| not_ours(&value, notes));
    let version = fields
        .need("version", notes, "write the exact version, as `apt-cache policy` shows it")
        .and_then(|value| version(&value, notes));
    fields.finish(notes);
    Some(Deb::Apt { name: name?, version: version? })
}

fn file(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<FileEntry> {
    let mut fields = value.fields(notes)?;
    let path =
        fields.need("path", notes, "say where the file goes: `path: /etc/…`").and_then(|value| absolute(&value, notes));
    let file =
        fields.need("file", notes, "name a file of the manifests folder").and_then(|value| inside(&value, notes));
    let owner = optional(fields.take("owner"), notes);
    let mode = mode(fields.take("mode"), FileEntry::DEFAULT_MODE, notes);
    let template = fields.take("template").map_or(Some(false), |value| value.flag(notes));
    fields.finish(notes);
    Some(FileEntry { path: path?, file: file?, owner: owner?, mode: mode?, template: template? })
}

fn artifact(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Artifact> {
    let mut fields = value.fields(notes)?;
    let path =
        fields.need("path", notes, "say where it goes: `path: /var/lib/…`").and_then(|value| absolute(&value, notes));
    let url = fields.take("url");
    let file = fields.take("file");
    let source = match (&url, &file) {
        (Some(url), None) => line(url, notes).map(ArtifactSource::Url),
        (None, Some(file)) => inside(file, notes).map(ArtifactSource::File),
        _ => {
            value.refuse(notes, "InvalidValue", "must have one of `url` and `file`", None);
            None
        }
    };
    let sha256 =
        fields.need("sha256", notes, "add the digest that `sha256sum` prints").and_then(|value| sha256(&value, notes));
    fields.finish(notes);
    Some(Artifact { path: path?, source: source?, sha256: sha256? })
}

/// As `sha256sum` prints it.
fn sha256(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let digest = value.word(notes)?;
    if digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Some(digest);
    }
    value.refuse(notes, "InvalidValue", "isn't a digest of 64 hexadecimal digits in lower case", None);
    None
}

fn unit(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Unit> {
    let mut fields = value.fields(notes)?;
    let name =
        fields.need("name", notes, "name the unit: `name: web.service`").and_then(|value| not_ours(&value, notes));
    let enabled = fields.take("enabled").map_or(Some(true), |value| value.flag(notes));
    let running = fields.take("running").map_or(Some(true), |value| value.flag(notes));
    let restart_on = fields.take("restartOn").map_or(Some(Vec::new()), |value| value.texts(notes));
    fields.finish(notes);
    Some(Unit { name: name?, enabled: enabled?, running: running?, restart_on: restart_on? })
}

fn health(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<HealthCheck> {
    let mut fields = value.fields(notes)?;
    let mut probes = Vec::new();
    if let Some(value) = fields.take("unit") {
        probes.push(line(&value, notes).map(HealthProbe::Unit));
    }
    if let Some(value) = fields.take("http") {
        probes.push(line(&value, notes).map(HealthProbe::Http));
    }
    if let Some(value) = fields.take("tcp") {
        probes.push(tcp(&value, notes));
    }
    if let Some(value) = fields.take("exec") {
        probes.push(exec(&value, notes));
    }
    if let Some(value) = fields.take("hub") {
        probes.push(hub(&value, notes));
    }
    let timeout = duration(fields.take("timeout"), notes);
    fields.finish(notes);
    if probes.len() != 1 {
        value.refuse(notes, "InvalidValue", "must have one of `unit`, `http`, `tcp`, `exec` and `hub`", None);
        return None;
    }
    Some(HealthCheck { probe: probes.pop()??, timeout: timeout?.unwrap_or(HealthCheck::DEFAULT_TIMEOUT) })
}

fn tcp(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<HealthProbe> {
    let address = line(value, notes)?;
    let fits = address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !fits {
        value.refuse(notes, "InvalidValue", "must be `host:port`", Some("for example `tcp: localhost:8080`"));
        return None;
    }
    Some(HealthProbe::Tcp(address))
}

fn exec(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<HealthProbe> {
    let command = value.texts(notes)?;
    for item in value.items(notes).into_iter().flatten() {
        one_line(&item, item.text(notes)?, notes)?;
    }
    if command.is_empty() {
        value.refuse(notes, "InvalidValue", "names no program", Some("for example `exec: [/usr/bin/curl, -f, …]`"));
        return None;
    }
    Some(HealthProbe::Exec(command))
}

fn hub(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<HealthProbe> {
    if value.flag(notes)? {
        return Some(HealthProbe::Hub);
    }
    value.refuse(notes, "InvalidValue", "can only be `true`", Some("remove the check if it isn't wanted"));
    None
}

pub(super) fn host_namespace(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<HostNamespace> {
    let user = optional(fields.take("user"), notes);
    let folders = each(fields.take("folders"), notes, |value, notes| {
        let mut fields = value.fields(notes)?;
        let path =
            fields.need("path", notes, "name the folder: `path: /var/lib/…`").and_then(|value| absolute(&value, notes));
        let mode = mode(fields.take("mode"), Folder::DEFAULT_MODE, notes);
        fields.finish(notes);
        Some(Folder { path: path?, mode: mode? })
    });
    let limits = fields.take("limits").map_or(Some(Limits::default()), |value| limits(&value, notes));
    let allow = fields.take("allow").map_or(Some(Allow::default()), |value| allow(&value, notes));
    Some(HostNamespace { user: user?, folders: folders?, limits: limits?, allow: allow? })
}

fn limits(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Limits> {
    let mut fields = value.fields(notes)?;
    let cpu = fields.take("cpu").map_or(Some(None), |value| value.amount(notes, parse_cores).map(Some));
    let memory = fields.take("memory").map_or(Some(None), |value| value.amount(notes, parse_bytes).map(Some));
    let tasks = fields.take("tasks").map_or(Some(None), |value| value.count(notes).map(Some));
    let disk = fields.take("disk").map_or(Some(None), |value| value.amount(notes, parse_bytes).map(Some));
    // A limit that isn't read is no limit at all.
    fields.finish_strictly(notes);
    Some(Limits { cpu: cpu?, memory: memory?, tasks: tasks?, disk: disk? })
}

fn allow(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Allow> {
    let mut fields = value.fields(notes)?;
    let debs = fields.take("debs").map_or(Some(Vec::new()), |value| value.texts(notes));
    let deb_files = each(fields.take("debFiles"), notes, |value, notes| sha256(value, notes));
    let paths = each(fields.take("paths"), notes, absolute);
    let units = fields.take("units").map_or(Some(Vec::new()), |value| value.texts(notes));
    fields.finish(notes);
    Some(Allow { debs: debs?, deb_files: deb_files?, paths: paths?, units: units? })
}

/// A deb or unit, but never the agent's: it would cut the branch that it sits on.
fn not_ours(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let name = line(value, notes)?;
    if name.split(['.', '@', ':', '=']).next() == Some("kedge-agent") {
        value.refuse(notes, "NotAllowed", "can't be the agent itself", None);
        return None;
    }
    Some(name)
}

fn absolute(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let path = value.word(notes)?;
    if path.starts_with('/') && is_plain(&path) {
        return Some(path);
    }
    value.refuse(notes, "InvalidValue", "must be a path from `/`, without `..`", None);
    None
}

/// A path inside the manifests folder.
fn inside(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let path = value.word(notes)?;
    if !path.starts_with('/') && is_plain(&path) {
        return Some(path);
    }
    value.refuse(notes, "InvalidValue", "must be a path inside the manifests folder, without `..`", None);
    None
}

/// A word that a log or a screen shows as it is.
fn line(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let text = value.word(notes)?;
    one_line(value, text, notes)
}

fn one_line(value: &Value<'_>, text: String, notes: &mut Notes<'_>) -> Option<String> {
    if !text.contains(is_hidden) {
        return Some(text);
    }
    let hint = "write it on one line; a script of several lines can be a file of the folder";
    value.refuse(notes, "InvalidValue", "has a line break, a control character or one that nobody sees", Some(hint));
    None
}

/// Debian's letters, so that apt and its preferences read one version in it.
fn version(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let version = value.word(notes)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | ':' | '~');
    if version.starts_with(|c: char| c.is_ascii_alphanumeric()) && version.chars().all(fits) {
        return Some(version);
    }
    value.refuse(notes, "InvalidValue", "can't be a deb's version", Some("write it as `apt-cache policy` shows it"));
    None
}

fn is_plain(path: &str) -> bool {
    !path.contains(is_hidden) && path.split('/').all(|part| part != "..")
}

/// Permission bits as `"0644"`. Without quotes YAML makes another number of it.
fn mode(value: Option<Value<'_>>, default: u32, notes: &mut Notes<'_>) -> Option<u32> {
    let Some(value) = value else { return Some(default) };
    let text = value.word(notes)?;
    let digits = (3..=4).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
    if let (true, Ok(mode)) = (digits, u32::from_str_radix(&text, 8)) {
        return Some(mode);
    }
    value.refuse(notes, "InvalidValue", "must be permission bits in octal", Some("for example `mode: \"0644\"`"));
    None
}
