//! A `.deb` made of what is installed, when no source offers that version any more: its files as they are on the disk, its maintainer
//! scripts and its control fields. Installing it brings the same version back. Of a deb that is removed it holds the configuration
//! files that are left: installed and removed again, they are as they were, also in dpkg's eyes. Written straight into one file, without
//! a second copy and without compression, which every dpkg reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tar::{Builder, EntryType, Header};

use super::stanza::Stanza;
use super::status::Deb;
use crate::command::run;
use crate::record::Failure;

pub mod excluded;

/// What dpkg adds to a control file when it keeps it in its status.
const STATUS_ONLY: [&str; 6] =
    ["Status", "Conffiles", "Config-Version", "Triggers-Pending", "Triggers-Awaited", "Auto-Installed"];
/// What a deb of which only configuration is left can't promise.
const RELATIONS: [&str; 8] =
    ["Depends", "Pre-Depends", "Conflicts", "Breaks", "Replaces", "Provides", "Essential", "Protected"];
/// What belongs to dpkg and not to the archive.
const INFO_ONLY: [&str; 1] = ["list"];
/// How many missing files are named.
const MAX_NAMED: usize = 8;
/// A configuration file is small; a slow card needs its time.
const HASH: Duration = Duration::from_secs(60);
const AR_MAGIC: &[u8] = b"!<arch>\n";

/// Where dpkg says that a deb's file really is, when another deb diverts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Diversions(BTreeMap<String, (String, String)>);

/// A file of a deb.
#[derive(Debug)]
struct Item {
    /// As the archive calls it.
    path: String,
    /// Where it is.
    place: PathBuf,
    metadata: Metadata,
    /// A configuration file that isn't as the deb brought it.
    edited: bool,
}

pub fn repack(root: &Path, name: &str, deb: &Deb, into: &Path) -> Result<(), Failure> {
    let no_way =
        |why: String| Failure::new("NoWayBack", format!("{name} can't be repacked from its installed files: {why}"));
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull => Failure::passing("DiskFull", format!("while {name} was repacked: {error}")),
        _ => no_way(error.to_string()),
    };
    let info = root.join("var/lib/dpkg/info");
    let (bare, architecture) = (bare(name), deb.state.architecture.clone().unwrap_or_default());
    let base = [format!("{bare}:{architecture}"), bare.to_owned()];
    let base = base.iter().find(|base| info.join(format!("{base}.list")).is_file());
    let base = base.ok_or_else(|| no_way("dpkg has no list of its files".to_owned()))?;
    let list = fs::read_to_string(info.join(format!("{base}.list"))).map_err(io)?;
    let diversions = Diversions::read(&root.join("var/lib/dpkg/diversions")).map_err(io)?;
    let excluded = excluded::Excluded::read(root);
    let (items, missing) = items(root, &list, bare, deb, &diversions).map_err(io)?;
    let missing: Vec<&str> = missing.iter().map(String::as_str).filter(|path| !excluded.covers(path)).collect();
    if !missing.is_empty() {
        let named = missing.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = missing.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(no_way(format!("{named}{more} is missing or is no file")));
    }
    let mut texts = vec![("control", control_file(deb))];
    if !info.join(format!("{base}.conffiles")).is_file() {
        // dpkg drops its own list when it removes a deb.
        let shipped = deb.conffiles.iter().filter(|conffile| !conffile.obsolete);
        texts.push(("conffiles", shipped.map(|conffile| format!("{}\n", conffile.path)).collect()));
    }
    write(into, &texts, &info, base, &items, &missing_conffiles(deb, &items)).map_err(io)
}

fn control_file(deb: &Deb) -> String {
    let of = |names: &[&str], name: &str| names.iter().any(|one| one.eq_ignore_ascii_case(name));
    let kept = |name: &str| !(of(&STATUS_ONLY, name) || deb.state.config_only && of(&RELATIONS, name));
    let fields = Stanza::new(&deb.paragraph).fields().filter(|(name, _)| kept(name));
    fields.map(|(name, value)| format!("{name}: {value}\n")).collect()
}

/// Configuration files that the admin deleted: dpkg still has to know them.
fn missing_conffiles(deb: &Deb, items: &[Item]) -> Vec<String> {
    let there: BTreeSet<&str> = items.iter().map(|item| item.path.as_str()).collect();
    let shipped = deb.conffiles.iter().filter(|conffile| !conffile.obsolete).map(|conffile| conffile.path.clone());
    shipped.filter(|path| !there.contains(path.as_str())).collect()
}

