//! Go's `fmt`: Print, Println and the verbs of values. The directives of Printf are read in `printf.rs`.

use crate::ctx::{Ctx, Fault, Outcome};
use crate::float;
use crate::quote::{can_backquote, quote, quote_char};
use crate::value::{Elem, IntType, List, Value};

/// A value as `{{.}}` or `%v` prints it.
pub(crate) fn display(ctx: &mut Ctx, value: &Value) -> Outcome<String> {
    let mut printer = Printer::new(ctx);
    printer.arg(value, 'v')?;
    Ok(printer.out)
}

/// `fmt.Sprint`: blanks between operands of which neither is a string.
pub(crate) fn sprint(ctx: &mut Ctx, values: &[Value]) -> Outcome<String> {
    let mut printer = Printer::new(ctx);
    let mut after_text = true;
    for value in values {
        let text = matches!(value, Value::Str(_));
        if !text && !after_text {
            printer.push(" ")?;
        }
        printer.arg(value, 'v')?;
        after_text = text;
    }
    Ok(printer.out)
}

/// `fmt.Sprintln`.
pub(crate) fn sprintln(ctx: &mut Ctx, values: &[Value]) -> Outcome<String> {
    let mut printer = Printer::new(ctx);
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            printer.push(" ")?;
        }
        printer.arg(value, 'v')?;
    }
    printer.push("\n")?;
    Ok(printer.out)
}

/// Flags, width and precision of one directive.
#[allow(clippy::struct_excessive_bools)] // each is a character of the format
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub width: Option<usize>,
    pub precision: Option<usize>,
    pub minus: bool,
    pub plus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%#v`: the value as Go source.
    pub source: bool,
}

pub(crate) struct Printer<'c> {
    pub ctx: &'c mut Ctx,
    pub out: String,
    pub flags: Flags,
}

impl<'c> Printer<'c> {
    pub fn new(ctx: &'c mut Ctx) -> Self {
        Printer { ctx, out: String::new(), flags: Flags::default() }
    }

    pub fn push(&mut self, text: &str) -> Outcome<()> {
        self.ctx.push(&mut self.out, text)
    }

    fn pad(&mut self, text: &str) -> Outcome<()> {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(text.chars().count());
        if self.flags.minus {
            self.push(text)?;
            self.padding(missing)
        } else {
            self.padding(missing)?;
            self.push(text)
        }
    }

    fn padding(&mut self, count: usize) -> Outcome<()> {
        let unit = if self.flags.zero && !self.flags.minus { "0" } else { " " };
        self.ctx.push_repeated(&mut self.out, unit, count)
    }

