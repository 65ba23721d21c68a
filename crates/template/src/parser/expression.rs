//! Pipelines: declarations, commands, operands and constants.

use super::Parser;
use crate::error::Error;
use crate::lexer::{Keyword, Kind, Token};
use crate::number::{Number, Spelling};
use crate::quote::{quote, unquote};
use crate::registry::{self, Lookup};
use crate::syntax::{Command, Operand, Pipe, Term};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe, Error> {
        let mut pipe = Pipe { at: self.peek_word().at, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_word();
            match token.kind {
                kind if kind == end => {
                    self.check(&pipe, context)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Keyword(Keyword::Nil)
                | Kind::RawString
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParenthesis => {
                    self.back();
                    pipe.commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
    }

    /// `$x :=`, `$x =`, `$k, $v :=`
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<(), Error> {
        loop {
            let variable = self.peek_word();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next();
            let after = self.peek().clone();
            let next = self.peek_word();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    pipe.assigns = next.kind == Kind::Assign;
                    self.next_word();
                    self.declare(pipe, &variable);
                    return Ok(());
                }
                Kind::Char if next.text == "," => {
                    self.next_word();
                    self.declare(pipe, &variable);
                    if context != "range" || pipe.variables.len() >= 2 {
                        return Err(self.error(format!("too many declarations in {context}")));
                    }
                    match self.peek_word().kind {
                        Kind::Variable | Kind::RightDelimiter | Kind::RightParenthesis => {}
                        _ => return Err(self.error("range can only initialize variables")),
                    }
                }
                _ if after.kind == Kind::Space => {
                    self.back_three(variable, after);
                    return Ok(());
                }
                _ => {
                    self.back_two(variable);
                    return Ok(());
                }
            }
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, variable: &Token) {
        pipe.variables.push(variable.text.as_str().into());
        self.scope.variables.push(variable.text.clone());
        *self.scope.declared.entry(variable.text.clone()).or_insert(0) += 1;
    }

    /// Leaves a scope: the variables beyond these are gone.
    pub(super) fn forget(&mut self, count: usize) {
        for name in self.scope.variables.drain(count..) {
            if let Some(times) = self.scope.declared.get_mut(&name) {
                *times -= 1;
            }
        }
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), Error> {
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (at, command) in pipe.commands.iter().enumerate().skip(1) {
            let first = command.operands.first().map(|operand| &operand.term);
            if let Some(Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::Text { .. }) = first {
                return Err(self.error(format!("non executable command in pipeline stage {}", at + 1)));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<Command, Error> {
        let mut command = Command { at: self.peek_word().at, operands: Vec::new() };
        loop {
            self.peek_word();
            if let Some(operand) = self.operand()? {
                command.operands.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelimiter | Kind::RightParenthesis => self.back(),
                Kind::Pipe => {}
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        if command.operands.is_empty() {
            return Err(self.error("empty command"));
        }
        Ok(command)
    }

    fn operand(&mut self) -> Result<Option<Operand>, Error> {
        let Some(operand) = self.term()? else {
            return Ok(None);
        };
        if self.peek().kind != Kind::Field {
            return Ok(Some(operand));
        }
        let at = self.peek().at;
        let mut fields: Vec<Box<str>> = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(self.next().text[1..].into());
        }
        let term = match operand.term {
            Term::Field(mut names) => {
                names.append(&mut fields);
                Term::Field(names)
            }
            Term::Variable(mut names) => {
                names.append(&mut fields);
                Term::Variable(names)
            }
            Term::Bool(_) | Term::Text { .. } | Term::Number(_) | Term::Nil | Term::Dot => {
                return Err(self.error(format!("unexpected . after term {}", quote(&operand.to_string()))));
            }
            _ => Term::Chain(Box::new(operand), fields),
        };
        Ok(Some(Operand { at, term }))
    }

    fn term(&mut self) -> Result<Option<Operand>, Error> {
        let token = self.next_word();
        let term = match token.kind {
            Kind::Identifier => match registry::find(&token.text) {
                Lookup::Found(callee) => Term::Call(callee),
                Lookup::Refused(reason) => {
                    return Err(self.error(format!("function {} is refused: {reason}", quote(&token.text))));
                }
                Lookup::Unknown => {
                    return Err(self.error(format!("function {} not defined", quote(&token.text))));
                }
            },
            Kind::Dot => Term::Dot,
            Kind::Keyword(Keyword::Nil) => Term::Nil,
            Kind::Variable => {
                if self.scope.declared.get(&token.text).is_none_or(|&times| times == 0) {
                    return Err(self.error(format!("undefined variable {}", quote(&token.text))));
                }
                Term::Variable(vec![token.text.as_str().into()])
            }
            Kind::Field => Term::Field(vec![token.text[1..].into()]),
            Kind::Bool => Term::Bool(token.text == "true"),
            Kind::CharConstant => self.number(&token, Spelling::Char)?,
            Kind::Complex => self.number(&token, Spelling::Complex)?,
            Kind::Number => self.number(&token, Spelling::Plain)?,
            Kind::LeftParenthesis => {
                self.deeper()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParenthesis)?;
                self.nesting -= 1;
                return Ok(Some(Operand { at: pipe.at, term: Term::Pipe(pipe) }));
            }
            Kind::Quoted | Kind::RawString => {
                let text = unquote(&token.text).ok_or_else(|| self.error("invalid syntax"))?;
                Term::Text { quoted: token.text.as_str().into(), text: text.into() }
            }
            _ => {
                self.back();
                return Ok(None);
            }
        };
        Ok(Some(Operand { at: token.at, term }))
    }

    fn number(&self, token: &Token, spelling: Spelling) -> Result<Term, Error> {
        let number = Number::parse(&token.text, spelling).map_err(|message| self.error(message))?;
        Ok(Term::Number(Box::new(number)))
    }
}