fn items(
    root: &Path,
    list: &str,
    package: &str,
    deb: &Deb,
    diversions: &Diversions,
) -> io::Result<(Vec<Item>, Vec<String>)> {
    let conffiles: BTreeMap<&str, &str> =
        deb.conffiles.iter().map(|conffile| (conffile.path.as_str(), conffile.md5.as_str())).collect();
    let paths: Vec<&str> = list.lines().filter(|path| path.starts_with('/') && *path != "/.").collect();
    let folders: BTreeSet<&str> =
        paths.iter().filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder).collect();
    let (mut items, mut missing) = (Vec::new(), Vec::new());
    for path in paths {
        let place = root.join(diversions.place(path, package).trim_start_matches('/'));
        // A folder of the deb may be a symlink here (`/lib`): what is listed below it is reached through it.
        let looked = if folders.contains(path) { fs::metadata(&place) } else { fs::symlink_metadata(&place) };
        let metadata = match looked {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                if !conffiles.contains_key(path) {
                    missing.push(path.to_owned());
                }
                continue;
            }
            metadata => metadata?,
        };
        let kind = metadata.file_type();
        if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
            missing.push(path.to_owned());
            continue;
        }
        let edited = match conffiles.get(path) {
            Some(md5) if kind.is_file() => md5_of(&place).is_none_or(|now| now != *md5),
            _ => false,
        };
        items.push(Item { path: path.to_owned(), place, metadata, edited });
    }
    Ok((items, missing))
}

fn write(
    into: &Path,
    texts: &[(&str, String)],
    info: &Path,
    base: &str,
    items: &[Item],
    missing: &[String],
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(into)?);
    file.write_all(AR_MAGIC)?;
    member(&mut file, "debian-binary", |file| file.write_all(b"2.0\n"))?;
    member(&mut file, "control.tar", |file| control(file, texts, info, base))?;
    member(&mut file, "data.tar", |file| data(file, items, missing))?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A member of an `ar` archive; its size is filled in when it is known.
fn member(
    file: &mut BufWriter<File>,
    name: &str,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let start = file.stream_position()?;
    let header = |size: u64| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644);
    file.write_all(header(0).as_bytes())?;
    let began = file.stream_position()?;
    fill(file)?;
    let end = file.stream_position()?;
    file.seek(SeekFrom::Start(start))?;
    file.write_all(header(end - began).as_bytes())?;
    file.seek(SeekFrom::Start(end))?;
    if (end - began) % 2 == 1 {
        file.write_all(b"\n")?;
    }
    Ok(())
}

fn control(file: &mut BufWriter<File>, texts: &[(&str, String)], info: &Path, base: &str) -> io::Result<()> {
    let mut tar = Builder::new(file);
    for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        tar.append_data(&mut plain(0o644, text.len()), format!("./{name}"), text.as_bytes())?;
    }
    let mut entries = fs::read_dir(info)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let part = name.to_str().and_then(|name| name.strip_prefix(base)).and_then(|rest| rest.strip_prefix('.'));
        // `base.x.postinst` is another deb's, called `base.x`.
        let Some(part) = part.filter(|part| !part.contains('.') && !INFO_ONLY.contains(part)) else { continue };
        let mode = entry.metadata()?.mode() & 0o777;
        let bytes = fs::read(entry.path())?;
        tar.append_data(&mut plain(mode, bytes.len()), format!("./{part}"), bytes.as_slice())?;
    }
    tar.finish()
}

fn data(file: &mut BufWriter<File>, items: &[Item], missing: &[String]) -> io::Result<()> {
    let mut tar = Builder::new(file);
    let mut linked: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for Item { path, place, metadata, edited } in items {
        let (name, kind) = (format!(".{path}"), metadata.file_type());
        let mut header = Header::new_gnu();
        header.set_mode(metadata.mode() & 0o7777);
        header.set_uid(metadata.uid().into());
        header.set_gid(metadata.gid().into());
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        header.set_size(0);
        if kind.is_dir() {
            header.set_entry_type(EntryType::Directory);
            tar.append_data(&mut header, format!("{name}/"), io::empty())?;
        } else if kind.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, &name, fs::read_link(place)?)?;
        } else if let Some(first) = linked.get(&(metadata.dev(), metadata.ino())) {
            header.set_entry_type(EntryType::Link);
            tar.append_link(&mut header, &name, format!(".{first}"))?;
        } else {
            if metadata.nlink() > 1 {
                linked.insert((metadata.dev(), metadata.ino()), path.clone());
            }
            // An edited configuration file gets one more byte: what dpkg then knows as the deb's own differs from what is on the
            // disk, so that it goes on taking it for edited, and later upgrades leave it alone.
            let extra: &[u8] = if *edited { b"\n" } else { b"" };
            let size = metadata.len() + u64::from(*edited);
            header.set_entry_type(EntryType::Regular);
            header.set_size(size);
            tar.append_data(&mut header, &name, File::open(place)?.chain(extra).take(size))?;
        }
    }
    for path in missing {
        tar.append_data(&mut plain(0o644, 0), format!(".{path}"), io::empty())?;
    }
    tar.finish()
}

