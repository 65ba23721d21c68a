//! What text of an application's repository may hold. Platform templates write it into files that reconcilers apply, so
//! nothing in it may end a line, hide what stands there, or be a template. The decoder asks for every text of a Workload.

/// Why a text can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("has the control character {0:?}, which no text of an application may hold")]
    Control(char),
    #[error("has the line separator {0:?}, which no text of an application may hold")]
    Line(char),
    #[error("has the invisible character {0:?}, which can make a text look like another one")]
    Hidden(char),
    #[error("has `{{{{`: text of an application is never a template")]
    Template,
    #[error("has the character {0:?}, and a key has letters, digits, `.`, `_`, `-` and `/` only")]
    Key(char),
    #[error("must begin and end with a letter, a digit or `_`")]
    KeyEdge,
    #[error("has the character {0:?}, and a name has letters, digits, `-`, `_` and `.` only")]
    Name(char),
    #[error("must begin and end with a letter or a digit")]
    NameEdge,
    #[error("isn't the address of a repository: it can't hold the character {0:?}")]
    Address(char),
    #[error("isn't the address of a repository: it can't begin with {0:?}")]
    AddressStart(char),
    #[error("isn't the name of a branch: it can't hold {0:?}")]
    Reference(String),
    #[error("isn't a relative path: it can't hold the character {0:?}")]
    Path(char),
    #[error("isn't a relative path: it begins with `/`")]
    Absolute,
    #[error("isn't a relative path: `..` leaves the repository")]
    Leaves,
}

impl TextError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TextError::Control(_) | TextError::Line(_) => {
                "write it on one line, without tabs and escapes such as `\\n`"
            }
            TextError::Hidden(_) => "type the text again, without what an editor or a web page put into it",
            TextError::Template => "write the value itself; values of the platform reach the workload as configuration",
            TextError::Key(_) | TextError::KeyEdge => "choose another key, such as `release-channel`",
            TextError::Name(_) | TextError::NameEdge => "choose another name, such as `web-shop`",
            TextError::Address(_) | TextError::AddressStart(_) => {
                "write it as `https://host/team/repo`; a space in it is `%20`"
            }
            TextError::Reference(_) => {
                "use a branch whose name has letters, digits, `.`, `_`, `-`, `+`, `@`, `=` and `/` only"
            }
            TextError::Path(_) => {
                "use a folder whose name has letters, digits, `.`, `_`, `-`, `+`, `@`, `=` and `/` only"
            }
            TextError::Absolute => "write it from the repository's root: `./apps/hello`",
            TextError::Leaves => "write a path from the repository's root, without `..`",
        }
    }
}

/// Whether any text of an application may be this.
pub fn check_text(text: &str) -> Result<(), TextError> {
    // Most text is plain: one look at the bytes is enough.
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'z' | b'|' | b'}' | b'~')) {
        for c in text.chars() {
            match c {
                '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => return Err(TextError::Line(c)),
                c if c.is_control() => return Err(TextError::Control(c)),
                '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}'
                | '\u{061c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2060}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => return Err(TextError::Hidden(c)),
                _ => {}
            }
        }
        if text.contains("{{") {
            return Err(TextError::Template);
        }
    }
    Ok(())
}

/// Whether a label or a free field of `manifests` may be called this. Templates can write all of them, as keys.
pub fn check_key(key: &str) -> Result<(), TextError> {
    check_text(key)?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(c) = key.chars().find(|c| !(word(*c) || matches!(c, '.' | '-' | '/'))) {
        return Err(TextError::Key(c));
    }
    if key.starts_with(word) && key.ends_with(word) { Ok(()) } else { Err(TextError::KeyEdge) }
}

/// Whether a workload or a deployment target may be called this. Every template writes names into files, most without quotes.
pub fn check_tenant_name(name: &str) -> Result<(), TextError> {
    check_text(name)?;
    if let Some(c) = name.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))) {
        return Err(TextError::Name(c));
    }
    let is_edge = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/');
    if name.starts_with(is_edge) && name.ends_with(is_edge) || name.is_empty() {
        Ok(())
    } else {
        Err(TextError::NameEdge)
    }
}

/// Whether `manifests.repo` may be this: a URL, `user@host:path`, or a path.
pub fn check_address(text: &str) -> Result<(), TextError> {
    check_text(text)?;
    // A folder of one's own machine may have spaces in its name.
    let is_local = text.starts_with(['/', '.']) || text.starts_with("file://");
    let fits = |c: char| c.is_alphanumeric() || "._-~:/@%+=".contains(c) || (is_local && c == ' ');
    if let Some(c) = text.chars().find(|c| !fits(*c)) {
        return Err(TextError::Address(c));
    }
    match text.chars().next().filter(|c| !(c.is_alphanumeric() || matches!(c, '.' | '/' | '_'))) {
        Some(c) => Err(TextError::AddressStart(c)),
        None if text.ends_with(':') || text.contains(": ") => Err(TextError::Address(':')),
        None if text.ends_with(' ') => Err(TextError::Address(' ')),
        None => Ok(()),
    }
}

