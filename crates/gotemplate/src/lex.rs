//! Cuts template text into tokens exactly where Go's text/template does, trim markers and comments included.

use crate::classes::is_alphanumeric;

/// One token and the byte offset where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token<'t> {
    pub kind: Kind,
    pub at: usize,
    pub text: &'t str,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// The text cannot be cut further; always the last token.
    Error(String),
    End,
    Text,
    LeftDelim,
    RightDelim,
    LeftParen,
    RightParen,
    Space,
    Pipe,
    Assign,
    Declare,
    /// Printable ASCII that means nothing of its own, such as a comma.
    Char,
    CharConstant,
    Complex,
    Number,
    Str,
    RawStr,
    Bool,
    Dot,
    Nil,
    Field,
    Identifier,
    Variable,
    Block,
    Break,
    Continue,
    Define,
    Else,
    EndKeyword,
    If,
    Range,
    Template,
    With,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";

/// Cuts all of `text`; the last token is `End` or `Error`.
pub(crate) fn lex(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    if let Err((at, message)) = lexer.run() {
        lexer.tokens.push(Token { kind: Kind::Error(message), at, text: "" });
    }
    lexer.tokens
}

type Step = Result<(), (usize, String)>;

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token<'t>>,
}

impl<'t> Lexer<'t> {
    fn run(&mut self) -> Step {
        while let Some(found) = self.rest().find(LEFT) {
            let delim = self.at + found;
            let mut body = delim + LEFT.len();
            let mut before = &self.text[self.at..delim];
            if has_left_trim_marker(&self.text[body..]) {
                before = before.trim_end_matches(is_space);
                body += 2;
            }
            if !before.is_empty() {
                self.tokens.push(Token { kind: Kind::Text, at: self.at, text: before });
            }
            self.at = body;
            if self.rest().starts_with("/*") {
                self.comment()?;
            } else {
                self.tokens.push(Token { kind: Kind::LeftDelim, at: delim, text: LEFT });
                self.action()?;
            }
        }
        if !self.rest().is_empty() {
            self.push(Kind::Text, self.text.len());
        }
        self.tokens.push(Token { kind: Kind::End, at: self.text.len(), text: "" });
        Ok(())
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let hit = self.peek().is_some_and(|c| valid.contains(c));
        if hit {
            self.bump();
        }
        hit
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn push(&mut self, kind: Kind, end: usize) {
        self.tokens.push(Token { kind, at: self.at, text: &self.text[self.at..end] });
        self.at = end;
    }

    fn push_from(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token { kind, at: start, text: &self.text[start..self.at] });
    }

    fn comment(&mut self) -> Step {
        let start = self.at;
        let Some(end) = self.text[start + 2..].find("*/") else {
            return Err((start, "unclosed comment".into()));
        };
        self.at = start + 2 + end + 2;
        if !self.right_delim(None) {
            return Err((start, "comment ends before closing delimiter".into()));
        }
        Ok(())
    }

    /// Consumes `}}` or ` -}}` with what the trim marker takes along; emits a token if `kind` is given.
    fn right_delim(&mut self, kind: Option<Kind>) -> bool {
        let trim = has_right_trim_marker(self.rest()) && self.rest()[2..].starts_with(RIGHT);
        if !trim && !self.rest().starts_with(RIGHT) {
            return false;
        }
        if trim {
            self.at += 2;
        }
        let start = self.at;
        self.at += RIGHT.len();
        if let Some(kind) = kind {
            self.push_from(kind, start);
        }
        if trim {
            self.at = self.text.len() - self.rest().trim_start_matches(is_space).len();
        }
        true
    }

    fn at_right_delim(&self) -> bool {
        self.rest().starts_with(RIGHT) || (has_right_trim_marker(self.rest()) && self.rest()[2..].starts_with(RIGHT))
    }

    fn action(&mut self) -> Step {
        let mut parens = 0_usize;
        loop {
            if self.at_right_delim() {
                if parens > 0 {
                    return Err((self.at, "unclosed left paren".into()));
                }
                self.right_delim(Some(Kind::RightDelim));
                return Ok(());
            }
            let start = self.at;
            let Some(next) = self.bump() else {
                return Err((start, "unclosed action".into()));
            };
            match next {
                c if is_space(c) => self.spaces(start),
                '=' => self.push_from(Kind::Assign, start),
                ':' => {
                    if !self.accept("=") {
                        return Err((start, "expected :=".into()));
                    }
                    self.push_from(Kind::Declare, start);
                }
                '|' => self.push_from(Kind::Pipe, start),
                '"' => self.quoted(start, '"', Kind::Str, "unterminated quoted string")?,
                '\'' => self.quoted(start, '\'', Kind::CharConstant, "unterminated character constant")?,
                '`' => {
                    let Some(end) = self.rest().find('`') else {
                        return Err((start, "unterminated raw quoted string".into()));
                    };
                    self.at += end + 1;
                    self.push_from(Kind::RawStr, start);
                }
                '$' => self.word(start, Kind::Variable)?,
                '.' if !self.peek().is_none_or(|c| c.is_ascii_digit()) => {
                    if self.at_terminator() {
                        self.push_from(Kind::Dot, start);
                    } else {
                        self.word(start, Kind::Field)?;
                    }
                }
                '.' | '+' | '-' | '0'..='9' => {
                    self.at = start;
                    self.number(start)?;
                }
                '(' => {
                    parens += 1;
                    self.push_from(Kind::LeftParen, start);
                }
                ')' => {
                    let Some(fewer) = parens.checked_sub(1) else {
                        return Err((start, "unexpected right paren".into()));
                    };
                    parens = fewer;
                    self.push_from(Kind::RightParen, start);
                }
                c if is_alphanumeric(c) => self.identifier(start)?,
                '!'..='~' => self.push_from(Kind::Char, start),
                c => return Err((start, format!("unrecognized character in action: U+{:04X}", u32::from(c)))),
            }
        }
    }