fn plain(mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size as u64);
    header
}

/// By coreutils, as the only one who still needs it is dpkg.
fn md5_of(path: &Path) -> Option<String> {
    let output = run("md5sum", &["--", &path.display().to_string()], &[], HASH).ok()?;
    // A name with a backslash or a newline is escaped, and the line begins with a backslash then.
    output.stdout.trim_start_matches('\\').split_whitespace().next().map(str::to_owned)
}

fn bare(name: &str) -> &str {
    name.split_once(':').map_or(name, |(bare, _)| bare)
}

impl Diversions {
    /// Three lines each: the path, where it went, and the deb that has it now (`:` for the admin).
    fn read(path: &Path) -> io::Result<Diversions> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let lines: Vec<&str> = text.lines().collect();
        let each = lines.chunks_exact(3).map(|three| (three[0].to_owned(), (three[1].to_owned(), three[2].to_owned())));
        Ok(Diversions(each.collect()))
    }

    fn place<'p>(&'p self, path: &'p str, package: &str) -> &'p str {
        match self.0.get(path) {
            Some((to, by)) if by != package => to,
            _ => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::status::Conffile;
    use super::*;
    use crate::observed::DebState;

    const MD5_OF_SHIPPED: &str = "a63d1e2be95c3e0b5ca8d58d0d4a9e6d";

    /// A host with `app` in version 1: a program, a hard link, a symlink, a diverted file and three configuration files.
    fn host() -> (tempfile::TempDir, Deb) {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("usr/bin/app", "program");
        fs::set_permissions(root.path().join("usr/bin/app"), fs::Permissions::from_mode(0o4750)).unwrap();
        fs::hard_link(root.path().join("usr/bin/app"), root.path().join("usr/bin/app-too")).unwrap();
        symlink("app", root.path().join("usr/bin/link")).unwrap();
        symlink("usr/lib", root.path().join("lib")).unwrap();
        put("usr/lib/app.so", "library");
        put("usr/bin/tool.real", "ours");
        put("usr/bin/tool", "the diverter's");
        put("etc/edited.conf", "edited");
        put("var/lib/dpkg/diversions", "/usr/bin/tool\n/usr/bin/tool.real\nother\n");
        put(
            "var/lib/dpkg/info/app.list",
            "/.\n/usr\n/usr/bin\n/usr/bin/app\n/usr/bin/app-too\n/usr/bin/link\n/usr/bin/tool\n/lib\n/lib/app.so\n/etc\n/etc/edited.conf\n/etc/deleted.conf\n/usr/share/doc/app/changelog\n",
        );
        put("var/lib/dpkg/info/app.postinst", "#!/bin/sh\n");
        put("var/lib/dpkg/info/app.conffiles", "/etc/edited.conf\n/etc/deleted.conf\n");
        put("var/lib/dpkg/info/app.data.postinst", "another deb's");
        put("etc/dpkg/dpkg.cfg.d/small", "path-exclude=/usr/share/doc/*\n");
        let conffile =
            |path: &str, obsolete| Conffile { path: path.to_owned(), md5: MD5_OF_SHIPPED.to_owned(), obsolete };
        let state = DebState {
            version: Some("1".to_owned()),
            architecture: Some("amd64".to_owned()),
            whole: true,
            ..DebState::default()
        };
        let deb = Deb {
            state,
            conffiles: vec![conffile("/etc/edited.conf", false), conffile("/etc/deleted.conf", false), conffile("/etc/old.conf", true)],
            paragraph: "Package: app\nStatus: install ok installed\nDepends: lib\nVersion: 1\nConffiles: /etc/edited.conf 0\nDescription: x\n y\n".to_owned(),
            ..Deb::default()
        };
        (root, deb)
    }

    /// The members of an archive, each as its tar's entries: name, kind and link, mode, content.
    fn read(archive: &Path) -> BTreeMap<String, Vec<(String, String, u32, String)>> {
        let bytes = fs::read(archive).unwrap();
        assert_eq!(&bytes[..8], AR_MAGIC);
        let (mut at, mut members) = (8, BTreeMap::new());
        while at < bytes.len() {
            let header = std::str::from_utf8(&bytes[at..at + 60]).unwrap();
            let (name, size) = (header[..16].trim().to_owned(), header[48..58].trim().parse::<usize>().unwrap());
            let body = &bytes[at + 60..at + 60 + size];
            at += 60 + size + size % 2;
            let mut entries = Vec::new();
            if name.ends_with(".tar") {
                for entry in tar::Archive::new(body).entries().unwrap() {
                    let mut entry = entry.unwrap();
                    let link =
                        entry.link_name().unwrap().map(|link| format!(" {}", link.display())).unwrap_or_default();
                    let kind = format!("{:?}{link}", entry.header().entry_type());
                    let (path, mode) = (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap());
                    let mut text = String::new();
                    entry.read_to_string(&mut text).unwrap();
                    entries.push((path, kind, mode, text));
                }
            }
            members.insert(name, entries);
        }
        members
    }

    fn entry<'e>(entries: &'e [(String, String, u32, String)], path: &str) -> (&'e str, u32, &'e str) {
        let found = entries
            .iter()
            .find(|entry| entry.0.trim_end_matches('/') == path)
            .unwrap_or_else(|| panic!("{path} in {entries:?}"));
        (&found.1, found.2, &found.3)
    }

    #[test]
    fn the_archive_holds_what_is_on_the_disk() {
        let (root, deb) = host();
        let into = root.path().join("app.deb");
        repack(root.path(), "app", &deb, &into).unwrap();
        let members = read(&into);
        assert_eq!(members.keys().collect::<Vec<_>>(), ["control.tar", "data.tar", "debian-binary"]);
        let control = &members["control.tar"];
        assert_eq!(entry(control, "control").2, "Package: app\nDepends: lib\nVersion: 1\nDescription: x\n y\n");
        assert_eq!(
            control.iter().map(|entry| entry.0.as_str()).collect::<Vec<_>>(),
            ["control", "conffiles", "postinst"]
        );
        let data = &members["data.tar"];
        assert_eq!(entry(data, "usr/bin/app"), ("Regular", 0o4750, "program"));
        assert_eq!(entry(data, "usr/bin/app-too").0, "Link ./usr/bin/app");
        assert_eq!(entry(data, "usr/bin/link").0, "Symlink app");
        assert_eq!(entry(data, "usr/bin/tool").2, "ours");
        assert_eq!(entry(data, "lib").0, "Directory");
        assert_eq!(entry(data, "lib/app.so").2, "library");
        assert_eq!(entry(data, "etc/edited.conf").2, "edited\n");
        assert_eq!(entry(data, "etc/deleted.conf").2, "");
        assert!(data.iter().all(|entry| !entry.0.contains("old.conf") && !entry.0.contains("changelog")));
    }

    #[test]
    fn missing_files_are_named() {
        let (root, deb) = host();
        fs::remove_file(root.path().join("usr/lib/app.so")).unwrap();
        fs::remove_file(root.path().join("usr/bin/link")).unwrap();
        let failure = repack(root.path(), "app", &deb, &root.path().join("app.deb")).unwrap_err();
        assert_eq!(failure.reason, "NoWayBack");
        assert!(failure.message.contains("/usr/bin/link, /lib/app.so is missing"), "{}", failure.message);
        assert_eq!(repack(root.path(), "never", &deb, &root.path().join("x.deb")).unwrap_err().reason, "NoWayBack");
    }

    #[test]
    fn what_a_removed_deb_left_depends_on_nothing() {
        let (root, mut deb) = host();
        let info = root.path().join("var/lib/dpkg/info");
        fs::write(info.join("app.list"), "/etc\n/etc/edited.conf\n").unwrap();
        fs::remove_file(info.join("app.conffiles")).unwrap();
        deb.state = DebState { config_only: true, ..DebState::default() };
        let into = root.path().join("app.deb");
        repack(root.path(), "app", &deb, &into).unwrap();
        let members = read(&into);
        assert_eq!(entry(&members["control.tar"], "control").2, "Package: app\nVersion: 1\nDescription: x\n y\n");
        assert_eq!(entry(&members["control.tar"], "conffiles").2, "/etc/edited.conf\n/etc/deleted.conf\n");
    }
}
