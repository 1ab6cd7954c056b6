//! The lanes of one client to one store: which envelope sets out when, by how the store answers.

#[cfg(not(target_family = "wasm"))]
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use crate::runtime::Runtime;
use crate::{MILLISECOND, Micros, SECOND};

/// The most envelopes under way at once.
const MOST: usize = 8;
/// A store whose answers all took longer is far: not the work but the way takes the time, which several envelopes can be on at
/// once.
const FAR: Micros = MILLISECOND;
/// So many set out to a far store without waiting for one another.
const FREE: usize = 4;
/// Another one, to a near store the second already, sets out only when the youngest that is under way was sent so long ago, or
/// when [`Lanes`]' crowd waits: a store works on one after the other, and a few large ones cost it less. Both double with
/// every further envelope.
const PATIENCE: Micros = 200;
/// A lane that has not taken what waits by then holds up no other: whoever drives it stands still, or is gone.
const LOADING: Micros = SECOND / 10;

/// So many that wait are several rounds of all lanes: who had no answer in time was kept from it by those before it.
#[cfg(feature = "crowds")]
const ROUNDS: usize = 1_000;

/// Numbered lanes, in each of which one envelope at a time is under way, of at most `BATCH` requests. So many that wait are a
/// crowd.
#[derive(Debug, Default)]
pub(super) struct Lanes<const CROWD: usize, const BATCH: usize> {
    lanes: Vec<Lane>,
    /// The shortest time that an answer took since the store was last in trouble, 0 if there was none: a server that has much to
    /// do looks far, but not always.
    distance: Micros,
    /// What the store said, while it does not answer.
    trouble: Option<String>,
    /// When several rounds of requests last waited.
    #[cfg(feature = "crowds")]
    crowded: Option<Micros>,
    /// Whether somebody looks again: see [`Self::is_to_look_again`].
    #[cfg(not(target_family = "wasm"))]
    looks_again: bool,
}

#[derive(Debug, Default)]
struct Lane {
    sequence: u64,
    course: Course,
}

/// What a lane is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Course {
    #[default]
    Rests,
    /// Since then it is to take what waits, as soon as those who are about to ask have done so.
    Loads(Micros),
    /// Its envelope was sent then, with so many requests as far as they count.
    Away(Micros, usize),
}

impl<const CROWD: usize, const BATCH: usize> Lanes<CROWD, BATCH> {
    /// A lane that is to load, if so many requests should not wait for one that is under way. In times of trouble one is
    /// enough.
    pub fn for_more(&mut self, waiting: usize, now: Micros) -> Option<u16> {
        #[cfg(feature = "crowds")]
        if waiting >= ROUNDS {
            self.crowded = Some(now);
        }
        let (mut away, mut youngest) = (0usize, 0);
        for lane in &self.lanes {
            match lane.course {
                // Whose answer has just come, or who sets out now: another would leave with a part of what it takes.
                Course::Loads(since) if now < since + LOADING => return None,
                Course::Rests | Course::Loads(_) => {}
                Course::Away(since, _) => (away, youngest) = (away + 1, youngest.max(since)),
            }
        }
        let free = if self.distance > FAR { FREE } else { 1 };
        let can_wait = || {
            let grown = away - free;
            now < youngest + (PATIENCE << grown) && waiting < self.share(waiting).min(CROWD) << grown
        };
        if away > 0 && self.trouble.is_some() || away >= free && can_wait() {
            return None;
        }
        self.another(now)
    }

    /// Whether so many wait here for a store that answers, or did as those set out whose answer is due, that it is not its silence
    /// if one has no answer in time. An answer may take so long.
    #[cfg(feature = "crowds")]
    pub fn are_crowded(&self, now: Micros, response_timeout: Micros) -> bool {
        self.trouble.is_none()
            && self.crowded.is_some_and(|then| now.saturating_sub(then) <= response_timeout.saturating_mul(2))
    }

    /// Whether somebody is to look after [`LOADING`] whether what waits has been taken, which no lane sets out for now: whoever drives
    /// the one that is to take it may stand still with a host's turn, and what another thread asks for must not. In wasm there is one.
    #[cfg(not(target_family = "wasm"))]
    pub fn is_to_look_again(&mut self, lane: Option<u16>) -> bool {
        lane.is_none() && !std::mem::replace(&mut self.looks_again, true)
    }

    /// Somebody looks again now.
    #[cfg(not(target_family = "wasm"))]
    pub fn look_again(&mut self) {
        self.looks_again = false;
    }

