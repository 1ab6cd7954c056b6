//! What the holder of a lease may do with it. Only the current fence does anything (rule S3).

use super::pool::Pool;
use super::slot::{Mode, State};
use super::{LeaseRef, Loss, Reply};
use crate::Micros;
use crate::nonce::{Nonce, NonceRecord, Outcome};

impl Pool {
    pub(super) fn renew(&mut self, now: Micros, lease: &LeaseRef, ttl: Micros) -> Reply {
        // Also for a lease that is not held: if it was forgotten, others like it may have been.
        self.quiet_time.longest = self.quiet_time.longest.max(ttl);
        let place = match self.held(now, lease) {
            Ok(place) => place,
            Err(loss) => return Reply::Lost(loss),
        };
        if let Some(priority) = self.heed_claimant(now, place) {
            let deadline = self.slots.get(place as usize).map_or(now, |slot| slot.until);
            return Reply::Claimed { deadline, priority };
        }
        let Some(slot) = self.slots.get(place as usize) else { return Reply::Lost(Loss::Gone) };
        let limit = if slot.hold_until == 0 { Micros::MAX } else { slot.hold_until };
        let until = slot.until.max(limit.min(now + ttl));
        if slot.mode == Mode::Disabled {
            return Reply::Renewed { deadline: slot.until };
        }
        self.end_at(place, until);
        Reply::Renewed { deadline: until }
    }

    pub(super) fn release(
        &mut self,
        now: Micros,
        lease: &LeaseRef,
        outcome: Outcome,
        cooldown: Micros,
    ) -> Reply {
        let place = match self.held(now, lease) {
            Ok(place) => place,
            Err(loss) => return Reply::Lost(loss),
        };
        let Some(slot) = self.slots.get_mut(place as usize) else { return Reply::Lost(Loss::Gone) };
        let Some(nonce) = slot.nonce.after(outcome) else { return Reply::backwards(slot.nonce) };
        slot.set_nonce(nonce, now);
        slot.rest_until = slot.rest_until.max(now + cooldown);
        self.due.remove(place, &mut self.positions);
        // Who used no nonce adds nothing to a doubt that is older: that has had its rest.
        self.settle(now, place, if outcome == Outcome::Unused { 0 } else { now });
        Reply::Released
    }

    pub(super) fn resync(
        &mut self,
        now: Micros,
        lease: &LeaseRef,
        chain: Nonce,
        rewind: bool,
        settle: Micros,
    ) -> Reply {
        let place = match self.held(now, lease) {
            Ok(place) => place,
            Err(loss) => return Reply::Lost(loss),
        };
        let Some(slot) = self.slots.get_mut(place as usize) else { return Reply::Lost(Loss::Gone) };
        if let Some(floor) = slot.nonce.floor().filter(|&floor| chain < floor && !rewind) {
            let until = slot.raised + settle;
            if until > now {
                return Reply::Behind { floor, until };
            }
        }
        slot.set_nonce(NonceRecord::Known(chain), now);
        Reply::Resynced { next: chain }
    }

    /// Where the slot of a live lease is, or why it is not held.
    fn held(&self, now: Micros, lease: &LeaseRef) -> Result<u32, Loss> {
        let place = self.find_at(&lease.slot, lease.place).ok_or(Loss::Gone)?;
        let slot = self.slots.get(place as usize).ok_or(Loss::Gone)?;
        match slot.fence.cmp(&lease.fence) {
            std::cmp::Ordering::Greater => Err(Loss::Taken),
            // It was never leased: since the lease ended the slot was made anew, unless memory was lost since then.
            std::cmp::Ordering::Less if slot.fence == 0 && lease.fence >= self.server.epoch => {
                Err(Loss::Gone)
            }
            std::cmp::Ordering::Less => Err(Loss::Forgotten),
            std::cmp::Ordering::Equal if slot.state != State::Leased => Err(Loss::Ended),
            std::cmp::Ordering::Equal if slot.until <= now => Err(Loss::Expired),
            std::cmp::Ordering::Equal => Ok(place),
        }
    }
}

impl Reply {
    /// The refusal of an outcome that would put back a nonce with this record.
    pub(crate) fn backwards(nonce: NonceRecord) -> Self {
        let above = u64::from(matches!(nonce, NonceRecord::Known(_)));
        Reply::Backwards { floor: nonce.floor().unwrap_or(0).saturating_add(above) }
    }
}
