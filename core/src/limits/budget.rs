//! A budget for each period of the calendar.

use super::lifetime::fits;
use super::record::{Judged, Lasts};
use super::standing::{Birth, Standing};
use super::{Amount, REMEMBERED};
use crate::Micros;

/// What is used of a period, which may be asked by several calendars.
///
/// It is never cut short, and as long at least as the longest that was said in the one before or in it: whoever asks in each
/// of its periods finds what all were allowed in its own. Of calendars that do not nest that is so of the longest only. Of those
/// of one length the one that was there stays, or in turn they would cut each other off; unless nobody says it in a whole period,
/// which then goes on to the end of one that was said. What another limit of a group refuses is heard too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Budget {
    pub standing: Standing,
    /// The longest that was said in it; none before anybody asks.
    said: Option<Calendar>,
    /// When it is over by what was told of it, where it is over sooner by what was said since; 0 if it is not.
    told: Micros,
    /// Whether there was a record of it, or of the one before.
    known: bool,
}

/// So long, from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    pub period: Micros,
    pub offset: Micros,
}

/// The period that it is once somebody asks by a calendar: when it ends, the longest that was said in it, and whether there was a
/// record of it, or of the one before.
struct Asked {
    ends: Micros,
    said: Calendar,
    known: bool,
    /// It is the one that it was.
    goes_on: bool,
}

impl Calendar {
    /// When the period ends that it is then.
    fn ends(self, now: Micros) -> Micros {
        let Calendar { period, offset } = self;
        match now.checked_sub(offset) {
            Some(since) => (since / period + 1) * period + offset,
            None => offset,
        }
    }

    /// When the period ends in which something ends then, or with which it does.
    fn covers(self, ends: Micros) -> Micros {
        self.ends(ends.saturating_sub(1))
    }
}

impl Budget {
    /// What is used of the period that it is now, once somebody asks by this calendar; of a new one, what counts from this birth on.
    pub fn at(mut self, calendar: Calendar, now: Micros, birth: Birth) -> Self {
        let Asked { ends, said, known, goes_on } = self.asked(calendar, now);
        let told = self.told.max(self.over());
        if goes_on {
            self.standing.lengthen(ends);
        } else {
            // Who was told that the last one goes on is told here that it does not.
            let began = if told > now { told } else { now };
            self.standing = Standing::of_period(ends, began, birth);
        }
        let mut budget = Budget { standing: self.standing, said: Some(said), told: 0, known };
        budget.was_told(told);
        budget
    }

    /// It was told to last until then, which is kept if it is over sooner.
    fn was_told(&mut self, told: Micros) {
        self.told = if told > self.over() { told } else { 0 };
    }

    /// Whether who asks by this calendar changes until when it lasts, or what was said.
    pub fn turns(&self, calendar: Calendar, now: Micros) -> bool {
        let Asked { ends, said, known, .. } = self.asked(calendar, now);
        known && (self.said != Some(said) || self.standing.ends() != ends)
    }

    fn asked(&self, calendar: Calendar, now: Micros) -> Asked {
        let (ends, over) = (self.standing.ends(), self.over());
        let ends = if now < ends { ends } else { over };
        if now < ends {
            let is_its = calendar.covers(ends) == ends;
            let stays =
                |said: &Calendar| said.period > calendar.period || said.period == calendar.period && !is_its;
            let said = self.said.filter(stays);
            let ends = said.map_or_else(|| ends.max(calendar.ends(now)), |_| ends);
            return Asked { ends, said: said.unwrap_or(calendar), known: true, goes_on: true };
        }
        // What was said is known to the end of the period that follows.
        let last = self.said.filter(|said| over > 0 && now < said.ends(over));
        let longest = last.filter(|last| last.period >= calendar.period).unwrap_or(calendar);
        Asked { ends: longest.ends(now), said: calendar, known: last.is_some(), goes_on: false }
    }

    /// When it is over, if nobody says another calendar until it ends.
    pub fn over(&self) -> Micros {
        let ends = self.standing.ends();
        self.said.map_or(ends, |said| said.covers(ends))
    }

    pub fn judge(&self, max: Amount, now: Micros, cost: Amount) -> Judged {
        let used = self.standing.used();
        let allowed = fits(used, max, cost);
        let left = self.over() - now;
        Judged {
            allowed,
            remaining: max.saturating_sub(used),
            retry: if allowed { Some(0) } else { (cost <= max).then_some(left) },
            reset: Some(if used == Amount::ZERO { 0 } else { left }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.standing.used() == Amount::ZERO
    }

    /// Nothing is used of the period that it is now by this calendar, whatever others have said. Who has not heard of it in this period
    /// brings along in a later one what was told before.
    pub fn reset(&mut self, calendar: Calendar, now: Micros, birth: Birth) {
        let told = self.told.max(self.over());
        self.standing.reset(birth, calendar.ends(now));
        self.said = Some(calendar);
        self.was_told(told);
    }

    /// What was said of it is kept, though nothing is used: it begins to count, in this birth.
    pub fn keep(&mut self, now: Birth) {
        if self.known {
            self.standing.begin(now);
        }
    }

    /// How long the record is needed: to the end of the following period, which is as long as the longest that was said in this
    /// one. Where somebody may have been told of a later end, as before a reset or by a clock that was wrong, for as long as anybody
    /// remembers that.
    pub fn lasts(&self, now: Micros, wall: Micros) -> Lasts {
        let over = self.over();
        let following = self.said.map_or(over, |said| said.ends(over));
        let told = self.told.max(self.standing.ends()).saturating_sub(wall).min(REMEMBERED);
        Lasts::After(if self.standing.is_blank() { 0 } else { told.max(following - now) })
    }
}
