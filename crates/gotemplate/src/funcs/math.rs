//! sprig's arithmetic and conversions of numbers: integers wrap around and texts that are no number count as 0.

// Go's conversions between integers and floats truncate, and results must be Go's.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

use super::{Func, Param, float, int, text};
use crate::ctx::{Ctx, Outcome};
use crate::literal::{parse_float, parse_int};
use crate::print::display;
use crate::value::{Elem, Value};

const ANY: Param = Param::Any;
const INT: Param = Param::Int;

pub(super) const TABLE: &[Func] = &[
    Func::new("int", &[ANY], |_, v| Ok(Value::int(to_int(&v[0])))),
    Func::new("int64", &[ANY], |_, v| Ok(Value::int64(to_int(&v[0])))),
    Func::new("float64", &[ANY], |_, v| Ok(Value::Float(to_float(&v[0])))),
    Func::new("atoi", &[Param::Str], |_, v| Ok(Value::int(atoi(text(&v[0]))))),
    Func::new("toDecimal", &[ANY], to_decimal),
    Func::new("add", &[], |_, v| Ok(fold(0, v, i64::wrapping_add))).and_more(ANY),
    Func::new("add1", &[ANY], |_, v| Ok(fold(1, v, i64::wrapping_add))),
    Func::new("sub", &[ANY, ANY], |_, v| Ok(fold(to_int(&v[0]), &v[1..], i64::wrapping_sub))),
    Func::new("mul", &[ANY], |_, v| Ok(fold(1, v, i64::wrapping_mul))).and_more(ANY),
    Func::new("div", &[ANY, ANY], |_, v| divide(v, i64::wrapping_div)),
    Func::new("mod", &[ANY, ANY], |_, v| divide(v, i64::wrapping_rem)),
    Func::new("max", &[ANY], |_, v| Ok(fold(i64::MIN, v, i64::max))).and_more(ANY),
    Func::new("biggest", &[ANY], |_, v| Ok(fold(i64::MIN, v, i64::max))).and_more(ANY),
    Func::new("min", &[ANY], |_, v| Ok(fold(i64::MAX, v, i64::min))).and_more(ANY),
    Func::new("maxf", &[ANY], |_, v| Ok(extreme(v, |a, b| a > b))).and_more(ANY),
    Func::new("minf", &[ANY], |_, v| Ok(extreme(v, |a, b| a < b))).and_more(ANY),
    Func::new("floor", &[ANY], |_, v| Ok(Value::Float(to_float(&v[0]).floor()))),
    Func::new("ceil", &[ANY], |_, v| Ok(Value::Float(to_float(&v[0]).ceil()))),
    Func::new("round", &[ANY, INT], round).and_more(Param::Float),
    Func::new("until", &[INT], |ctx, v| {
        let end = int(&v[0]);
        let numbers = steps(ctx, 0, end, if end < 0 { -1 } else { 1 })?;
        ctx.list(Elem::Int, numbers.into_iter().map(Value::int).collect())
    }),
    Func::new("untilStep", &[INT, INT, INT], |ctx, v| {
        let numbers = steps(ctx, int(&v[0]), int(&v[1]), int(&v[2]))?;
        ctx.list(Elem::Int, numbers.into_iter().map(Value::int).collect())
    }),
    Func::new("seq", &[], seq).and_more(INT),
];

/// `cast.ToInt64`: what is no number is 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Bool(flag) => i64::from(*flag),
        Value::Int(int, _) => *int,
        // Out of range is what amd64 makes of it.
        Value::Float(float) if float.is_nan() || float.abs() >= 9.3e18 => i64::MIN,
        Value::Float(float) => *float as i64,
        Value::Str(text) => parse_int(without_zero_decimals(text), 0).unwrap_or(0),
        Value::Invalid | Value::Nil | Value::List(_) | Value::Dict(_) => 0,
    }
}

/// `1.00` as `1`.
fn without_zero_decimals(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) if trimmed.len() < text.len() => whole,
        _ => text,
    }
}

/// `cast.ToFloat64`: what is no number is 0.
fn to_float(value: &Value) -> f64 {
    match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(int, _) => *int as f64,
        Value::Float(float) => *float,
        Value::Str(text) => parse_float(text).unwrap_or(0.0),
        Value::Invalid | Value::Nil | Value::List(_) | Value::Dict(_) => 0.0,
    }
}

/// `strconv.Atoi` without its error: 0 for no number, the nearest integer for one out of range.
fn atoi(text: &str) -> i64 {
    if let Some(int) = parse_int(text, 10) {
        return int;
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return 0;
    }
    if text.starts_with('-') { i64::MIN } else { i64::MAX }
}

fn to_decimal(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let octal = display(ctx, &values[0])?;
    Ok(Value::int64(parse_int(&octal, 8).unwrap_or(0)))
}

fn fold(start: i64, values: &[Value], combine: fn(i64, i64) -> i64) -> Value {
    Value::int64(values.iter().map(to_int).fold(start, combine))
}

fn divide(values: &[Value], divide: fn(i64, i64) -> i64) -> Outcome<Value> {
    let divisor = to_int(&values[1]);
    if divisor == 0 {
        return Err("integer divide by zero".into());
    }
    Ok(Value::int64(divide(to_int(&values[0]), divisor)))
}

/// `math.Max` or `math.Min` of all; a NaN among them wins.
fn extreme(values: &[Value], beats: fn(f64, f64) -> bool) -> Value {
    let mut numbers = values.iter().map(to_float);
    let first = numbers.next().unwrap_or(0.0);
    Value::Float(numbers.fold(first, |best, next| {
        if best.is_nan() || next.is_nan() {
            f64::NAN
        } else if beats(next, best) {
            next
        } else {
            best
        }
    }))
}

/// To that many places; a remainder of the given fraction, or of a half, rounds up.
fn round(_: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let up_from = values.get(2).map_or(0.5, float);
    let places = i32::try_from(int(&values[1])).map_err(|_| "too many places")?;
    let scale = 10_f64.powi(places);
    let scaled = scale * to_float(&values[0]);
    let rounded = if scaled.fract() >= up_from { scaled.ceil() } else { scaled.floor() };
    Ok(Value::Float(rounded / scale))
}

/// From `start` up to, or down to, but without `stop`.
fn steps(ctx: &mut Ctx, start: i64, stop: i64, step: i64) -> Outcome<Vec<i64>> {
    let mut numbers = Vec::new();
    let mut next = Some(start);
    while let Some(number) = next.filter(|n| if stop < start { *n > stop && step < 0 } else { *n < stop && step > 0 }) {
        ctx.tick(1)?;
        numbers.push(number);
        next = number.checked_add(step);
    }
    Ok(numbers)
}

fn seq(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let numbers: Vec<i64> = values.iter().map(int).collect();
    let toward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match *numbers.as_slice() {
        [end] => (1, end, toward(1, end)),
        [start, end] => (start, end, toward(start, end)),
        [start, step, end] if end >= start || step <= 0 => (start, end, step),
        _ => return Ok("".into()),
    };
    let numbers = steps(ctx, start, end.wrapping_add(toward(start, end)), step)?;
    let mut out = String::new();
    for (i, number) in numbers.iter().enumerate() {
        let blank = if i > 0 { " " } else { "" };
        ctx.push(&mut out, &format!("{blank}{number}"))?;
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_number_count_as_zero() {
        assert_eq!(to_int(&"x".into()), 0);
        assert_eq!(to_int(&"0x10".into()), 16);
        assert_eq!(to_int(&"12.00".into()), 12);
        assert_eq!(to_int(&"08".into()), 0);
    }
}
