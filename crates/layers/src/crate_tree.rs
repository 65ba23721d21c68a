//! The files of a crate, found as the compiler finds them: from `lib.rs`, by the modules that each declares.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{ScanError, code};

#[derive(Clone, Debug)]
pub struct SourceFile {
    pub path: PathBuf,
    /// The names on the way to it; none: the root.
    pub module: Vec<String>,
    /// Code alone.
    pub text: String,
}

impl SourceFile {
    /// The top-level module that it belongs to.
    pub fn top(&self) -> Option<&str> {
        self.module.first().map(String::as_str)
    }
}

pub fn read(sources: &Path) -> Result<Vec<SourceFile>, ScanError> {
    let mut files = Vec::new();
    add(&sources.join("lib.rs"), sources, Vec::new(), &mut files)?;
    Ok(files)
}

fn add(path: &Path, folder: &Path, module: Vec<String>, files: &mut Vec<SourceFile>) -> Result<(), ScanError> {
    let text = fs::read_to_string(path).map_err(|source| ScanError { path: path.to_owned(), source })?;
    let text = code::of(&text);
    for name in declared(&text) {
        let below = folder.join(&name);
        let file = folder.join(format!("{name}.rs"));
        let file = if file.exists() { file } else { below.join("mod.rs") };
        let module = module.iter().cloned().chain([name]).collect();
        add(&file, &below, module, files)?;
    }
    files.push(SourceFile { path: path.to_owned(), module, text });
    Ok(())
}

/// The names behind `mod`, where a `;` follows.
fn declared(text: &str) -> Vec<String> {
    let mut words = text.split_inclusive(|letter: char| letter.is_whitespace() || letter == ';').map(str::trim);
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        if word == "mod"
            && let Some(name) = words.next().and_then(|word| word.strip_suffix(';'))
        {
            names.push(name.to_owned());
        }
    }
    names
}
