//! Random envelopes: what clients send, what they send twice or too late, and what no client should send.

use leasehold::Micros;
use leasehold::id::SlotId;
use leasehold::nonce::Outcome;
use leasehold::slots::{
    Answer, Choice, Claim, Envelope, Lane, LeaseRef, MAX_REST, Reply, Request, SlotChange, SlotSpec,
    Strategy, TO_THE_END, VALIDITY,
};

use crate::Random;

/// How large pools are, and how long leases live.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Pools.
    pub pools: usize,
    /// Slots of each.
    pub slots: u64,
    /// What a lease's life is counted in; the longest is 30 of them.
    pub unit: Micros,
}

/// Clients of a few pools.
#[derive(Debug)]
pub struct Traffic {
    pub(crate) random: Random,
    scale: Scale,
    pools: Vec<Known>,
    /// How many of the slots the requests are about.
    focus: u64,
    /// The store's time that some client knew last.
    asked: Micros,
}

/// What clients know of a pool.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The last leases, and a nonce near the one that each had.
    leases: Vec<(LeaseRef, u64)>,
    top: u64,
    now: Micros,
    sequences: [u64; LANES],
    sent: Vec<Envelope>,
    undefined: bool,
}

const LANES: usize = 3;
/// Leases and envelopes that are remembered, to be named or sent again.
const MEMORY: usize = 24;
/// Names that a pool does not have, which claims of names make.
const OTHER_NAMES: u64 = 7;
/// Once in so many envelopes all slots are looked at: a difference shows before it has consequences.
const LOOK: u64 = 12;

impl Traffic {
    /// The traffic of a seed.
    pub fn new(seed: u64, scale: Scale) -> Self {
        let known = Known { undefined: true, ..Known::default() };
        Traffic {
            random: Random::new(seed),
            scale,
            pools: vec![known; scale.pools],
            focus: scale.slots,
            asked: 0,
        }
    }

    /// Which pool is next.
    pub fn pool(&mut self) -> usize {
        self.random.below(self.scale.pools as u64) as usize
    }

    /// The randomness of this traffic, for what happens to the server.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The next envelope for a pool.
    pub fn envelope(&mut self, pool: usize) -> Envelope {
        if self.random.once_in(8)
            && let Some(at) = self.pools[pool].sent.len().checked_sub(1 + self.random.below(4) as usize)
        {
            return self.pools[pool].sent[at].clone();
        }
        // Now and then many requests about few slots: what one leaves is what the next finds.
        let mixes = self.random.once_in(5);
        let count = if mixes { 5 + self.random.below(40) } else { 1 + self.random.below(5) };
        self.focus = if mixes { self.scale.slots.min(1 + self.random.below(5)) } else { self.scale.slots };
        let mut requests = Vec::new();
        for _ in 0..count {
            let repeated = self.anew(&requests).or_else(|| self.again(&requests));
            let request = repeated.unwrap_or_else(|| self.request(pool));
            requests.push(request);
        }
        if self.pools[pool].undefined && !self.random.once_in(4) {
            requests.insert(0, self.define(self.scale.slots));
        }
        if self.random.once_in(LOOK) {
            let slots = (0..self.scale.slots + OTHER_NAMES).map(|number| self.name(number)).collect();
            requests.push(Request::Inspect { slots });
        }
        let known = &self.pools[pool];
        let (top, now, unit) = (known.top, known.now, self.scale.unit);
        let seen = match self.random.below(400) {
            0 => top + 1 + self.random.below(5 * unit),
            1..270 => top,
            _ => 0,
        };
        let not_after = match self.random.below(10) {
            0 => Some(now.saturating_sub(self.random.below(2 * unit))),
            1 => Some(now + VALIDITY - self.random.below(4 * unit)),
            2..5 => Some(now + VALIDITY),
            _ => None,
        };
        let lane = (!self.random.once_in(3)).then(|| self.lane(pool));
        let jumped = self.random.once_in(500);
        let envelope = Envelope { lane, not_after, seen, jumped, seed: self.random.any() as u32, requests };
        let sent = &mut self.pools[pool].sent;
        sent.push(envelope.clone());
        if sent.len() > MEMORY {
            sent.remove(0);
        }
        envelope
    }

    /// Clients hear an answer.
    pub fn hear(&mut self, pool: usize, answer: &Answer) {
        let known = &mut self.pools[pool];
        let Answer::Performed(performed) = answer else { return };
        known.now = performed.now;
        self.asked = performed.now;
        known.top = known.top.max(performed.top);
        known.undefined = performed.replies.first() == Some(&Reply::Undefined);
        for reply in &performed.replies {
            let (Reply::Granted(grants) | Reply::Partly { grants, .. }) = reply else { continue };
            known.leases.extend(grants.iter().map(|grant| {
                let lease = LeaseRef { slot: grant.slot.clone(), fence: grant.fence, place: grant.place };
                (lease, grant.nonce.floor().unwrap_or(5))
            }));
        }
        let forgotten = known.leases.len().saturating_sub(MEMORY);
        known.leases.drain(..forgotten);
    }

