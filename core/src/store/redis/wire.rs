//! Envelopes as the words that the script reads, and its answer back.

use std::collections::BinaryHeap;
use std::str::Split;

use crate::error::{Code, Error, Result};
use crate::id::{SlotId, shown};
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Answer, Calls, Choice, Claim, Envelope, Grant, LeaseRef, Loss, Mode, Performed, QuietTime, Refusal,
    Reply, Request, SlotChange, SlotView, State, Strategy,
};

/// The schema of keys and words; a script refuses any other.
pub(crate) const SCHEMA: &str = "4";

/// The words of an envelope, as the script's ARGV.
pub(crate) fn encode(envelope: &Envelope, channel: &str) -> Vec<String> {
    let mut words = Words(Vec::with_capacity(7 + 10 * envelope.requests.len()));
    words.text(SCHEMA).optional(envelope.lane.map(|lane| lane.sequence)).optional(envelope.not_after);
    words.number(envelope.seen).flag(envelope.jumped).number(u64::from(envelope.seed));
    words.text(channel);
    let mut last = None;
    for request in &envelope.requests {
        if let Request::Claim(claim) = request {
            let asked = Asked::of(claim);
            if asked.is_some() && asked == last {
                words.text("more").holder(claim.holder).number(claim.waited);
                continue;
            }
            last = asked;
        }
        words.request(request);
    }
    words.0
}

/// The script's answer to an envelope of `requests` requests.
///
/// # Errors
/// `internal` if the text is not an answer.
pub(crate) fn decode(text: &str, requests: usize) -> Result<Answer> {
    let mut lines = text.split('\n');
    let head = lines.next().unwrap_or_default();
    let mut answer = Reader::new(head).answer().ok_or_else(|| garbled(head))?;
    if let Answer::Performed(Performed { replies, .. }) = &mut answer {
        for line in lines {
            replies.push(Reader::new(line).reply().ok_or_else(|| garbled(line))?);
        }
        if matches!(replies[..], [Reply::Undefined]) {
            replies.resize_with(requests, || Reply::Undefined);
        }
        if replies.len() != requests {
            return Err(garbled(text));
        }
    }
    Ok(answer)
}

/// What a message of the script says; nothing if it makes no sense.
pub fn heard(message: &str) -> Option<Calls> {
    Reader::new(message).calls().map(|(calls, _)| calls)
}

/// What a claim of any slot asks for. One that asks for the same as the last claim says so in a word.
#[derive(PartialEq)]
struct Asked<'a> {
    choice: &'a Choice,
    ttl: u64,
    max_hold: u64,
    wait: bool,
    priority: i16,
    ageing: u64,
    steal: Option<u64>,
}

impl<'a> Asked<'a> {
    fn of(claim: &'a Claim) -> Option<Self> {
        let Claim { choice, holder: _, ttl, max_hold, wait, priority, ageing, waited: _, steal } = claim;
        let any = matches!(choice, Choice::Any { .. });
        any.then_some(Asked {
            choice,
            ttl: *ttl,
            max_hold: *max_hold,
            wait: *wait,
            priority: *priority,
            ageing: *ageing,
            steal: *steal,
        })
    }
}

struct Words(Vec<String>);

impl Words {
    fn text(&mut self, word: &str) -> &mut Self {
        self.0.push(word.to_owned());
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.push(number.to_string());
        self
    }

