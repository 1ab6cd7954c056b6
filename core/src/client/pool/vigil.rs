//! One lease whose end is watched, and perhaps put off by renewals.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_channel::oneshot;

use crate::Micros;
use crate::poison::unpoisoned;
use crate::slots::{LeaseRef, Loss};

/// One lease that is watched. Times are on the pool's clock of leases.
#[derive(Debug)]
pub(in crate::client) struct Vigil {
    pub lease: LeaseRef,
    pub ttl: Micros,
    /// How often it is renewed; 0 if the holder does that.
    pub interval: Micros,
    watched: Mutex<Watched>,
}

#[derive(Debug)]
struct Watched {
    term: Term,
    /// When it is renewed; `None` while a renewal is under way, or if it is not.
    renewal: Option<Micros>,
    /// Whether it is renewed no more, though its holder has it.
    #[cfg(feature = "crowds")]
    unkept: bool,
    /// Whether its holder has let go: how it ended is told when the store has said so.
    left: bool,
    /// Who wants to hear of its end.
    bells: Vec<oneshot::Sender<Word>>,
    /// Who wants to hear that it is claimed.
    claim_bells: Vec<oneshot::Sender<Word>>,
    /// By which subscription the process heard of calls as the store was asked whether it is; 0 if that was by none. Who listens in
    /// turns is told of those meanwhile.
    #[cfg(feature = "crowds")]
    told_by: u64,
}

/// How long a lease lasts, and how it ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct Term {
    until: Micros,
    ending: Option<Ending>,
    /// The priority of whoever claims it, and when the store said so, by its own time.
    claimed: Option<(i16, Micros)>,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Ending {
    GivenBack,
    Lost(Loss),
    /// Nobody renews it any more, or tells of its end.
    #[cfg(not(target_family = "wasm"))]
    Unkept,
}

/// What a holder is told of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Word {
    Ended(Ending),
    /// By one of this priority.
    Claimed(i16),
}

/// What a lease needs now.
pub(in crate::client) enum Need {
    Nothing,
    Renewal,
    /// Its deadline has passed.
    Ending,
    /// It is nobody's concern any more.
    Forgetting,
}

impl Term {
    pub fn new(until: Micros) -> Self {
        Term { until, ending: None, claimed: None }
    }

    /// When the lease can no longer be relied on; 0 once it has ended.
    pub fn deadline(&self) -> Micros {
        if self.ending.is_some() { 0 } else { self.until }
    }

    /// A renewal was granted, at the store's time `at`. One whose answer was overtaken by that of a later one, which says
    /// that the lease is claimed, changes nothing: it ends for its claimant.
    pub fn prolong(&mut self, until: Micros, at: Micros) {
        if self.claimed.is_none_or(|(_, since)| since < at) {
            self.until = self.until.max(until);
            self.claimed = None;
        }
    }

    /// The priority of whoever claims it, as far as is known here.
    pub fn claimed(&self) -> Option<i16> {
        self.claimed.map(|(priority, _)| priority)
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The lease has ended, unless it had before: then how.
    pub fn end(&mut self, ending: Ending) -> Option<Ending> {
        let before = self.ending;
        self.ending = before.or(Some(ending));
        before
    }

    /// The same with another deadline.
    pub fn lasting(self, until: Micros) -> Self {
        Term { until, ..self }
    }

    /// Until when it could be relied on, whether or not it ended before.
    pub fn until(&self) -> Micros {
        self.until
    }
}

impl Vigil {
    pub fn new(lease: LeaseRef, ttl: Micros, interval: Micros, term: Term, now: Micros) -> Arc<Self> {
        let (bells, claim_bells) = (Vec::new(), Vec::new());
        let watched = Watched {
            term,
            renewal: None,
            #[cfg(feature = "crowds")]
            unkept: false,
            left: false,
            bells,
            claim_bells,
            #[cfg(feature = "crowds")]
            told_by: 0,
        };
        let vigil = Vigil { lease, ttl, interval, watched: Mutex::new(watched) };
        if interval > 0 {
            // A grant can take long to arrive: it may be late by now.
            vigil.renew_at(vigil.late(term.until).min(now + interval));
        }
        Arc::new(vigil)
    }

    /// By when it is to be renewed if it lasts until then: half of the time that the interval leaves is left.
    pub fn late(&self, until: Micros) -> Micros {
        until.saturating_sub(self.ttl.saturating_sub(self.interval) / 2)
    }

    /// How long the lease lasts.
    pub fn term(&self) -> Term {
        self.lock().term
    }

    /// A renewal was granted, at the store's time `at`.
    pub fn prolong(&self, until: Micros, at: Micros) {
        self.lock().term.prolong(until, at);
    }

