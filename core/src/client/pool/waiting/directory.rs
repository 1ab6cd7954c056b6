//! Who sits where in a waiting room: there may be many, and a call is for a few of them.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{Chair, Turn};
use crate::id::SlotId;

#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Who has which ticket of the store's.
    pub tickets: FxHashMap<u128, (Turn, u64)>,
    /// How many wait for names.
    pub named: usize,
    /// How many take any slot, or have taken one just now.
    pub anyone: usize,
    /// Who waits for which name, by turn.
    names: BTreeSet<(SlotId, Turn, u64)>,
}

impl Directory {
    pub fn add(&mut self, chair: &Chair) {
        self.named += usize::from(!chair.names.is_empty());
        self.names.extend(chair.names.iter().map(|name| (name.clone(), chair.turn, chair.number)));
        self.stay(chair);
    }

    pub fn remove(&mut self, chair: &Chair) {
        self.named -= usize::from(!chair.names.is_empty());
        for name in &chair.names {
            self.names.remove(&(name.clone(), chair.turn, chair.number));
        }
        self.leave(chair);
    }

    /// It waits at its place.
    pub fn stay(&mut self, chair: &Chair) {
        self.anyone += usize::from(chair.place.is_for_any());
        let ticket = chair.place.ticket();
        self.tickets.extend(ticket.map(|ticket| (ticket, (chair.turn, chair.number))));
    }

    /// It waits there no longer.
    pub fn leave(&mut self, chair: &Chair) {
        self.anyone -= usize::from(chair.place.is_for_any());
        chair.place.ticket().map(|ticket| self.tickets.remove(&ticket));
    }

    /// Who waits for this name.
    pub fn of(&self, name: &SlotId) -> impl Iterator<Item = (Turn, u64)> {
        let first = (name.clone(), (i32::MIN, i64::MIN), 0);
        let of_name = self.names.range(first..).take_while(|(waits_for, ..)| *waits_for == *name);
        of_name.map(|(_, turn, number)| (*turn, *number))
    }
}