    /// The most of so many that wait that set out together: all, or, where these and those that are under way would fill more
    /// than half an envelope, half of them all. A near store then has the one half to do while the other is answered, and asks anew.
    pub fn share(&self, waiting: usize) -> usize {
        let away =
            self.lanes.iter().map(|lane| if let Course::Away(_, load) = lane.course { load } else { 0 });
        let all = waiting + away.sum::<usize>();
        // Without `crowds` nobody sees to it that both halves have their part of what is given back.
        let few = if cfg!(feature = "crowds") { BATCH / 2 } else { BATCH };
        if all > few && self.distance <= FAR { all.div_ceil(2).min(BATCH) } else { BATCH }
    }

    /// A lane that rests, which is to load.
    fn another(&mut self, now: Micros) -> Option<u16> {
        let at = match self.lanes.iter().position(|lane| lane.course == Course::Rests) {
            Some(at) => at,
            None if self.lanes.len() < MOST => {
                self.lanes.push(Lane::default());
                self.lanes.len() - 1
            }
            None => return None,
        };
        self.set(at as u16, Course::Loads(now));
        Some(at as u16)
    }

    /// Its answer has come: it takes what is asked for from here on.
    pub fn load(&mut self, lane: u16, now: Micros) {
        self.set(lane, Course::Loads(now));
    }

    /// The store answered, after so long if that is known.
    pub fn hear(&mut self, took: Option<Micros>) {
        self.trouble = None;
        if let Some(took) = took
            && (self.distance == 0 || took < self.distance)
        {
            self.distance = took;
        }
    }

    /// The store did not answer, or with this. The one that answers next may be another, and elsewhere.
    pub fn fail(&mut self, cause: String) {
        self.trouble = Some(cause);
        self.distance = 0;
    }

    /// How long an answer takes at the least, as far as that is known; 0 if not.
    pub fn distance(&self) -> Micros {
        self.distance
    }

    /// What the store said, while it does not answer.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// It has taken what waited, and sets out with it; it rests if that was nothing.
    pub fn set_out(&mut self, lane: u16, with: usize, now: Micros) {
        self.set(lane, if with == 0 { Course::Rests } else { Course::Away(now, with) });
    }

    /// The number of the next envelope of a lane.
    pub fn next(&mut self, lane: u16) -> u64 {
        self.lanes.get_mut(usize::from(lane)).map_or(0, |lane| {
            lane.sequence += 1;
            lane.sequence
        })
    }

    fn set(&mut self, lane: u16, course: Course) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            lane.course = course;
        }
    }
}

