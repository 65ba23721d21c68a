//! What one file of source says: the modules it declares, the modules of the package that its code names, and what it exports
//! under a name of its own. Code for tests is passed over.

use crate::tokens::{Token, tokens};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// Modules that are files of their own: with the inline ones around them.
    pub declared: Vec<Vec<String>>,
    /// First names of paths that begin at the package's root, with their lines.
    pub named: Vec<(String, usize)>,
    /// Leaves of `use` with the first name of their paths, for the root's exports.
    pub used: Vec<(String, String)>,
}

/// What begins an item that ends with `;` or a block.
const ITEMS: [&str; 16] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "mod",
    "use",
    "const",
    "static",
    "type",
    "extern",
    "async",
    "unsafe",
    "macro_rules",
    "pub",
];

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    found: SourceFile,
    /// How many modules the file is below the root.
    depth: usize,
    /// Inline modules around the place, and at which depth of braces each ends.
    inline: Vec<(String, usize)>,
    braces: usize,
}

/// `depth` is 0 for the root, 1 for a top-level module.
pub fn read_source(text: &str, depth: usize) -> SourceFile {
    let tokens = tokens(text);
    let mut reader = Reader { tokens, at: 0, found: SourceFile::default(), depth, inline: Vec::new(), braces: 0 };
    while reader.at < reader.tokens.len() {
        reader.step();
    }
    reader.found
}

impl<'a> Reader<'a> {
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn has(&self, texts: &[&str]) -> bool {
        texts.iter().enumerate().all(|(ahead, text)| self.text(ahead) == *text)
    }

    fn step(&mut self) {
        match self.text(0) {
            "#" if self.text(1) == "[" => {
                if self.pass_attribute() {
                    self.pass_item();
                }
                return;
            }
            "{" => self.braces += 1,
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                self.inline.retain(|(_, braces)| *braces <= self.braces);
            }
            "mod" if self.text(2) == ";" => {
                let around = self.inline.iter().map(|(name, _)| name.clone());
                let path = around.chain([self.text(1).to_owned()]).collect();
                self.found.declared.push(path);
            }
            "mod" if self.text(2) == "{" => self.inline.push((self.text(1).to_owned(), self.braces + 1)),
            "use" => self.read_use(),
            "crate" if self.text(1) == ":" => {
                self.at += 1;
                self.read_names();
                return;
            }
            "super" => {
                let mut supers = 0;
                while self.has(&["super", ":", ":"]) {
                    supers += 1;
                    self.at += 3;
                }
                if supers == 0 {
                    self.at += 1;
                } else if supers == self.depth + self.inline.len() {
                    self.at -= 2;
                    self.read_names();
                }
                return;
            }
            _ => {}
        }
        self.at += 1;
    }

    /// At `::` behind the root: one name, or several in braces.
    fn read_names(&mut self) {
        self.at += 2;
        if self.text(0) != "{" {
            self.name();
            return;
        }
        let (mut ahead, mut depth, mut first) = (1, 1, true);
        while depth > 0 && self.at + ahead < self.tokens.len() {
            match self.text(ahead) {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," if depth == 1 => first = true,
                _ if first => {
                    first = false;
                    let Token { text, line } = self.tokens[self.at + ahead];
                    self.found.named.push((text.to_owned(), line));
                }
                _ => {}
            }
            ahead += 1;
        }
    }

    fn name(&mut self) {
        if let Some(Token { text, line }) = self.tokens.get(self.at) {
            self.found.named.push(((*text).to_owned(), *line));
        }
    }

    /// Notes the leaves of a `use` and stays where it is: its paths are read like all others.
    fn read_use(&mut self) {
        let mut ahead = 1;
        while self.has_root(ahead) {
            ahead += 3;
        }
        let first = self.text(ahead).to_owned();
        let mut last = String::new();
        while !matches!(self.text(ahead), "" | ";") {
            match self.text(ahead) {
                "," | "}" => self.leaf(&first, &mut last),
                "{" | ":" | "as" => {}
                name => name.clone_into(&mut last),
            }
            ahead += 1;
        }
        self.leaf(&first, &mut last);
    }

    fn has_root(&self, ahead: usize) -> bool {
        matches!(self.text(ahead), "crate" | "self") && self.text(ahead + 1) == ":"
    }

    fn leaf(&mut self, first: &str, last: &mut String) {
        if !last.is_empty() {
            self.found.used.push((first.to_owned(), std::mem::take(last)));
        }
    }

    /// Whether what follows is for tests only.
    fn pass_attribute(&mut self) -> bool {
        let begin = self.at;
        self.at += 1;
        self.pass_group();
        let inside: Vec<&str> = self.tokens[begin..self.at].iter().map(|token| token.text).collect();
        inside.get(2) == Some(&"cfg") && inside.contains(&"test") && !inside.contains(&"not")
    }

    /// At an opening sign: goes behind the closing one.
    fn pass_group(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// An item, a statement, a field or a variant.
    fn pass_item(&mut self) {
        while self.has(&["#", "["]) {
            self.at += 1;
            self.pass_group();
        }
        let is_item = ITEMS.contains(&self.text(0));
        let is_use = is_item && (self.text(0) == "use" || self.text(1) == "use" || self.text(4) == "use");
        while self.at < self.tokens.len() {
            match self.text(0) {
                "{" if is_item && !is_use => return self.pass_group(),
                "(" | "[" | "{" => self.pass_group(),
                ")" | "]" | "}" => return,
                "," if !is_item => return self.at += 1,
                ";" => return self.at += 1,
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, depth: usize) -> Vec<String> {
        read_source(text, depth).named.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn paths_from_the_root_are_found() {
        let text = "use crate::a::{B, C};\nuse crate::{d::{E, e}, f::*};\nfn g() -> crate::h::I { $crate::j!() }";
        assert_eq!(named(text, 1), ["a", "d", "f", "h", "j"]);
        let lines: Vec<usize> = read_source(text, 1).named.into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_path_through_parents_counts_when_it_reaches_the_root() {
        let text = "use super::a;\nuse super::super::b;\nmod inside { use super::c; use super::super::super::d; }";
        assert_eq!(named(text, 2), ["b", "d"]);
        assert_eq!(named("use super::{a::B, c};", 1), ["a", "c"]);
    }

    #[test]
    fn code_for_tests_is_passed_over() {
        let text = "
            #[cfg(test)]
            pub(crate) mod fixture;
            #[cfg(test)]
            use crate::a::{B, C};
            #[cfg(any(test, feature = \"fake\"))]
            #[derive(Debug)]
            struct D { e: crate::e::E }
            struct F { #[cfg(test)] g: crate::g::G<(H, I)>, j: crate::j::J }
            #[cfg(test)]
            fn k<L, M>() { crate::k::k(); }
            #[cfg(not(test))]
            use crate::n;
            #[cfg(test)]
            mod tests { use crate::o; }
            mod p;
        ";
        assert_eq!(named(text, 1), ["j", "n"]);
        assert_eq!(read_source(text, 1).declared, [["p"]]);
    }

    #[test]
    fn exports_of_the_root_are_found_by_their_names() {
        let used = read_source("pub use a::B;\npub use self::c::{D as E, f::{G, H}};", 0).used;
        let expected = [("a", "B"), ("c", "E"), ("c", "G"), ("c", "H")];
        assert_eq!(used, expected.map(|(module, name)| (module.to_owned(), name.to_owned())));
    }
}
