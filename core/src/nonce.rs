//! Nonces: what a slot's record says of its next nonce, and what a holder says became of the one it had.
//!
//! A chain checks (sender, nonce) and nothing else. So a nonce that may have been signed with is never
//! taken for unused: it leaves the slot *in doubt* until the chain has been asked (rules S5 and S10 of
//! ARCHITECTURE.md).

/// A nonce, 0 to 2^64 - 1. Crosses every wire as decimal text: doubles lose integers above 2^53.
pub type Nonce = u64;

/// What a slot's record says of its next nonce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonceRecord {
    /// Never known: "unknown", not zero.
    #[default]
    Unset,
    /// The next nonce to sign with.
    Known(Nonce),
    /// Unsure: the chain must be asked. Everything below the floor, where there is one, is known to be used.
    InDoubt {
        /// The lowest nonce that may still be free.
        floor: Option<Nonce>,
    },
}

impl NonceRecord {
    /// Everything below this is known to be used.
    pub fn floor(self) -> Option<Nonce> {
        match self {
            NonceRecord::Unset => None,
            NonceRecord::Known(next) => Some(next),
            NonceRecord::InDoubt { floor } => floor,
        }
    }

    /// The record of a lease that ended without a word about its nonce.
    #[must_use]
    pub fn unsettled(self) -> Self {
        match self {
            NonceRecord::Unset => NonceRecord::Unset,
            known => NonceRecord::InDoubt { floor: known.floor() },
        }
    }

    /// The record after `outcome`, or `None` if the outcome would put the nonce back, which no release may.
    #[must_use]
    pub fn after(self, outcome: Outcome) -> Option<Self> {
        let in_doubt = NonceRecord::InDoubt { floor: self.floor() };
        match outcome {
            Outcome::Unsettled => Some(self.unsettled()),
            Outcome::Unused => Some(self),
            Outcome::Unknown { used } => Some(NonceRecord::InDoubt { floor: self.floor().max(used) }),
            Outcome::Rejected { expected: None } => Some(in_doubt),
            Outcome::Used { next } => {
                let forward = match self {
                    NonceRecord::Known(handed) => next > handed,
                    other => other.floor().is_none_or(|floor| next >= floor),
                };
                forward.then_some(NonceRecord::Known(next))
            }
            // A node that lags behind may expect less than is known to be used: ask again later.
            Outcome::Rejected { expected: Some(expected) } => {
                let credible = self.floor().is_none_or(|floor| expected >= floor);
                Some(if credible { NonceRecord::Known(expected) } else { in_doubt })
            }
        }
    }
}

/// What became of the nonce of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was said: if the lease carried a nonce, it is in doubt.
    #[default]
    Unsettled,
    /// Signed and accepted; `next` is the next free one.
    Used {
        /// Above the nonce of the lease.
        next: Nonce,
    },
    /// Never signed with, or refused before it could count: the same nonce is handed out next.
    Unused,
    /// The chain refused the nonce and, if it said so, named the one it expects.
    Rejected {
        /// The nonce that the chain expects.
        expected: Option<Nonce>,
    },
    /// Perhaps accepted, perhaps not (a time-out, a lost connection).
    Unknown {
        /// Everything below this was accepted all the same: other nonces of the lease, before that one.
        used: Option<Nonce>,
    },
}

/// What the holder of a lease has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    outcome: Outcome,
    used: Option<Nonce>,
}

impl Words {
    /// Takes another word. That a nonce counted is not taken back by a later one: a handler of errors says `unused` of what
    /// was sent before the error, too, and of ten payments of which the last one is lost nine have counted. Words that
    /// contradict each other are doubt, from the highest nonce that counted on.
    pub fn say(&mut self, word: Outcome) {
        let next_of = |outcome| match outcome {
            Outcome::Used { next } | Outcome::Rejected { expected: Some(next) } => Some(next),
            _ => None,
        };
        let next = next_of(word);
        let is_at_least =
            |known: Option<Nonce>| known.is_none_or(|known| next.is_some_and(|next| next >= known));
        let mut repeats = false;
        if let Outcome::Used { next } = word {
            repeats = self.used.is_some_and(|used| used >= next);
            if !repeats {
                self.used = Some(next);
            }
        }
        let known = match self.outcome {
            Outcome::Unsettled | Outcome::Unused => self.used.is_none() || next.is_some(),
            // What is said a second time says nothing of what was unknown in between.
            Outcome::Unknown { .. } => next.is_some() && !repeats,
            before => next.is_some() && is_at_least(next_of(before)),
        };
        self.outcome = match known && (next.is_none() || is_at_least(self.used)) {
            true => word,
            false => Outcome::Unknown { used: None },
        };
    }

