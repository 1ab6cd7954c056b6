//! Sums that may pass 2^256.

use super::Amount;

/// A sum of amounts, exact whatever its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Total {
    /// How often it passed 2^256; first, so that the derived order is that of the numbers.
    wraps: u64,
    rest: Amount,
}

impl Total {
    /// More of it.
    pub fn add(&mut self, amount: Amount) {
        self.rest = self.rest.checked_add(amount).unwrap_or_else(|| {
            self.wraps += 1;
            // What is left of the sum above 2^256: less what was missing to it, and one.
            let missing = Amount::MAX.saturating_sub(self.rest);
            amount.saturating_sub(missing).saturating_sub(1u64.into())
        });
    }

    /// Less of it, of what was added before.
    pub fn take(&mut self, amount: Amount) {
        self.rest = self.rest.checked_sub(amount).unwrap_or_else(|| {
            self.wraps = self.wraps.saturating_sub(1);
            let lacking = amount.saturating_sub(self.rest);
            Amount::MAX.saturating_sub(lacking).saturating_add(1u64.into())
        });
    }

    /// The sum, if it is below 2^256.
    pub fn exact(self) -> Option<Amount> {
        (self.wraps == 0).then_some(self.rest)
    }

    /// The sum, or 2^256 - 1 if it is above.
    pub fn capped(self) -> Amount {
        self.exact().unwrap_or(Amount::MAX)
    }

    /// Whether there is as much.
    pub fn covers(self, amount: Amount) -> bool {
        self.capped() >= amount
    }
}

impl FromIterator<Amount> for Total {
    fn from_iter<I: IntoIterator<Item = Amount>>(amounts: I) -> Self {
        let mut total = Total::default();
        amounts.into_iter().for_each(|amount| total.add(amount));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_the_top_comes_back() {
        let amounts = [Amount::MAX, 5u64.into(), Amount::MAX, 1u64.into(), Amount::ZERO];
        let mut total: Total = amounts.into_iter().collect();
        assert_eq!((total.exact(), total.capped()), (None, Amount::MAX));
        total.take(Amount::MAX);
        assert_eq!(total.exact(), None, "2^256 + 5");
        total.take(6u64.into());
        assert_eq!(total.exact(), Some(Amount::MAX));
        total.take(Amount::MAX);
        assert_eq!(total, Total::default());
        assert!(
            [Amount::MAX, 1u64.into()].into_iter().collect::<Total>() > [Amount::MAX].into_iter().collect()
        );
    }
}