    /// As `pad`, but zeros are never put before a text that is no plain number.
    fn pad_blank(&mut self, text: &str) -> Outcome<()> {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text)?;
        self.flags.zero = zero;
        Ok(())
    }

    /// An operand of Print or Printf.
    pub fn arg(&mut self, value: &Value, verb: char) -> Outcome<()> {
        match (value, verb) {
            (Value::Invalid | Value::Nil, 'T' | 'v') => self.pad("<nil>"),
            (Value::Invalid | Value::Nil, _) => self.push(&format!("%!{verb}(<nil>)")),
            (_, 'T') => self.text(&value.type_name()),
            (Value::List(_) | Value::Dict(_), 'p') => Err(Fault::from("%p would print an address of memory")),
            _ => self.value(value, verb),
        }
    }

    fn value(&mut self, value: &Value, verb: char) -> Outcome<()> {
        self.ctx.tick(1)?;
        match value {
            Value::Invalid | Value::Nil if self.flags.source => self.push("interface {}(nil)"),
            Value::Invalid | Value::Nil => self.push("<nil>"),
            Value::Bool(flag) if matches!(verb, 't' | 'v') => self.pad(if *flag { "true" } else { "false" }),
            Value::Int(int, of) => self.int(*int, *of, verb),
            Value::Float(float) => self.float(*float, verb),
            Value::Str(text) => self.string(text, verb),
            Value::List(list) => {
                self.ctx.enter()?;
                self.list(list, verb)?;
                self.ctx.leave();
                Ok(())
            }
            Value::Dict(dict) => {
                self.ctx.enter()?;
                let (open, between, close) = if self.flags.source {
                    (format!("{}{{", value.type_name()), ", ", "}")
                } else {
                    ("map[".to_owned(), " ", "]")
                };
                self.push(&open)?;
                for (i, (key, item)) in dict.snapshot(self.ctx)?.into_iter().enumerate() {
                    if i > 0 {
                        self.push(between)?;
                    }
                    self.string(&key, verb)?;
                    self.push(":")?;
                    self.value(&item, verb)?;
                }
                self.push(close)?;
                self.ctx.leave();
                Ok(())
            }
            Value::Bool(_) => self.bad_verb(value, verb),
        }
    }

    fn list(&mut self, list: &List, verb: char) -> Outcome<()> {
        let (open, between, close) = if self.flags.source {
            let name = Value::List(list.clone()).type_name();
            if list.is_nil() {
                return self.push(&format!("{name}(nil)"));
            }
            (format!("{name}{{"), ", ", "}")
        } else {
            ("[".to_owned(), " ", "]")
        };
        self.push(&open)?;
        for (i, item) in list.items().iter().enumerate() {
            if i > 0 {
                self.push(between)?;
            }
            self.value(item, verb)?;
        }
        self.push(close)
    }

    /// `%!d(string=x)`.
    fn bad_verb(&mut self, value: &Value, verb: char) -> Outcome<()> {
        self.push(&format!("%!{verb}({}=", value.type_name()))?;
        self.value(value, 'v')?;
        self.push(")")
    }

    fn text(&mut self, text: &str) -> Outcome<()> {
        let text: String = match self.flags.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => return self.pad(text),
        };
        self.pad(&text)
    }

    fn string(&mut self, text: &str, verb: char) -> Outcome<()> {
        // What quotes and what counts characters reads all of the text first.
        self.ctx.tick_bytes(text.len())?;
        match verb {
            'v' if self.flags.source => self.quoted(text),
            'v' | 's' => self.text(text),
            'q' => self.quoted(text),
            'x' | 'X' => self.hex(text, verb == 'X'),
            _ => self.bad_verb(&Value::from(text), verb),
        }
    }

    fn quoted(&mut self, text: &str) -> Outcome<()> {
        let text: String = match self.flags.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        let quoted =
            if self.flags.sharp && can_backquote(&text) { format!("`{text}`") } else { quote(&text, self.flags.plus) };
        self.pad(&quoted)
    }

    fn hex(&mut self, text: &str, upper: bool) -> Outcome<()> {
        let count = self.flags.precision.unwrap_or(usize::MAX).min(text.len());
        let bytes: Vec<String> = text.as_bytes()[..count]
            .iter()
            .map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") })
            .collect();
        let prefix = match (self.flags.sharp, upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let shown = if bytes.is_empty() {
            String::new()
        } else if self.flags.space {
            format!("{prefix}{}", bytes.join(&format!(" {prefix}")))
        } else {
            format!("{prefix}{}", bytes.concat())
        };
        self.pad(&shown)
    }

    fn int(&mut self, value: i64, of: IntType, verb: char) -> Outcome<()> {
        match verb {
            'v' if self.flags.source && of == IntType::Byte => self.push(&format!("{value:#x}")),
            'v' | 'd' => self.digits(value, verb, &value.unsigned_abs().to_string()),
            'b' => self.digits(value, verb, &format!("{:b}", value.unsigned_abs())),
            'o' | 'O' => self.digits(value, verb, &format!("{:o}", value.unsigned_abs())),
            'x' => self.digits(value, verb, &format!("{:x}", value.unsigned_abs())),
            'X' => self.digits(value, verb, &format!("{:X}", value.unsigned_abs())),
            'c' => self.pad(&code_point(value).to_string()),
            'q' => self.pad(&quote_char(code_point(value), self.flags.plus)),
            'U' => self.unicode(value),
            _ => self.bad_verb(&Value::Int(value, of), verb),
        }
    }

    fn digits(&mut self, value: i64, verb: char, digits: &str) -> Outcome<()> {
        let sign = match (value < 0, self.flags.plus, self.flags.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let precision = match (self.flags.precision, self.flags.width) {
            (Some(0), _) if value == 0 => {
                let width = self.flags.width.unwrap_or(0);
                return self.ctx.push_repeated(&mut self.out, " ", width);
            }
            (Some(precision), _) => precision,
            (None, Some(width)) if self.flags.zero && !self.flags.minus => width.saturating_sub(sign.len()),
            _ => 0,
        };
        let mut text = String::from(sign);
        match verb {
            'O' => text.push_str("0o"),
            'b' if self.flags.sharp => text.push_str("0b"),
            'x' if self.flags.sharp => text.push_str("0x"),
            'X' if self.flags.sharp => text.push_str("0X"),
            _ => {}
        }
        let zeros = precision.saturating_sub(digits.len());
        if matches!(verb, 'o' | 'O') && self.flags.sharp && zeros == 0 && !digits.starts_with('0') {
            text.push('0');
        }
        self.ctx.push_repeated(&mut text, "0", zeros)?;
        text.push_str(digits);
        self.pad_blank(&text)
    }

    fn unicode(&mut self, value: i64) -> Outcome<()> {
        #[allow(clippy::cast_sign_loss)] // Go formats the bits of a negative number here
        let code = value as u64;
        let digits = format!("{code:X}");
        let mut text = String::from("U+");
        let zeros = self.flags.precision.unwrap_or(4).max(4).saturating_sub(digits.len());
        self.ctx.push_repeated(&mut text, "0", zeros)?;
        text.push_str(&digits);
        if self.flags.sharp {
            let shown = u32::try_from(value).ok().and_then(char::from_u32).filter(|c| crate::classes::is_print(*c));
            if let Some(c) = shown {
                text.push_str(&format!(" '{c}'"));
            }
        }
        self.pad_blank(&text)
    }

    fn float(&mut self, value: f64, verb: char) -> Outcome<()> {
        let text = match verb {
            'v' => float::format(value, 'g', self.flags.precision),
            'g' | 'G' => float::format(value, verb, self.flags.precision),
            'e' | 'E' => float::format(value, verb, Some(self.flags.precision.unwrap_or(6))),
            'f' | 'F' => float::format(value, 'f', Some(self.flags.precision.unwrap_or(6))),
            'b' | 'x' | 'X' => return Err(format!("%{verb} of a float is not supported").into()),
            _ => return self.bad_verb(&Value::Float(value), verb),
        };
        if self.flags.sharp {
            return Err("flag # for a float is not supported".into());
        }
        let (sign, body) = match text.strip_prefix('-') {
            Some(body) => ("-", body),
            None => (
                match (self.flags.plus, self.flags.space) {
                    (true, _) => "+",
                    (false, true) => " ",
                    _ => "",
                },
                text.trim_start_matches('+'),
            ),
        };
        if value.is_infinite() {
            // Infinity always has its sign in Go, but for a blank in its place.
            let sign = if sign.is_empty() { "+" } else { sign };
            return self.pad_blank(&format!("{sign}{body}"));
        }
        if value.is_nan() {
            return self.pad_blank(&format!("{sign}{body}"));
        }
        let width = self.flags.width.unwrap_or(0);
        if !sign.is_empty() && self.flags.zero && !self.flags.minus && width > sign.len() + body.len() {
            self.push(sign)?;
            self.padding(width - sign.len() - body.len())?;
            return self.push(body);
        }
        self.pad(&format!("{sign}{body}"))
    }
}

fn code_point(value: i64) -> char {
    u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// sprig's `strval`: a string as it is, anything else as `%v` prints it.
pub(crate) fn strval(ctx: &mut Ctx, value: &Value) -> Outcome<String> {
    match value {
        Value::Str(text) => {
            ctx.tick_bytes(text.len())?;
            Ok(text.to_string())
        }
        other => display(ctx, other),
    }
}

/// sprig's `strslice`: the elements of a list as text, nulls left out; anything else is a list of one.
pub(crate) fn strslice(ctx: &mut Ctx, value: &Value) -> Outcome<Vec<String>> {
    match value {
        Value::Invalid | Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            ctx.tick(list.items().len())?;
            let kept = list.items().iter().filter(|item| list.elem() != Elem::Any || !item.is_nothing());
            kept.map(|item| strval(ctx, item)).collect()
        }
        other => Ok(vec![strval(ctx, other)?]),
    }
}
