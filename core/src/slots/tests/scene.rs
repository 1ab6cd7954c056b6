//! A pool on a clock that the test moves.

use crate::id::SlotId;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Answer, Choice, Claim, Envelope, Grant, LeaseRef, Loss, Moment, Performed, Pool, Refusal, Reply, Request,
    SlotChange, SlotSpec, SlotView, Strategy,
};
use crate::{Micros, SECOND};

/// When every scene begins.
pub const START: Micros = 1_700_000_000 * SECOND;
/// The time to live of a scene's leases.
pub const TTL: Micros = 30 * SECOND;

/// One pool, its server, and a client that has seen a fence.
pub struct Scene {
    pub pool: Pool,
    pub wall: Micros,
    pub incarnation: String,
    pub up_since: Micros,
    pub seen: u64,
    pub jumped: bool,
}

/// The id of a slot.
pub fn id(text: &str) -> SlotId {
    SlotId::new(text).unwrap()
}

/// The ids of slots.
pub fn ids(texts: &[&str]) -> Vec<SlotId> {
    texts.iter().map(|text| id(text)).collect()
}

/// A claim of any slot, the one that has been ready longest first.
pub fn any(count: u32) -> Request {
    claim(Choice::Any { strategy: Strategy::LeastRecent, least: count, most: count })
}

/// A claim of these slots, all or none.
pub fn these(texts: &[&str]) -> Request {
    let count = texts.len() as u32;
    claim(Choice::Among { slots: ids(texts), count })
}

/// A claim without a bound on renewals, that does not wait.
pub fn claim(choice: Choice) -> Request {
    Request::Claim(asking(choice))
}

/// The same, to be altered.
pub fn asking(choice: Choice) -> Claim {
    Claim::new(choice, 7, TTL)
}

/// A definition of slots of weight 1.
pub fn define(texts: &[&str]) -> Request {
    define_resting(texts, 0)
}

/// A definition with a rest for slots in doubt.
pub fn define_resting(texts: &[&str], doubt_rest: Micros) -> Request {
    let slots = texts.iter().map(|text| SlotSpec { slot: id(text), weight: 1 }).collect();
    Request::Define { slots, longest: TTL, doubt_rest }
}

/// How a grant's holder names its lease.
pub fn lease(grant: &Grant) -> LeaseRef {
    LeaseRef { slot: grant.slot.clone(), fence: grant.fence, place: grant.place }
}

/// A change of a slot.
pub fn change(slot: &str, change: SlotChange) -> Request {
    Request::Change { slot: id(slot), change }
}

/// A renewal.
pub fn renew(grant: &Grant) -> Request {
    Request::Renew { lease: lease(grant), ttl: TTL }
}

/// A release without a cooldown.
pub fn release(grant: &Grant, outcome: Outcome) -> Request {
    Request::Release { lease: lease(grant), outcome, cooldown: 0 }
}

/// The chain's nonce, believed only where it does not go back.
pub fn resync(grant: &Grant, chain: u64) -> Request {
    Request::Resync { lease: lease(grant), chain, rewind: false, settle: 60 * SECOND }
}

pub const fn refused(why: Refusal, earliest: Option<Micros>) -> Reply {
    Reply::Refused { why, earliest }
}

pub const fn lost(loss: Loss) -> Reply {
    Reply::Lost(loss)
}

impl Scene {
    /// A pool of these slots on a server that has been up for long.
    pub fn of(slots: &[&str]) -> Self {
        let mut scene = Scene::bare();
        scene.ask(define(slots));
        scene
    }

    /// A server that does not have the pool.
    pub fn bare() -> Self {
        let incarnation = "a".to_owned();
        Scene { pool: Pool::default(), wall: START, incarnation, up_since: 0, seen: 0, jumped: false }
    }

    pub fn pass(&mut self, time: Micros) {
        self.wall += time;
    }

    pub fn apply(&mut self, envelope: &Envelope) -> Answer {
        let moment = Moment { wall: self.wall, incarnation: &self.incarnation, up_since: self.up_since };
        self.pool.apply(moment, envelope)
    }

    pub fn perform(&mut self, requests: Vec<Request>) -> Performed {
        let envelope =
            Envelope { seen: self.seen, jumped: self.jumped, seed: 1, requests, ..Envelope::default() };
        match self.apply(&envelope) {
            Answer::Performed(performed) => performed,
            stale => panic!("{stale:?}"),
        }
    }

    pub fn ask(&mut self, request: Request) -> Reply {
        self.perform(vec![request]).replies.remove(0)
    }

    pub fn grants(&mut self, request: Request) -> Vec<Grant> {
        match self.ask(request) {
            Reply::Granted(grants) => grants,
            other => panic!("{other:?}"),
        }
    }

    /// A lease of the slot that has been ready longest.
    pub fn claim(&mut self) -> Grant {
        self.grants(any(1)).remove(0)
    }

    /// A lease of this slot.
    pub fn claim_of(&mut self, slot: &str) -> Grant {
        self.grants(these(&[slot])).remove(0)
    }

    /// A lease of this slot, its nonce known: the chain was asked.
    pub fn synced(&mut self, slot: &str, nonce: u64) -> Grant {
        let mut grant = self.claim_of(slot);
        assert_eq!(self.ask(resync(&grant, nonce)), Reply::Resynced { next: nonce });
        grant.nonce = NonceRecord::Known(nonce);
        grant
    }

    pub fn view(&mut self, slot: &str) -> SlotView {
        match self.ask(Request::Inspect { slots: ids(&[slot]) }) {
            Reply::Inspected { mut slots, .. } => slots.remove(0),
            other => panic!("{other:?}"),
        }
    }

    /// How many slots there are, are ready, are in doubt, are due.
    pub fn counts(&mut self) -> [u32; 4] {
        match self.ask(Request::Inspect { slots: vec![] }) {
            Reply::Inspected { total, ready, in_doubt, due, .. } => [total, ready, in_doubt, due],
            other => panic!("{other:?}"),
        }
    }

    pub fn now(&mut self) -> Micros {
        self.perform(vec![]).now
    }
}
