//! Random envelopes to limits: every kind, alone and in groups, at the edges of what they can be.

use leasehold::id::Name;
use leasehold::limits::{Act, Amount, Answer, Charge, Envelope, Request, Rule, Seen, Standing, Waited};
use leasehold::slots::Lane;
use leasehold::{Micros, SECOND};

use crate::Random;

/// Clients of a few limits.
#[derive(Debug)]
pub struct Charging {
    random: Random,
    limits: Vec<(Name, Rule)>,
    reservations: Vec<(u128, Vec<Charge>)>,
    sequences: [u64; LANES],
    sent: Vec<Envelope>,
    /// How limits of money stood, at any time: what their clients have seen.
    seen: Vec<Seen>,
    unit: Micros,
    /// The period of each limit, if that never changes.
    periods: Option<Vec<Micros>>,
}

const LANES: usize = 2;
const CLIENTS: u64 = 3;
const MEMORY: usize = 16;

impl Charging {
    /// The traffic of a seed; periods are a few units long.
    ///
    /// They change at run time unless they are `steady`. A record is kept for the period by which it was written, and no
    /// server forgets it in the very microsecond: a longer period of that millisecond finds it or does not.
    pub fn new(seed: u64, unit: Micros, steady: bool) -> Self {
        let mut charging = Charging {
            random: Random::new(seed ^ 0xC4A6_0000),
            limits: Vec::new(),
            reservations: Vec::new(),
            sequences: [0; LANES],
            sent: Vec::new(),
            seen: Vec::new(),
            unit,
            periods: None,
        };
        if steady {
            charging.periods = Some((0..6).map(|_| charging.duration()).collect());
        }
        for at in 0..6 {
            let name = Name::new(&format!("limit:{at}")).expect("a name");
            let rule = charging.rule(at);
            charging.limits.push((name, rule));
        }
        charging
    }

    /// The randomness of this traffic, for what happens to the server.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The next envelope, at about this time of the server.
    pub fn envelope(&mut self, now: Micros) -> Envelope {
        if self.random.once_in(8) && !self.sent.is_empty() {
            return self.random.of(&self.sent);
        }
        let count = if self.random.once_in(8) { 1 + self.random.below(20) } else { 1 + self.random.below(3) };
        let mut requests: Vec<Request> = Vec::new();
        for _ in 0..count {
            // What is said once more is said in a word.
            let repeats = !requests.is_empty() && self.random.once_in(3);
            let request = if repeats { requests[requests.len() - 1].clone() } else { self.request() };
            requests.push(request);
        }
        let lane = (!self.random.once_in(3)).then(|| self.lane());
        let not_after = match self.random.below(10) {
            0 => Some(now.saturating_sub(self.random.below(2 * self.unit))),
            1..5 => Some(now + 10 * self.unit),
            _ => None,
        };
        let mut envelope = Envelope { lane, not_after, seen: Vec::new(), requests };
        envelope.seen = self.seen(&envelope, now);
        self.sent.push(envelope.clone());
        if self.sent.len() > MEMORY {
            self.sent.remove(0);
        }
        envelope
    }

    /// The clients hear how limits stand.
    pub fn hear(&mut self, envelope: &Envelope, answer: &Answer) {
        let Answer::Performed(performed) = answer else { return };
        let told = of_money(envelope).into_iter().zip(&performed.standings);
        for ((kind, limit), standing) in told {
            let Some(standing) = standing.clone() else { continue };
            self.seen.push(Seen { kind, limit, standing });
            if self.seen.len() > 4 * MEMORY {
                let at = self.random.below(self.seen.len() as u64) as usize;
                self.seen.swap_remove(at);
            }
        }
    }