    fn lane(&mut self, pool: usize) -> Lane {
        let number = self.random.below(LANES as u64) as usize;
        let sequence = &mut self.pools[pool].sequences[number];
        *sequence += 2;
        // Now and then one that has been overtaken; no two envelopes have the same number.
        let sequence = if self.random.once_in(20) { sequence.saturating_sub(3) } else { *sequence };
        let client = if number == 0 { u128::MAX } else { 1 << 70 };
        Lane { client, number: number as u16, sequence }
    }

    fn request(&mut self, pool: usize) -> Request {
        match self.random.below(27) {
            0..5 => self.claim_any(),
            5..7 => self.claim_among(),
            7 => self.claim_named(),
            25..27 => self.claim_free(),
            8..11 => {
                let lease = self.lease(pool).0;
                Request::Renew { lease, ttl: self.ttl() }
            }
            11..16 => {
                let (lease, record) = self.lease(pool);
                let cooldown = self.rest();
                Request::Release { lease, outcome: self.outcome(record), cooldown }
            }
            16..19 => {
                let (lease, record) = self.lease(pool);
                let (chain, settle) = (self.nonce(record), self.rest());
                Request::Resync { lease, chain, rewind: self.random.once_in(3), settle }
            }
            19 => {
                let slots = self.random.below(self.scale.slots.min(6));
                self.define(slots)
            }
            20..22 => Request::Change { slot: self.slot(), change: self.change() },
            22 if self.random.once_in(3) => Request::List,
            23 => Request::Withdraw { holder: self.holder() },
            _ => {
                let count = self.random.below(6);
                Request::Inspect { slots: (0..count).map(|_| self.slot()).collect() }
            }
        }
    }

    /// Now and then a claim as an earlier one of the envelope, by another: such are said in a word.
    fn again(&mut self, requests: &[Request]) -> Option<Request> {
        let claim = requests.iter().find_map(|request| match request {
            Request::Claim(claim) => Some(claim),
            _ => None,
        });
        let claim = claim.filter(|_| self.random.once_in(3))?;
        Some(Request::Claim(Claim { holder: self.holder(), ..claim.clone() }))
    }

    fn claim_any(&mut self) -> Request {
        let strategy = self.random.of(&[Strategy::Random, Strategy::LeastRecent, Strategy::Weighted]);
        // Now and then nearly all: so that slots in doubt are handed out, and many come due at once.
        let wide = if self.random.once_in(12) { self.scale.slots } else { self.scale.slots.min(4) };
        let least = 1 + self.random.below(wide) as u32;
        let most = least + self.random.below(wide) as u32;
        self.claim(Choice::Any { strategy, least, most })
    }

    fn claim_among(&mut self) -> Request {
        let slots: Vec<_> = (0..1 + self.random.below(4)).map(|_| self.slot()).collect();
        let count = if self.random.once_in(2) { 1 } else { 1 + self.random.below(slots.len() as u64) as u32 };
        self.claim(Choice::Among { slots, count })
    }

    /// Names of which the pool has some, and makes the others.
    fn claim_named(&mut self) -> Request {
        let count = 1 + self.random.below(3);
        let mut name = || match self.random.once_in(3) {
            true => self.slot(),
            false => self.other_name(),
        };
        let slots = (0..count).map(|_| name()).collect();
        self.claim(Choice::Named { slots })
    }

    /// The same, as many of them as can be had.
    fn claim_free(&mut self) -> Request {
        let count = 1 + self.random.below(6);
        let mut slots = Vec::new();
        for _ in 0..count {
            let other = self.other_name();
            slots.push(if self.random.once_in(3) { self.slot() } else { other });
        }
        let least = 1 + self.random.below(2) as u32;
        let most = least + self.random.below(count) as u32;
        let asked = self.random.of(&[0, self.asked, u64::MAX >> 11]);
        self.claim(Choice::Free { slots, least, most, asked })
    }

    /// Also with what outgrows 2^53 when it is reckoned with, where the script's numbers lose digits.
    fn claim(&mut self, choice: Choice) -> Request {
        let max_hold = if self.random.once_in(3) { self.ttl() } else { 0 };
        Request::Claim(Claim {
            max_hold,
            wait: self.random.once_in(2),
            priority: self.random.of(&[0, 0, 0, 1, -1, 300, -300, i16::MAX, i16::MIN]),
            ageing: self.random.of(&[0, 0, 0, self.scale.unit, 1, (1 << 53) / 300, MAX_REST]),
            waited: self.random.of(&[0, 0, 1, self.scale.unit, MAX_REST, (1 << 53) - 1]),
            steal: self.random.of(&[None, None, Some(TO_THE_END), Some(self.scale.unit), Some(0), Some(1)]),
            ..Claim::new(choice, self.holder(), self.ttl())
        })
    }

    /// Few enough that they come again and find their tickets, of some processes; and of some that do not say.
    fn holder(&mut self) -> u128 {
        u128::from(self.random.below(4)) << 100 | u128::from(1 + self.random.below(4)) << 50 | 7
    }

