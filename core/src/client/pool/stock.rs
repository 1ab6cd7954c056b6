//! Which of a process's slots a pool has, where processes with slots of their own share it.

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;

#[cfg(feature = "crowds")]
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;

use super::acquisition::{Refused, Want, mix};
use super::lease::unexpected;
#[cfg(feature = "crowds")]
use super::waiting::Seat;
use super::{OwnSlots, PoolCore};
use crate::error::Result;
use crate::id::SlotId;
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
use crate::slots::{Choice, MANY, MAX_PER_REQUEST, Refusal, Reply, Request};
use crate::store::Store;
use crate::{Micros, SECOND};

/// How many of its slots a process names at first. Without `crowds` it names no others.
const FEW: usize = if cfg!(feature = "crowds") { 32 } else { MAX_PER_REQUEST };
/// How many of them it stands in line for: the store looks at all of these lines whenever something changes in one.
const LINES: usize = if cfg!(feature = "crowds") { MANY } else { MAX_PER_REQUEST };
/// For how long claims name this process's slots after one of another came, at first and at most.
const SHY: (Micros, Micros) = (SECOND, 60 * SECOND);

/// For so long nobody looks again which of them are there: what was removed may be added again.
const LOOKED: Micros = 5 * SECOND;

/// By so much the end of a quiet time must be later than what is known for it to be one of another loss.
const LATER: Micros = SECOND;

/// Which of this process's slots are in the pool.
#[derive(Debug, Default)]
pub(in crate::client) struct Stock {
    /// Nothing if that was not asked, or all are there.
    present: Option<Vec<SlotId>>,
    /// Until when that counts.
    present_until: Micros,
    /// How often others were there than before.
    #[cfg(feature = "crowds")]
    changes: u32,
    /// For how long claims name them now.
    pause: Micros,
    /// The store's last loss of memory, as far as that was looked into.
    loss: u32,
    /// Until when the pool is quiet, on the local clock, as of the last loss that was looked into.
    looked_into: Micros,
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Notes when the store last lost its memory, to see later whether it lost it again.
    pub(super) async fn note_losses(&self) -> Result<()> {
        let (_, loss) = self.look(Vec::new()).await?;
        self.stock().loss = loss;
        Ok(())
    }

    /// Finds out which of this process's slots the pool has. What an operator removed stays away; what was
    /// lost is made anew, where another process made the pool first and knew its own slots only. In its quiet time the pool
    /// has just lost its memory.
    pub(in crate::client) async fn take_stock(&self, want: &Want, quiet: bool) -> Result<()> {
        let own = self.own.as_ref().map(OwnSlots::ids).unwrap_or_default();
        // Before it looks: whoever looks at the same time may have made them by then.
        let known = self.stock().loss;
        let (mut present, mut loss) = (Vec::new(), 0);
        for slots in own.chunks(MAX_PER_REQUEST) {
            let (found, last) = self.look(slots.to_vec()).await?;
            present.extend(found);
            loss = last;
        }
        let mut lacks = present.len() < own.len();
        // Who names one later and finds others there may have named what was removed since.
        let named = want.slots.is_some() && !quiet;
        if lacks && loss != known && (!named || present.is_empty()) {
            self.define(self.courier.definition()).await?;
            lacks = false;
        }
        let mut stock = self.stock();
        if !(named && lacks) {
            stock.loss = loss;
        }
        let present = (lacks && !present.is_empty()).then_some(present);
        #[cfg(feature = "crowds")]
        (stock.changes += u32::from(stock.present != present));
        stock.present = present;
        stock.present_until = self.runtime.now() + LOOKED;
        Ok(())
    }

    /// Those of the slots that are there, and the pool's last loss of memory.
    async fn look(&self, slots: Vec<SlotId>) -> Result<(Vec<SlotId>, u32)> {
        match self.ask(Request::Inspect { slots }).await?.0 {
            Reply::Inspected { slots, loss, .. } => {
                Ok((slots.into_iter().map(|view| view.slot).collect(), loss))
            }
            other => Err(unexpected(&other)),
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        unpoisoned(&self.stock)
    }

    /// Whether a claim of any slot names those of this process, because one of another came a while ago. One that stands in
    /// line goes on with what it said there.
    pub(in crate::client) fn names_own(&self, want: &Want) -> bool {
        let until = self.own_until.load(Relaxed);
        // Without `crowds` it does so from then on.
        if !cfg!(feature = "crowds") || want.slots.is_some() {
            return want.slots.is_none() && until > 0;
        }
        if !want.has_ticket.load(Relaxed) {
            want.names_own.store(until > 0 && self.runtime.now() < until, Relaxed);
        }
        want.names_own.load(Relaxed)
    }

    /// Whether one that stands in line for this process's slots does so for all of them.
    pub(super) fn stands_for_all(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.len() <= LINES)
    }

    /// A slot of another process came. The more of them there are, the longer this one names its own.
    pub(super) fn meet_strangers(&self) {
        if !cfg!(feature = "crowds") {
            return self.own_until.store(1, Relaxed);
        }
        let now = self.runtime.now();
        let mut stock = self.stock();
        let (least, most) = SHY;
        let again = now < self.own_until.load(Relaxed) + stock.pause;
        stock.pause = if again { most.min(stock.pause * 2) } else { least };
        self.own_until.store(now + stock.pause, Relaxed);
    }