    /// A run of blanks, but for a last one that belongs to a trim marker.
    fn spaces(&mut self, start: usize) {
        while self.peek().is_some_and(is_space) && !self.at_right_delim() {
            self.bump();
        }
        self.push_from(Kind::Space, start);
    }

    fn quoted(&mut self, start: usize, quote: char, kind: Kind, unterminated: &str) -> Step {
        loop {
            let next = match self.bump() {
                Some('\\') => self.bump().map(|c| if c == '\n' { c } else { ' ' }),
                other => other,
            };
            match next {
                None | Some('\n') => return Err((start, unterminated.into())),
                Some(c) if c == quote => break,
                Some(_) => {}
            }
        }
        self.push_from(kind, start);
        Ok(())
    }

    fn alphanumerics(&mut self) {
        while self.peek().is_some_and(is_alphanumeric) {
            self.bump();
        }
    }

    fn word(&mut self, start: usize, kind: Kind) -> Step {
        self.alphanumerics();
        self.end_word()?;
        self.push_from(kind, start);
        Ok(())
    }

    fn end_word(&self) -> Step {
        match self.peek() {
            Some(c) if !self.at_terminator() => Err((self.at, format!("bad character U+{:04X} {c:?}", u32::from(c)))),
            _ => Ok(()),
        }
    }

    fn identifier(&mut self, start: usize) -> Step {
        self.alphanumerics();
        self.end_word()?;
        let kind = match &self.text[start..self.at] {
            "block" => Kind::Block,
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::EndKeyword,
            "if" => Kind::If,
            "range" => Kind::Range,
            "nil" => Kind::Nil,
            "template" => Kind::Template,
            "with" => Kind::With,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.push_from(kind, start);
        Ok(())
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(c) => is_space(c) || self.rest().starts_with(RIGHT),
        }
    }

    fn number(&mut self, start: usize) -> Step {
        let mut ok = self.scan_number();
        let mut kind = Kind::Number;
        if ok && matches!(self.peek(), Some('+' | '-')) {
            kind = Kind::Complex;
            ok = self.scan_number() && self.text[..self.at].ends_with('i');
        }
        if !ok {
            return Err((start, format!("bad number syntax: {:?}", &self.text[start..self.at])));
        }
        self.push_from(kind, start);
        Ok(())
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        let mut exponent = "eE";
        if self.accept("0") {
            if self.accept("xX") {
                (digits, exponent) = ("0123456789abcdefABCDEF_", "pP");
            } else if self.accept("oO") {
                (digits, exponent) = ("01234567_", "");
            } else if self.accept("bB") {
                (digits, exponent) = ("01_", "");
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.bump();
            return false;
        }
        true
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn has_left_trim_marker(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

fn has_right_trim_marker(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next().is_some_and(is_space) && chars.next() == Some('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        lex(text).into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn trim_markers_take_blanks_on_their_side_only() {
        let tokens = lex("a \n{{- 1 -}}\n b");
        let texts: Vec<&str> = tokens.iter().filter(|t| t.kind == Kind::Text).map(|t| t.text).collect();
        assert_eq!(texts, ["a", "b"]);
    }

    #[test]
    fn a_minus_that_touches_its_number_is_a_sign() {
        assert_eq!(kinds("{{-1}}"), [Kind::LeftDelim, Kind::Number, Kind::RightDelim, Kind::End]);
    }

    #[test]
    fn comments_leave_no_token() {
        assert_eq!(kinds("a{{/* b */}}c"), [Kind::Text, Kind::Text, Kind::End]);
    }

    #[test]
    fn an_action_that_is_not_closed_is_an_error_at_its_end() {
        let tokens = lex("a{{b ");
        assert_eq!(tokens.last().map(|t| (t.at, t.kind.clone())), Some((5, Kind::Error("unclosed action".into()))));
    }
}
