//! From the bytes of a file to objects, with every problem of the file at once. Called by whoever reads a repository
//! (a checkout, or the hub at a commit), and by the packer for rendered files.

mod document;
mod fields;
mod metadata;
mod node;
mod notes;
mod salvage;
mod selector;
mod spec;
mod suggestion;
#[cfg(test)]
mod tests;

use crate::{Broken, Object, Origin, Problem};
use document::Reader;
use node::Fault;
use notes::{Notes, Spot};

/// Larger files are refused: etcd takes objects of 1.5 MiB, so nobody's is.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// What Windows puts before a text.
const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The registration whose repository the file is from. Only Workloads are taken from there.
    pub application: Option<String>,
    /// The file was made by templates, and what it says is applied: in a Delivery or HostNamespace a field that isn't
    /// known is an error.
    pub rendered: bool,
    /// Whether a time zone is known. None: any is taken, for readers that carry no time zone database.
    pub is_time_zone: Option<fn(&str) -> bool>,
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// In the order of the file.
    pub objects: Vec<Object>,
    /// Objects with an error. The first one is repeated here; all of them are in `problems`.
    pub broken: Vec<Broken>,
    /// Every error and warning of the file, by line.
    pub problems: Vec<Problem>,
}

/// Reads a file. `file` says which one it is; its line and column don't matter.
pub fn objects(bytes: &[u8], file: &Origin, options: &Options) -> Decoded {
    if bytes.len() > MAX_FILE_BYTES {
        return too_large(bytes, bytes.len() as u64, file, options);
    }
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => binary(text, file, options),
        Ok(text) => documents(text, file, options),
        Err(_) if bytes.contains(&0) => binary(&String::from_utf8_lossy(bytes), file, options),
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let text = String::from_utf8_lossy(bytes);
            let spot = spot_at_end(&good);
            let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            let mut reader = Reader::new(&text, file, options);
            reader
                .notes
                .error(spot, "InvalidUtf8", format!("the file isn't UTF-8: byte 0x{byte:02x} can't stand here"))
                .hint = Some("save the file as UTF-8".to_owned());
            reader.salvage(&text, 1, Some(spot.line));
            reader.finish()
        }
    }
}

/// A file of so many bytes, over the limit: what is known of it may say what it stops.
pub fn too_large(beginning: &[u8], size: u64, file: &Origin, options: &Options) -> Decoded {
    let text = String::from_utf8_lossy(beginning.strip_prefix(BOM).unwrap_or(beginning));
    let is_whole = beginning.len() as u64 >= size;
    let text = if is_whole { &text } else { text.rsplit_once('\n').map_or("", |(lines, _)| lines) };
    let mut reader = Reader::new("", file, options);
    let message = format!("the file has {size} bytes, over the limit of {MAX_FILE_BYTES}");
    let hint = "split it, or name it in `.sourceignore` if it isn't part of the platform";
    reader.notes.error(Spot::NONE, "FileTooLarge", message).hint = Some(hint.to_owned());
    let chunks = chunks(text);
    if chunks.is_empty() {
        reader.salvage("", 1, None);
    }
    // Where the text was cut off there may be more of what the last line belongs to.
    let cut = (!is_whole).then(|| text.lines().count());
    for chunk in chunks {
        reader.salvage(chunk.text, chunk.first_line, cut);
    }
    reader.finish()
}

fn binary(text: &str, file: &Origin, options: &Options) -> Decoded {
    let before = text.split('\0').next().unwrap_or_default();
    let spot = spot_at_end(before);
    let mut reader = Reader::new(text, file, options);
    reader.notes.error(spot, "BinaryFile", "the file is binary: it contains a NUL byte".to_owned()).hint =
        Some("name it in `.sourceignore`, or give it an ending other than `.yaml`".to_owned());
    reader.salvage(text, 1, Some(spot.line));
    reader.finish()
}

/// When one document of a file isn't YAML, the others are read all the same.
fn documents(text: &str, file: &Origin, options: &Options) -> Decoded {
    let mut reader = Reader::new(text, file, options);
    match node::parse(text, 1) {
        Ok(documents) => {
            for document in &documents {
                reader.document(document);
            }
        }
        Err(_) => {
            for chunk in chunks(text) {
                match node::parse(chunk.text, chunk.first_line) {
                    Ok(documents) => documents.iter().for_each(|document| reader.document(document)),
                    Err(fault) => {
                        let line = fault.line;
                        not_yaml(&mut reader.notes, fault);
                        reader.salvage(chunk.text, chunk.first_line, Some(line));
                    }
                }
            }
        }
    }
    reader.finish()
}

fn not_yaml(notes: &mut Notes<'_>, fault: Fault) {
    let line = notes.line(fault.line).unwrap_or_default();
    let tab = line.chars().take_while(|c| c.is_whitespace()).position(|c| c == '\t');
    if let Some(column) = tab {
        let spot = Spot { line: fault.line, column: column + 1, width: 1 };
        notes.error(spot, "TabIndentation", "the file isn't YAML: a tab can't indent it".to_owned()).hint =
            Some("indent with spaces".to_owned());
        return;
    }
    let spot = Spot { line: fault.line, column: fault.column, width: 1 };
    notes.error(spot, "NotYaml", format!("the file can't be read as YAML: {}", fault.message)).hint = fault.hint;
}

/// A document of a file with several, and the line that it begins on.
struct Chunk<'a> {
    text: &'a str,
    first_line: usize,
}

/// `---` at the start of a line begins a document wherever it stands, even inside a block of text, and `...` ends one.
/// Directives and comments belong to the document that they stand before.
fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let is = |line: &str, marker| {
        line.strip_prefix(marker).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut offset, mut has_content) = (0, 1, 0, false);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is(line, "---") && has_content {
            chunks.push(Chunk { text: &text[start..offset], first_line });
            (start, first_line) = (offset, index + 1);
        }
        offset += line.len();
        has_content |= !(line.trim().is_empty() || line.starts_with(['#', '%']));
        if is(line, "...") {
            chunks.push(Chunk { text: &text[start..offset], first_line });
            (start, first_line, has_content) = (offset, index + 2, false);
        }
    }
    if has_content {
        chunks.push(Chunk { text: &text[start..], first_line });
    }
    chunks
}

/// The place just behind a text.
fn spot_at_end(text: &str) -> Spot {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Spot { line, column, width: 1 }
}
