//! What those who steal may take, and when (rules S6 and K3): a model of its own, fed with what the store was asked and
//! what it said.
//!
//! A thief *claims* a lease of lower priority that is in its way, which its holder is told. The lease ends then when the
//! thief's patience does, if the thief still waits; if it does not, the lease is as it was before. Of whom a lease is
//! claimed that is granted to one of several who wait, nobody is told: then it may be any of those who steal. Of slots
//! of any kind nobody is told whether a claimant has been served otherwise as the lease came due. In both cases it has
//! ended for certain only when the slot is granted anew.
//!
//! Who cannot have a part of what it waits for lets go of the rest, and who wants several that it may choose of those that it needs
//! no more. Of one that waits for names and is replaced for one of
//! them it is known that it does. Else it may whenever it looks again: as it asks in vain, as something is granted that
//! was kept for another, as one that waits is served or leaves, as it may have been replaced. It has not if it asks again and claims
//! what it did, and nobody is called.

use std::collections::{HashMap, HashSet};

use crate::checker::Breach;
use crate::world::{Instant, ProcessId};

/// As long as a thief waits that waits for the end of leases: seven days, which no lease outlives.
const TO_THE_END: u64 = 604_800_000_000;

/// A lease that is in force.
#[derive(Clone, Copy, Debug)]
pub struct InForce {
    /// Its fence.
    pub fence: u64,
    /// Its holder's priority.
    pub priority: i64,
    /// Its end in store time, if nobody claims it.
    pub deadline: u64,
}

/// One who steals and waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thief {
    /// The id of its claim.
    pub holder: String,
    /// Its priority.
    pub priority: i64,
    /// How long it waits for a holder at least.
    pub patience: u64,
    /// Whether it waits no longer: it stands in line since it said so first.
    pub exact: bool,
}

/// All leases that are claimed.
#[derive(Debug, Default)]
pub struct Thefts {
    /// By fence.
    claims: HashMap<u64, Claim>,
    robbed: HashSet<u64>,
    /// Those whose holders are to be called in this turn, each as often as it was claimed.
    uncalled: Vec<u64>,
    /// By fence: until when a claimed lease lasts, as its holder was answered.
    answered: HashMap<u64, Instant>,
    /// Those whose holders know that they are claimed.
    told: HashSet<u64>,
    /// Those whose holders have heard once that they, or what they were granted with, are claimed.
    heard: HashSet<u64>,
    /// When they must know it, and since when they have been called.
    awaited: Vec<Awaited>,
}

#[derive(Debug)]
struct Claim {
    /// One of these claims it.
    by: Vec<Thief>,
    /// The store time at which it ends for them at the earliest.
    ends: u64,
    /// Whether it is known who claims it, and how long that one waits.
    exact: bool,
    /// Whether it may last for longer: they may have been served otherwise by then, or wait for longer.
    open: bool,
    /// Whether they may have let go of it.
    loose: bool,
}

impl Claim {
    fn is_of(&self, holder: &str) -> bool {
        self.by.iter().any(|thief| thief.holder == holder)
    }

