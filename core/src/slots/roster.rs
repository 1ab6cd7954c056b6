//! Which slots a pool has, and what its administrators may change. All processes see it at once.

use std::collections::BinaryHeap;

use super::pool::{DOUBT, Pool, Server};
use super::slot::{Mode, Slot, State};
use super::{MAX_SLOTS, Moment, QuietTime, Reply, SlotChange, SlotSpec, SlotView};
use crate::Micros;
use crate::id::SlotId;

impl Pool {
    pub(super) fn define(
        &mut self,
        now: Micros,
        moment: Moment<'_>,
        seen: u64,
        slots: &[SlotSpec],
        quiet_time: QuietTime,
    ) -> Reply {
        let new = slots.iter().filter(|spec| self.find(&spec.slot).is_none()).count();
        if self.total() + new > MAX_SLOTS {
            return Reply::Full;
        }
        if !self.defined {
            self.begin(now, moment, seen, quiet_time.sum());
        }
        self.quiet_time = self.quiet_time.max(quiet_time);
        let before = self.total();
        for spec in slots {
            self.add(spec);
        }
        Reply::Defined { added: (self.total() - before) as u32, total: self.total() as u32 }
    }

    /// A pool that is not there was never there, or was lost. It was lost if a client has seen a fence of it, or that it was
    /// there; and it may have been if the server started less than one quiet time ago.
    fn begin(&mut self, now: Micros, moment: Moment<'_>, seen: u64, quiet: Micros) {
        let lost_at = match seen {
            0 if moment.up_since + quiet > now => moment.up_since,
            0 => 0,
            _ => now,
        };
        self.server = Server { incarnation: moment.incarnation.to_owned(), epoch: now, lost_at };
        // Whoever hears of the pool has seen it from here on, also before anything is granted.
        self.top = seen.max(now);
        self.defined = true;
    }

    fn add(&mut self, spec: &SlotSpec) {
        let Some(place) = self.find(&spec.slot) else {
            return self.insert(Slot::new(spec.slot.clone(), spec.weight));
        };
        let moves = self
            .slots
            .get(place as usize)
            .is_some_and(|slot| slot.state == State::Ready && slot.weight != spec.weight);
        if moves {
            self.take_out(place);
        }
        if let Some(slot) = self.slots.get_mut(place as usize) {
            slot.weight = spec.weight;
            if matches!(slot.mode, Mode::Removing | Mode::Passing) {
                self.leaving -= u32::from(slot.leaves());
                slot.mode = Mode::Enabled;
            }
        }
        if moves {
            self.make_ready(place);
        }
    }

    pub(super) fn change(&mut self, now: Micros, id: &SlotId, change: SlotChange) -> Reply {
        let Some(place) = self.find(id) else { return Reply::NoSlot };
        let Some(slot) = self.slots.get(place as usize) else { return Reply::NoSlot };
        let (state, mode) = (slot.state, slot.mode);
        let leased = state == State::Leased;
        // But for its lease it is gone.
        if mode == Mode::Removing
            && matches!(change, SlotChange::Enable | SlotChange::Disable | SlotChange::Drain)
        {
            return Reply::NoSlot;
        }
        let opens = matches!(change, SlotChange::Enable | SlotChange::Break);
        // It can be had, or somebody is about to have it. What nobody holds is not ended, whatever becomes of it later.
        if opens
            && (mode == Mode::Enabled || change == SlotChange::Break)
            && matches!(state, State::Ready | State::Offered)
        {
            return Reply::Changed;
        }
        self.break_offer(now, place);
        // A lease goes on under every change but one; all else is put where it now belongs.
        if !leased || change == SlotChange::Break {
            self.take_out(place);
        }
        let Some(slot) = self.slots.get_mut(place as usize) else { return Reply::NoSlot };
        self.leaving -= u32::from(slot.leaves());
        match change {
            SlotChange::Enable => {
                slot.mode = Mode::Enabled;
                slot.barred_until = 0;
            }
            SlotChange::Disable => slot.mode = Mode::Disabled,
            SlotChange::Drain => slot.mode = Mode::Draining,
            SlotChange::Remove => {
                // What is not renewed is not renewed for that.
                if mode == Mode::Disabled {
                    slot.hold_until = slot.agreed();
                }
                slot.mode = Mode::Removing;
            }
            SlotChange::Quarantine(rest) => {
                slot.barred_until = slot.barred_until.max(now + rest);
                slot.epoch = 0;
                if !leased {
                    slot.set_nonce(slot.nonce.unsettled(), now);
                }
            }
            SlotChange::Break if leased => slot.set_nonce(slot.nonce.unsettled(), now),
            SlotChange::Break => {}
        }
        self.leaving += u32::from(slot.leaves());
        if !leased || change == SlotChange::Break {
            // A doubt that is older rests already. When that of one that is out arose, nobody knows.
            let rests = (opens || change == SlotChange::Remove) && !leased && state != State::Out;
            self.settle(now, place, if rests { 0 } else { now });
        }
        Reply::Changed
    }

    pub(super) fn inspect(&self, now: Micros, ids: &[SlotId]) -> Reply {
        let view = |id: &SlotId| {
            let slot = self.slots.get(self.find(id)? as usize)?;
            Some(SlotView {
                slot: slot.id.clone(),
                mode: slot.mode,
                state: slot.state,
                weight: slot.weight,
                fence: slot.fence,
                holder: slot.holder,
                since: slot.since,
                until: slot.until,
                nonce: slot.nonce,
            })
        };
        Reply::Inspected {
            slots: ids.iter().filter_map(view).collect(),
            total: self.total() as u32,
            ready: self.count_ready(),
            in_doubt: self.ready.get(DOUBT).map_or(0, |queue| queue.len()),
            due: self.due.count_after(now) as u32,
            quiet_until: self.quiet_until(),
            loss: self.server.lost_at as u32,
        }
    }

    pub(super) fn list(&self) -> Reply {
        let ids: BinaryHeap<_> = self.ids().cloned().collect();
        Reply::Listed(ids.into_sorted_vec())
    }
}
