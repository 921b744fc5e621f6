//! Floats as text, as Go's `strconv.FormatFloat` writes them.

/// Decimal digits without leading or trailing zeros, and how many of them stand before the point.
struct Digits {
    digits: String,
    point: i32,
}

/// Past this many digits an f64 has only zeros; std's formatter takes no more than u16 can count.
const MAX_DIGITS: usize = 1100;

/// `FormatFloat(value, verb, precision, 64)` for the verbs e, E, f, g, G; no precision means the shortest text.
pub(crate) fn format(value: f64, verb: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let value = value.abs();
    let body = match (verb, precision) {
        ('e' | 'E', None) => {
            let digits = shortest(value);
            let precision = digits.digits.len().saturating_sub(1);
            exponential(&digits, precision, verb)
        }
        ('e' | 'E', Some(precision)) => exponential(&rounded(value, precision.saturating_add(1)), precision, verb),
        ('g' | 'G', _) => general(value, verb, precision),
        (_, None) => {
            let digits = shortest(value);
            let precision = usize::try_from(digits.len() - digits.point).unwrap_or(0);
            plain(&digits, precision)
        }
        (_, Some(precision)) => {
            let few = precision.min(MAX_DIGITS);
            format!("{value:.few$}{}", "0".repeat(precision - few))
        }
    };
    format!("{sign}{body}")
}

impl Digits {
    fn len(&self) -> i32 {
        i32::try_from(self.digits.len()).expect("an f64 has some hundred digits")
    }

    fn parse(text: &str) -> Digits {
        let (mantissa, exponent) = text.split_once('e').expect("the exponential format has an exponent");
        let digits = mantissa.replace('.', "");
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Digits { digits, point: 0 };
        }
        Digits { digits, point: exponent.parse::<i32>().expect("an f64 has a small exponent") + 1 }
    }
}

fn shortest(value: f64) -> Digits {
    Digits::parse(&format!("{value:e}"))
}

fn rounded(value: f64, digits: usize) -> Digits {
    let fraction = digits.clamp(1, MAX_DIGITS) - 1;
    Digits::parse(&format!("{value:.fraction$e}"))
}

fn general(value: f64, verb: char, precision: Option<usize>) -> String {
    let precision = precision.map(|p| p.max(1));
    let digits = match precision {
        None => shortest(value),
        Some(precision) => rounded(value, precision),
    };
    let len = digits.len();
    let limit = match precision {
        // The shortest text has no precision of its own: Go decides as for the usual 6.
        None => 6,
        Some(precision) => {
            let wanted = i32::try_from(precision).unwrap_or(i32::MAX);
            if wanted > len && len >= digits.point { len } else { wanted }
        }
    };
    let exponent = digits.point - 1;
    if exponent < -4 || exponent >= limit {
        let verb = if verb == 'G' { 'E' } else { 'e' };
        return exponential(&digits, digits.digits.len().saturating_sub(1), verb);
    }
    plain(&digits, usize::try_from(len - digits.point).unwrap_or(0))
}

fn exponential(digits: &Digits, precision: usize, verb: char) -> String {
    let mut chars = digits.digits.chars();
    let first = chars.next().unwrap_or('0');
    let mut fraction: String = chars.take(precision).collect();
    let missing = precision - fraction.len();
    fraction.push_str(&"0".repeat(missing));
    let point = if precision > 0 { "." } else { "" };
    let exponent = if digits.digits.is_empty() { 0 } else { digits.point - 1 };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{fraction}{verb}{sign}{:02}", exponent.abs())
}

fn plain(digits: &Digits, precision: usize) -> String {
    let all = &digits.digits;
    let zeros = |count: usize| "0".repeat(count);
    let (whole, fraction) = match usize::try_from(digits.point) {
        Ok(0) | Err(_) => {
            let lead = usize::try_from(-digits.point).unwrap_or(0);
            ("0".to_owned(), zeros(lead) + all)
        }
        Ok(point) if point >= all.len() => (all.clone() + &zeros(point - all.len()), String::new()),
        Ok(point) => (all[..point].to_owned(), all[point..].to_owned()),
    };
    if precision == 0 {
        return whole;
    }
    let shown: String = fraction.chars().take(precision).collect();
    let missing = precision - shown.len();
    format!("{whole}.{shown}{}", zeros(missing))
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn the_shortest_text_has_an_exponent_from_a_million_on() {
        assert_eq!(format(100_000.0, 'g', None), "100000");
        assert_eq!(format(123_456_789.0, 'g', None), "1.23456789e+08");
        assert_eq!(format(0.0001, 'g', None), "0.0001");
        assert_eq!(format(0.000_01, 'g', None), "1e-05");
    }

    #[test]
    fn a_precision_counts_digits_for_g_and_decimals_for_f_and_e() {
        assert_eq!(format(1234.5678, 'g', Some(3)), "1.23e+03");
        assert_eq!(format(1234.5678, 'f', Some(2)), "1234.57");
        assert_eq!(format(1234.5678, 'e', Some(2)), "1.23e+03");
        assert_eq!(format(0.0, 'e', Some(2)), "0.00e+00");
    }
}
