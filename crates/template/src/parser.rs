//! From tokens to the parse tree, with Go's checks and texts. `Template::parse` calls it.

mod expression;

use std::collections::{BTreeMap, HashMap};
use std::mem;

use crate::error::{Error, TEMPLATE_NAME};
use crate::lexer::{Keyword, Kind, Lexer, Token};
use crate::quote::{quote, unquote};
use crate::syntax::{Branch, Node, is_empty};

/// How deep parentheses and control actions may nest, together. Go's 10,000 would need Go's growing stack.
pub(crate) const MAX_NESTING: usize = 150;

/// The trees of a source: the template itself and what it defines.
pub(crate) type Trees = BTreeMap<String, Vec<Node>>;

/// The parser's state within one tree; `define` and `block` begin a new one on the same tokens.
struct Scope {
    /// The tokens that were pushed back; the last one that the lexer gave is the first.
    tokens: [Token; 3],
    pushed_back: usize,
    variables: Vec<String>,
    /// How often each name is declared in `variables`.
    declared: HashMap<String, usize>,
    /// The line where the current action began, or 0.
    action_line: u32,
    range_depth: usize,
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    scope: Scope,
    trees: Trees,
    nesting: usize,
}

/// A step, or what ends a body.
enum Parsed {
    Node(Node),
    End,
    Else,
}

/// Why a body ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    End,
    Else,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    With,
    Range,
}

impl Control {
    fn name(self) -> &'static str {
        match self {
            Control::If => "if",
            Control::With => "with",
            Control::Range => "range",
        }
    }
}

pub(crate) fn parse(source: &str) -> Result<Trees, Error> {
    let mut parser = Parser { lexer: Lexer::new(source), scope: Scope::new(), trees: Trees::new(), nesting: 0 };
    let root = parser.root()?;
    parser.add(TEMPLATE_NAME.to_owned(), root)?;
    Ok(parser.trees)
}

impl Scope {
    fn new() -> Scope {
        Scope {
            tokens: [Token::none(), Token::none(), Token::none()],
            pushed_back: 0,
            variables: vec!["$".to_owned()],
            declared: HashMap::from([("$".to_owned(), 1)]),
            action_line: 0,
            range_depth: 0,
        }
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.scope.pushed_back > 0 {
            self.scope.pushed_back -= 1;
        } else {
            self.scope.tokens[0] = self.lexer.next_token();
        }
        self.scope.tokens[self.scope.pushed_back].clone()
    }

    fn back(&mut self) {
        self.scope.pushed_back += 1;
    }

    fn back_two(&mut self, first: Token) {
        self.scope.tokens[1] = first;
        self.scope.pushed_back = 2;
    }

    fn back_three(&mut self, first: Token, second: Token) {
        self.scope.tokens[1] = second;
        self.scope.tokens[2] = first;
        self.scope.pushed_back = 3;
    }

    fn peek(&mut self) -> &Token {
        if self.scope.pushed_back == 0 {
            self.scope.tokens[0] = self.lexer.next_token();
            self.scope.pushed_back = 1;
        }
        &self.scope.tokens[self.scope.pushed_back - 1]
    }

    fn next_word(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_word(&mut self) -> Token {
        let token = self.next_word();
        self.back();
        token
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::parsing(self.scope.tokens[0].line, message)
    }

    fn unexpected(&self, token: &Token, context: &str) -> Error {
        if token.kind != Kind::Error {
            return self.error(format!("unexpected {} in {context}", token.describe()));
        }
        let mut message = token.text.clone();
        let line = self.scope.action_line;
        if line != 0 && line != token.line {
            message.push_str(if token.text.ends_with(" action") { " started at " } else { " in action started at " });
            message.push_str(&format!("{TEMPLATE_NAME}:{line}"));
        }
        self.error(message)
    }

    fn expect_close(&mut self, context: &str) -> Result<Token, Error> {
        let token = self.next_word();
        if token.kind == Kind::RightDelimiter { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    fn deeper(&mut self) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.error(format!("max expression depth exceeded: more than {MAX_NESTING} levels")));
        }
        Ok(())
    }

    fn add(&mut self, name: String, body: Vec<Node>) -> Result<(), Error> {
        match self.trees.get(&name) {
            Some(known) if !is_empty(known) => {
                if !is_empty(&body) {
                    return Err(self.error(format!("template: multiple definition of template {}", quote(&name))));
                }
            }
            _ => {
                self.trees.insert(name, body);
            }
        }
        Ok(())
    }

