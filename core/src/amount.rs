//! Amounts: whole numbers from 0 to 2^256 - 1.

use std::fmt;

use crate::error::{Error, Result};
use crate::value::Value;

/// An amount. Reads decimal digits, or hexadecimal ones behind `0x`, and nothing that could be meant otherwise: no sign,
/// no blank, no separator, no leading zero (which some languages take for octal).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    // In this order, so that the derived order is that of the numbers.
    high: u128,
    low: u128,
}

/// The largest power of ten in 64 bits, and its exponent.
const CHUNK: (u64, usize) = (10_000_000_000_000_000_000, 19);

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount { high: 0, low: 0 };
    /// 2^256 - 1.
    pub const MAX: Amount = Amount { high: u128::MAX, low: u128::MAX };

    /// Reads an amount from text.
    ///
    /// # Errors
    /// `invalid_argument` if it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let read = match text.strip_prefix("0x") {
            Some(digits) => Self::hexadecimal(digits),
            None => Self::decimal(text),
        };
        read.ok_or_else(|| {
            Error::invalid(
                "",
                "is no amount; decimal digits without leading zeros, or 0x and hexadecimal ones, up to 2^256 - 1",
            )
        })
    }

    /// Reads what a language gives: text as [`Self::parse`] does, or a whole number that has not lost digits.
    ///
    /// # Errors
    /// As [`Self::parse`].
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        match value {
            Value::Text(text) => Self::parse(text),
            Value::Integer(number) => u128::try_from(*number)
                .map(Amount::from)
                .map_err(|_| Error::invalid("", "is negative; an amount is 0 to 2^256 - 1")),
            other => other.as_u64_of(format_args!("0 to 2^256 - 1")).map(Amount::from),
        }
    }

    /// The number, or the largest of 64 bits where it is larger.
    #[must_use]
    pub fn saturating_u64(self) -> u64 {
        if self.high > 0 { u64::MAX } else { u64::try_from(self.low).unwrap_or(u64::MAX) }
    }

    /// Its 256 bits in words of 64, the lowest first.
    #[must_use]
    pub fn words(self) -> [u64; 4] {
        [self.low as u64, (self.low >> 64) as u64, self.high as u64, (self.high >> 64) as u64]
    }

    /// The sum, if it is below 2^256.
    #[must_use]
    pub fn checked_add(self, other: Amount) -> Option<Self> {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high)?.checked_add(u128::from(carry))?;
        Some(Amount { high, low })
    }

    /// The sum, or 2^256 - 1 if it is above.
    #[must_use]
    pub fn saturating_add(self, other: Amount) -> Self {
        self.checked_add(other).unwrap_or(Self::MAX)
    }

    /// The difference, if it is not below 0.
    #[must_use]
    pub fn checked_sub(self, other: Amount) -> Option<Self> {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        let high = self.high.checked_sub(other.high)?.checked_sub(u128::from(borrow))?;
        Some(Amount { high, low })
    }

    /// The difference, or 0 if it is below.
    #[must_use]
    pub fn saturating_sub(self, other: Amount) -> Self {
        self.checked_sub(other).unwrap_or(Self::ZERO)
    }

    /// How far apart two amounts are.
    #[must_use]
    pub fn distance(self, other: Amount) -> Self {
        self.max(other).saturating_sub(self.min(other))
    }

    /// Whether it is 0.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// How many bits it has: 0 for 0.
    pub fn bits(self) -> u32 {
        match self.high {
            0 => 128 - self.low.leading_zeros(),
            high => 256 - high.leading_zeros(),
        }
    }

    /// Without its lowest `count` bits, as far as it then fits: to weigh amounts against each other in 64 bits.
    #[must_use]
    pub fn shifted(self, count: u32) -> u64 {
        if self.bits() > count.saturating_add(64) {
            return u64::MAX;
        }
        let low = self.low.checked_shr(count).unwrap_or(0);
        let high = match count {
            0 => 0,
            1..128 => self.high << (128 - count),
            _ => self.high.checked_shr(count - 128).unwrap_or(0),
        };
        u64::try_from(low | high).unwrap_or(u64::MAX)
    }

    fn hexadecimal(digits: &str) -> Option<Self> {
        let good = (1..=64).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let split = digits.len().saturating_sub(32);
        let part = |text: &str| if text.is_empty() { Some(0) } else { u128::from_str_radix(text, 16).ok() };
        let (high, low) = digits.split_at_checked(split).filter(|_| good)?;
        Some(Amount { high: part(high)?, low: part(low)? })
    }

    fn decimal(text: &str) -> Option<Self> {
        let zero_first = text.len() > 1 && text.starts_with('0');
        if text.is_empty() || zero_first || !text.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        text.bytes().try_fold(Self::ZERO, |sum, digit| {
            sum.checked_times(10)?.checked_add(u128::from(digit - b'0').into())
        })
    }

    fn checked_times(self, factor: u64) -> Option<Self> {
        let (low, carry) = times(self.low, factor, 0);
        let (high, over) = times(self.high, factor, carry);
        (over == 0).then_some(Amount { high, low })
    }

    /// The quotient and the rest.
    fn divided(self, divisor: u64) -> (Self, u64) {
        let (high, rest) = divide(self.high, divisor, 0);
        let (low, rest) = divide(self.low, divisor, rest);
        (Amount { high, low }, rest)
    }
}

