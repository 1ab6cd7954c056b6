//! How a limit of money stands, told so that a loss of the store's memory can be mended by those who have heard of it.
//!
//! What is used is a sum over *births*: one begins with the record, with every reset, and whenever the record is found to
//! have been written on another server, or to be older than somebody has seen it. Of each birth the highest version counts
//! that anybody knows. So standings of different births add up to what was charged in all, and two of one birth to the later.

use std::fmt;

use super::Amount;
use crate::{Micros, SECOND};

/// The most births before the present one that are told apart. Of those before them only the sum is known: who has seen a
/// later version of one of them is not heard any more.
const BIRTHS: usize = 32;

/// By how much the clocks of two servers of which one takes over from the other may differ.
const TREMOR: Micros = 60 * SECOND;

/// How a lifetime or a budget stands: what is used, and since when that is counted.
///
/// As text, which a store and its clients pass to and fro: `birth version ends used`, and where there is more than one birth
/// ` since` (or `-`) with ` birth version used` for each of the others, oldest first; in a birth more may be given back than
/// charged. Behind that `-` stands when the period began, where its birth does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Of the present; none where nothing was ever charged.
    birth: Birth,
    /// One more with each change in this birth.
    version: u64,
    /// When the budget's period ends; 0 for a lifetime.
    ends: Micros,
    used: Amount,
    past: Option<Box<Past>>,
}

/// What is known of the births before the present one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Past {
    /// What is older does not count, or is in the sum already.
    since: Birth,
    /// When the budget's period began by the limit's own time, which a birth does not tell while the wall clock is set back, or until when
    /// the one before was told to go on; 0 where the birth tells it, or where `since` tells enough.
    began: Micros,
    /// Oldest first.
    others: Vec<Part>,
}

/// When counting began, and on what server: births are as old as that says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Birth {
    at: Micros,
    server: u64,
}

/// What was charged in one birth, less what was given back in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    birth: Birth,
    version: u64,
    net: Net,
}

/// An amount that may be below zero. What is beyond 2^256 is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Net {
    /// Not of zero.
    negative: bool,
    size: Amount,
}

impl Birth {
    const NONE: Birth = Birth { at: 0, server: 0 };

    /// One that begins now on a server that is the only one.
    pub fn here(wall: Micros) -> Self {
        Birth { at: wall, server: 0 }
    }

    /// One that begins now on this server, of which the first 16 hexadecimal digits are looked at.
    pub fn new(wall: Micros, incarnation: &str) -> Self {
        let mut digits = incarnation.chars().map_while(|letter| letter.to_digit(16));
        let digit = |server, _| (server << 4) | u64::from(digits.next().unwrap_or(0));
        Birth { at: wall, server: (0..16).fold(0, digit) }
    }

    fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The same, younger than another.
    pub(super) fn after(self, other: Birth) -> Self {
        Birth { at: self.at.max(other.at + 1), ..self }
    }

    fn parse(text: &str) -> Option<Self> {
        let (at, server) = text.split_at_checked(16).filter(|(_, server)| server.len() == 16)?;
        let server = u64::from_str_radix(server, 16).ok()?;
        let birth = Birth { at: at.parse().ok()?, server };
        (!birth.is_none()).then_some(birth)
    }
}

impl fmt::Display for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016}{:016x}", self.at, self.server)
    }
}

impl Net {
    fn plus(self, other: Net) -> Self {
        let (negative, size) = if self.negative == other.negative {
            (self.negative, self.size.saturating_add(other.size))
        } else {
            let negative = if self.size < other.size { other.negative } else { self.negative };
            (negative, self.size.distance(other.size))
        };
        Net { negative: negative && !size.is_zero(), size }
    }

    fn minus(self, other: Net) -> Self {
        self.plus(Net { negative: !other.negative && !other.size.is_zero(), ..other })
    }

    fn or_zero(self) -> Amount {
        if self.negative { Amount::ZERO } else { self.size }
    }