/// Whether `manifests.branch` may be this.
pub fn check_reference(text: &str) -> Result<(), TextError> {
    check_text(text)?;
    if let Some(c) = text.chars().find(|c| !is_plain(*c)) {
        return Err(TextError::Reference(c.to_string()));
    }
    let odd = ["..", "//", "@{", "/."].into_iter().find(|part| text.contains(part));
    let ends = text.split('/').find(|part| part.starts_with(['.', '-', '@', '=', '+']) || part.ends_with(".lock"));
    match odd.or(ends).or_else(|| text.ends_with(['.', '/']).then_some(text)) {
        Some(part) => Err(TextError::Reference(part.to_owned())),
        None => Ok(()),
    }
}

/// Whether `manifests.path` may be this.
pub fn check_relative_path(text: &str) -> Result<(), TextError> {
    check_text(text)?;
    if text.starts_with('/') {
        return Err(TextError::Absolute);
    }
    if let Some(c) = text.chars().find(|c| !is_plain(*c)) {
        return Err(TextError::Path(c));
    }
    if let Some(c) = text.chars().next().filter(|c| matches!(c, '-' | '@' | '=' | '+')) {
        return Err(TextError::Path(c));
    }
    if text.split('/').any(|part| part == "..") { Err(TextError::Leaves) } else { Ok(()) }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '@' | '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_passes() {
        for text in ["", "hello", "a b", "Grüße, Welt!", "{\"a\": [1, {\"b\": 2}]}", "x: y # z", "}}", "日本"] {
            assert_eq!(check_text(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn text_that_ends_a_line_hides_or_is_a_template_is_refused() {
        for c in ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'] {
            assert_eq!(check_text(&format!("a{c}b")), Err(TextError::Line(c)));
        }
        for c in ['\0', '\t', '\u{b}', '\u{c}', '\u{1b}', '\u{7f}', '\u{80}', '\u{9f}'] {
            assert_eq!(check_text(&format!("a{c}b")), Err(TextError::Control(c)));
        }
        for c in ['\u{feff}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{ffff}'] {
            assert_eq!(check_text(&format!("a{c}b")), Err(TextError::Hidden(c)));
        }
        assert_eq!(check_text("a {{ .x }}"), Err(TextError::Template));
        assert_eq!(check_text("{{"), Err(TextError::Template));
    }

    #[test]
    fn keys_are_words() {
        for key in ["repo", "kedge.dev/ring", "a_b", "_x", "8"] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        for key in ["", "a b", "a:b", "- x", "---", ".a", "a-", "a\nb", "{{", "ä", "&a", "\"a\""] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn an_address_a_branch_and_a_path_are_what_they_are_called() {
        for address in [
            "",
            "https://github.com/team/app",
            "https://dev.azure.com/org/my%20project/_git/app",
            "ssh://git@host:2222/team/app.git",
            "git@github.com:team/app.git",
            "oci://ghcr.io/team/app",
            "../app",
            "/srv/git/app.git",
            "file:///home/me/my sample/app.git",
            "http://127.0.0.1:3000/a/b",
        ] {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
        for address in [
            "https://h/x y",
            "-u",
            "https://h/x\", scope: \"cluster",
            "a#b",
            "'",
            "&a",
            "*a",
            "!x",
            "a:",
            "$(x)",
            "/a: b",
            "/a ",
        ] {
            assert!(check_address(address).is_err(), "{address}");
        }
        for branch in ["", "main", "release/1.0", "feature/a_b-c", "user@host", "v1+2"] {
            assert_eq!(check_reference(branch), Ok(()), "{branch}");
        }
        for branch in ["-x", "a..b", "a b", "a:b", "a{b", "x.lock", "a/", "a//b", ".a", "a~1", "@{u}", "a\\b", "a,b"] {
            assert!(check_reference(branch).is_err(), "{branch}");
        }
        for path in ["", ".", "./", "./apps/hello", "apps/hello_1", ".hidden/x", "a.b/c", "workload/"] {
            assert_eq!(check_relative_path(path), Ok(()), "{path}");
        }
        for path in ["/apps", "../x", "a/../b", "a b", "x, y", "x #y", "\"", "-x", "x: y", "*", "a\u{2028}b"] {
            assert!(check_relative_path(path).is_err(), "{path}");
        }
    }
}