/// The product and what is above 128 bits of it.
fn times(number: u128, factor: u64, carry: u64) -> (u128, u64) {
    let factor = u128::from(factor);
    let low = (number & u128::from(u64::MAX)) * factor + u128::from(carry);
    let high = (number >> 64) * factor + (low >> 64);
    ((high << 64) | (low & u128::from(u64::MAX)), (high >> 64) as u64)
}

/// The quotient and the rest of a number with `before` in front of it, which is below the divisor.
fn divide(number: u128, divisor: u64, before: u64) -> (u128, u64) {
    let divisor = u128::from(divisor);
    let high = (u128::from(before) << 64) | (number >> 64);
    let low = ((high % divisor) << 64) | (number & u128::from(u64::MAX));
    (((high / divisor) << 64) | (low / divisor), (low % divisor) as u64)
}

impl From<u8> for Amount {
    fn from(number: u8) -> Self {
        u128::from(number).into()
    }
}

impl From<u16> for Amount {
    fn from(number: u16) -> Self {
        u128::from(number).into()
    }
}

impl From<u32> for Amount {
    fn from(number: u32) -> Self {
        u128::from(number).into()
    }
}

impl From<u64> for Amount {
    fn from(number: u64) -> Self {
        u128::from(number).into()
    }
}

impl From<usize> for Amount {
    fn from(number: usize) -> Self {
        (number as u128).into()
    }
}

impl From<u128> for Amount {
    fn from(low: u128) -> Self {
        Amount { high: 0, low }
    }
}