    /// Who claims it, if that is known for certain.
    fn only(&self) -> Option<&Thief> {
        match &*self.by {
            [thief] if !self.loose => Some(thief),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Awaited {
    fence: u64,
    process: ProcessId,
    since: Instant,
    by: Instant,
}

impl Thefts {
    /// Whether the lease of this fence was ended by a thief before its time.
    pub fn was_robbed(&self, fence: u64) -> bool {
        self.robbed.contains(&fence)
    }

    /// Until when a claimed lease lasts at most as far as its holder knows, if it knows of its claimant, or of an earlier
    /// one.
    pub fn told_end(&self, fence: u64) -> Option<Instant> {
        self.answered.get(&fence).copied().filter(|_| self.told.contains(&fence))
    }

    /// Those that have ended for their claimants, who still wait, and when; what others claimed is as it was.
    pub fn due(&mut self, now: u64, waits: impl Fn(&str) -> bool) -> Vec<(u64, u64)> {
        let mut ended = Vec::new();
        self.claims.retain(|&fence, claim| {
            let due = claim.ends <= now && !claim.open && !claim.loose;
            if due && claim.by.iter().any(|thief| waits(&thief.holder)) {
                ended.push((fence, claim.ends));
            }
            !due
        });
        ended.sort_unstable();
        ended
    }

    /// When a lease that may have ended for its claimant did so at the earliest.
    pub fn may_have_ended(&self, fence: u64, now: u64) -> Option<u64> {
        let claim = self.claims.get(&fence).filter(|claim| claim.ends <= now)?;
        (claim.open || claim.loose).then_some(claim.ends)
    }

    /// The same of one that has: this thief has or claims all that it waits for, and its holder is not called.
    pub fn must_have_ended(&self, fence: u64, thief: &Thief, now: u64) -> Option<u64> {
        let known = self.claims.get(&fence).is_some_and(|claim| claim.exact || !claim.is_of(&thief.holder));
        self.may_have_ended(fence, now).filter(|_| known)
    }

    /// A lease ended early, that would have lasted.
    pub fn rob(&mut self, fence: u64) {
        self.robbed.insert(fence);
    }

    /// A thief was told that it claims what is in its way.
    pub fn claim(
        &mut self,
        now: u64,
        thief: &Thief,
        lease: InForce,
        most: u64,
        waits: impl Fn(&str) -> bool,
    ) -> Result<(), Breach> {
        if thief.priority <= lease.priority {
            return Err(Breach::new("S6", format!("{thief:?} claims {lease:?}, which is no lower")));
        }
        if thief.patience > most && thief.patience < TO_THE_END {
            return Err(Breach::new("S6", format!("{thief:?} waits longer than {most} us")));
        }
        if let Some(claim) = self.claims.get_mut(&lease.fence)
            && claim.is_of(&thief.holder)
        {
            claim.loose &= !claim.exact;
            return Ok(());
        }
        if let Some(rival) = self.claims.get(&lease.fence).and_then(Claim::only)
            && rival.priority >= thief.priority
            && waits(&rival.holder)
        {
            return Err(Breach::new("S6", format!("{thief:?} takes the place of {rival:?}")));
        }
        self.uncalled.push(lease.fence);
        let replaced = self.put(now, lease.fence, vec![thief.clone()], false);
        if let Some(Claim { by, open: false, .. }) = &replaced
            && let [named] = &**by
        {
            self.let_go(&named.holder);
        }
        self.loosen(replaced);
        Ok(())
    }

    /// A thief that waits claims nothing any more.
    fn let_go(&mut self, holder: &str) {
        self.claims.retain(|_, claim| claim.by.len() > 1 || !claim.is_of(holder));
        self.looks(holder);
    }

    /// A thief looks again what it can have, and may have let go of what it claimed.
    pub fn looks(&mut self, holder: &str) {
        let its = self.claims.values_mut().filter(|claim| claim.is_of(holder));
        its.for_each(|claim| claim.loose = true);
    }

    /// A slot is not handed out any more, or again: whoever would take any may have let go of its lease.
    pub fn changes(&mut self, fence: u64) {
        if let Some(claim) = self.claims.get_mut(&fence) {
            claim.loose = true;
        }
    }

    /// So do those who may have been replaced.
    fn loosen(&mut self, replaced: Option<Claim>) {
        replaced.iter().flat_map(|claim| &claim.by).for_each(|thief| self.looks(&thief.holder));
    }

    /// The holder of a lease was called, for one of these; with each, whether it could take others instead.
    pub fn call(&mut self, now: u64, lease: InForce, thieves: Vec<(Thief, bool)>) -> Result<(), Breach> {
        if self.leave_uncalled(lease.fence) {
            return Ok(());
        }
        let (above, any): (Vec<Thief>, Vec<bool>) =
            thieves.into_iter().filter(|(thief, _)| thief.priority > lease.priority).unzip();
        if above.is_empty() {
            let text = format!("the holder of {lease:?} is told to yield to nobody");
            return Err(Breach::new("S6", text));
        }
        let replaced = self.put(now, lease.fence, above, any.contains(&true));
        self.loosen(replaced);
        Ok(())
    }

    /// A lease was given back or broken in the turn in which it was claimed; whether it was to be called.
    pub fn leave_uncalled(&mut self, fence: u64) -> bool {
        let at = self.uncalled.iter().position(|&other| other == fence);
        at.map(|at| self.uncalled.swap_remove(at)).is_some()
    }

    /// All have been called who are to be.
    pub fn end(&mut self) -> Result<(), Breach> {
        match self.uncalled.drain(..).min() {
            Some(fence) => {
                Err(Breach::new("K3", format!("{fence} is claimed, and its holder is not called")))
            }
            None => Ok(()),
        }
    }

    /// A lease was prolonged: nobody claims it any more. Of these it is told at the end of the turn that they were claimed:
    /// who claimed one of them before may have been replaced.
    pub fn renew(&mut self, fence: u64, called: &[u64], waits: impl Fn(&str) -> bool) -> Result<(), Breach> {
        let its = |fences: &[u64], thief: &Thief| {
            let is_its = |fence| self.claims.get(fence).is_some_and(|claim| claim.is_of(&thief.holder));
            fences.iter().filter(|fence| is_its(fence)).count()
        };
        if let Some(thief) = self.claims.get(&fence).and_then(Claim::only)
            && waits(&thief.holder)
            && its(called, thief) <= its(&self.uncalled, thief)
        {
            return Err(Breach::new("S6", format!("{fence} was prolonged although {thief:?} claims it")));
        }
        self.claims.remove(&fence);
        self.answered.remove(&fence);
        self.told.remove(&fence);
        self.forget(fence);
        Ok(())
    }

    /// A lease was not prolonged, and its holder is answered when it ends: for who claimed it before, or for one of these,
    /// who may have claimed it in this turn.
    pub fn answer(
        &mut self,
        at: Instant,
        now: u64,
        lease: InForce,
        deadline: u64,
        newcomers: &[&Thief],
    ) -> Result<(), Breach> {
        let wrong = |why: String| Err(Breach::new("S6", format!("{lease:?} is said to be claimed, {why}")));
        let claim = self.claims.get(&lease.fence);
        let above = newcomers.iter().filter(|thief| thief.priority > lease.priority);
        let mut ends: Vec<(u64, bool)> =
            above.map(|thief| (now.saturating_add(thief.patience), thief.exact)).collect();
        ends.extend(claim.map(|claim| (claim.ends, claim.exact)));
        if ends.is_empty() {
            return wrong("and is not".to_owned());
        }
        // Where it is not known who of several claims it, or how long that one waits, the least counts.
        let right = ends.iter().any(|&(end, exact)| match lease.deadline.min(end) {
            agreed if exact => deadline == agreed,
            least => deadline >= least,
        });
        if !right || deadline > lease.deadline {
            return wrong(format!("and to end at {deadline}, not at one of {ends:?}"));
        }
        let end = at + deadline.saturating_sub(now);
        // Of what is answered once it knows, it is not told when it hears of it, or whether.
        let known = self.told_end(lease.fence).map_or(end, |known| known.max(end));
        self.answered.insert(lease.fence, known);
        Ok(())
    }

    /// A holder hears that one of these leases is claimed, which were granted together.
    pub fn tell(&mut self, fences: &[u64]) {
        for &fence in fences {
            self.heard.insert(fence);
            self.forget(fence);
        }
        // Of several it is not said which.
        if let [fence] = fences
            && self.claims.contains_key(fence)
        {
            self.told.insert(*fence);
        }
    }

    /// A holder that listens was called, and must know by then.
    pub fn await_told(&mut self, fence: u64, process: ProcessId, since: Instant, by: Instant) {
        if !self.heard.contains(&fence) {
            self.awaited.push(Awaited { fence, process, since, by });
        }
    }

    /// A holder has let go of its lease, or has heard that it is lost.
    pub fn forget(&mut self, fence: u64) {
        self.awaited.retain(|awaited| awaited.fence != fence);
    }

    /// Those who should know by now, and since when: each is told of once.
    pub fn late(&mut self, at: Instant) -> Vec<(u64, ProcessId, Instant)> {
        let (late, awaited) = std::mem::take(&mut self.awaited).into_iter().partition(|one| one.by < at);
        self.awaited = awaited;
        let late: Vec<Awaited> = late;
        late.into_iter().map(|one| (one.fence, one.process, one.since)).collect()
    }

    fn put(&mut self, now: u64, fence: u64, by: Vec<Thief>, open: bool) -> Option<Claim> {
        let patience = by.iter().map(|thief| thief.patience).min().unwrap_or(TO_THE_END);
        let exact = matches!(&*by, [thief] if thief.exact);
        let ends = now.saturating_add(patience);
        self.claims.insert(fence, Claim { by, ends, exact, open: open || !exact, loose: !exact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: InForce = InForce { fence: 7, priority: 0, deadline: 1_000 };

    fn thief(holder: &str, priority: i64) -> Thief {
        Thief { holder: holder.to_owned(), priority, patience: 100, exact: true }
    }

    fn claimed(by: &Thief) -> Result<Thefts, Breach> {
        let mut thefts = Thefts::default();
        thefts.claim(10, by, LEASE, 200, |_| true)?;
        thefts.call(10, LEASE, Vec::new())?;
        thefts.end().map(|()| thefts)
    }

    #[test]
    fn only_the_higher_claim_and_no_longer_than_they_may() {
        claimed(&thief("1", 1)).expect("a higher one");
        assert!(claimed(&thief("1", 0)).is_err(), "an equal one");
        assert!(claimed(&Thief { patience: 201, ..thief("1", 1) }).is_err(), "too patient");
        claimed(&Thief { patience: TO_THE_END, ..thief("1", 1) }).expect("to the end");
        let replaced = |priority, waits| {
            claimed(&thief("1", 2))
                .and_then(|mut thefts| thefts.claim(20, &thief("2", priority), LEASE, 200, |_| waits))
        };
        assert!(replaced(2, true).is_err(), "an equal claimant");
        replaced(2, false).expect("it has gone");
        replaced(3, true).expect("a higher one");
    }

    #[test]
    fn a_lease_ends_early_only_for_who_still_waits() {
        let due = |now, waits| claimed(&thief("1", 1)).map(|mut thefts| thefts.due(now, |_| waits));
        assert_eq!(due(109, true).expect("claimed"), []);
        assert_eq!(due(110, true).expect("claimed"), [(7, 110)]);
        assert_eq!(due(110, false).expect("claimed"), []);
    }

    #[test]
    fn of_any_slot_it_shows_later_whether_its_lease_ended_early() {
        let mut thefts = Thefts::default();
        thefts.call(10, LEASE, vec![(thief("1", 1), true)]).expect("a higher one");
        assert_eq!(thefts.due(110, |_| true), []);
        assert_eq!((thefts.may_have_ended(7, 109), thefts.may_have_ended(7, 110)), (None, Some(110)));
        let told = claimed(&thief("1", 1)).expect("claimed");
        assert_eq!(told.may_have_ended(7, 110), None, "that is known");
    }

    #[test]
    fn what_is_claimed_is_called_and_not_prolonged() {
        let mut thefts = Thefts::default();
        thefts.claim(10, &thief("1", 1), LEASE, 200, |_| true).expect("claimed");
        assert!(thefts.end().is_err(), "nobody was called");
        assert!(thefts.call(10, LEASE, vec![(thief("2", 0), false)]).is_err(), "for nobody");
        let claimed = || claimed(&thief("1", 1)).expect("claimed");
        assert!(claimed().renew(7, &[], |_| true).is_err());
        claimed().renew(7, &[], |_| false).expect("the claimant has gone");
        assert!(claimed().answer(20, 20, LEASE, 1_000, &[]).is_err(), "longer than for its claimant");
        let mut thefts = claimed();
        thefts.answer(25, 20, LEASE, 110, &[]).expect("as long as that");
        assert_eq!(thefts.told_end(7), None);
        thefts.tell(&[7]);
        assert_eq!(thefts.told_end(7), Some(115));
        thefts
            .claim(30, &Thief { patience: 5, ..thief("2", 2) }, LEASE, 200, |_| true)
            .expect("a higher one");
        thefts.answer(35, 30, LEASE, 35, &[]).expect("as long as that");
        assert_eq!(thefts.told_end(7), Some(115), "the answer may be lost");
    }

    /// What is claimed and renewed in one turn is answered before it is said who was called.
    #[test]
    fn a_holder_is_answered_for_a_claimant_of_the_same_turn() {
        let (newcomer, lower) = (thief("2", 2), thief("3", 0));
        let answer = |mut thefts: Thefts, deadline, newcomers: &[&Thief]| {
            thefts.answer(20, 20, LEASE, deadline, newcomers).is_ok()
        };
        let before = || claimed(&thief("1", 1)).expect("claimed");
        assert!(answer(before(), 110, &[&newcomer]), "for who claimed it before");
        assert!(answer(before(), 120, &[&newcomer]), "for who took its place");
        assert!(!answer(before(), 115, &[&newcomer]), "for nobody");
        assert!(answer(Thefts::default(), 120, &[&newcomer]), "it is the first");
        assert!(!answer(Thefts::default(), 120, &[&lower]), "it is no higher");
        assert!(!answer(Thefts::default(), 120, &[]), "nobody came");
        let unsure = Thief { exact: false, ..newcomer };
        assert!(answer(Thefts::default(), 130, &[&unsure]), "it may wait for longer");
        assert!(!answer(Thefts::default(), 115, &[&unsure]), "but not for less");
    }

    /// Leases that one of names claims, and what is so after a higher one has taken its place for the first of them.
    #[test]
    fn who_is_replaced_for_one_name_claims_none_of_them() {
        let other = InForce { fence: 8, ..LEASE };
        let both = || {
            let mut thefts = claimed(&thief("1", 1)).expect("claimed");
            thefts.claim(10, &thief("1", 1), other, 200, |_| true).expect("the other");
            thefts.call(10, other, Vec::new()).expect("for it");
            thefts
        };
        assert!(both().renew(8, &[], |_| true).is_err(), "it claims both");
        let mut thefts = both();
        thefts.claim(20, &thief("2", 2), LEASE, 200, |_| true).expect("a higher one");
        assert!(thefts.answer(20, 20, other, 110, &[]).is_err(), "nobody claims it");
        thefts.renew(8, &[7], |_| true).expect("the same");
        assert!(thefts.renew(7, &[7], |_| true).is_err(), "the higher one does");
    }

    #[test]
    fn who_looks_again_may_have_let_go_until_it_says_that_it_has_not() {
        let looked = || {
            let mut thefts = claimed(&thief("1", 1)).expect("claimed");
            thefts.looks("1");
            thefts
        };
        looked().renew(7, &[], |_| true).expect("it let go");
        looked().answer(20, 20, LEASE, 110, &[]).expect("it did not");
        assert_eq!(looked().due(110, |_| true), [], "who knows");
        looked().claim(20, &thief("2", 1), LEASE, 200, |_| true).expect("an equal after it");
        let mut thefts = looked();
        thefts.claim(20, &thief("1", 1), LEASE, 200, |_| true).expect("it claims what it did");
        assert!(thefts.renew(7, &[], |_| true).is_err());
        // Who took its place is told at the end of the turn.
        let replaced = || claimed(&thief("1", 1)).expect("claimed");
        replaced().renew(7, &[7], |_| true).expect("somebody may have, and let go");
        assert!(replaced().renew(7, &[9], |_| true).is_err(), "nobody");
    }

    #[test]
    fn who_listens_hears_in_time() {
        let mut thefts = claimed(&thief("1", 1)).expect("claimed");
        thefts.await_told(7, 3, 10, 60);
        assert!(thefts.late(60).is_empty());
        assert_eq!(thefts.late(61), [(7, 3, 10)]);
        thefts.await_told(7, 3, 10, 60);
        thefts.tell(&[7]);
        assert!(thefts.late(61).is_empty());
    }
}
