//! What is used of a limit of money, as it is told: by births, each with its version. Read from the words that travelled,
//! and summed up in whole numbers; it shares no code with the library.

use std::collections::BTreeMap;

/// How long is kept that nothing is used of a limit: an hour longer than a client remembers.
pub const REMEMBERED: u64 = 25 * 3_600 * 1_000_000;
/// The most births before the present one that are told apart.
const APART: usize = 32;
/// A birth whose name has not been told yet: younger than all that have one.
const UNNAMED: &str = "~";

/// What is used of a limit of money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Births {
    /// When the period ends; 0 of a lifetime. Where it is told, when it is over.
    pub ends: u64,
    /// What ended by then, and is older, was over as it began.
    began: u64,
    /// The latest of what others told of that.
    heard: u64,
    /// When it was told to be over, where it is so sooner by now.
    told: u64,
    /// What is older does not count, or is counted in the present one.
    since: String,
    present: String,
    known: BTreeMap<String, (u64, i128)>,
    /// By what calendars a budget was asked in this period: how long each is, and when the first began.
    said: Vec<(u64, u64)>,
    /// Whether it follows something that was known of it.
    follows: bool,
}

impl Births {
    /// Nothing is used of the period that ends then.
    pub fn of_period(ends: u64) -> Self {
        Births { ends, ..Births::default() }
    }

    /// What is used of a budget once somebody asks by this calendar.
    pub fn asked(&self, calendar: (u64, u64), now: u64) -> Self {
        let longest = self.longest();
        // A day whose own calendar nobody says goes on to the end of one that somebody does.
        let ends = if now < self.ends { self.ends } else { self.over() };
        let told = self.told.max(self.over());
        if now < ends {
            let mut next = Births { follows: true, ends, ..self.clone() };
            if longest.is_none_or(|(period, _)| period < calendar.0) {
                next.ends = next.ends.max(ending(calendar, now));
            }
            if next.ends > self.ends && !self.is_blank() {
                next.change(0);
            }
            // Of those of one length the first, but for that of which it is a day.
            if longest.is_some_and(|(period, _)| period == calendar.0) && ending(calendar, ends - 1) == ends {
                next.said.clear();
            }
            next.said.push(calendar);
            next.was_told(told);
            return next;
        }
        // The next is as long as the longest that was said in this one, if it is the next.
        let last = longest.filter(|last| ends > 0 && now < ending(*last, ends));
        let whole = last.filter(|(period, _)| *period >= calendar.0).unwrap_or(calendar);
        let began = told.max(now);
        let mut next = Self::of_period(ending(whole, now));
        (next.said, next.follows, next.began) = (vec![calendar], last.is_some(), began);
        next.was_told(told);
        next
    }

    fn was_told(&mut self, told: u64) {
        self.told = if told > self.over() { told } else { 0 };
    }

    /// For how long somebody may bring along when it was told to end.
    pub fn remembered(&self, wall: u64) -> u64 {
        self.told.max(self.ends).saturating_sub(wall).min(REMEMBERED)
    }

    /// Whether something else is known of it once somebody asks by this calendar.
    pub fn turns(&self, calendar: (u64, u64), now: u64) -> bool {
        let next = self.asked(calendar, now);
        next.follows && (next.ends != self.ends || next.longest() != self.longest())
    }

    /// It is written: what was said of it is kept, though nothing is used.
    pub fn keep(&mut self) {
        if self.follows && self.is_blank() {
            self.present = UNNAMED.to_owned();
            self.known.insert(UNNAMED.to_owned(), (1, 0));
        }
    }

    /// When the period ends that follows.
    pub fn following(&self) -> u64 {
        self.longest().map_or(self.ends, |longest| ending(longest, self.over()))
    }

    /// When it is over, if nobody says anything else until then.
    pub fn over(&self) -> u64 {
        self.longest().map_or(self.ends, |longest| ending(longest, self.ends - 1))
    }

    /// Of those of one length the first.
    fn longest(&self) -> Option<(u64, u64)> {
        self.said.iter().rev().copied().max_by_key(|(period, _)| *period)
    }

