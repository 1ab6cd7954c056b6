//! What holders rely on, until when, and what they were told (rules S1, S4, S6, S7, R1, K1 and K3), and
//! who was called or had to look (rules Q5 and Q6).

use super::Judge;
use crate::census::Census;
use crate::checker::Breach;
use crate::checker::turn::Turn;
use crate::history::{Fact, Wish};
use crate::waits::LENIENCE;
use crate::world::{Instant, ProcessId};

/// A process relies on a lease.
pub(super) struct Belief {
    pub(super) fence: u64,
    pub(super) process: ProcessId,
    pub(super) until: Instant,
}

/// What comes free within so long is looked at together.
const GATHERED: u64 = 100_000;

impl Judge<'_> {
    /// What one thing that the store did says of claims on leases.
    pub(super) fn claims(&mut self, at: Instant, now: u64, fact: &Fact, turn: &Turn) -> Result<(), Breach> {
        let waits = |holder: &str| self.line.waits(holder);
        match fact {
            Fact::Refused { bid, why } if why == "claimed" => {
                let Some(thief) = self.line.thief(&bid.holder) else {
                    return Err(Breach::new(
                        "S6",
                        format!("{} claims leases and does not steal", bid.holder),
                    ));
                };
                let names = match &bid.wish {
                    Wish::Names(names) => names,
                    // Of any slots, or of some of several, nobody is told which, nor of which it has let go since it needs fewer.
                    wish => {
                        if wish.wants_several() {
                            self.thefts.looks(&bid.holder);
                        }
                        return Ok(());
                    }
                };
                let leases: Vec<_> = names.iter().filter_map(|name| self.store.in_force(name, now)).collect();
                for lease in leases {
                    if !turn.called.contains(&lease.fence)
                        && let Some(ended) = self.thefts.must_have_ended(lease.fence, &thief, now)
                        && self.store.rob(lease.fence, ended, self.rules.doubt_rest)
                    {
                        self.thefts.rob(lease.fence);
                        continue;
                    }
                    self.thefts.claim(now, &thief, lease, self.rules.patience, waits)?;
                }
                Ok(())
            }
            Fact::Refused { bid, .. } if bid.wish.has_parts() => {
                self.thefts.looks(&bid.holder);
                Ok(())
            }
            Fact::Called { fences } => {
                for &fence in fences {
                    if turn.ended.contains(&fence) {
                        self.thefts.leave_uncalled(fence);
                        continue;
                    }
                    let slot = self.store.slot_of(fence, now).map(str::to_owned);
                    let lease = slot.as_ref().and_then(|slot| self.store.in_force(slot, now));
                    let (Some(slot), Some(lease)) = (slot, lease) else {
                        let text = format!("the holder of {fence} is called, which has ended");
                        return Err(Breach::new("S6", text));
                    };
                    let wanting = turn.wanting(&slot);
                    self.thefts.call(
                        now,
                        lease,
                        wanting
                            .map(|(wish, thief)| (thief.clone(), !matches!(wish, Wish::Names(_))))
                            .collect(),
                    )?;
                    if turn.changed.contains(&fence) {
                        self.thefts.changes(fence);
                    }
                    let Some(prompt) = self.rules.prompt else { continue };
                    for &(_, process) in
                        self.watched.get(&slot).into_iter().flatten().filter(|w| w.0 == fence)
                    {
                        self.thefts.await_told(fence, process, at, at + prompt);
                    }
                }
                Ok(())
            }
            Fact::Renewed { fence, .. } => self.thefts.renew(*fence, &turn.called, waits),
            Fact::Claimed { slot, fence, deadline } => match self.store.in_force(slot, now) {
                Some(lease) if lease.fence == *fence => {
                    self.thefts.answer(at, now, lease, *deadline, &turn.claimants(slot, *fence))
                }
                _ => Ok(()),
            },
            Fact::Released { fence, .. } => {
                self.thefts.forget(*fence);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whoever listens, and was awake, knows by now that its lease is claimed, and has asked for what it was called for.
    pub(super) fn heard_in_time(&mut self, at: Instant) -> Result<(), Breach> {
        for (fence, process, since) in self.thefts.late(at) {
            if self.waits.stood(process, since, at) == 0 && !self.waits.is_killed(process) {
                let text = format!("{process} has not heard for {} us that {fence} is claimed", at - since);
                return Err(Breach::new("K3", text));
            }
        }
        for (holder, process, since) in self.turns.late(at) {
            if self.waits.stood(process, since, at) == 0 && !self.waits.is_killed(process) {
                let text =
                    format!("{process} was called for {holder} {} us ago, and does not ask", at - since);
                return Err(Breach::new("Q5", text));
            }
        }
        Ok(())
    }

    /// Whoever was awake and stood first in line, beside what was free by then, has come to look, or another has.
    pub(super) fn looked_in_time(&self, at: Instant, now: u64) -> Result<(), Breach> {
        let Some(prompt) = self.rules.prompt.map(|prompt| prompt + GATHERED) else { return Ok(()) };
        let then = now.saturating_sub(prompt);
        let held = |name: &str| self.store.is_held(name, then) || self.store.is_resting(name, then);
        for holder in self.line.overlooked(then, held) {
            let awake = |&process: &ProcessId| {
                self.waits.stood(process, at.saturating_sub(prompt), at) == 0
                    && !self.waits.is_killed(process)
            };
            if let Some(process) = self.turns.whose(holder).filter(awake) {
                let text = format!("{process} has not looked for {prompt} us whether {holder} can be served");
                return Err(Breach::new("Q6", text));
            }
        }
        Ok(())
    }

    /// A lease is given back: nobody may rely on it any more.
    pub(super) fn released(&self, at: Instant, slot: &str, fence: u64) -> Result<(), Breach> {
        let mut beliefs = self.beliefs.get(slot).into_iter().flatten();
        match beliefs.find(|belief| belief.fence == fence && belief.until > at) {
            Some(belief) => {
                let text = format!("{slot} {fence} was given back while {} relies on it", belief.process);
                Err(Breach::new("R1", text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn believes(
        &mut self,
        at: Instant,
        process: ProcessId,
        slot: &str,
        fence: u64,
        until: Instant,
        census: &Census,
    ) -> Result<(), Breach> {
        let granted = self.granted.get(slot).is_some_and(|fences| fences.binary_search(&fence).is_ok());
        let Some(end) = self.store.end_of(fence).filter(|_| granted) else {
            return Err(Breach::new("S7", format!("{slot} {fence} is relied on and was never granted")));
        };
        // Whoever knows that it is claimed relies on it for no longer than its claimant lets it.
        let end = self.thefts.told_end(fence).map_or(end, |told| told.min(end));
        // A renewal that arrives after the end of the lease leaves nothing to rely on.
        if until > end && until > at {
            let text =
                format!("{slot} {fence} is relied on {} us longer than the store keeps it", until - end);
            return Err(Breach::new("S4", text));
        }
        let excused = self.is_excused(fence);
        let beliefs = self.beliefs.entry(slot.to_owned()).or_default();
        beliefs.retain(|belief| belief.until > at && belief.fence != fence);
        let other = beliefs.iter().map(|belief| (belief.fence, belief.process, belief.until)).next();
        if until > at {
            beliefs.push(Belief { fence, process, until });
        }
        let robbed = |fence| self.thefts.was_robbed(fence);
        match other {
            Some((other, ..)) if until > at && (robbed(fence) || robbed(other)) => {
                census.count("two hold a name");
                Ok(())
            }
            Some((other, holder, end)) if until > at && !excused && !self.is_excused(other) => {
                let text = format!(
                    "{slot} is held by {process} ({fence}) and by {holder} ({other}) for {} us",
                    end.min(until) - at
                );
                Err(Breach::new("S1", text))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn unwatch(&mut self, fences: &[u64]) {
        fences.iter().for_each(|&fence| self.thefts.forget(fence));
        self.watched.values_mut().for_each(|watched| watched.retain(|watch| !fences.contains(&watch.0)));
    }

    /// One of those of a process who share these leases listens no more.
    pub(super) fn unwatch_once(&mut self, process: ProcessId, fences: &[u64]) {
        for watched in self.watched.values_mut() {
            let own = |watch: &(u64, ProcessId)| watch.1 == process && fences.contains(&watch.0);
            if let Some(at) = watched.iter().position(own) {
                let (fence, _) = watched.remove(at);
                if !watched.iter().any(own) {
                    self.thefts.forget(fence);
                }
            }
        }
    }

    /// A slot is granted anew: whoever had it must have been told.
    pub(super) fn told(&self, at: Instant, slot: &str, fence: u64) -> Result<(), Breach> {
        let standing = |process: ProcessId| self.waits.stood(process, at.saturating_sub(LENIENCE), at) > 0;
        let untold = self.watched.get(slot).into_iter().flatten().find(|&&(earlier, process)| {
            // Who was robbed and did not hear of it goes on, and so does who heard only of one who waited longer.
            let unheard =
                self.thefts.was_robbed(earlier) && self.thefts.told_end(earlier).is_none_or(|end| end > at);
            earlier < fence && !standing(process) && !unheard && !self.is_excused(earlier)
        });
        match untold {
            Some((earlier, process)) => {
                let text = format!(
                    "{slot} is granted under {fence}; {process}, who has it under {earlier}, was not told"
                );
                Err(Breach::new("K1", text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn is_excused(&self, fence: u64) -> bool {
        fence <= self.before_jump || self.broken.contains(&fence) || self.unknowing.contains(&fence)
    }
}
