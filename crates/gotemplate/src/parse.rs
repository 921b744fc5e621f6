//! Builds the tree of a template from its tokens, with the checks that Go makes before anything runs.

use std::collections::BTreeMap;

use crate::ast::{Body, Branches, Command, Node, Pipe, Pos, Term, TermKind};
use crate::funcs;
use crate::lex::{Kind, Token, lex};
use crate::literal;

/// How deep blocks and parentheses may nest. Go allows 10 000 parentheses, at the price of a growing stack.
const MAX_NESTING: usize = 100;

/// What is wrong, and where.
pub(crate) type Failure = (Pos, String);
type Parsed<T> = Result<T, Failure>;

/// The bodies that `text` defines, by name; the text outside of definitions is `name`.
pub(crate) fn parse(name: &str, text: &str) -> Parsed<BTreeMap<String, Body>> {
    let mut parser = Parser {
        tokens: lex(text),
        next: 0,
        vars: vec!["$".to_owned()],
        ranges: 0,
        nesting: 0,
        bodies: BTreeMap::new(),
    };
    let nodes = parser.top_level()?;
    parser.add(0, Body { name: name.to_owned(), nodes })?;
    Ok(parser.bodies)
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    /// Names of the variables in scope.
    vars: Vec<String>,
    /// How many ranges enclose this point of the body.
    ranges: usize,
    nesting: usize,
    bodies: BTreeMap<String, Body>,
}