    /// Reads what is told; nothing where nothing is.
    ///
    /// # Panics
    /// If the words are not those of a standing: the wire has changed, and this reading with it.
    pub fn read(text: &str) -> Option<Self> {
        if text == "-" {
            return None;
        }
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| word.parse::<i128>().expect("a number: the wire has changed");
        let mut births =
            Births { ends: number(words[2]) as u64, present: words[0].to_owned(), ..Births::default() };
        let mut own = number(words[3]);
        if let Some((since, others)) = words[4..].split_first() {
            match since.strip_prefix('-') {
                Some("") => {}
                Some(began) => births.began = number(began) as u64,
                None => births.since = (*since).to_owned(),
            }
            for other in others.chunks(3) {
                own -= number(other[2]);
                births.known.insert(other[0].to_owned(), (number(other[1]) as u64, number(other[2])));
            }
        }
        births.known.insert(words[0].to_owned(), (number(words[1]) as u64, own));
        Some(births)
    }

    /// What is used.
    pub fn used(&self) -> u128 {
        self.known.values().map(|(_, net)| net).sum::<i128>().max(0) as u128
    }

    /// Whether nothing was ever charged.
    pub fn is_blank(&self) -> bool {
        self.present.is_empty()
    }

    /// The birth that is charged; empty if there is none.
    pub fn present(&self) -> &str {
        &self.present
    }

    /// Whether something may have been forgotten since it was seen so: only a reset begins a birth of which all counts, and nothing of
    /// before. Where nothing was seen, since any time of which something is known.
    pub fn forgot_since(&self, seen: Option<&Births>) -> bool {
        let Some(seen) = seen else { return self.known.len() > 1 };
        let by_reset = self.since == self.present && seen.present < self.present;
        self.present != seen.present && !by_reset
    }

    /// Whether what was seen so tells nothing new: it is of this birth, no later, and knows of no others than this.
    fn holds(&self, seen: &Births) -> bool {
        let past = |births: &Births| {
            let mut known = births.known.clone();
            let present = known.remove(&births.present);
            ((births.since.clone(), births.began, known), present.map(|(version, _)| version))
        };
        let ((mine, version), (theirs, seen_version)) = (past(self), past(seen));
        let nothing = (String::new(), 0, BTreeMap::new());
        self.present == seen.present && version >= seen_version && (theirs == nothing || theirs == mine)
    }

    /// Whether it was known, as it began, that what was seen so was over.
    pub fn follows(&self, seen: &Births) -> bool {
        let elder = self.known.keys().next().is_none_or(|oldest| seen.present < *oldest);
        seen.ends > 0 && seen.ends <= self.began && elder
    }

    /// Charges something.
    pub fn charge(&mut self, cost: u128) {
        if cost > 0 {
            if self.is_blank() {
                self.present = UNNAMED.to_owned();
            }
            self.change(cost as i128);
        }
    }

    /// Gives something back, if so much is used.
    pub fn give_back(&mut self, cost: u128) {
        let cost = cost.min(self.used());
        if cost > 0 {
            self.change(-(cost as i128));
        }
    }

    /// Nothing is used, whatever was seen of what was; of a budget, of the period that it is by this calendar.
    pub fn reset(&mut self, calendar: Option<(u64, u64)>, now: u64) {
        let told = self.told.max(self.over());
        self.ends = calendar.map_or(0, |calendar| ending(calendar, now));
        self.said = calendar.into_iter().collect();
        self.began = 0;
        self.was_told(told);
        (self.since, self.present) = (UNNAMED.to_owned(), UNNAMED.to_owned());
        self.known = [(UNNAMED.to_owned(), (1, 0))].into();
    }