    /// It is claimed by one of this priority, as the store says at its time `at`, and ends by `until`: later than was known, if
    /// that one took the place of another claimant. An answer that was overtaken by that of a later one changes nothing.
    pub fn claim(&self, until: Micros, at: Micros, priority: i16) {
        let bells = {
            let mut watched = self.lock();
            let since = watched.term.claimed.map_or(at, |(_, since)| since);
            if since > at {
                return;
            }
            if since < at || until < watched.term.until {
                watched.term.until = until;
            }
            watched.term.claimed = Some((priority, at));
            std::mem::take(&mut watched.claim_bells)
        };
        for bell in bells {
            let _ = bell.send(Word::Claimed(priority));
        }
    }

    /// Hears that it is claimed; cancelled when it ends without that.
    pub fn claimed(&self) -> oneshot::Receiver<Word> {
        let (bell, claimed) = oneshot::channel();
        let mut watched = self.lock();
        match watched.term.claimed {
            Some((priority, _)) => drop(bell.send(Word::Claimed(priority))),
            None if watched.term.ending.is_none() => {
                watched.claim_bells.retain(|bell| !bell.is_canceled());
                watched.claim_bells.push(bell);
            }
            None => {}
        }
        claimed
    }

    /// Whether it is to be asked of the store whether these messages are about it; all messages may be, if there is
    /// no word of them.
    pub fn heeds(&self, claimed: Option<&[u64]>) -> bool {
        let watched = self.lock();
        watched.is_open() && claimed.map_or(watched.listens(), |fences| fences.contains(&self.lease.fence))
    }

    /// The store has said whether it is claimed, of what was asked as the process heard of calls by this subscription.
    #[cfg(feature = "crowds")]
    pub fn told(&self, hearing: u64) {
        let mut watched = self.lock();
        // Of the others nothing is asked after a message was lost.
        if watched.listens() {
            watched.told_by = hearing;
        }
    }

    /// Whether the store has said so, and the process has heard of all calls since.
    #[cfg(feature = "crowds")]
    pub fn is_told(&self, hearing: u64) -> bool {
        hearing > 0 && self.lock().told_by == hearing
    }

    /// The holder has let go of the lease: nothing is done for it any more.
    pub fn leave(&self) {
        self.lock().left = true;
    }

    /// The lease has ended by itself, and whoever wants to is told; whether that is news. Of one that its holder has let go of,
    /// only the answer to that says how it ended: the renewal that arrives behind the release finds no lease.
    pub fn lose(&self, why: Ending) -> bool {
        let watched = self.lock();
        !watched.left && self.end_of(watched, why).is_none()
    }

    /// The lease has ended, and whoever wants to is told, unless it had before: then how.
    pub fn end(&self, ending: Ending) -> Option<Ending> {
        self.end_of(self.lock(), ending)
    }

    fn end_of(&self, mut watched: MutexGuard<'_, Watched>, ending: Ending) -> Option<Ending> {
        let before = watched.term.end(ending);
        let (bells, claims) = (std::mem::take(&mut watched.bells), std::mem::take(&mut watched.claim_bells));
        // Those whom it tells, also that nobody claims it any more, may ask for the lease.
        drop(watched);
        drop(claims);
        for bell in bells {
            let _ = bell.send(Word::Ended(ending));
        }
        before
    }

    /// Hears of the end.
    pub fn ended(&self) -> oneshot::Receiver<Word> {
        let (bell, ended) = oneshot::channel();
        let mut watched = self.lock();
        match watched.term.ending {
            Some(ending) => drop(bell.send(Word::Ended(ending))),
            None => {
                watched.bells.retain(|bell| !bell.is_canceled());
                watched.bells.push(bell);
            }
        }
        ended
    }

    /// Has it renewed then, or earlier if it is to be: what was heard of a claim while a renewal was under way is not
    /// answered by that.
    pub fn renew_at(&self, time: Micros) {
        let mut watched = self.lock();
        #[cfg(feature = "crowds")]
        if watched.unkept {
            return;
        }
        watched.renewal = Some(watched.renewal.map_or(time, |earlier| earlier.min(time)));
    }

    /// It is renewed no more: see [`crate::client::Lease::keep_no_more`].
    pub fn keep_no_more(&self) {
        let mut watched = self.lock();
        #[cfg(feature = "crowds")]
        (watched.unkept = true);
        watched.renewal = None;
    }

    /// When something is to be done for it; `None` if nothing ever is.
    pub fn next(&self) -> Option<Micros> {
        let watched = self.lock();
        let deadline = watched.term.until;
        watched.is_open().then(|| watched.renewal.map_or(deadline, |renewal| renewal.min(deadline)))
    }

    /// What it needs now. A renewal that is due within `early` is begun, or within a small part of what is left: what cannot be
    /// prolonged is asked about ever sooner, and would be with all else. Without `crowds` there is little else.
    pub fn need(&self, now: Micros, early: Micros) -> Need {
        let mut watched = self.lock();
        if !watched.is_open() {
            return Need::Forgetting;
        }
        if watched.term.until <= now {
            return Need::Ending;
        }
        let left = watched.term.until - now;
        let early = if cfg!(feature = "crowds") { early.min(left / 16) } else { early };
        match watched.renewal.take_if(|renewal| *renewal <= now + early) {
            Some(_) => Need::Renewal,
            None => Need::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        unpoisoned(&self.watched)
    }
}

impl Watched {
    /// Whether anybody wants to hear that it is claimed, perhaps in turns.
    fn listens(&self) -> bool {
        let listens = !self.claim_bells.is_empty();
        #[cfg(feature = "crowds")]
        let listens = listens || self.told_by > 0;
        listens
    }