    fn optional(&mut self, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.text("-"),
        }
    }

    fn flag(&mut self, flag: bool) -> &mut Self {
        self.text(if flag { "1" } else { "0" })
    }

    fn holder(&mut self, holder: u128) -> &mut Self {
        self.0.push(format!("{holder:032x}"));
        self
    }

    fn lease(&mut self, lease: &LeaseRef) -> &mut Self {
        self.text(lease.slot.as_str()).number(lease.fence)
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::Claim(claim) => self.claim(claim),
            Request::Withdraw { holder } => {
                self.text("withdraw").holder(*holder);
            }
            Request::Renew { lease, ttl } => {
                self.text("renew").lease(lease).number(*ttl);
            }
            Request::Release { lease, outcome, cooldown } => {
                self.text("release").lease(lease).number(*cooldown);
                match *outcome {
                    Outcome::Unsettled => self.text("unsettled").text("-"),
                    Outcome::Used { next } => self.text("used").number(next),
                    Outcome::Unused => self.text("unused").text("-"),
                    Outcome::Rejected { expected } => self.text("rejected").optional(expected),
                    Outcome::Unknown { used } => self.text("unknown").optional(used),
                };
            }
            Request::Resync { lease, chain, rewind, settle } => {
                self.text("resync").lease(lease).number(*chain).flag(*rewind).number(*settle);
            }
            Request::Define { slots, longest, doubt_rest } => {
                self.text("define").number(*longest).number(*doubt_rest).number(slots.len() as u64);
                for spec in slots {
                    self.text(spec.slot.as_str()).number(u64::from(spec.weight));
                }
            }
            Request::Change { slot, change } => {
                let (word, amount) = match *change {
                    SlotChange::Enable => ("enable", 0),
                    SlotChange::Disable => ("disable", 0),
                    SlotChange::Drain => ("drain", 0),
                    SlotChange::Remove => ("remove", 0),
                    SlotChange::Quarantine(rest) => ("quarantine", rest),
                    SlotChange::Break => ("break", 0),
                };
                self.text("change").text(slot.as_str()).text(word).number(amount);
            }
            Request::Inspect { slots } => {
                self.text("inspect").ids(slots);
            }
            Request::List => {
                self.text("list");
            }
        }
    }

    fn claim(&mut self, claim: &Claim) {
        // Most say nothing of these: each word costs the server more than it takes to leave it out.
        if (claim.priority, claim.ageing, claim.steal) != (0, 0, None) {
            self.text("with").text(&claim.priority.to_string()).number(claim.ageing).optional(claim.steal);
        }
        self.text("claim").holder(claim.holder).number(claim.ttl).number(claim.max_hold);
        self.flag(claim.wait).number(claim.waited);
        self.choice(&claim.choice);
    }

    fn choice(&mut self, choice: &Choice) {
        match choice {
            Choice::Any { strategy, least, most } => {
                let word = match strategy {
                    Strategy::Random => "random",
                    Strategy::LeastRecent => "recent",
                    Strategy::Weighted => "weighted",
                };
                self.text("any").text(word).number(u64::from(*least)).number(u64::from(*most));
            }
            Choice::Among { slots, count } => {
                self.text("among").number(u64::from(*count)).ids(slots);
            }
            Choice::Named { slots } => {
                self.text("named").ids(slots);
            }
            #[cfg(feature = "tokens")]
            Choice::Free { slots, least, most, asked } => {
                self.text("free")
                    .number(u64::from(*least))
                    .number(u64::from(*most))
                    .number(*asked)
                    .ids(slots);
            }
        }
    }

    fn ids(&mut self, slots: &[SlotId]) {
        self.number(slots.len() as u64);
        for slot in slots {
            self.text(slot.as_str());
        }
    }
}

/// Reads a line of an answer, word by word; nothing comes of one that makes no sense.
struct Reader<'a>(Split<'a, char>);

impl<'a> Reader<'a> {
    fn new(line: &'a str) -> Self {
        Reader(line.split(' '))
    }

