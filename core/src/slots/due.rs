//! Slots that something will happen to: the end of a lease or of a rest.

use std::collections::BTreeMap;

use super::slot::Slot;
use crate::Micros;

/// Slots ordered by their time, those of one time by their id, as in a sorted set of Redis.
#[derive(Clone, Debug, Default)]
pub(super) struct DueSet {
    times: BTreeMap<Micros, Places>,
    len: usize,
}

/// The slots of one time: nearly always one.
#[derive(Clone, Debug)]
enum Places {
    One(u32),
    Several(Vec<u32>),
}

impl DueSet {
    pub(super) fn insert(&mut self, at: Micros, place: u32) {
        self.len += 1;
        self.times.entry(at).and_modify(|places| places.add(place)).or_insert(Places::One(place));
    }

    pub(super) fn remove(&mut self, at: Micros, place: u32) {
        let Some(places) = self.times.get_mut(&at) else { return };
        self.len -= 1;
        if places.take(place) {
            self.times.remove(&at);
        }
    }

    /// Takes the first slot whose time has come.
    pub(super) fn pop(&mut self, now: Micros, slots: &[Slot]) -> Option<u32> {
        let (&at, places) = self.times.first_key_value()?;
        if at > now {
            return None;
        }
        let place = match places {
            Places::One(place) => *place,
            Places::Several(places) => {
                *places.iter().min_by_key(|&&place| slots.get(place as usize).map(|slot| &slot.id))?
            }
        };
        self.remove(at, place);
        Some(place)
    }

    /// The time of the first slot.
    pub(super) fn next(&self) -> Option<Micros> {
        self.times.first_key_value().map(|(&at, _)| at)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Places {
    fn add(&mut self, place: u32) {
        match self {
            Places::One(first) => *self = Places::Several(vec![*first, place]),
            Places::Several(places) => places.push(place),
        }
    }

    /// Whether none is left.
    fn take(&mut self, place: u32) -> bool {
        match self {
            Places::One(_) => true,
            Places::Several(places) => {
                places.retain(|&other| other != place);
                places.is_empty()
            }
        }
    }
}