/// Has `look` look again after [`LOADING`], if what the lanes are of is there then. See [`Lanes::is_to_look_again`].
#[cfg(not(target_family = "wasm"))]
pub(super) fn look_later<R: Runtime, T: Send + Sync + 'static>(
    runtime: &R,
    carrier: &Arc<T>,
    look: fn(&Arc<T>),
) {
    let (carrier, sleeper) = (Arc::downgrade(carrier), runtime.clone());
    // It counts as under way for those in other threads too.
    runtime.spawn_at_once(async move {
        sleeper.sleep(LOADING).await;
        if let Some(carrier) = carrier.upgrade() {
            look(&carrier);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    type Four = Lanes<4, 8>;

    #[test]
    fn one_envelope_is_enough_until_it_takes_long_or_a_crowd_waits() {
        let mut lanes = Four::default();
        assert_eq!(lanes.for_more(1, 10), Some(0));
        lanes.set_out(0, 1, 10);
        assert_eq!(lanes.for_more(3, 9 + PATIENCE), None);
        lanes.fail("LOADING".to_owned());
        assert_eq!((lanes.for_more(3, 10 + PATIENCE), lanes.trouble()), (None, Some("LOADING")));
        lanes.hear(None);
        assert_eq!(lanes.for_more(3, 10 + PATIENCE), Some(1));
        lanes.set_out(1, 3, 20 + PATIENCE);
        // Of the third, twice as much is asked.
        assert_eq!(lanes.for_more(7, 19 + 3 * PATIENCE), None);
        assert_eq!(lanes.for_more(8, 19 + 3 * PATIENCE), Some(2));
        lanes.set_out(2, 0, 30);
        assert_eq!(lanes.for_more(1, 20 + 3 * PATIENCE), Some(2));
    }

    /// The first of those who were answered set out alone, in an envelope of its own, and the rest behind it.
    #[test]
    fn nothing_sets_out_beside_a_lane_that_is_about_to() {
        let mut lanes = Four::default();
        assert_eq!(lanes.for_more(1, 0), Some(0));
        assert_eq!(lanes.for_more(100, 0), None, "it takes them");
        lanes.set_out(0, 32, 0);
        assert_eq!(lanes.for_more(68, 0), Some(1), "it left with what it could carry");
        lanes.set_out(1, 32, 0);
        lanes.load(0, 9 * PATIENCE);
        assert_eq!(lanes.for_more(100, 10 * PATIENCE), None, "its answer has come");
        let late = 9 * PATIENCE + LOADING;
        assert_eq!(lanes.for_more(100, late), Some(2), "nobody drives it");
    }

    /// A request that came just after another waited for its answer: for the way there and back, and then went itself.
    #[test]
    fn to_a_far_store_some_set_out_without_waiting_for_one_another() {
        let mut lanes = Four::default();
        lanes.hear(Some(FAR + 1));
        for number in 0..4 {
            assert_eq!(lanes.for_more(1, 0), Some(number));
            lanes.set_out(number, 1, 0);
        }
        assert_eq!(lanes.for_more(3, PATIENCE - 1), None);
        assert_eq!(lanes.for_more(4, PATIENCE - 1), Some(4), "a crowd waits");
        lanes.set_out(4, 4, PATIENCE - 1);
        assert_eq!(lanes.for_more(7, 3 * PATIENCE - 2), None);
        assert_eq!(lanes.for_more(7, 3 * PATIENCE - 1), Some(5), "the youngest left long ago");
    }

    /// Of fifty, 32 and 18 went in turns for ever, and the store had nothing to do while the 32 were answered.
    #[cfg(feature = "crowds")]
    #[test]
    fn many_go_in_halves() {
        let mut lanes = Four::default();
        assert_eq!([4, 5, 9, 16, 40].map(|waiting| lanes.share(waiting)), [8, 3, 5, 8, 8]);
        assert_eq!(lanes.for_more(9, 0), Some(0));
        lanes.set_out(0, 5, 0);
        assert_eq!(lanes.for_more(4, 0), Some(1), "a crowd, though it is less than the half");
        lanes.set_out(1, 4, 0);
        lanes.load(0, 1);
        assert_eq!(lanes.share(5), 5, "with the four that are under way");
        lanes.load(1, 1);
        assert_eq!([4, 5].map(|waiting| lanes.share(waiting)), [8, 3], "nothing else is under way");
        lanes.hear(Some(FAR + 1));
        assert_eq!(lanes.share(40), 8, "the way takes the time");
    }

    /// A server that has much to do answers as late as one that is far, and more envelopes would only be more work.
    #[test]
    fn a_store_is_as_near_as_it_ever_was_until_there_is_trouble() {
        for (heard, is_far) in
            [(vec![], false), (vec![FAR], false), (vec![FAR, 9 * FAR], false), (vec![9 * FAR], true)]
        {
            let mut lanes = Four::default();
            heard.iter().for_each(|took| lanes.hear(Some(*took)));
            assert_eq!(lanes.for_more(1, 0), Some(0));
            lanes.set_out(0, 1, 0);
            assert_eq!(lanes.for_more(1, 0).is_some(), is_far, "{heard:?}");
        }
        let mut lanes = Four::default();
        lanes.hear(Some(FAR));
        lanes.fail("no connection".to_owned());
        lanes.hear(Some(9 * FAR));
        assert_eq!(lanes.for_more(1, 0), Some(0));
        lanes.set_out(0, 1, 0);
        assert_eq!(lanes.for_more(1, 0), Some(1), "another is elsewhere");
    }

    /// Those of the last envelopes were told that the store is away, as nobody waited behind them any more.
    #[cfg(feature = "crowds")]
    #[test]
    fn lanes_are_crowded_until_those_who_waited_last_are_answered() {
        let mut lanes = Four::default();
        lanes.for_more(ROUNDS - 1, 0);
        assert!(!lanes.are_crowded(0, SECOND));
        lanes.for_more(ROUNDS, 5);
        lanes.for_more(1, 6);
        assert!(lanes.are_crowded(5 + 2 * SECOND, SECOND));
        assert!(!lanes.are_crowded(6 + 2 * SECOND, SECOND));
        lanes.fail("no connection".to_owned());
        assert!(!lanes.are_crowded(5, SECOND));
    }

    #[test]
    fn no_more_than_eight_are_under_way_and_each_counts_for_itself() {
        let mut lanes = Four::default();
        for number in 0..8 {
            assert_eq!(lanes.for_more(usize::MAX, Micros::MAX >> 20), Some(number));
            lanes.set_out(number, 1, 0);
        }
        assert_eq!(lanes.for_more(usize::MAX, Micros::MAX >> 20), None);
        assert_eq!((lanes.next(0), lanes.next(0), lanes.next(7)), (1, 2, 1));
    }
}
