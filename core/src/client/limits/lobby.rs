//! Where those of this process wait who ask the limits of one scope, and what they were told a moment ago.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::line::Line;
use super::refusals::Refusals;
use crate::id::Name;
use crate::limits::{Charge, Request};
use crate::poison::unpoisoned;

/// How many entries there are at least before those are looked for in whose line nobody stands any more.
const CROWD: usize = 64;

/// The lines of one scope, and what was refused.
#[derive(Debug, Default)]
pub(super) struct Lobby {
    refusals: Mutex<Refusals>,
    lines: Mutex<Lines>,
    /// How many have entered any of the lines.
    arrived: Arc<AtomicU64>,
}

/// What is waited for together, by the letters of the kinds and the names.
type Limits = Arc<[(char, Name)]>;

#[derive(Debug, Default)]
struct Lines {
    /// By the name of each of its limits, and all of them: those of one name stand together.
    known: BTreeMap<(Name, Limits), Weak<Line>>,
    /// How many there are as the next look is due.
    crowd: usize,
}

impl Lobby {
    /// An empty one; the seed is for [`Refusals::new`].
    pub fn new(seed: u64) -> Self {
        Lobby { refusals: Mutex::new(Refusals::new(seed)), ..Lobby::default() }
    }

    /// The line of those who wait for the same limits.
    pub fn line(&self, charges: &[Charge]) -> Arc<Line> {
        let limits: Limits =
            charges.iter().map(|charge| (charge.rule.letter(), charge.limit.clone())).collect();
        let key = |charge: &Charge| (charge.limit.clone(), limits.clone());
        let mut lines = self.lines();
        let known = charges.first().and_then(|first| lines.known.get(&key(first)));
        if let Some(line) = known.and_then(Weak::upgrade) {
            return line;
        }
        if lines.known.len() >= lines.crowd {
            lines.known.retain(|_, line| line.strong_count() > 0);
            lines.crowd = CROWD.max(2 * lines.known.len());
        }
        let line = Arc::new(Line::of(self.arrived.clone()));
        lines.known.extend(charges.iter().map(|charge| (key(charge), Arc::downgrade(&line))));
        line
    }

    /// There may be more of the limits that this frees: what of them was refused is asked for anew, and the first of each line whom one of
    /// them refused, or perhaps will, looks again.
    pub fn hear(&self, request: &Request) {
        self.refusals().forget(request);
        nudge(self.lines().refused_by(request.freed()));
    }

    /// The first of each line looks again.
    pub fn nudge(&self) {
        let lines = self.lines().known.values().filter_map(Weak::upgrade).collect();
        nudge(lines);
    }

    pub fn refusals(&self) -> MutexGuard<'_, Refusals> {
        unpoisoned(&self.refusals)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        unpoisoned(&self.lines)
    }
}

impl Lines {
    /// Those who wait for any of these limits, but for those whom another refused.
    fn refused_by<'a>(&self, limits: impl Iterator<Item = &'a Name>) -> Vec<Arc<Line>> {
        let of_limit = |limit: &'a Name| {
            let lines = self.known.range((limit.clone(), Arc::default())..);
            let lines = lines.take_while(move |((name, _), _)| name == limit);
            lines.filter_map(|(_, line)| line.upgrade()).filter(move |line| line.may_be_helped_by(limit))
        };
        limits.flat_map(of_limit).collect()
    }
}

/// The first of each line looks: those who came first before others.
fn nudge(mut lines: Vec<Arc<Line>>) {
    in_order(&mut lines);
    lines.iter().for_each(|line| line.nudge());
}

/// Each line once, by its first.
fn in_order(lines: &mut Vec<Arc<Line>>) {
    lines.retain(|line| line.first().is_some());
    lines.sort_by_cached_key(|line| line.first());
    lines.dedup_by(|line, other| Arc::ptr_eq(line, other));
}

#[cfg(test)]
mod tests {
    use super::super::line::Place;
    use super::*;
    use crate::limits::{Act, Rule};

    fn of(names: &[String]) -> Vec<Charge> {
        let charge = |name: &String| Charge {
            limit: Name::new(name).unwrap(),
            rule: Rule::InFlight { max: 1 },
            cost: 1u64.into(),
            open: false,
        };
        names.iter().map(charge).collect()
    }

    // By the names of what they wait for, whoever came first.
    #[test]
    fn who_came_first_looks_first_whatever_else_it_waits_for() {
        use futures_util::FutureExt;

        let lobby = Lobby::default();
        let of_tenant = |tenant: &str| of(&["global".to_owned(), tenant.to_owned()]);
        let enter = |tenant: &str, priority| lobby.line(&of_tenant(tenant)).enter(priority, false);
        let places = [enter("z", 0), enter("a", 0), enter("m", 5), enter("a", 9), enter("z", 0)];
        let order =
            |lines: Vec<Arc<Line>>| lines.iter().map(|line| line.first().unwrap().1).collect::<Vec<_>>();
        let names = of_tenant("z").into_iter().map(|charge| charge.limit).collect::<Vec<_>>();
        let mut lines = lobby.lines().refused_by(names.iter());
        in_order(&mut lines);
        assert_eq!(order(lines), [3, 2, 0]);
        // The first of each is called, and nobody else.
        let mut called: Vec<_> = places.iter().map(Place::called).collect();
        lobby.hear(&Request { act: Act::Refund, charges: of_tenant("b") });
        let heard: Vec<_> = called.iter_mut().map(|called| called.now_or_never().is_some()).collect();
        assert_eq!(heard, [true, false, true, true, false]);
    }

    #[test]
    fn lines_in_which_nobody_stands_are_forgotten() {
        let lobby = Lobby::default();
        let stays = of(&["global".to_owned(), "stays".to_owned()]);
        let line = lobby.line(&stays);
        for user in 0..10_000 {
            lobby.line(&of(&["global".to_owned(), format!("user:{user}")]));
            assert!(lobby.lines().known.len() <= CROWD + 2);
        }
        assert!(Arc::ptr_eq(&line, &lobby.line(&stays)));
    }
}
