//! Envelopes that come again, too late or in the wrong order.

use super::scene::{START, charge};
use crate::limits::{Act, Amount, Answer, Envelope, LANE_GRACE, Ledger, Moment, Reply, Request, Rule};
use crate::slots::Lane;
use crate::{Micros, SECOND};

const RULE: Rule = Rule::Lifetime { max: Amount::MAX };

fn envelope(sequence: u64, not_after: Option<Micros>) -> Envelope {
    let request = Request { act: Act::Take, charges: vec![charge("a", RULE, 1)] };
    let lane = Some(Lane { client: 7, number: 0, sequence });
    Envelope { lane, not_after, requests: vec![request], ..Envelope::default() }
}

fn at(wall: Micros) -> Moment<'static> {
    Moment { wall, incarnation: "-" }
}

fn used(ledger: &mut Ledger) -> Amount {
    let peek = Request { act: Act::Peek, charges: vec![charge("a", RULE, 0)] };
    match ledger.apply_one(START, &peek) {
        Reply::Judged(verdict) => Amount::MAX.saturating_sub(verdict.remaining),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_take_is_answered_and_not_charged_again() {
    let mut ledger = Ledger::default();
    let first = ledger.apply(at(START), &envelope(1, None));
    for pass in [0, SECOND, LANE_GRACE - 1] {
        assert_eq!(ledger.apply(at(START + pass), &envelope(1, None)), first);
    }
    assert_eq!(used(&mut ledger), 1u64.into());
    ledger.apply(at(START + SECOND), &envelope(2, None));
    assert_eq!(ledger.apply(at(START + SECOND), &envelope(1, None)), Answer::Stale { now: START + SECOND });
    assert_eq!(used(&mut ledger), 2u64.into());
}

#[test]
fn a_late_take_changes_nothing() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.apply(at(START + 1), &envelope(1, Some(START))), Answer::Stale { now: START + 1 });
    assert!(matches!(ledger.apply(at(START), &envelope(1, Some(START))), Answer::Performed(_)));
    // Forgotten by then, and too late.
    let later = START + 2 * LANE_GRACE;
    assert_eq!(ledger.apply(at(later), &envelope(1, Some(START))), Answer::Stale { now: later });
    assert_eq!(used(&mut ledger), 1u64.into());
}
