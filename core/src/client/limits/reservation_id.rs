//! By what a reservation is known outside of the process that made it.

use crate::error::{Error, Result};
use crate::limits::{self, Charge};

/// The digits of the reservation, and of its limits.
const DIGITS: (usize, usize) = (32, 8);

/// The id as it is told.
pub(super) fn write(id: u128, charges: &[Charge]) -> String {
    format!("{id:032x}{:08x}", sum(charges))
}

/// The id that was told of a reservation of these limits.
///
/// # Errors
/// `invalid_argument` naming `id` if it is none, or is that of a reservation of other limits, or of these in another order: each
/// would be given back what another one was charged.
pub(super) fn read(text: &str, charges: &[Charge]) -> Result<u128> {
    let unfit = || Error::invalid("id", "must be the id of a reservation");
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != DIGITS.0 + DIGITS.1 || !text.bytes().all(is_digit) {
        return Err(unfit());
    }
    let (id, limits) = text.split_at_checked(DIGITS.0).ok_or_else(unfit)?;
    if u32::from_str_radix(limits, 16) != Ok(sum(charges)) {
        return Err(Error::invalid(
            "id",
            "is of a reservation of other limits, or of these in another order",
        ));
    }
    u128::from_str_radix(id, 16).map_err(|_| unfit())
}

/// Rates are one kind here: one whose maximum or period is 0 by now is judged as another kind, and one may be asked as another by now.
/// What was reserved with it of other limits is ended all the same.
fn sum(charges: &[Charge]) -> u32 {
    let kind = |charge: &Charge| match charge.rule.letter() {
        'c' | 'g' | 'w' => 'e',
        other => other,
    };
    limits::sum(charges.iter().map(|charge| (kind(charge), &charge.limit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Name;
    use crate::limits::Rule;

    fn of(names: &[&str]) -> Vec<Charge> {
        let rule = Rule::InFlight { max: 1 };
        let charge =
            |name: &&str| Charge { limit: Name::new(name).unwrap(), rule, cost: 1u64.into(), open: false };
        names.iter().map(charge).collect()
    }

    #[test]
    fn it_is_read_for_its_own_limits_only() {
        let (id, limits) = (u128::MAX - 7, of(&["ab", "c"]));
        let text = write(id, &limits);
        // Other versions and languages read it.
        assert_eq!(text, "fffffffffffffffffffffffffffffff84bf62daf");
        assert_eq!(read(&text, &limits).unwrap(), id);
        for others in [&["c", "ab"][..], &["a", "bc"], &["ab"], &["ab", "c", "d"], &[]] {
            assert_eq!(read(&text, &of(others)).unwrap_err().field(), Some("id"), "{others:?}");
        }
        for unfit in ["", "x", &text[1..], &text.to_uppercase(), &text.replace('d', "ä")] {
            assert_eq!(read(unfit, &limits).unwrap_err().field(), Some("id"), "{unfit}");
        }
    }
}
