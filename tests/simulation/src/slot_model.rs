//! What the store may do to slots: a small model of its own, fed with what the store did.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::checker::Breach;
use crate::history::{Fact, Performance, Wish};
use crate::ledger_model::LANE_GRACE;
use crate::thefts::InForce;
use crate::world::Instant;

type Slots = BTreeMap<String, SlotState>;

/// The slots of the store as they must be.
#[derive(Debug, Default)]
pub struct SlotModel {
    slots: Slots,
    replica: Slots,
    /// The highest fence of each slot ever, whatever the store forgot.
    fences: HashMap<String, u64>,
    /// The claims that were granted since memory was last lost, when, and until when that is remembered.
    claims: HashMap<String, (u64, u64)>,
    /// Until when it is remembered what is performed now: after that it may be performed again, if nobody heard of it.
    remembered: u64,
    /// By fence: the true time at which the lease has ended in the store.
    ends: HashMap<u64, Instant>,
    /// When the last claim of what is free was asked.
    asked: Option<u64>,
    /// The priority of the last claim that was granted.
    priority: i64,
    /// Fences of leases that were not prolonged because somebody waits for them.
    claimed: HashSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct SlotState {
    fence: u64,
    holder: String,
    priority: i64,
    leased: bool,
    since: u64,
    deadline: u64,
    max_hold: u64,
    rest_until: u64,
    /// Whether a nonce has been known under the last lease.
    told: bool,
    doubt: bool,
    /// Whether it was removed: what is added again under its name is new.
    removed: bool,
}

impl SlotModel {
    /// The true time until which the store keeps the lease of this fence, if it ever granted it.
    pub fn end_of(&self, fence: u64) -> Option<Instant> {
        self.ends.get(&fence).copied()
    }

    /// Whether somebody of higher priority ever waited for the lease of this fence.
    pub fn was_claimed(&self, fence: u64) -> bool {
        self.claimed.contains(&fence)
    }

    /// The fence of a slot's last lease.
    pub fn fence_of(&self, slot: &str) -> u64 {
        self.slots.get(slot).map_or(0, |slot| slot.fence)
    }

    /// Whether a slot is leased at the store's time `now`.
    pub fn is_held(&self, slot: &str, now: u64) -> bool {
        self.slots.get(slot).is_some_and(|state| state.leased && state.deadline > now)
    }

    /// The lease of a slot that is in force at the store's time `now`.
    pub fn in_force(&self, slot: &str, now: u64) -> Option<InForce> {
        let state = self.slots.get(slot).filter(|state| state.leased && state.deadline > now)?;
        Some(InForce { fence: state.fence, priority: state.priority, deadline: state.deadline })
    }

    /// The slot whose lease of this fence is in force.
    pub fn slot_of(&self, fence: u64, now: u64) -> Option<&str> {
        let found = self.slots.iter().find(|(_, state)| state.leased && state.fence == fence)?;
        self.is_held(found.0, now).then_some(found.0.as_str())
    }

    /// A lease ended for its claimant at the store's time `ended`; whether it would have lasted.
    pub fn rob(&mut self, fence: u64, ended: u64, doubt_rest: u64) -> bool {
        let robbed = self.slots.values_mut().find(|state| state.leased && state.fence == fence);
        let Some(state) = robbed.filter(|state| state.deadline > ended) else { return false };
        state.leased = false;
        if state.told {
            state.doubt = true;
            state.rest_until = state.rest_until.max(ended + doubt_rest);
        }
        true
    }

    /// Whether a slot rests at the store's time `now`.
    pub fn is_resting(&self, slot: &str, now: u64) -> bool {
        self.slots.get(slot).is_some_and(|state| state.rest_until > now)
    }

    /// A slot that is leased in the store at a true time.
    pub fn anything_held(&self, at: Instant) -> Option<&str> {
        let held = |state: &SlotState| state.leased && self.end_of(state.fence).is_some_and(|end| end > at);
        self.slots.iter().find(|(_, state)| held(state)).map(|(slot, _)| slot.as_str())
    }

    /// The store forgot everything.
    pub fn wipe(&mut self) {
        self.slots.clear();
        self.replica.clear();
        self.claims.clear();
    }

    /// The store cannot know whether it forgot something.
    pub fn doubt_all(&mut self) {
        self.slots.values_mut().for_each(|slot| slot.doubt = true);
    }

    /// The replica is up to date.
    pub fn copy(&mut self) {
        self.replica = self.slots.clone();
    }

    /// The replica took over.
    pub fn promote(&mut self) {
        self.slots = std::mem::take(&mut self.replica);
        self.claims.clear();
        self.doubt_all();
    }

    /// The store begins to perform.
    pub fn begin(&mut self, done: &Performance) {
        self.remembered = done.not_after.unwrap_or(done.now) + LANE_GRACE;
    }