    /// Takes in what somebody has seen. On another server than before a birth begins. Whether anything changed.
    pub fn look(&mut self, seen: Option<&Births>, moved: bool) -> bool {
        let mut next = self.clone();
        let moved = moved && !self.is_blank();
        let (mut begins, mut news) = (moved || self.is_blank(), moved);
        if let Some(seen) = seen {
            news |= seen.since > next.since;
            next.began = next.began.max(seen.began);
            next.heard = next.heard.max(seen.began);
            next.since = next.since.max(seen.since.clone());
            for (birth, part) in seen.known.iter().filter(|(birth, _)| **birth >= next.since) {
                if next.known.get(birth).is_none_or(|(version, _)| *version < part.0) {
                    next.known.insert(birth.clone(), *part);
                    news = true;
                    begins |= *birth >= self.present;
                }
            }
            if seen.present >= next.since && !self.holds(seen) {
                next.ends = next.ends.max(seen.ends);
            }
        }
        if !news {
            return false;
        }
        // What was charged since a reset that was forgotten was charged after it.
        let forgot = !self.is_blank() && self.present < next.since;
        let kept =
            if forgot && !moved { next.known.get(&self.present).map_or(0, |(_, net)| *net) } else { 0 };
        next.known.retain(|birth, _| *birth >= next.since);
        if begins || forgot {
            next.present = UNNAMED.to_owned();
            next.known.insert(UNNAMED.to_owned(), (0, kept));
        }
        let sum: i128 = next.known.values().map(|(_, net)| net).sum();
        next.change(-sum.min(0));
        while next.known.len() > APART + 1 {
            let Some((_, (_, net))) = next.known.pop_first() else { break };
            next.known.entry(next.present.clone()).and_modify(|(_, own)| *own += net);
            next.since = next.known.keys().next().cloned().unwrap_or_default();
        }
        *self = next;
        true
    }

    /// A birth that has begun has the name that is told of it now, and everything is as it is told: what is not so otherwise.
    pub fn named(&mut self, told: &Births) -> Option<String> {
        if self.present == UNNAMED {
            let youngest = self.known.keys().rev().nth(1);
            if youngest.is_some_and(|youngest| *youngest >= told.present) {
                return Some(format!("a birth that begins is not the youngest: {told:?}"));
            }
            let own = self.known.remove(UNNAMED).unwrap_or_default();
            self.known.insert(told.present.clone(), own);
            // A birth that tells when its period began leaves only what others said of that to be told.
            if told.began == self.heard {
                self.began = self.heard;
            }
            self.present.clone_from(&told.present);
            if self.since == UNNAMED {
                self.since.clone_from(&told.present);
            }
        }
        // Where its birth tells when it began, that is not told.
        if told.began == 0 {
            self.began = 0;
        }
        let kept =
            Births { ends: self.over(), said: Vec::new(), follows: false, told: 0, heard: 0, ..self.clone() };
        (kept != *told).then(|| format!("{told:?} is told, it is {self:?}"))
    }

    fn change(&mut self, by: i128) {
        let (version, net) = self.known.entry(self.present.clone()).or_default();
        (*version, *net) = (*version + 1, *net + by);
    }
}

/// When the period of a calendar ends that it is then.
fn ending((period, first): (u64, u64), now: u64) -> u64 {
    first + (now - first) / period * period + period
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Births {
        Births::read(text).expect("a standing")
    }

    #[test]
    fn what_is_told_is_read_and_summed() {
        let told = read("b 3 0 50 - a 2 -10");
        assert_eq!((told.used(), told.known["b"], told.known["a"]), (50, (3, 60), (2, -10)));
        assert_eq!(Births::read("-"), None);
    }

    #[test]
    fn of_each_birth_the_later_version_counts() {
        let mut kept = read("b 3 0 50 - a 2 10");
        assert!(!kept.look(Some(&read("b 2 0 45 - a 2 10")), false));
        assert!(kept.look(Some(&read("a 5 0 25")), false));
        assert_eq!((kept.used(), kept.known["b"]), (65, (4, 40)));
        assert!(kept.look(Some(&read("b 9 0 100")), false), "it has gone back in time");
        assert_eq!((kept.used(), kept.present.as_str()), (125, UNNAMED));
        assert_eq!(kept.named(&read("c 1 0 125 - a 5 25 b 9 100")), None);
        kept.reset(None, 0);
        assert_eq!(kept.named(&read("d 1 0 0 d")), None);
        assert!(!kept.look(Some(&read("c 7 0 90")), false));
        assert!(kept.look(None, true) && kept.used() == 0);
    }
}
