//! Amounts: whole numbers of 256 bits, as chains have them.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A whole number from 0 to 2^256 - 1, written in decimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    // In this order, so that the derived order is that of the numbers.
    high: u128,
    low: u128,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount { high: 0, low: 0 };
    /// The largest.
    pub const MAX: Amount = Amount { high: u128::MAX, low: u128::MAX };

    /// The sum, if it is an amount.
    #[must_use]
    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high)?.checked_add(u128::from(carry))?;
        Some(Amount { high, low })
    }

    /// The difference, or nothing where the other is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Amount) -> Amount {
        if other >= self {
            return Amount::ZERO;
        }
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Amount { high: self.high.wrapping_sub(other.high).wrapping_sub(u128::from(borrow)), low }
    }

    /// The number, or the largest of 64 bits where it is larger.
    #[must_use]
    pub fn saturating_u64(self) -> u64 {
        if self.high > 0 { u64::MAX } else { u64::try_from(self.low).unwrap_or(u64::MAX) }
    }

    /// `self * 10 + digit`, if it is an amount.
    fn push(self, digit: u8) -> Option<Amount> {
        // Tenfold is fourfold and once more, doubled.
        let twice = |amount: Amount| amount.checked_add(amount);
        let fivefold = twice(twice(self)?)?.checked_add(self)?;
        twice(fivefold)?.checked_add(u64::from(digit).into())
    }

    /// The quotient and the remainder.
    fn divide(self, by: u64) -> (Amount, u64) {
        let mut rest = 0;
        let mut next = |limb: u128| {
            let part = rest << 64 | limb;
            rest = part % u128::from(by);
            part / u128::from(by)
        };
        let half = |number: u128, next: &mut dyn FnMut(u128) -> u128| {
            let upper = next(number >> 64);
            upper << 64 | next(u128::from(number as u64))
        };
        let high = half(self.high, &mut next);
        let low = half(self.low, &mut next);
        (Amount { high, low }, rest as u64)
    }
}

impl From<u64> for Amount {
    fn from(number: u64) -> Self {
        Amount { high: 0, low: number.into() }
    }
}

impl From<u128> for Amount {
    fn from(number: u128) -> Self {
        Amount { high: 0, low: number }
    }
}

impl FromStr for Amount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let read =
            |amount: Amount, digit: u8| amount.push(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        let amount = text.bytes().try_fold(Amount::ZERO, read).filter(|_| !text.is_empty());
        amount.ok_or_else(|| {
            Error::invalid("", "must be a whole number from 0 to 2^256 - 1, in decimal digits")
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHUNK: u64 = 1_000_000_000_000_000_000;
        if self.high == 0 && self.low < u128::from(CHUNK) {
            return write!(f, "{}", self.low as u64);
        }
        let (rest, chunk) = self.divide(CHUNK);
        write!(f, "{rest}{chunk:018}")
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn digits_are_read_and_written() {
        for text in [
            "0",
            "7",
            "999999999999999999",
            "1000000000000000000",
            "340282366920938463463374607431768211456",
            MOST,
        ] {
            assert_eq!(amount(text).to_string(), text);
        }
        assert_eq!(amount(MOST), Amount::MAX);
        assert_eq!(amount("007"), 7u64.into());
        let over = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        for bad in ["", "-1", "+1", "1.0", " 1", "0x1", "1e3", over] {
            assert!(bad.parse::<Amount>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sums_carry_and_differences_borrow() {
        let two_to_128 = amount("340282366920938463463374607431768211456");
        let below = Amount::from(u128::MAX);
        assert_eq!(below.checked_add(1u64.into()), Some(two_to_128));
        assert_eq!(two_to_128.saturating_sub(1u64.into()), below);
        assert_eq!(Amount::MAX.checked_add(1u64.into()), None);
        assert_eq!(below.saturating_sub(two_to_128), Amount::ZERO);
        assert!(two_to_128 > below);
        assert_eq!(two_to_128.saturating_u64(), u64::MAX);
    }
}