    /// The store did this at its time `now`, in truth at `at`.
    pub fn apply(&mut self, at: Instant, now: u64, doubt_rest: u64, fact: &Fact) -> Result<(), Breach> {
        match fact {
            Fact::Granted { .. } => self.grant(at, now, doubt_rest, fact),
            Fact::Renewed { slot, fence, deadline } => {
                let state = self.held(now, slot, *fence, "renewed")?;
                if state.max_hold > 0 && *deadline > state.since + state.max_hold {
                    return Err(Breach::new(
                        "L7",
                        format!("{slot} {fence} was prolonged beyond its longest hold"),
                    ));
                }
                if *deadline < state.deadline {
                    return Err(Breach::new("S3", format!("{slot} {fence} was shortened by a renewal")));
                }
                state.deadline = *deadline;
                self.keep_until(*fence, at + (deadline - now));
                Ok(())
            }
            // When it ends then those say who know of its claimant. It is as far away as is said, though the store's clock may
            // have been set back since its holder heard of it last.
            Fact::Claimed { slot, fence, deadline } => {
                self.held(now, slot, *fence, "claimed")?;
                self.claimed.insert(*fence);
                self.keep_until(*fence, at + deadline.saturating_sub(now));
                Ok(())
            }
            Fact::Resynced { slot, fence } => {
                let state = self.held(now, slot, *fence, "resynced")?;
                (state.told, state.doubt) = (true, false);
                Ok(())
            }
            Fact::Released { slot, fence, rest, outcome, named } => {
                let state = self.held(now, slot, *fence, "released")?;
                state.leased = false;
                state.rest_until = state.rest_until.max(now + rest);
                match (outcome.as_str(), named) {
                    ("unused", _) => {}
                    ("used" | "rejected", true) => state.doubt = false,
                    ("unsettled", _) if !state.told => {}
                    _ => {
                        state.doubt = true;
                        state.rest_until = state.rest_until.max(now + doubt_rest);
                    }
                }
                Ok(())
            }
            Fact::Served(bid) => {
                self.asked = if let Wish::Free { asked, .. } = bid.wish { Some(asked) } else { None };
                self.priority = bid.priority;
                Ok(())
            }
            // Of those who wait the model of the line knows.
            Fact::Refused { .. }
            | Fact::Withdrawn { .. }
            | Fact::Offered { .. }
            | Fact::Called { .. }
            | Fact::Defined { .. } => Ok(()),
            Fact::Changed { slot, change } => {
                let state = self.slots.entry(slot.clone()).or_default();
                match change.as_str() {
                    "break" if state.leased => {
                        state.leased = false;
                        state.doubt = true;
                    }
                    "quarantine" => state.doubt = true,
                    "remove" => state.removed = true,
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn grant(&mut self, at: Instant, now: u64, doubt_rest: u64, fact: &Fact) -> Result<(), Breach> {
        let Fact::Granted { holder, slot, fence, deadline, max_hold, known } = fact else { return Ok(()) };
        let top = self.fences.entry(slot.clone()).or_default();
        if *fence <= *top {
            return Err(Breach::new("S2", format!("{slot} was granted with fence {fence} after {top}")));
        }
        *top = *fence;
        // Who claims what is free comes again under its name.
        let granted = (now, self.remembered);
        let mut before = |claim| self.claims.insert(claim, granted).filter(|(_, until)| *until > now);
        if self.asked.is_none()
            && (before(format!("{holder} {slot}")).is_some()
                || before(holder.clone()).is_some_and(|(when, _)| when != now))
        {
            return Err(Breach::new("E2", format!("the claim {holder} was granted twice")));
        }
        self.ends.insert(*fence, at + (deadline.saturating_sub(now)));
        let state = self.slots.entry(slot.clone()).or_default();
        // It takes the place of what it was granted before it asked.
        let own = state.holder == *holder && self.asked.is_some_and(|asked| state.since <= asked);
        if state.leased && state.deadline > now && !own {
            let left = state.deadline - now;
            return Err(Breach::new(
                "S1",
                format!("the store granted {slot} {fence} while {} had {left} us left", state.fence),
            ));
        }
        if state.leased && state.told {
            state.doubt = true;
            state.rest_until = state.rest_until.max(state.deadline + doubt_rest);
        }
        if std::mem::take(&mut state.removed) {
            (state.rest_until, state.doubt) = (0, false);
        }
        if state.rest_until > now {
            let left = state.rest_until - now;
            return Err(Breach::new(
                "C2",
                format!("{slot} {fence} was granted {left} us before its rest ended"),
            ));
        }
        if *known && state.doubt {
            return Err(Breach::new("S10", format!("{slot} {fence} came with a nonce that is in doubt")));
        }
        *state = SlotState {
            fence: *fence,
            holder: holder.clone(),
            priority: self.priority,
            leased: true,
            since: now,
            deadline: *deadline,
            max_hold: *max_hold,
            told: *known || state.doubt && state.told,
            ..state.clone()
        };
        Ok(())
    }

    /// Of what the store said of its end the latest counts.
    fn keep_until(&mut self, fence: u64, end: Instant) {
        self.ends.entry(fence).and_modify(|until| *until = end.max(*until)).or_insert(end);
    }

    fn held(&mut self, now: u64, slot: &str, fence: u64, what: &str) -> Result<&mut SlotState, Breach> {
        let state = self.slots.entry(slot.to_owned()).or_default();
        if state.fence != fence || !state.leased || state.deadline <= now {
            let text = format!(
                "{slot} {fence} was {what}, the lease in force is {} ({}, until {}, now {now})",
                state.fence,
                if state.leased { "leased" } else { "ended" },
                state.deadline
            );
            return Err(Breach::new("S3", text));
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_is_granted_twice_within_the_memory_of_its_lane() {
        let second = |now, not_after| {
            let mut model = SlotModel::default();
            let mut grant = |now, fence, not_after| {
                model.begin(&Performance { now, not_after, ..Performance::default() });
                let (holder, slot) = ("1".to_owned(), "a".to_owned());
                let fact =
                    Fact::Granted { holder, slot, fence, deadline: now + 5, max_hold: 0, known: false };
                model.apply(0, now, 0, &fact)
            };
            grant(10, 1, not_after).expect("the first");
            grant(now, 2, None)
        };
        let breach = second(14 + LANE_GRACE, Some(15)).expect_err("it is remembered");
        assert!(format!("{breach:?}").contains("E2"));
        second(15 + LANE_GRACE, Some(15)).expect("nobody knows of the first any more");
        second(9 + LANE_GRACE, None).expect_err("from now on");
    }
}
