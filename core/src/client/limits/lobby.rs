//! Where those of this process wait who ask the limits of one scope, and what they were told a moment ago.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::line::Line;
use super::refusals::Refusals;
use crate::id::Name;
use crate::limits::Charge;

/// How many entries there are at least before those are looked for in whose line nobody stands any more.
const CROWD: usize = 64;

/// The lines of one scope, and what was refused.
#[derive(Debug, Default)]
pub(super) struct Lobby {
    refusals: Mutex<Refusals>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// By each of its limits, and all of them: those of one limit stand together.
    known: BTreeMap<(Name, Arc<[Name]>), Weak<Line>>,
    /// How many there are as the next look is due.
    crowd: usize,
}

impl Lobby {
    /// The line of those who wait for the same limits.
    pub fn line(&self, charges: &[Charge]) -> Arc<Line> {
        let names: Arc<[Name]> = charges.iter().map(|charge| charge.limit.clone()).collect();
        let key = |name: &Name| (name.clone(), names.clone());
        let mut lines = self.lines();
        let known = names.first().and_then(|first| lines.known.get(&key(first)));
        if let Some(line) = known.and_then(Weak::upgrade) {
            return line;
        }
        if lines.known.len() >= lines.crowd {
            lines.known.retain(|_, line| line.strong_count() > 0);
            lines.crowd = CROWD.max(2 * lines.known.len());
        }
        let line = Arc::new(Line::default());
        lines.known.extend(names.iter().map(|name| (key(name), Arc::downgrade(&line))));
        line
    }

    /// What of these limits was refused is asked for anew, and the first of those who wait for any of them looks again.
    pub fn has_changed(&self, charges: &[Charge]) {
        self.refusals().forget(charges);
        for charge in charges {
            let first = (charge.limit.clone(), Arc::default());
            let lines: Vec<_> = {
                let lines = self.lines();
                let of_limit = lines.known.range(first..).take_while(|((name, _), _)| *name == charge.limit);
                of_limit.filter_map(|(_, line)| line.upgrade()).collect()
            };
            lines.iter().for_each(|line| line.nudge());
        }
    }

    /// The first of each line looks again.
    pub fn nudge(&self) {
        let lines: Vec<_> = self.lines().known.values().filter_map(Weak::upgrade).collect();
        lines.iter().for_each(|line| line.nudge());
    }

    pub fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Rule;

    fn of(names: &[String]) -> Vec<Charge> {
        let charge = |name: &String| Charge {
            limit: Name::new(name).unwrap(),
            rule: Rule::InFlight { max: 1 },
            cost: 1u64.into(),
            open: false,
        };
        names.iter().map(charge).collect()
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