    /// The store has recorded the chain's next nonce: it has no need to be told of a use below that.
    pub fn recorded(&mut self, chain: Nonce) {
        if let Outcome::Used { next } = self.outcome
            && next <= chain
        {
            self.outcome = Outcome::Unused;
        }
    }

    /// What they come to.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self.outcome {
            Outcome::Unknown { .. } => Outcome::Unknown { used: self.used },
            other => other,
        }
    }

    /// Everything below this was accepted, as far as was said.
    #[must_use]
    pub fn used(self) -> Option<Nonce> {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NonceRecord::{InDoubt, Known, Unset};
    use Outcome::{Rejected, Unknown, Unsettled, Unused, Used};

    /// What a relayer says whose error handler runs after the payment was sent.
    #[test]
    fn a_word_is_not_taken_back_by_a_later_one() {
        let (used, rejected) = (|next| Used { next }, |expected| Rejected { expected });
        let unknown = Unknown { used: None };
        let from = |used| Unknown { used: Some(used) };
        for (words, outcome) in [
            (&[used(8), Unused][..], from(8)),
            (&[used(8), Unused, Unused], from(8)),
            (&[used(8), rejected(Some(7))], from(8)),
            (&[used(8), rejected(None)], from(8)),
            (&[used(8), unknown], from(8)),
            (&[used(9), used(8)], from(9)),
            (&[used(8), used(9), unknown, unknown], from(9)),
            (&[used(8), unknown, used(9)], used(9)),
            (&[unknown, used(8), unknown, used(8)], from(8)),
            (&[used(8), unknown, rejected(Some(9))], rejected(Some(9))),
            (&[used(9), unknown, used(8)], from(9)),
            (&[unknown, used(8), unknown, used(9), Unused], from(9)),
            (&[rejected(Some(9)), used(8)], from(8)),
            (&[used(8), rejected(Some(9)), unknown], from(8)),
            (&[used(8), rejected(Some(9)), Unused], from(8)),
            (&[used(8), rejected(Some(9)), rejected(None)], from(8)),
            (&[used(8), rejected(Some(9)), unknown, used(10), unknown], from(10)),
            (&[used(9), unknown, rejected(Some(8))], from(9)),
            (&[rejected(Some(9)), Unused], unknown),
            (&[rejected(None), Unused], unknown),
            (&[unknown, Unused], unknown),
            (&[used(8), used(8)], used(8)),
            (&[used(8), used(9)], used(9)),
            (&[used(8), rejected(Some(9))], rejected(Some(9))),
            (&[Unused, used(8)], used(8)),
            (&[Unused, unknown], unknown),
            (&[unknown, used(8)], used(8)),
            (&[rejected(None), rejected(Some(9))], rejected(Some(9))),
            (&[Unused, Unused], Unused),
        ] {
            let mut said = Words::default();
            words.iter().for_each(|&word| said.say(word));
            assert_eq!(said.outcome(), outcome, "{words:?}");
        }
    }

    #[test]
    fn every_outcome_of_every_record() {
        let doubt = |floor| InDoubt { floor };
        let unknown = |used| Unknown { used };
        let rejected = |expected| Rejected { expected };
        for (record, outcome, after) in [
            (Unset, Unsettled, Some(Unset)),
            (Unset, Unused, Some(Unset)),
            (Unset, unknown(None), Some(doubt(None))),
            (Unset, unknown(Some(9)), Some(doubt(Some(9)))),
            (Unset, Used { next: 0 }, Some(Known(0))),
            (Unset, rejected(Some(4)), Some(Known(4))),
            (Unset, rejected(None), Some(doubt(None))),
            (Known(7), Unsettled, Some(doubt(Some(7)))),
            (Known(7), Unused, Some(Known(7))),
            (Known(7), unknown(None), Some(doubt(Some(7)))),
            (Known(7), unknown(Some(9)), Some(doubt(Some(9)))),
            (Known(7), unknown(Some(5)), Some(doubt(Some(7)))),
            (doubt(Some(7)), unknown(Some(9)), Some(doubt(Some(9)))),
            (Known(7), Used { next: 8 }, Some(Known(8))),
            (Known(7), Used { next: 7 }, None),
            (Known(7), Used { next: 3 }, None),
            (Known(7), rejected(Some(9)), Some(Known(9))),
            (Known(7), rejected(Some(5)), Some(doubt(Some(7)))),
            (Known(7), rejected(None), Some(doubt(Some(7)))),
            (doubt(Some(7)), Unused, Some(doubt(Some(7)))),
            (doubt(Some(7)), Used { next: 7 }, Some(Known(7))),
            (doubt(Some(7)), Used { next: 6 }, None),
            (doubt(None), Used { next: 6 }, Some(Known(6))),
            (Known(u64::MAX), Used { next: u64::MAX }, None),
        ] {
            assert_eq!(record.after(outcome), after, "{record:?} {outcome:?}");
        }
    }
}