    /// A few of this process's slots, at random; then part by part all that there are. Who stands in line does so for as many as
    /// it may.
    pub(super) fn own_choice(&self, count: u32, random: u64, part: usize, stands: bool) -> Choice {
        let stock = self.stock();
        let mut slots = self.present(&stock);
        let mut most = if stands { LINES } else { FEW };
        if part > 0 && !stands && cfg!(feature = "crowds") {
            most = MAX_PER_REQUEST;
            // No part costs more than it has, so that all of them together cost no more than there are.
            slots = slots.chunks(most).nth(part - 1).unwrap_or_default();
        }
        Choice::Among { slots: drawn(slots, most.max(count as usize), random), count }
    }

    /// In how many claims all slots of this process are named; who waits stands in line with the last one.
    pub(super) fn parts(&self, waits: bool) -> usize {
        let count = if cfg!(feature = "crowds") { self.present(&self.stock()).len() } else { 0 };
        let at_once = if waits { LINES } else { FEW };
        if count <= at_once { 1 } else { 1 + count.div_ceil(MAX_PER_REQUEST) + usize::from(waits) }
    }

    /// Who stands in line for its own while some of them are away looks now and then whether that is still so: one look serves all
    /// who wait. If others are there now it takes a new ticket, which stands for these.
    #[cfg(feature = "crowds")]
    pub(in crate::client) async fn look_again(&self, want: &Want, seat: Option<&Seat>) {
        if seat.is_none() || !want.has_ticket.load(Relaxed) || !want.names_own.load(Relaxed) {
            return;
        }
        let looks = {
            let (mut stock, now) = (self.stock(), self.runtime.now());
            let looks = stock.present.is_some() && stock.present_until <= now;
            if looks {
                stock.present_until = now + LOOKED;
            }
            looks
        };
        if looks {
            // Where that fails it goes on with what it knows.
            let _ = self.take_stock(want, false).await;
        }
        if self.stock().changes != want.stock.load(Relaxed) {
            self.courier.withdraw(self.holder(want));
            self.rename(want, seat);
        }
    }

    /// Notes for which of its own it gets a ticket, if it gets one.
    #[cfg(feature = "crowds")]
    pub(in crate::client) fn note_stock(&self, want: &Want) {
        if !want.has_ticket.load(Relaxed) && self.own.is_some() {
            want.stock.store(self.stock().changes, Relaxed);
        }
    }

    /// Those of this process's slots that are there, as far as it knows.
    fn present<'a>(&'a self, stock: &'a Stock) -> &'a [SlotId] {
        match &stock.present {
            Some(present) if self.runtime.now() < stock.present_until => present,
            _ => self.own.as_ref().map(OwnSlots::ids).unwrap_or_default(),
        }
    }

    /// Whether the claim named slots of this process that are not there (any more); or the store may have lost them just now:
    /// what is missing later was removed.
    pub(in crate::client) fn misses_own(&self, want: &Want, refused: &Refused) -> bool {
        let own = |slot: &SlotId| self.own.as_ref().is_some_and(|own| own.has(slot));
        if self.own.is_none() || want.slots.as_ref().is_some_and(|named| !named.iter().any(own)) {
            return false;
        }
        match refused.why {
            Refusal::NoSlot => true,
            Refusal::Quiet => {
                let (mut stock, now) = (self.stock(), self.runtime.now());
                let until = refused.earliest.unwrap_or(now);
                // One of a later loss ends later. That of the same seems to do so by what an answer takes longer.
                let is_later = cfg!(feature = "crowds") && until > stock.looked_into + LATER;
                let is_new = stock.looked_into <= now || is_later;
                if is_new || !cfg!(feature = "crowds") {
                    stock.looked_into = until;
                }
                is_new
            }
            _ => false,
        }
    }

    /// Begins the look into a loss of memory that [`Self::misses_own`] asked for.
    #[cfg(feature = "crowds")]
    pub(super) fn begin_look(&self) -> Look<'_> {
        Look { stock: &self.stock, is_done: false }
    }
}

/// A look into a loss of memory. Whoever began it may leave before it gave anything: then another looks.
#[cfg(feature = "crowds")]
pub(super) struct Look<'a> {
    stock: &'a Mutex<Stock>,
    is_done: bool,
}

#[cfg(feature = "crowds")]
impl Look<'_> {
    /// All was seen, and made anew where it was missing.
    pub fn end(mut self) {
        self.is_done = true;
    }
}

#[cfg(feature = "crowds")]
impl Drop for Look<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            unpoisoned(self.stock).looked_into = 0;
        }
    }
}

/// At most so many of these, in a random order. It takes the time of those, not of all.
#[cfg(feature = "crowds")]
fn drawn(slots: &[SlotId], most: usize, mut state: u64) -> Vec<SlotId> {
    let all = slots.len();
    // As if all of them were shuffled, of which only what changes places is kept.
    let mut moved = rustc_hash::FxHashMap::default();
    let draw = |at| {
        state = mix(state);
        let from = at + (state % (all - at) as u64) as usize;
        let here = moved.remove(&at).unwrap_or(at);
        let taken = if from == at { here } else { moved.insert(from, here).unwrap_or(from) };
        slots.get(taken).cloned()
    };
    (0..all.min(most)).filter_map(draw).collect()
}

/// At most so many of these, in a random order.
#[cfg(not(feature = "crowds"))]
fn drawn(slots: &[SlotId], most: usize, mut state: u64) -> Vec<SlotId> {
    let (all, mut slots) = (slots.len(), slots.to_vec());
    for at in 0..all.min(most) {
        state = mix(state);
        slots.swap(at, at + (state % (all - at) as u64) as usize);
    }
    slots.truncate(most);
    slots
}