    fn parse(text: &str) -> Option<Self> {
        let size = |digits: &str| Amount::parse(digits).ok();
        match text.strip_prefix('-') {
            Some(digits) => Some(Net { negative: true, size: size(digits).filter(|size| !size.is_zero())? }),
            None => Some(size(text)?.into()),
        }
    }
}

impl From<Amount> for Net {
    fn from(size: Amount) -> Self {
        Net { negative: false, size }
    }
}

impl Standing {
    /// What is used.
    #[must_use]
    pub fn used(&self) -> Amount {
        self.used
    }

    /// When the budget's period ends, by the store's clock; 0 for a lifetime.
    #[must_use]
    pub fn ends(&self) -> Micros {
        self.ends
    }

    /// Reads its text; nothing if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let birth = Birth::parse(words.next()?)?;
        let (version, ends) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let used = Amount::parse(words.next()?).ok()?;
        let mut past = None;
        if let Some(since) = words.next() {
            let (since, began) = match since.strip_prefix('-') {
                Some("") => (Birth::NONE, 0),
                Some(began) => (Birth::NONE, began.parse().ok().filter(|_| began.len() == 16)?),
                None => (Birth::parse(since)?, 0),
            };
            let mut others = Vec::new();
            while let Some(birth) = words.next() {
                let (birth, version) = (Birth::parse(birth)?, words.next()?.parse().ok()?);
                others.push(Part { birth, version, net: Net::parse(words.next()?)? });
            }
            past = Some(Box::new(Past { since, began, others }));
        }
        Some(Standing { birth, version, ends, used, past })
    }

    /// Nothing is used of the period that ends then and begins now, with this birth.
    pub(super) fn of_period(ends: Micros, now: Micros, birth: Birth) -> Self {
        let past = Past { began: now, ..Past::default() };
        Standing { ends, past: (birth.at != now).then(|| Box::new(past)), ..Self::default() }
    }

    /// The present birth.
    pub(super) fn birth(&self) -> Birth {
        self.birth
    }

    /// Nothing is used, which counts from now on.
    pub(super) fn begin(&mut self, now: Birth) {
        if self.is_blank() {
            (self.birth, self.version) = (now, 1);
        }
    }

    /// The same as it is told of a period that goes on until then.
    pub(super) fn until(&self, ends: Micros) -> Self {
        Standing { ends, ..self.clone() }
    }

    /// Its period ends no sooner than then.
    pub(super) fn lengthen(&mut self, ends: Micros) {
        if ends > self.ends {
            self.ends = ends;
            self.version += u64::from(!self.is_blank());
        }
    }

    /// Whether nothing was ever charged, nor forgotten: there is nothing to keep.
    pub(crate) fn is_blank(&self) -> bool {
        self.birth.is_none()
    }

    pub(super) fn is_over(&self, now: Micros) -> bool {
        self.ends > 0 && self.ends <= now
    }

    /// Whether another is of a period that was over as this one's began.
    pub(super) fn follows(&self, other: &Standing) -> bool {
        self.comes_after(other) && other.is_over(self.began())
    }

    /// Whether all that is known of its period was born after another: what was born in between is of that period.
    fn comes_after(&self, other: &Standing) -> bool {
        let oldest = self.past.iter().flat_map(|past| &past.others).next();
        self.is_blank() || other.birth < oldest.map_or(self.birth, |oldest| oldest.birth)
    }

    /// Whether something may have been forgotten since it was seen like this: it is of another birth, and not of one that a reset
    /// began since. Who has seen nothing may be of before any loss.
    pub(super) fn forgot_since(&self, seen: Option<&Standing>) -> bool {
        let Some(seen) = seen else { return self.past.as_ref().is_some_and(|past| !past.others.is_empty()) };
        self.birth != seen.birth && (self.since() != self.birth || seen.birth > self.birth)
    }

    /// Charges a cost; `now` is the birth that begins if there is none.
    pub(super) fn charge(&mut self, cost: Amount, now: Birth) {
        if cost.is_zero() {
            return;
        }
        if self.is_blank() {
            self.birth = now;
        }
        self.version += 1;
        self.used = self.used.saturating_add(cost);
    }

    pub(super) fn give_back(&mut self, cost: Amount) {
        let cost = cost.min(self.used);
        if !cost.is_zero() {
            self.version += 1;
            self.used = self.used.saturating_sub(cost);
        }
    }

    /// Nothing is used any more of what ends then, whatever anybody has seen of what was.
    pub(super) fn reset(&mut self, now: Birth, ends: Micros) {
        let birth = now.after(self.birth);
        let past = Some(Box::new(Past { since: birth, ..Past::default() }));
        *self = Standing { birth, version: 1, ends, used: Amount::ZERO, past };
    }

    /// Takes in what a client has seen, if the store has forgotten some of it; on another server than that on which it was
    /// written, a new birth begins. Returns whether anything changed.
    pub(super) fn recall(&mut self, seen: Option<&Standing>, now: Birth) -> bool {
        let (before, blank) = (self.birth, self.is_blank());
        let moved = !blank && before.server != now.server;
        let seen = seen.filter(|seen| !self.holds(seen));
        if !moved && seen.is_none() {
            return false;
        }
        let mut known = self.known();
        let mut fresh = moved || blank;
        if let Some(seen) = seen {
            let news = known.learn(seen.known());
            if !moved && news.is_none() {
                return false;
            }
            // Of before a reset that does not count either.
            if seen.birth >= known.since {
                self.ends = self.ends.max(seen.ends);
            }
            // What is newer than what is kept, or of its birth: from now on is counted apart from it.
            fresh |= news.is_some_and(|newest| newest >= before);
        }
        fresh |= before < known.since;
        let newest = known.parts.iter().map(|part| part.birth).fold(before, Birth::max);
        self.version = if fresh { 1 } else { self.version + 1 };
        self.birth = if fresh { now.after(newest) } else { before };
        // What is counted here since before a reset of which nobody here knew was charged after it all the same.
        let stays = |birth| birth == before && !blank && (!fresh || !moved && before < known.since);
        self.put(&known, stays);
        true
    }

    /// Takes in what the store has told, in whatever order that comes: a client's memory. Of a period that was lengthened, or forgotten
    /// before it was over, what is known counts still, and of one that was reset nothing, however long it was.
    pub(crate) fn update(&mut self, told: &Standing) {
        if told.since() > self.birth || told.follows(self) {
            return self.clone_from(told);
        }
        if self.since() > told.birth || self.follows(told) {
            return;
        }
        let both =
            self.ends == told.ends || self.has(told.birth) || told.has(self.birth) || self.overlaps(told);
        if !both && told.ends > self.ends || told.holds(self) {
            return self.clone_from(told);
        }
        if !both || self.holds(told) {
            return;
        }
        let mut known = self.known();
        known.learn(told.known());
        self.ends = self.ends.max(told.ends);
        let youngest = known.parts.iter().max_by_key(|part| part.birth);
        let Some(&Part { birth, version, .. }) = youngest else { return };
        (self.birth, self.version) = (birth, version);
        self.put(&known, |part| part == birth);
    }

    /// Whether one of the two began in the period of the other and knows nothing of it: the store had forgotten that. Within the last
    /// minute of a period it was perhaps the next, by the clock of another server, where none tells when it began.
    fn overlaps(&self, other: &Standing) -> bool {
        let (elder, younger) = if self.birth < other.birth { (self, other) } else { (other, self) };
        let began = match younger.began() {
            began @ 1.. if younger.comes_after(elder) => began,
            _ => younger.birth.at + TREMOR,
        };
        began < elder.ends
    }

    /// Whether it counts something that another of the same period does not: not only what came later in the same birth.
    pub(crate) fn counts_more_than(&self, told: &Standing) -> bool {
        let of_other_births = self.birth != told.birth || self.past != told.past;
        of_other_births && self.has(told.birth) && self.used > told.used
    }

    /// Whether another was told so many births ago that nobody can say whether its last charges are in the sum.
    pub(crate) fn is_past(&self, told: &Standing) -> bool {
        let past = self.past.as_ref().filter(|past| past.others.len() >= BIRTHS);
        past.is_some_and(|past| !told.is_blank() && told.birth < past.since)
    }

    /// What is older does not count, or is in the sum already.
    fn since(&self) -> Birth {
        self.past.as_ref().map_or(Birth::NONE, |past| past.since)
    }

    fn began(&self) -> Micros {
        self.past.as_ref().map_or(0, |past| past.began)
    }

    /// Whether it is known what was charged in this birth.
    fn has(&self, birth: Birth) -> bool {
        let others = self.past.iter().flat_map(|past| &past.others);
        self.birth == birth || others.into_iter().any(|other| other.birth == birth)
    }

    /// Whether another tells nothing that is not here. What was told of one birth was told in the order of its versions.
    fn holds(&self, other: &Standing) -> bool {
        let known = other.past.is_none() || self.past == other.past;
        self.birth == other.birth && self.version >= other.version && known
    }

    /// All births, the present one last.
    fn known(&self) -> Known {
        let mut parts = self.past.as_ref().map_or_else(Vec::new, |past| past.others.clone());
        if !self.is_blank() {
            let net = parts.iter().fold(Net::from(self.used), |net, part| net.minus(part.net));
            parts.push(Part { birth: self.birth, version: self.version, net });
        }
        Known { since: self.since(), began: self.began(), parts }
    }

    /// Sums up what is known; what `stays` is of the present birth.
    fn put(&mut self, known: &Known, stays: impl Fn(Birth) -> bool) {
        let (mut since, mut others, mut sum) = (known.since, Vec::new(), Net::default());
        for part in &known.parts {
            if stays(part.birth) {
                sum = sum.plus(part.net);
            } else if part.birth >= since {
                sum = sum.plus(part.net);
                let place = others.iter().position(|other: &Part| other.birth > part.birth);
                others.insert(place.unwrap_or(others.len()), *part);
            }
        }
        self.used = sum.or_zero();
        if let Some(over @ 1..) = others.len().checked_sub(BIRTHS) {
            // They are in the sum.
            others.drain(..over);
            since = others.first().map_or(since, |oldest| oldest.birth);
        }
        let past = Past { since, began: if since.is_none() { known.began } else { 0 }, others };
        self.past = (past != Past::default()).then(|| Box::new(past));
    }
}