/// What ended a list of nodes.
#[derive(PartialEq)]
enum Ending {
    End,
    Else,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        // The last token, End or Error, is never consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token<'t> {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn peek_past_space(&mut self) -> &Token<'t> {
        if self.peek().kind == Kind::Space {
            self.next += 1;
        }
        self.peek()
    }

    fn take_past_space(&mut self) -> Token<'t> {
        self.peek_past_space();
        self.take()
    }

    fn expect_close(&mut self, context: &str) -> Parsed<()> {
        let token = self.take_past_space();
        if token.kind == Kind::RightDelim { Ok(()) } else { Err(unexpected(&token, context)) }
    }

    fn nested<T>(&mut self, at: Pos, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            return Err((at, format!("blocks and parentheses nest deeper than {MAX_NESTING}")));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn add(&mut self, at: Pos, body: Body) -> Parsed<()> {
        match self.bodies.get(&body.name) {
            Some(old) if !old.is_empty() => {
                if !body.is_empty() {
                    return Err((at, format!("multiple definition of template {:?}", body.name)));
                }
            }
            _ => {
                self.bodies.insert(body.name.clone(), body);
            }
        }
        Ok(())
    }

    fn top_level(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::End {
            let start = self.next;
            if self.take().kind == Kind::LeftDelim && self.take_past_space().kind == Kind::Define {
                let name = self.take_past_space();
                let at = name.at;
                let name = template_name(&name, "define clause")?;
                self.expect_close("define clause")?;
                self.definition(at, name, "define clause")?;
                continue;
            }
            self.next = start;
            let at = self.peek().at;
            match self.text_or_action()? {
                Element::Node(node) => nodes.push(node),
                Element::Ending(Ending::End) => return Err((at, "unexpected {{end}}".into())),
                Element::Ending(Ending::Else) => return Err((at, "unexpected {{else}}".into())),
            }
        }
        Ok(nodes)
    }

    /// The body of a `define` or `block`, which sees no variable of its surroundings.
    fn definition(&mut self, at: Pos, name: String, context: &str) -> Parsed<()> {
        let vars = std::mem::replace(&mut self.vars, vec!["$".to_owned()]);
        let ranges = std::mem::take(&mut self.ranges);
        let (nodes, ending) = self.nested(at, Self::list)?;
        if ending == Ending::Else {
            return Err((at, format!("unexpected {{{{else}}}} in {context}")));
        }
        self.vars = vars;
        self.ranges = ranges;
        self.add(at, Body { name, nodes })
    }

    fn list(&mut self) -> Parsed<(Vec<Node>, Ending)> {
        let mut nodes = Vec::new();
        while self.peek_past_space().kind != Kind::End {
            match self.text_or_action()? {
                Element::Node(node) => nodes.push(node),
                Element::Ending(ending) => return Ok((nodes, ending)),
            }
        }
        Err((self.peek().at, "unexpected EOF: an {{end}} is missing".into()))
    }

    fn text_or_action(&mut self) -> Parsed<Element> {
        let token = self.take_past_space();
        match token.kind {
            Kind::Text => Ok(Element::Node(Node::Text { at: token.at, text: token.text.to_owned() })),
            Kind::LeftDelim => self.action(),
            _ => Err(unexpected(&token, "input")),
        }
    }

    fn action(&mut self) -> Parsed<Element> {
        let start = self.next;
        let token = self.take_past_space();
        let node = match token.kind {
            Kind::Block => self.block(token.at)?,
            Kind::Break | Kind::Continue => {
                let word = if token.kind == Kind::Break { "{{break}}" } else { "{{continue}}" };
                self.expect_close(word)?;
                if self.ranges == 0 {
                    return Err((token.at, format!("{word} outside {{{{range}}}}")));
                }
                if token.kind == Kind::Break { Node::Break } else { Node::Continue }
            }
            Kind::Else => {
                // `else if` and `else with` stay for whoever opened the block.
                if !matches!(self.peek_past_space().kind, Kind::If | Kind::With) {
                    self.expect_close("else")?;
                }
                return Ok(Element::Ending(Ending::Else));
            }
            Kind::EndKeyword => {
                self.expect_close("end")?;
                return Ok(Element::Ending(Ending::End));
            }
            Kind::If => Node::If(self.nested(token.at, |p| p.branches("if", &Kind::If))?),
            Kind::With => Node::With(self.nested(token.at, |p| p.branches("with", &Kind::With))?),
            Kind::Range => self.nested(token.at, Self::range)?,
            Kind::Template => self.template()?,
            _ => {
                self.next = start;
                Node::Action(self.pipeline("command", &Kind::RightDelim)?)
            }
        };
        Ok(Element::Node(node))
    }

    fn branches(&mut self, context: &str, keyword: &Kind) -> Parsed<Branches> {
        let scope = self.vars.len();
        let mut branches = Branches { arms: Vec::new(), otherwise: Vec::new() };
        loop {
            let pipe = self.pipeline(context, &Kind::RightDelim)?;
            let (body, ending) = self.list()?;
            branches.arms.push((pipe, body));
            if ending == Ending::End {
                break;
            }
            if self.peek().kind == *keyword {
                self.take();
                continue;
            }
            branches.otherwise = self.last_list()?;
            break;
        }
        self.vars.truncate(scope);
        Ok(branches)
    }

    /// The list after a plain `else`.
    fn last_list(&mut self) -> Parsed<Vec<Node>> {
        let (nodes, ending) = self.list()?;
        if ending == Ending::Else {
            return Err((self.peek().at, "expected end; found {{else}}".into()));
        }
        Ok(nodes)
    }

    fn range(&mut self) -> Parsed<Node> {
        let scope = self.vars.len();
        let pipe = self.pipeline("range", &Kind::RightDelim)?;
        self.ranges += 1;
        let (body, ending) = self.list()?;
        self.ranges -= 1;
        let otherwise = if ending == Ending::Else { self.last_list()? } else { Vec::new() };
        self.vars.truncate(scope);
        Ok(Node::Range { pipe, body, otherwise })
    }

    fn block(&mut self, at: Pos) -> Parsed<Node> {
        let name = template_name(&self.take_past_space(), "block clause")?;
        let pipe = self.pipeline("block clause", &Kind::RightDelim)?;
        self.definition(at, name.clone(), "block clause")?;
        Ok(Node::Template { at, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Parsed<Node> {
        let token = self.take_past_space();
        let name = template_name(&token, "template clause")?;
        let pipe = if self.peek_past_space().kind == Kind::RightDelim {
            self.take();
            None
        } else {
            Some(self.pipeline("template clause", &Kind::RightDelim)?)
        };
        Ok(Node::Template { at: token.at, name, pipe })
    }

    fn pipeline(&mut self, context: &str, end: &Kind) -> Parsed<Pipe> {
        let at = self.peek_past_space().at;
        let mut pipe = Pipe { at, targets: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(context, &mut pipe)?;
        loop {
            let start = self.next;
            let token = self.take_past_space();
            if token.kind == *end {
                break;
            }
            if !starts_operand(&token.kind) {
                return Err(unexpected(&token, context));
            }
            self.next = start;
            let command = self.command()?;
            if !pipe.commands.is_empty() && is_constant(&command.first.kind) {
                let stage = pipe.commands.len() + 1;
                return Err((token.at, format!("non executable command in pipeline stage {stage}")));
            }
            pipe.commands.push(command);
        }
        if pipe.commands.is_empty() {
            return Err((at, format!("missing value for {context}")));
        }
        Ok(pipe)
    }

    /// `$x :=`, `$x =`, and in a range `$i, $x :=`.
    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        while self.peek_past_space().kind == Kind::Variable {
            let start = self.next;
            let name = self.take().text.to_owned();
            let token = self.peek_past_space().clone();
            let comma = token.kind == Kind::Char && token.text == ",";
            if !comma && !matches!(token.kind, Kind::Assign | Kind::Declare) {
                self.next = start;
                break;
            }
            self.take();
            pipe.assigns = token.kind == Kind::Assign;
            pipe.targets.push(name.clone());
            self.vars.push(name);
            if !comma {
                break;
            }
            if context != "range" || pipe.targets.len() > 1 {
                return Err((token.at, format!("too many declarations in {context}")));
            }
            if !matches!(self.peek_past_space().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return Err((token.at, "range can only initialize variables".into()));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let at = self.peek_past_space().at;
        let mut terms = Vec::new();
        loop {
            self.peek_past_space();
            terms.extend(self.operand()?);
            match self.peek().kind {
                Kind::Space => {
                    self.take();
                }
                Kind::RightDelim | Kind::RightParen => break,
                Kind::Pipe => {
                    self.take();
                    break;
                }
                _ => return Err(unexpected(self.peek(), "operand")),
            }
        }
        let mut terms = terms.into_iter();
        let first = terms.next().ok_or_else(|| (at, "empty command".to_owned()))?;
        Ok(Command { first, args: terms.collect() })
    }

    /// A term and the fields taken of it.
    fn operand(&mut self) -> Parsed<Option<Term>> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(self.take().text[1..].to_owned());
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        let at = term.at;
        let kind = match term.kind {
            TermKind::Field(mut path) => {
                path.extend(fields);
                TermKind::Field(path)
            }
            TermKind::Variable(name, mut path) => {
                path.extend(fields);
                TermKind::Variable(name, path)
            }
            TermKind::Function(_) | TermKind::Paren(_) => TermKind::Chain(Box::new(term), fields),
            other => return Err((at, format!("unexpected . after term {}", other.describe()))),
        };
        Ok(Some(Term { at, kind }))
    }

    fn term(&mut self) -> Parsed<Option<Term>> {
        let token = self.peek_past_space().clone();
        let at = token.at;
        let wrong = |message| (at, message);
        let kind = match token.kind {
            Kind::Identifier => TermKind::Function(funcs::find(token.text).map_err(wrong)?),
            Kind::Dot => TermKind::Dot,
            Kind::Nil => TermKind::Nil,
            Kind::Variable => {
                if !self.vars.iter().any(|name| name == token.text) {
                    return Err((at, format!("undefined variable {:?}", token.text)));
                }
                TermKind::Variable(token.text.to_owned(), Vec::new())
            }
            Kind::Field => TermKind::Field(vec![token.text[1..].to_owned()]),
            Kind::Bool => TermKind::Bool(token.text == "true"),
            Kind::CharConstant => TermKind::Number(literal::character(token.text).map_err(wrong)?),
            Kind::Number => TermKind::Number(literal::number(token.text).map_err(wrong)?),
            Kind::Complex => return Err((at, format!("complex number {} is not supported", token.text))),
            Kind::Str | Kind::RawStr => TermKind::Str(literal::string(token.text).map_err(wrong)?),
            Kind::LeftParen => {
                self.take();
                let pipe = self.nested(at, |p| p.pipeline("parenthesized pipeline", &Kind::RightParen))?;
                return Ok(Some(Term { at, kind: TermKind::Paren(Box::new(pipe)) }));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(Term { at, kind }))
    }
}

enum Element {
    Node(Node),
    Ending(Ending),
}

fn template_name(token: &Token<'_>, context: &str) -> Parsed<String> {
    match token.kind {
        Kind::Str | Kind::RawStr => literal::string(token.text).map_err(|message| (token.at, message)),
        _ => Err(unexpected(token, context)),
    }
}

fn starts_operand(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharConstant
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawStr
            | Kind::Str
            | Kind::Variable
            | Kind::LeftParen
    )
}

/// What cannot take the value of the stage before it.
fn is_constant(kind: &TermKind) -> bool {
    matches!(kind, TermKind::Bool(_) | TermKind::Dot | TermKind::Nil | TermKind::Number(_) | TermKind::Str(_))
}

fn unexpected(token: &Token<'_>, context: &str) -> Failure {
    let message = match &token.kind {
        Kind::Error(message) => message.clone(),
        Kind::End => format!("unexpected EOF in {context}"),
        Kind::Space => format!("unexpected blank in {context}"),
        _ => format!("unexpected {:?} in {context}", token.text),
    };
    (token.at, message)
}