    fn root(&mut self) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::End {
            if self.peek().kind == Kind::LeftDelimiter {
                let delimiter = self.next();
                if self.next_word().kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.back_two(delimiter);
            }
            match self.text_or_action()? {
                Parsed::Node(node) => nodes.push(node),
                Parsed::End => return Err(self.error("unexpected {{end}}")),
                Parsed::Else => return Err(self.error("unexpected {{else}}")),
            }
        }
        Ok(nodes)
    }

    fn definition(&mut self) -> Result<(), Error> {
        const CONTEXT: &str = "define clause";
        let outer = mem::replace(&mut self.scope, Scope::new());
        let token = self.next_word();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect_close(CONTEXT)?;
        let (body, ending) = self.body()?;
        if ending == Ending::Else {
            return Err(self.error(format!("unexpected {{{{else}}}} in {CONTEXT}")));
        }
        self.add(name, body)?;
        self.scope = outer;
        Ok(())
    }

    fn template_name(&mut self, token: &Token, context: &str) -> Result<String, Error> {
        match token.kind {
            Kind::Quoted | Kind::RawString => unquote(&token.text).ok_or_else(|| self.error("invalid syntax")),
            _ => Err(self.unexpected(token, context)),
        }
    }

    fn body(&mut self) -> Result<(Vec<Node>, Ending), Error> {
        let mut nodes = Vec::new();
        while self.peek_word().kind != Kind::End {
            match self.text_or_action()? {
                Parsed::Node(node) => nodes.push(node),
                Parsed::End => return Ok((nodes, Ending::End)),
                Parsed::Else => return Ok((nodes, Ending::Else)),
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn text_or_action(&mut self) -> Result<Parsed, Error> {
        let token = self.next_word();
        match token.kind {
            Kind::Text => Ok(Parsed::Node(Node::Text(token.text.into()))),
            Kind::LeftDelimiter => {
                self.scope.action_line = token.line;
                let parsed = self.action()?;
                self.scope.action_line = 0;
                Ok(parsed)
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn action(&mut self) -> Result<Parsed, Error> {
        let token = self.next_word();
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.jump("{{break}}", Node::Break)?,
            Kind::Keyword(Keyword::Continue) => self.jump("{{continue}}", Node::Continue)?,
            Kind::Keyword(Keyword::Else) => {
                let next = self.peek_word().kind;
                if !matches!(next, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect_close("else")?;
                }
                return Ok(Parsed::Else);
            }
            Kind::Keyword(Keyword::End) => {
                self.expect_close("end")?;
                return Ok(Parsed::End);
            }
            Kind::Keyword(Keyword::If) => Node::If(self.control(Control::If)?),
            Kind::Keyword(Keyword::Range) => Node::Range(self.control(Control::Range)?),
            Kind::Keyword(Keyword::Template) => self.template()?,
            Kind::Keyword(Keyword::With) => Node::With(self.control(Control::With)?),
            _ => {
                self.back();
                let at = self.peek().at;
                Node::Action { at, pipe: self.pipeline("command", Kind::RightDelimiter)? }
            }
        };
        Ok(Parsed::Node(node))
    }

    fn jump(&mut self, name: &str, node: Node) -> Result<Node, Error> {
        self.expect_close(name)?;
        if self.scope.range_depth == 0 {
            return Err(self.error(format!("{name} outside {{{{range}}}}")));
        }
        Ok(node)
    }

    fn control(&mut self, control: Control) -> Result<Branch, Error> {
        self.deeper()?;
        let variables = self.scope.variables.len();
        let pipe = self.pipeline(control.name(), Kind::RightDelimiter)?;
        if control == Control::Range {
            self.scope.range_depth += 1;
        }
        let (body, ending) = self.body()?;
        if control == Control::Range {
            self.scope.range_depth -= 1;
        }
        let mut otherwise = None;
        if ending == Ending::Else {
            otherwise = Some(match (control, self.peek().kind) {
                (Control::If, Kind::Keyword(Keyword::If)) => {
                    self.next();
                    vec![Node::If(self.control(Control::If)?)]
                }
                (Control::With, Kind::Keyword(Keyword::With)) => {
                    self.next();
                    vec![Node::With(self.control(Control::With)?)]
                }
                _ => {
                    let (body, ending) = self.body()?;
                    if ending == Ending::Else {
                        return Err(self.error("expected end; found {{else}}"));
                    }
                    body
                }
            });
        }
        self.forget(variables);
        self.nesting -= 1;
        Ok(Branch { at: pipe.at, pipe, body, otherwise })
    }

    fn block(&mut self) -> Result<Node, Error> {
        const CONTEXT: &str = "block clause";
        self.deeper()?;
        let token = self.next_word();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelimiter)?;
        let outer = mem::replace(&mut self.scope, Scope::new());
        let (body, ending) = self.body()?;
        if ending == Ending::Else {
            self.scope = outer;
            return Err(self.error(format!("unexpected {{{{else}}}} in {CONTEXT}")));
        }
        self.add(name.clone(), body)?;
        self.scope = outer;
        self.nesting -= 1;
        Ok(Node::Template { at: token.at, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Result<Node, Error> {
        const CONTEXT: &str = "template clause";
        let token = self.next_word();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_word().kind != Kind::RightDelimiter {
            self.back();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelimiter)?);
        }
        Ok(Node::Template { at: token.at, name, pipe })
    }
}