/// As it is said: its halves mean nothing to anybody.
impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::iter::Sum for Amount {
    /// 2^256 - 1 if the sum is above.
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl std::str::FromStr for Amount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Amount::parse(text)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (0, Ok(small)) = (self.high, u64::try_from(self.low)) {
            return fmt::Display::fmt(&small, f);
        }
        let (mut rest, mut chunks) = (*self, Vec::new());
        loop {
            let (quotient, chunk) = rest.divided(CHUNK.0);
            chunks.push(chunk);
            rest = quotient;
            if rest.is_zero() {
                break;
            }
        }
        let mut text = String::new();
        for (at, chunk) in chunks.iter().rev().enumerate() {
            let width = if at == 0 { 0 } else { CHUNK.1 };
            text.push_str(&format!("{chunk:0width$}"));
        }
        f.pad_integral(true, "", &text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOP: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

    #[test]
    fn only_what_cannot_be_meant_otherwise_is_an_amount() {
        let over = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        let wide = format!("0x1{}", "0".repeat(64));
        for bad in [
            "", " ", "010", "00", "1_000", "1,000", "-0", "-1", "+1", "1 ", " 1", "1.0", "1e3", "0x", "0X1",
            "x1", "0xg", "0x-1", "٣", "１", over, &wide,
        ] {
            assert_eq!(Amount::parse(bad).unwrap_err().code(), crate::Code::InvalidArgument, "{bad:?}");
        }
        for (good, shown) in [
            ("0", "0"),
            ("0x0", "0"),
            ("0x00ff", "255"),
            ("0xFf", "255"),
            ("18446744073709551616", "18446744073709551616"),
            ("0x10000000000000000", "18446744073709551616"),
            ("10000000000000000000", "10000000000000000000"),
            (TOP, TOP),
            (&format!("0x{}", "f".repeat(64)), TOP),
            (&format!("0x1{}", "0".repeat(32)), "340282366920938463463374607431768211456"),
        ] {
            assert_eq!(Amount::parse(good).unwrap().to_string(), shown, "{good}");
        }
    }

    #[test]
    fn its_words_are_its_digits() {
        let amount = Amount::parse("0x4000000000000000300000000000000020000000000000001").unwrap();
        assert_eq!(amount.words(), [1, 2, 3, 4]);
        assert_eq!((Amount::ZERO.words(), Amount::MAX.words()), ([0; 4], [u64::MAX; 4]));
    }

    #[test]
    fn sums_end_at_two_to_the_256() {
        let (top, one) = (Amount::MAX, Amount::from(1u64));
        assert_eq!(top.to_string(), TOP);
        assert_eq!((top.checked_add(one), top.saturating_add(one)), (None, top));
        assert_eq!((Amount::ZERO.checked_sub(one), Amount::ZERO.saturating_sub(one)), (None, Amount::ZERO));
        let half = Amount::from(u128::MAX).checked_add(one).unwrap();
        assert_eq!(half.checked_sub(one), Some(Amount::from(u128::MAX)));
        assert_eq!((half.bits(), top.bits(), Amount::ZERO.bits(), one.bits()), (129, 256, 0, 1));
        assert_eq!(
            (half.shifted(128), half.shifted(65), top.shifted(192), top.shifted(0)),
            (1, 1 << 63, u64::MAX, u64::MAX)
        );
        assert_eq!((top.shifted(255), top.shifted(256), half.shifted(129)), (1, 0, 0));
        assert_eq!(one.distance(top), top.distance(one));
    }

    #[test]
    fn languages_give_text_or_whole_numbers() {
        for value in [Value::Text("0x0a".into()), Value::Integer(10), Value::Number(10.0)] {
            assert_eq!(Amount::read(&value).unwrap(), 10u64.into());
        }
        for value in
            [Value::Null, Value::Integer(-1), Value::Number(0.5), Value::Number(1e18), Value::Bool(true)]
        {
            assert!(Amount::read(&value).is_err(), "{value:?}");
        }
    }

    fn parts() -> impl proptest::strategy::Strategy<Value = Amount> {
        let part =
            || prop_oneof![any::<u128>(), Just(0), Just(u128::MAX), (0u32..128).prop_map(|bits| 1 << bits)];
        (part(), part()).prop_map(|(high, low)| Amount { high, low })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(amount in parts()) {
            prop_assert_eq!(Amount::parse(&amount.to_string()).unwrap(), amount);
            let hex = format!("0x{:032x}{:032x}", amount.high, amount.low);
            prop_assert_eq!(Amount::parse(&hex).unwrap(), amount);
        }

        #[test]
        fn what_is_added_can_be_taken_away(one in parts(), other in parts()) {
            prop_assert_eq!(one.checked_add(other), other.checked_add(one));
            match one.checked_add(other) {
                Some(sum) => {
                    prop_assert!(sum >= one && sum >= other);
                    prop_assert_eq!(sum.checked_sub(other), Some(one));
                }
                None => prop_assert_eq!(one.saturating_add(other), Amount::MAX),
            }
            prop_assert_eq!(one.checked_sub(other).is_some(), one >= other);
        }
    }
}