/// All that is known of a limit.
struct Known {
    /// What is older does not count.
    since: Birth,
    began: Micros,
    parts: Vec<Part>,
}

impl Known {
    /// Of each birth the later version. Returns the youngest birth of which, or since which, something is new.
    fn learn(&mut self, other: Known) -> Option<Birth> {
        let mut news = None;
        self.began = self.began.max(other.began);
        if other.since > self.since {
            self.since = other.since;
            news = Some(Birth::NONE);
        }
        for part in other.parts.into_iter().filter(|part| part.birth >= other.since.max(self.since)) {
            match self.parts.iter_mut().find(|known| known.birth == part.birth) {
                Some(known) if known.version >= part.version => continue,
                Some(known) => *known = part,
                None => self.parts.push(part),
            }
            news = news.max(Some(part.birth));
        }
        news
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.birth, self.version, self.ends, self.used)?;
        let Some(past) = &self.past else { return Ok(()) };
        match past.since {
            Birth::NONE if past.began > 0 => write!(f, " -{:016}", past.began)?,
            Birth::NONE => f.write_str(" -")?,
            since => write!(f, " {since}")?,
        }
        for Part { birth, version, net } in &past.others {
            let sign = if net.negative { "-" } else { "" };
            write!(f, " {birth} {version} {sign}{}", net.size)?;
        }
        Ok(())
    }
}
