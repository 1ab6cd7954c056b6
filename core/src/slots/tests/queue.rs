//! The rules of waiting once more, as plainly as they can be said. See [`super::model`].

use crate::Micros;
use crate::id::SlotId;
use crate::slots::{Choice, Claim, TICKET_LIFE};

/// Everybody who waits, in no order.
#[derive(Clone, Default)]
pub struct Queue {
    pub waiters: Vec<Waiter>,
}

#[derive(Clone)]
pub struct Waiter {
    pub holder: u128,
    /// What it wants: all of these names (0), so many of them, or so many of any slots.
    pub names: Vec<SlotId>,
    pub count: usize,
    pub turn: (i64, i128),
    pub priority: i16,
    pub steal: Option<Micros>,
    pub lapses: Micros,
    /// What is kept for it; it waits no more then.
    pub offered: Vec<SlotId>,
}

impl Waiter {
    /// Whether it wants some of its names, and more than one.
    pub fn wants_several(&self) -> bool {
        self.count > 1 && !self.names.is_empty()
    }
}

impl Queue {
    pub fn forget_the_vanished(&mut self, now: Micros) {
        self.waiters.retain(|waiter| !waiter.offered.is_empty() || waiter.lapses > now);
    }

    /// What was offered to this holder then has come back: those of its process who wait for it too, and have not asked since, go.
    pub fn drop_silent(&mut self, holder: u128, offered: Micros, name: &SlotId) {
        let process = holder >> 64;
        self.waiters.retain(|waiter| {
            let wants_it = waiter.names.is_empty() || waiter.names.contains(name);
            let is_silent = waiter.offered.is_empty() && waiter.lapses < offered + TICKET_LIFE;
            !cfg!(feature = "crowds")
                || process == 0
                || waiter.holder >> 64 != process
                || !wants_it
                || !is_silent
        });
    }

    /// Drops all who wait.
    pub fn clear(&mut self) {
        self.waiters.clear();
    }

    /// Whether a claim would overtake somebody.
    pub fn overtakes(&self, now: Micros, claim: &Claim, wants: &[SlotId]) -> bool {
        let own = match self.find(claim.holder).filter(|waiter| waiter.lapses > now) {
            Some(waiter) => waiter.turn,
            None => turn(now, claim),
        };
        self.anybody_before((own, claim.holder), wants)
    }

    /// Whether anybody who waits for one of these, or for any slot, comes before this turn.
    pub fn anybody_before(&self, turn: ((i64, i128), u128), wants: &[SlotId]) -> bool {
        let same_line = |waiter: &&Waiter| match wants {
            [] => waiter.names.is_empty(),
            names => waiter.names.iter().any(|name| names.contains(name)),
        };
        self.standing().filter(same_line).any(|waiter| (waiter.turn, waiter.holder) < turn)
    }

    pub fn enter(&mut self, now: Micros, claim: &Claim) {
        let lapses = now + TICKET_LIFE;
        if let Some(waiter) = self.waiters.iter_mut().find(|waiter| waiter.holder == claim.holder) {
            waiter.lapses = lapses;
            return;
        }
        let (wanted, count) = match &claim.choice {
            Choice::Any { least, .. } => (Vec::new(), *least as usize),
            Choice::Among { slots, count } => (slots.clone(), *count as usize),
            Choice::Named { slots } => (slots.clone(), 0),
            Choice::Free { .. } => return,
        };
        let mut names: Vec<SlotId> = Vec::new();
        for name in wanted {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let turn = turn(now, claim);
        let Claim { holder, priority, steal, .. } = *claim;
        self.waiters.push(Waiter {
            holder,
            names,
            count,
            turn,
            priority,
            steal,
            lapses,
            offered: Vec::new(),
        });
    }

    pub fn leave(&mut self, holder: u128) -> Option<Waiter> {
        let at = self.waiters.iter().position(|waiter| waiter.holder == holder)?;
        Some(self.waiters.remove(at))
    }

    /// Lets those go, from the first on, who want more than there will ever be; whether anybody does.
    pub fn pass_over(&mut self, obtainable: usize) -> bool {
        let before = self.waiters.len();
        while let Some(first) = self.first().filter(|first| first.count > obtainable) {
            let holder = first.holder;
            self.leave(holder);
        }
        self.waiters.len() < before
    }

    /// The first who takes any slot.
    pub fn first(&self) -> Option<&Waiter> {
        self.first_of(None)
    }

    /// The first who waits for this name, or for any slot.
    pub fn first_of(&self, name: Option<&SlotId>) -> Option<&Waiter> {
        let in_line = |waiter: &&Waiter| match name {
            Some(name) => waiter.names.contains(name),
            None => waiter.names.is_empty(),
        };
        self.standing().filter(in_line).min_by_key(|waiter| (waiter.turn, waiter.holder))
    }

    /// Those who can have all the names that they want, or one of them, before whom nobody comes for these; and what they
    /// can have.
    /// `is_ready` says it of the slots that are there.
    pub fn servable(&self, is_ready: impl Fn(&SlotId) -> Option<bool>) -> Vec<(u128, Vec<SlotId>)> {
        let can_have = |waiter: &Waiter, names: &[SlotId]| {
            let before = self.anybody_before((waiter.turn, waiter.holder), names);
            let may_be_made = waiter.count == 0;
            names.iter().all(|name| is_ready(name).unwrap_or(may_be_made)) && !before
        };
        let named = self.standing().filter(|waiter| !waiter.names.is_empty());
        let what = named.map(|waiter| {
            let one = |name: &&SlotId| can_have(waiter, std::slice::from_ref(name));
            let names = match waiter.count {
                0 if can_have(waiter, &waiter.names) => waiter.names.clone(),
                0 => Vec::new(),
                // What is kept for them is looked at where it is kept.
                2.. => Vec::new(),
                _ if self.anybody_before((waiter.turn, waiter.holder), &[]) => Vec::new(),
                _ => waiter.names.iter().filter(one).cloned().collect(),
            };
            (waiter.holder, names)
        });
        what.filter(|(_, names)| !names.is_empty()).collect()
    }

    fn find(&self, holder: u128) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.holder == holder)
    }

    pub fn standing(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().filter(|waiter| waiter.offered.is_empty())
    }
}

fn turn(now: Micros, claim: &Claim) -> (i64, i128) {
    let arrival = i128::from(now.saturating_sub(claim.waited));
    match claim.ageing {
        0 => (-i64::from(claim.priority), arrival),
        ageing => (0, (arrival - i128::from(claim.priority) * i128::from(ageing)).clamp(0, 1 << 53)),
    }
}
