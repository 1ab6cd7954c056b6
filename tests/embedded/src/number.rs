//! Numbers as Redis reads and prints them: strict 64-bit integers, and doubles as C's `%.17g`.

/// Reads a 64-bit integer as Redis does: no sign but a minus, no leading zero, no blank.
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = digits.iter().all(u8::is_ascii_digit) && !digits.is_empty();
    let zero_led = digits[..digits.len().min(1)] == *b"0" && text.len() > 1;
    if !plain || zero_led {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a double as Redis reads a score: the whole text, infinity by name, no NaN, no overflow.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    let named = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let vanished = value == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    (!value.is_nan() && !vanished && (named || value.is_finite())).then_some(value)
}

/// Prints a double as C prints it with `%.17g`, which is what Redis 7.0 stores and answers.
pub(crate) fn format_double(value: f64) -> String {
    // Whole numbers below 1e17 print all their digits; they are nearly all there is, so they go the short way.
    if value.fract() == 0.0 && value.abs() < 1e17 && !(value == 0.0 && value.is_sign_negative()) {
        return (value as i64).to_string();
    }
    if value.is_nan() {
        // The NaN that x86 makes of 0/0 has its sign set, and C prints it.
        return if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return "-0".to_owned();
    }
    format_general(value)
}

/// Truncates a Lua number to the integer that Redis answers; what does not fit gives the value of x86.
pub(crate) fn truncate_double(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

const PRECISION: i32 = 17;

fn format_general(value: f64) -> String {
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0.0 { "-" } else { "" };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if !(-4..PRECISION).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits:0<whole$}");
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_in_c() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.1, "0.10000000000000001"),
            (2.5, "2.5"),
            (-2.5e-3, "-0.0025000000000000001"),
            (1e-5, "1.0000000000000001e-05"),
            (99_999_999_999_999_984.0, "99999999999999984"),
            (1e17, "1e+17"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e300, "1.0000000000000001e+300"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1234.5678, "1234.5678"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_double(value), text);
        }
    }

    #[test]
    fn integers_are_read_strictly() {
        assert_eq!(parse_integer(b"0"), Some(0));
        assert_eq!(parse_integer(b"-12"), Some(-12));
        assert_eq!(parse_integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.0", "9223372036854775808", "x"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn doubles_are_read_whole() {
        assert_eq!(parse_double(b"1e3"), Some(1000.0));
        assert_eq!(parse_double(b"+inf"), Some(f64::INFINITY));
        assert_eq!(parse_double(b"-Infinity"), Some(f64::NEG_INFINITY));
        for text in ["", "nan", " 1", "1x", "1e400", "1e-400", "("] {
            assert_eq!(parse_double(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_cut_to_integers() {
        assert_eq!(truncate_double(1.9), 1);
        assert_eq!(truncate_double(-1.9), -1);
        assert_eq!(truncate_double(1e300), i64::MIN);
        assert_eq!(truncate_double(f64::NAN), i64::MIN);
    }
}