    fn is_open(&self) -> bool {
        !self.left && self.term.ending.is_none()
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::GivenBack => "it was given back already",
            Ending::Lost(Loss::Expired) => "its deadline passed",
            Ending::Lost(Loss::Ended) => "it has ended, by its deadline or because somebody broke it",
            Ending::Lost(Loss::Taken) => "it ended, and the slot has been leased anew",
            Ending::Lost(Loss::Gone) => "it ended, and its slot was removed",
            Ending::Lost(Loss::Forgotten) => "the store lost its memory",
            #[cfg(not(target_family = "wasm"))]
            Ending::Unkept => "nobody renews it, as the runtime ended, or a task of it panicked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SlotId;

    fn vigil(interval: Micros, until: Micros) -> Arc<Vigil> {
        let lease = LeaseRef { slot: SlotId::new("a").unwrap(), fence: 1, place: 0 };
        Vigil::new(lease, 3_000, interval, Term::new(until), 0)
    }

    #[test]
    fn what_arrives_late_is_renewed_while_it_lasts() {
        // Of its 3,000 there is a quarter left, less than an interval.
        let late = |until| vigil(1_000, until).next();
        assert_eq!((late(2_900), late(1_500), late(750)), (Some(1_000), Some(500), Some(0)));
    }

    // Each that was renewed counted as one whose holder listens: all were renewed at once after a connection was lost.
    #[cfg(feature = "crowds")]
    #[test]
    fn only_a_lease_of_whoever_listens_is_looked_at_for_a_message_that_may_be_lost() {
        let vigil = vigil(0, 5_000);
        vigil.told(7);
        assert!(!vigil.heeds(None) && !vigil.is_told(7));
        drop(vigil.claimed());
        vigil.told(7);
        assert!(vigil.heeds(None) && vigil.is_told(7) && !vigil.is_told(8));
    }

    #[test]
    fn a_renewal_that_was_answered_late_does_not_outlast_a_claim() {
        let vigil = vigil(0, 5_000);
        vigil.claim(2_000, 40, 1);
        vigil.prolong(6_000, 30);
        assert_eq!((vigil.term().deadline(), vigil.term().claimed()), (2_000, Some(1)));
        // The claimant has gone.
        vigil.prolong(7_000, 50);
        assert_eq!((vigil.term().deadline(), vigil.term().claimed()), (7_000, None));
    }

    /// It was told that its deadline had passed at that of a claimant who had left its place to one in no hurry.
    #[test]
    fn what_another_claims_instead_lasts_for_as_long_as_that_one_lets_it() {
        let vigil = vigil(0, 5_000);
        let stands = || (vigil.term().deadline(), vigil.term().claimed());
        vigil.claim(2_000, 40, 1);
        vigil.claim(4_900, 60, 5);
        assert_eq!(stands(), (4_900, Some(5)));
        // Answers that were overtaken.
        vigil.claim(6_000, 50, 2);
        vigil.claim(2_000, 40, 1);
        assert_eq!(stands(), (4_900, Some(5)));
        // Which of two is the later one cannot be seen: the holder relies on neither for longer than on the other.
        vigil.claim(3_000, 60, 6);
        vigil.claim(4_000, 60, 7);
        assert_eq!(vigil.term().deadline(), 3_000);
    }

    // The release was performed before a renewal that was under way, whose answer was taken for a loss.
    #[test]
    fn who_has_let_go_is_told_no_loss_but_by_the_answer_to_that() {
        let vigil = vigil(0, 5_000);
        let mut told = vigil.ended();
        vigil.leave();
        assert!(!vigil.lose(Ending::Lost(Loss::Ended)));
        assert_eq!(told.try_recv(), Ok(None));
        vigil.end(Ending::GivenBack);
        assert_eq!(told.try_recv(), Ok(Some(Word::Ended(Ending::GivenBack))));
    }

    #[test]
    fn an_end_is_told_once_and_to_all() {
        let vigil = vigil(0, 5_000);
        let (mut first, mut second) = (vigil.ended(), vigil.ended());
        assert_eq!(first.try_recv(), Ok(None));
        let lost = Ending::Lost(Loss::Taken);
        assert_eq!(vigil.end(lost), None);
        assert_eq!(vigil.end(Ending::GivenBack), Some(lost), "it had ended");
        assert_eq!((vigil.term().deadline(), vigil.next()), (0, None));
        for told in [&mut first, &mut second, &mut vigil.ended()] {
            assert_eq!(told.try_recv(), Ok(Some(Word::Ended(lost))));
        }
    }
}
