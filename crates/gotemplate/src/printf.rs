//! Reads the directives of Go's Printf: flags, widths, precisions, explicit operands, and what Go prints for wrong ones.

use crate::ctx::{Ctx, Outcome};
use crate::print::{Flags, Printer};
use crate::value::Value;

/// Widths and precisions beyond this are not numbers to Go.
const TOO_LARGE: i64 = 1_000_000;

/// `fmt.Sprintf`.
pub(crate) fn sprintf(ctx: &mut Ctx, format: &str, operands: &[Value]) -> Outcome<String> {
    let mut run =
        Run { rest: format, operands, next: 0, reordered: false, good_index: true, printer: Printer::new(ctx) };
    run.all()?;
    Ok(run.printer.out)
}

struct Run<'f, 'c> {
    rest: &'f str,
    operands: &'f [Value],
    /// The operand that the next verb takes.
    next: usize,
    /// An explicit index was used: leftover operands are no mistake.
    reordered: bool,
    /// The indexes of this directive name operands that exist.
    good_index: bool,
    printer: Printer<'c>,
}

impl Run<'_, '_> {
    fn all(&mut self) -> Outcome<()> {
        while let Some(percent) = self.rest.find('%') {
            let (plain, directive) = self.rest.split_at(percent);
            self.printer.push(plain)?;
            self.rest = &directive[1..];
            self.printer.ctx.tick(1)?;
            self.directive()?;
        }
        self.printer.push(self.rest)?;
        self.extra()
    }

    fn accept(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn directive(&mut self) -> Outcome<()> {
        self.good_index = true;
        self.printer.flags = Flags::default();
        self.flags();
        let mut indexed = self.index();
        if self.accept('*') {
            match self.number_operand() {
                Some(width) => {
                    self.printer.flags.width = usize::try_from(width.abs()).ok();
                    if width < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                }
                None => self.printer.push("%!(BADWIDTH)")?,
            }
            indexed = false;
        } else {
            self.printer.flags.width = self.number();
            if indexed && self.printer.flags.width.is_some() {
                self.good_index = false;
            }
        }
        if self.accept('.') {
            if indexed {
                self.good_index = false;
            }
            indexed = self.index();
            if self.accept('*') {
                let precision = self.number_operand();
                self.printer.flags.precision = precision.and_then(|p| usize::try_from(p).ok());
                if self.printer.flags.precision.is_none() {
                    self.printer.push("%!(BADPREC)")?;
                }
                indexed = false;
            } else {
                self.printer.flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !indexed {
            self.index();
        }
        self.verb()
    }

    fn flags(&mut self) {
        while let Some(flag) = self.rest.chars().next() {
            let flags = &mut self.printer.flags;
            match flag {
                '#' => flags.sharp = true,
                '0' => flags.zero = true,
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                ' ' => flags.space = true,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
    }

    fn verb(&mut self) -> Outcome<()> {
        let mut chars = self.rest.chars();
        let Some(verb) = chars.next() else {
            return self.printer.push("%!(NOVERB)");
        };
        self.rest = chars.as_str();
        if verb == '%' {
            return self.printer.push("%");
        }
        if !self.good_index {
            return self.printer.push(&format!("%!{verb}(BADINDEX)"));
        }
        let Some(operand) = self.operands.get(self.next) else {
            return self.printer.push(&format!("%!{verb}(MISSING)"));
        };
        self.next += 1;
        if verb == 'v' {
            let flags = &mut self.printer.flags;
            flags.source = std::mem::take(&mut flags.sharp);
            // A plus before v only names the fields of structs, of which templates have none.
            flags.plus = false;
        }
        self.printer.arg(operand, verb)
    }

    /// A decimal number, if one stands here.
    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let (number, rest) = self.rest.split_at(digits);
        let number = number.parse().ok().filter(|n: &i64| *n <= TOO_LARGE * 10 + 9);
        // After a number that is too long Go reads nothing more of the format.
        self.rest = if number.is_some() { rest } else { "" };
        number.and_then(|n| usize::try_from(n).ok())
    }

    /// `[3]`: the operand to take next.
    fn index(&mut self) -> bool {
        if !self.rest.starts_with('[') {
            return false;
        }
        self.reordered = true;
        let Some(close) = self.rest.find(']') else {
            self.good_index = false;
            self.rest = &self.rest[1..];
            return false;
        };
        let index: Option<usize> = self.rest[1..close].parse().ok().filter(|_| !self.rest[1..].starts_with('+'));
        self.rest = &self.rest[close + 1..];
        match index.and_then(|i| i.checked_sub(1)) {
            Some(index) if index < self.operands.len() => {
                self.next = index;
                true
            }
            _ => {
                self.good_index = false;
                index.is_some()
            }
        }
    }

    /// The integer that a `*` takes.
    fn number_operand(&mut self) -> Option<i64> {
        let operand = self.operands.get(self.next)?;
        self.next += 1;
        match operand {
            Value::Int(int, _) if (-TOO_LARGE..=TOO_LARGE).contains(int) => Some(*int),
            _ => None,
        }
    }

    /// Operands that no verb took.
    fn extra(&mut self) -> Outcome<()> {
        if self.reordered || self.next >= self.operands.len() {
            return Ok(());
        }
        self.printer.flags = Flags::default();
        self.printer.push("%!(EXTRA ")?;
        for (i, operand) in self.operands[self.next..].iter().enumerate() {
            if i > 0 {
                self.printer.push(", ")?;
            }
            if operand.is_nothing() {
                self.printer.push("<nil>")?;
            } else {
                self.printer.push(&format!("{}=", operand.type_name()))?;
                self.printer.arg(operand, 'v')?;
            }
        }
        self.printer.push(")")
    }
}