    // Not copied to each of those who call them: browsers are sent this.
    #[inline(never)]
    fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    #[inline(never)]
    fn digits(&mut self) -> Option<u64> {
        self.word()?.parse().ok()
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.digits()?).ok()
    }

    /// A number, or the word that there is none.
    fn optional(&mut self) -> Option<Option<u64>> {
        match self.word()? {
            "-" => Some(None),
            word => word.parse().ok().map(Some),
        }
    }

    #[inline(never)]
    fn slot(&mut self) -> Option<SlotId> {
        SlotId::told(self.word()?).ok()
    }

    #[inline(never)]
    fn nonce(&mut self) -> Option<NonceRecord> {
        let kind = self.word()?;
        match (kind, self.optional()?) {
            ("u", None) => Some(NonceRecord::Unset),
            ("k", Some(next)) => Some(NonceRecord::Known(next)),
            ("d", floor) => Some(NonceRecord::InDoubt { floor }),
            _ => None,
        }
    }

    fn holder(&mut self) -> Option<u128> {
        u128::from_str_radix(self.word()?, 16).ok()
    }

    /// Who is called, and the quiet time: all that is left of the line.
    fn calls(&mut self) -> Option<(Calls, Option<QuietTime>)> {
        let (mut calls, mut quiet_time) = (Calls { freed: self.number()?, ..Calls::default() }, None);
        while let Some(word) = self.word() {
            match (word.strip_prefix('!'), word.strip_prefix('='), word.strip_prefix('~')) {
                (Some(fence), ..) => calls.claimed.push(fence.parse().ok()?),
                (_, Some(longest), _) => {
                    let longest = longest.parse().ok()?;
                    quiet_time = Some(QuietTime { longest, doubt_rest: self.number()? });
                }
                (.., Some(rest)) => calls.rest = Some(rest.parse().ok()?),
                _ => calls.tickets.push(u128::from_str_radix(word, 16).ok()?),
            }
        }
        Some((calls, quiet_time))
    }

    fn many<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        for _ in 0..self.number::<u64>()? {
            items.push(read(self)?);
        }
        Some(items)
    }

    /// The first line, and no replies yet.
    fn answer(&mut self) -> Option<Answer> {
        match self.word()? {
            "stale" => Some(Answer::Stale { now: self.number()? }),
            "done" => {
                let (now, top, (calls, quiet_time)) = (self.number()?, self.number()?, self.calls()?);
                Some(Answer::Performed(Performed { now, top, quiet_time, calls, replies: Vec::new() }))
            }
            _ => None,
        }
    }

    fn reply(&mut self) -> Option<Reply> {
        Some(match self.word()? {
            "granted" => Reply::Granted(self.many(Self::grant)?),
            #[cfg(feature = "tokens")]
            "partly" => {
                let earliest = self.optional()?;
                Reply::Partly { grants: self.many(Self::grant)?, earliest }
            }
            "refused" => {
                let why = match self.word()? {
                    "exhausted" => Refusal::Exhausted,
                    "noslot" => Refusal::NoSlot,
                    "claimed" => Refusal::Claimed,
                    "beyond" => Refusal::Beyond,
                    "quiet" => Refusal::Quiet,
                    _ => return None,
                };
                Reply::Refused { why, earliest: self.optional()? }
            }
            "renewed" => Reply::Renewed { deadline: self.number()? },
            "claimed" => Reply::Claimed { deadline: self.number()?, priority: self.word()?.parse().ok()? },
            "released" => Reply::Released,
            "withdrawn" => Reply::Withdrawn,
            "resynced" => Reply::Resynced { next: self.number()? },
            "behind" => Reply::Behind { floor: self.number()?, until: self.number()? },
            "backwards" => Reply::backwards(self.nonce()?),
            "lost" => Reply::Lost(match self.word()? {
                "expired" => Loss::Expired,
                "ended" => Loss::Ended,
                "taken" => Loss::Taken,
                "gone" => Loss::Gone,
                "forgotten" => Loss::Forgotten,
                _ => return None,
            }),
            "defined" => Reply::Defined { added: self.number()?, total: self.number()? },
            "changed" => Reply::Changed,
            "noslot" => Reply::NoSlot,
            "full" => Reply::Full,
            "inspected" => {
                let (total, ready, in_doubt) = (self.number()?, self.number()?, self.number()?);
                let (due, quiet_until, loss) = (self.number()?, self.number()?, self.number()?);
                let slots = self.many(Self::view)?;
                Reply::Inspected { slots, total, ready, in_doubt, due, quiet_until, loss }
            }
            // A heap's sort is a tenth of the other's code, for browsers.
            "listed" => Reply::Listed(BinaryHeap::from(self.many(Self::slot)?).into_sorted_vec()),
            "undefined" => Reply::Undefined,
            _ => return None,
        })
    }

    fn grant(&mut self) -> Option<Grant> {
        let (slot, fence, deadline) = (self.slot()?, self.number()?, self.number()?);
        Some(Grant { slot, fence, deadline, nonce: self.nonce()?, place: 0 })
    }

    fn view(&mut self) -> Option<SlotView> {
        Some(SlotView {
            slot: self.slot()?,
            mode: match self.word()? {
                "e" => Mode::Enabled,
                "d" => Mode::Draining,
                "x" => Mode::Disabled,
                "r" => Mode::Removing,
                "p" => Mode::Passing,
                _ => return None,
            },
            state: match self.word()? {
                "r" => State::Ready,
                "l" => State::Leased,
                "h" => State::Offered,
                "c" => State::Cooling,
                "o" => State::Out,
                _ => return None,
            },
            weight: self.number()?,
            fence: self.number()?,
            holder: self.holder()?,
            since: self.number()?,
            until: self.number()?,
            nonce: self.nonce()?,
        })
    }
}

/// An answer that no script gives.
pub(super) fn garbled(text: &str) -> Error {
    let shown: String = text.chars().take(80).map(shown).collect();
    Error::new(
        Code::Internal,
        format!("the store's answer makes no sense: \"{shown}\"; report this as a bug"),
    )
}