    /// What one client has seen of the limits that an envelope charges: the last or something older, what several have, or
    /// what nobody ever said.
    fn seen(&mut self, envelope: &Envelope, now: Micros) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (kind, limit) in of_money(envelope) {
            let all = self.seen.iter().filter(|seen| seen.kind == kind && seen.limit == limit);
            let all: Vec<Standing> = all.map(|seen| seen.standing.clone()).collect();
            let standing = match self.random.below(8) {
                0 => continue,
                1 if self.random.once_in(4) => self.standing(now, kind),
                2..5 if !all.is_empty() => self.random.of(&all),
                _ => match all.last() {
                    Some(last) => last.clone(),
                    None => continue,
                },
            };
            seen.push(Seen { kind, limit, standing });
        }
        seen
    }

    /// One that was never told, with amounts at the edges of what they can be.
    fn standing(&mut self, now: Micros, kind: char) -> Standing {
        let mut birth =
            || format!("{:016}{:016x}", now - self.random.below(5 * self.unit), self.random.below(3));
        let births: Vec<String> = (0..4).map(|_| birth()).collect();
        let ends = if kind == 'l' { 0 } else { now + self.random.below(3 * self.unit) };
        let (version, used) = (1 + self.random.below(5), self.large());
        let mut text = format!("{} {version} {ends} {used}", births[0]);
        for (at, birth) in births[1..].iter().take(self.random.below(4) as usize).enumerate() {
            if at == 0 {
                text += " ";
                text += &match self.random.below(4) {
                    0 => births[3].clone(),
                    1 => format!("-{:016}", now - self.random.below(3 * self.unit)),
                    _ => "-".to_owned(),
                };
            }
            let sign = if self.random.once_in(3) { "-" } else { "" };
            text += &format!(" {birth} {} {sign}{}", 1 + self.random.below(5), self.large());
        }
        Standing::parse(&text).expect("how a limit stands")
    }

    fn large(&mut self) -> Amount {
        match self.random.below(4) {
            0 => Amount::MAX,
            1 => Amount::from(u128::from(self.random.any()) << self.random.below(60)),
            _ => (1 + self.random.below(1_000)).into(),
        }
    }

    fn lane(&mut self) -> Lane {
        let number = self.random.below(LANES as u64) as usize;
        let sequence = &mut self.sequences[number];
        *sequence += 2;
        let sequence = if self.random.once_in(20) { sequence.saturating_sub(3) } else { *sequence };
        Lane { client: u128::from(1 + self.random.below(CLIENTS)) << 90, number: number as u16, sequence }
    }

    fn request(&mut self) -> Request {
        // A limit changes now and then, at run time.
        if self.random.once_in(30) {
            let at = self.random.below(self.limits.len() as u64) as usize;
            self.limits[at].1 = self.rule(at);
        }
        let mut charges = self.charges();
        let act = match self.random.below(20) {
            0..9 => Act::Take,
            9..12 => Act::Peek,
            12..15 => {
                let (id, ttl) = (u128::from(self.random.any()), self.duration());
                self.reservations.push((id, charges.clone()));
                if self.reservations.len() > MEMORY {
                    self.reservations.remove(0);
                }
                let waited = match self.random.below(4) {
                    0 => Some(self.random.below(SECOND)),
                    1 => Some(self.random.of(&[0, SECOND / 2 - 1, SECOND / 2, 2 * SECOND])),
                    _ => None,
                };
                let reply = self.random.of(&[0, 0, SECOND / 3, 2 * SECOND, u64::MAX >> 12]);
                let waited = waited.map(|time| Waited { time, reply });
                Act::Reserve { id, ttl: ttl.max(1), waited }
            }
            15..18 if !self.reservations.is_empty() => {
                let (id, reserved) = self.random.of(&self.reservations);
                charges = reserved;
                // By the rules of now, as a client has them.
                for charge in &mut charges {
                    let rule =
                        self.limits.iter().find(|(name, _)| *name == charge.limit).map(|(_, rule)| *rule);
                    charge.rule = rule.unwrap_or(charge.rule);
                }
                if self.random.once_in(20) {
                    charges.pop();
                }
                match self.random.below(5) {
                    0 => Act::Commit { id },
                    1 => Act::GiveBack { id },
                    2 => {
                        for charge in &mut charges {
                            charge.cost = self.cost(charge.rule);
                        }
                        Act::Keep { id }
                    }
                    _ => Act::Renew { id, ttl: self.duration().max(1) },
                }
            }
            18 if self.random.once_in(2) => Act::Reset,
            _ => Act::Refund,
        };
        if charges.is_empty() {
            return Request { act: Act::Take, charges: self.charges() };
        }
        Request { act, charges }
    }

    /// Several limits, each once.
    fn charges(&mut self) -> Vec<Charge> {
        let most = if self.random.once_in(2) { 1 } else { self.limits.len() as u64 };
        let (count, first) = (1 + self.random.below(most), self.random.below(self.limits.len() as u64));
        let mut charges = Vec::new();
        for at in first..first + count {
            let (limit, rule) = self.limits[at as usize % self.limits.len()].clone();
            let cost = self.cost(rule);
            charges.push(Charge { limit, rule, cost, open: false });
        }
        charges
    }

    fn cost(&mut self, rule: Rule) -> Amount {
        let most = rule.most();
        let small = most.saturating_u64();
        match self.random.below(12) {
            0 => Amount::ZERO,
            1 => most,
            2 => most.checked_add(1u64.into()).unwrap_or(most),
            3 => self.random.of(&[u64::MAX.into(), Amount::MAX, Amount::from(u128::MAX)]),
            4 => most.saturating_sub(self.random.below(1_000).into()),
            5..8 => (1 + self.random.below(3)).into(),
            _ if most > u64::MAX.into() => {
                Amount::from(u128::from(self.random.any()) << self.random.below(64))
            }
            _ => (small / (1 + self.random.below(12))).into(),
        }
    }

    /// A rule for the limit of this number: of one kind mostly, so that changes of its maximum find what was used.
    fn rule(&mut self, at: usize) -> Rule {
        let max = self.most();
        let period = match (&self.periods, self.limits.get(at)) {
            (Some(periods), _) => periods[at],
            // Calendars of one length that begin at other times.
            (None, Some((_, Rule::Budget { period, .. }))) if self.random.once_in(2) => *period,
            _ => self.duration(),
        };
        let kind = if self.random.once_in(10) { self.random.below(7) as usize } else { at };
        let amount = match self.random.below(3) {
            0 => Amount::from(max),
            1 => Amount::MAX.saturating_sub(self.random.any().into()),
            _ => Amount::from(u128::from(self.random.any()) << self.random.below(60)),
        };
        let rule = match kind {
            0 => Rule::Refill { max, period },
            1 => Rule::Gcra { max, period, burst: self.random.of(&[max, 1, max / 2, max + max / 3]) },
            2 => Rule::Rolling { max, period },
            3 => Rule::Lifetime { max: amount },
            4 => Rule::Budget {
                max: amount,
                period,
                offset: if period > 1 { self.random.below(period) } else { 0 },
            },
            5 => Rule::InFlight { max: max % 40 },
            _ => Rule::Each { max: amount },
        };
        if rule.check().is_ok() { rule } else { Rule::Refill { max: 10, period: self.unit } }
    }

    /// Small, round, or as large as can be.
    fn most(&mut self) -> u64 {
        match self.random.below(10) {
            0..4 => 1 + self.random.below(20),
            4 => self.random.of(&[600, 10_000, 1_000_000]),
            5 => 1_000_000_000_000_000 - self.random.below(3),
            6 => 0,
            7 => 1 + self.random.below(1_000_000_000_000_000),
            _ => 1 + self.random.below(1_000_000),
        }
    }

    fn duration(&mut self) -> Micros {
        match self.random.below(10) {
            0 => 0,
            1 => 1 + self.random.below(50),
            2 => self.random.of(&[366 * 24 * 3_600 * SECOND, 31_622_399_999_999, SECOND, SECOND / 2]),
            3 => 1 + self.random.below(366 * 24 * 3_600 * SECOND),
            _ => 1 + self.random.below(4 * self.unit),
        }
    }
}

/// The limits of money that an envelope charges, each once, in order.
fn of_money(envelope: &Envelope) -> Vec<(char, Name)> {
    let mut limits = Vec::new();
    for charge in envelope.requests.iter().flat_map(|request| &request.charges) {
        let kind = match charge.rule {
            Rule::Lifetime { .. } => 'l',
            Rule::Budget { period: 1.., .. } => 'b',
            _ => continue,
        };
        let limit = (kind, charge.limit.clone());
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    limits
}
