//! A ledger and its clock, for tables.

use crate::id::Name;
use crate::limits::{
    Act, Amount, Charge, Charged, Ledger, REMEMBERED, Reply, Request, Rule, Settlement, Term, Verdict,
};
use crate::{MILLISECOND, Micros, SECOND};

/// When scenes begin: a whole day of the calendar.
pub(super) const START: Micros = 1_700_006_400 * SECOND;
pub(super) const HOUR: Micros = 3_600 * SECOND;
pub(super) const DAY: Micros = 24 * HOUR;

#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub ledger: Ledger,
    pub wall: Micros,
    /// The limits that were asked for, held as by who asks for them again and again.
    terms: Vec<Term>,
}

pub(super) fn charge(limit: &str, rule: Rule, cost: u64) -> Charge {
    charge_of(limit, rule, cost.into())
}

pub(super) fn charge_of(limit: &str, rule: Rule, cost: Amount) -> Charge {
    Charge { limit: Name::new(limit).unwrap(), rule, cost, open: false }
}

impl Scene {
    pub fn new() -> Self {
        Scene { ledger: Ledger::default(), wall: START, terms: Vec::new() }
    }

    pub fn pass(&mut self, time: Micros) -> &mut Self {
        self.wall += time;
        self
    }

    pub fn ask(&mut self, act: Act, charges: &[Charge]) -> Reply {
        if matches!(act, Act::Commit { .. } | Act::Keep { .. } | Act::GiveBack { .. } | Act::Renew { .. }) {
            return self.ledger.apply_one(self.wall, &Request { act, charges: charges.to_vec() });
        }
        let named = |charge: &Charge| Term::new(charge.limit.clone(), charge.rule);
        for term in charges.iter().map(named) {
            if !self.terms.contains(&term) {
                self.terms.push(term);
            }
        }
        let held = |charge: &Charge| self.terms.iter().find(|term| **term == named(charge)).unwrap();
        let charged = charges.iter().map(|charge| Charged { term: held(charge), cost: charge.cost });
        let charged: Vec<_> = charged.collect();
        Reply::Judged(self.ledger.judge(self.wall, &act, &charged).unwrap())
    }

    pub fn judge(&mut self, act: Act, charges: &[Charge]) -> Verdict {
        match self.ask(act, charges) {
            Reply::Judged(verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }

    pub fn settle(&mut self, act: Act, charges: &[Charge]) -> Settlement {
        match self.ask(act, charges) {
            Reply::Settled(settlement) => settlement,
            other => panic!("{other:?}"),
        }
    }

    /// Takes of the limit `a`.
    pub fn take(&mut self, rule: Rule, cost: u64) -> Verdict {
        self.judge(Act::Take, &[charge("a", rule, cost)])
    }

    /// What remains of the limit `a`.
    pub fn remaining(&mut self, rule: Rule) -> u64 {
        self.judge(Act::Peek, &[charge("a", rule, 0)]).remaining.saturating_u64()
    }

    /// How many cells are kept of the rolling limit `a`.
    pub fn cells(&self) -> usize {
        self.ledger.cells(&Name::new("a").unwrap())
    }

    /// What is kept, some time later, of limits of which nothing is used.
    pub fn size_when_forgotten(&mut self) -> (usize, usize) {
        let rule = Rule::Refill { max: 1, period: SECOND };
        self.pass(REMEMBERED + 2 * MILLISECOND).judge(Act::Peek, &[charge("other", rule, 0)]);
        self.ledger.size()
    }

    /// How many of so many single takes of the limit `a` are allowed.
    pub fn allowed(&mut self, rule: Rule, takes: u64) -> u64 {
        (0..takes).filter(|_| self.take(rule, 1).allowed).count() as u64
    }
}

/// The kinds that refill, with so much in a period.
pub(super) fn rates(max: u64, period: Micros) -> [Rule; 3] {
    [Rule::Refill { max, period }, Rule::Gcra { max, period, burst: max }, Rule::Rolling { max, period }]
}

/// All kinds that forbid more than so much at once.
pub(super) fn all(max: u64, period: Micros) -> [Rule; 6] {
    let [refill, gcra, rolling] = rates(max, period);
    let max: Amount = max.into();
    [
        refill,
        gcra,
        rolling,
        Rule::Lifetime { max },
        Rule::Budget { max, period, offset: 0 },
        Rule::Each { max },
    ]
}
