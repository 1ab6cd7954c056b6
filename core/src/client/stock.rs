//! Which of a process's slots a pool has, where processes with slots of their own share it.

use std::sync::{MutexGuard, PoisonError};

use super::Runtime;
use super::acquisition::{Refused, Want, mix};
use super::lease::unexpected;
use super::pool::{OwnSlots, PoolCore};
use crate::Micros;
use crate::error::Result;
use crate::id::SlotId;
use crate::slots::{Choice, MAX_PER_REQUEST, Refusal, Reply, Request};
use crate::store::Store;

/// Which of this process's slots are in the pool, where some are not.
#[derive(Debug, Default)]
pub(super) struct Stock {
    present: Option<Vec<SlotId>>,
    /// Moves whenever the store loses its memory.
    quiet_until: Micros,
    /// Until when the pool is quiet, on the local clock, as of the last loss that was looked into.
    looked_into: Micros,
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Notes when the store last lost its memory, to see later whether it lost it again.
    pub(super) async fn note_losses(&self) -> Result<()> {
        let (_, quiet_until) = self.look(Vec::new()).await?;
        self.stock().quiet_until = quiet_until;
        Ok(())
    }

    /// Finds out which of this process's slots the pool has. What an operator removed stays away; what was
    /// lost is made anew, where another process made the pool first and knew its own slots only.
    pub(super) async fn take_stock(&self) -> Result<()> {
        let own = self.own.as_ref().map(OwnSlots::ids).unwrap_or_default();
        // Before it looks: whoever looks at the same time may have made them by then.
        let known = self.stock().quiet_until;
        let (mut present, mut quiet_until) = (Vec::new(), 0);
        for slots in own.chunks(MAX_PER_REQUEST) {
            let (found, until) = self.look(slots.to_vec()).await?;
            present.extend(found);
            quiet_until = until;
        }
        let mut lacks = present.len() < own.len();
        if lacks && quiet_until != known {
            self.define(self.courier.definition()).await?;
            lacks = false;
        }
        let mut stock = self.stock();
        stock.quiet_until = quiet_until;
        stock.present = (lacks && !present.is_empty()).then_some(present);
        Ok(())
    }

    /// Those of the slots that are there, and until when the pool grants nothing because of a loss.
    async fn look(&self, slots: Vec<SlotId>) -> Result<(Vec<SlotId>, Micros)> {
        match self.ask(Request::Inspect { slots }).await?.0 {
            Reply::Inspected { slots, quiet_until, .. } => {
                Ok((slots.into_iter().map(|view| view.slot).collect(), quiet_until))
            }
            other => Err(unexpected(&other)),
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In a pool that other processes share with slots of their own: any of this process's slots, in a
    /// random order.
    pub(super) fn own_choice(&self, count: u32, random: u64) -> Choice {
        let mut slots: Vec<SlotId> = match &self.stock().present {
            Some(present) => present.clone(),
            None => self.own.as_ref().map(OwnSlots::ids).unwrap_or_default(),
        };
        let mut state = random;
        for at in (1..slots.len()).rev() {
            state = mix(state);
            slots.swap(at, (state % (at as u64 + 1)) as usize);
        }
        slots.truncate(MAX_PER_REQUEST);
        Choice::These { slots, least: count, most: count }
    }

    /// Whether the claim named slots of this process that are not there (any more); or the store may have lost them just now:
    /// what is missing later was removed.
    pub(super) fn misses_own(&self, want: &Want, refused: &Refused) -> bool {
        if want.slots.is_some() || self.own.is_none() {
            return false;
        }
        match refused.why {
            Refusal::NoSlot => true,
            Refusal::Quiet => {
                let (mut stock, now) = (self.stock(), self.runtime.now());
                let is_new = stock.looked_into <= now;
                stock.looked_into = refused.earliest.unwrap_or(now);
                is_new
            }
            _ => false,
        }
    }
}