    fn define(&mut self, slots: u64) -> Request {
        let all = slots == self.scale.slots;
        let weights = self.random.of(&[&[1][..], &[1, 2, 3], &[1, 7, 8, 128, 255]]);
        let slots = (0..slots)
            .map(|number| {
                let slot = if all { self.name(number) } else { self.slot() };
                SlotSpec { slot, weight: self.random.of(weights) }
            })
            .collect();
        Request::Define { slots, longest: 30 * self.scale.unit, doubt_rest: self.rest() }
    }

    /// Now and then what was removed in this envelope is made anew in it.
    fn anew(&mut self, requests: &[Request]) -> Option<Request> {
        let Some(Request::Change { slot, change: SlotChange::Remove }) = requests.last() else { return None };
        let weight = self.random.of(&[1, 2, 7, 8, 255]);
        let slots = vec![SlotSpec { slot: slot.clone(), weight }];
        let doubt_rest = self.rest();
        Some(Request::Define { slots, longest: 30 * self.scale.unit, doubt_rest })
            .filter(|_| !self.random.once_in(3))
    }

    fn change(&mut self) -> SlotChange {
        // A pool of one slot would be out of use for most of the time.
        let kinds = if self.scale.slots == 1 { 40 } else { 8 };
        match self.random.below(kinds) {
            3 => SlotChange::Disable,
            4 => SlotChange::Drain,
            5 => SlotChange::Remove,
            6 => SlotChange::Quarantine(self.ttl()),
            7 => SlotChange::Break,
            _ => SlotChange::Enable,
        }
    }

    /// A lease that was granted, or one with a broken fence, or none that ever was.
    fn lease(&mut self, pool: usize) -> (LeaseRef, u64) {
        let reach = if self.random.once_in(4) { MEMORY as u64 } else { 4 };
        let back = 1 + self.random.below(reach) as usize;
        if self.random.once_in(6) {
            // As if granted in this very envelope: the fences of its grants follow each other.
            let known = &self.pools[pool];
            let fence = known.now.max(known.top + 1) + self.random.below(4);
            return (LeaseRef { slot: self.slot(), fence, place: self.random.any() as u32 }, 5);
        }
        let leases = &self.pools[pool].leases;
        let Some(at) = leases.len().checked_sub(back) else {
            let fence = self.random.of(&[0, 1, 1 << 52]);
            return (LeaseRef { slot: self.slot(), fence, place: self.random.any() as u32 }, 5);
        };
        let (mut lease, record) = leases[at].clone();
        match self.random.below(40) {
            0 => lease.fence += 1,
            1 => lease.fence -= 1,
            2 => lease.slot = self.slot(),
            3 => lease.place = self.random.any() as u32,
            _ => {}
        }
        (lease, record)
    }

    fn outcome(&mut self, record: u64) -> Outcome {
        match self.random.below(9) {
            0..4 => Outcome::Used { next: self.nonce(record) },
            4..6 => Outcome::Unused,
            6 => {
                let expected = self.random.once_in(2).then(|| self.nonce(record));
                Outcome::Rejected { expected }
            }
            7 => {
                let used = self.random.once_in(2).then(|| self.nonce(record));
                Outcome::Unknown { used }
            }
            _ => Outcome::Unsettled,
        }
    }

    /// A nonce near the record, or near where numbers lose digits.
    fn nonce(&mut self, record: u64) -> u64 {
        let off = self.random.below(5) as i64 - 1;
        let base = match self.random.below(16) {
            0 => 1 << 53,
            1 => 1 << 63,
            2 => u64::MAX - 3,
            3 => 0,
            4 => self.random.of(&[9, 99, 999_999_999_999_999, 9_999_999_999_999_999]),
            _ => record,
        };
        base.saturating_add_signed(off)
    }

    fn ttl(&mut self) -> Micros {
        self.random.of(&[1, 3, 10, 30]) * self.scale.unit
    }

    fn rest(&mut self) -> Micros {
        self.random.of(&[0, 0, 1, 4]) * self.scale.unit
    }

    /// A slot of the pool, or one that it does not have.
    fn slot(&mut self) -> SlotId {
        let bound = self.focus + u64::from(self.random.once_in(10));
        let number = self.random.below(bound);
        self.name(number)
    }

    /// A name that the pool does not have, unless a claim of names made it.
    fn other_name(&mut self) -> SlotId {
        let number = self.scale.slots + 1 + self.random.below(OTHER_NAMES - 1);
        self.name(number)
    }

    /// Names of every shape, whose order is not that of their numbers.
    fn name(&self, number: u64) -> SlotId {
        let text = match number % 4 {
            0 => format!("0x{:064X}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            1 => format!("{number}"),
            2 => format!("{}-{number}", "x".repeat(128 - 1 - number.to_string().len())),
            _ => format!("relayer.{number}~!\"#$&'()*+,/;<=>?@[\\]^_`|"),
        };
        SlotId::new(&text).expect("an id")
    }
}
