//! Waiting one's turn: a caller takes a seat among those of this process, and a ticket in the store's line, and tries
//! whenever it is called.

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(feature = "crowds")]
use std::sync::atomic::Ordering::{Acquire, Release};

#[cfg(feature = "crowds")]
use futures_channel::oneshot;

use super::PoolCore;
use super::acquisition::{Refused, Want};
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use super::waiting::Asked;
use super::waiting::{Asking, Call, JITTER, Place, RECHECK, STEP, Seat, Turn, closed};
use crate::client::Lease;
use crate::error::Result;
use crate::runtime::{self, BoxedFuture, Runtime};
use crate::slots::Refusal;
use crate::store::{Listener, Store, StorePool, Watch};
use crate::{MILLISECOND, Micros, SECOND};

/// A waiter asks again after so long even if nobody called, over a store that cannot call.
const POLL: Micros = SECOND / 5;
/// For how long nobody waits again for a store that could not be listened to.
const DEAF: Micros = 10 * SECOND;
/// Who was granted names too late asks for them again after a pause of so long at most.
#[cfg(feature = "crowds")]
const TOO_LATE: Micros = 20 * MILLISECOND;

/// A caller that waits: dropped, it gives up its seat, and its ticket.
struct Waiter<'a, S: Store, R: Runtime> {
    core: &'a PoolCore<S, R>,
    want: &'a Want,
    seat: Seat,
    /// Whether it has asked the store since it came.
    asked: bool,
}

impl<S: Store, R: Runtime> Drop for Waiter<'_, S, R> {
    fn drop(&mut self) {
        let may_have_ticket = self.want.has_ticket.load(Relaxed);
        // Nothing is asked for it from here on. What was may be answered, and nobody have seen that.
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        let may_have_ticket = {
            self.seat.leave_standing(None);
            !matches!(self.seat.answer(), Asked::Not) || may_have_ticket
        };
        if may_have_ticket {
            self.core.courier.withdraw(self.core.holder(self.want));
        }
        self.core.set_moved_up();
    }
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    pub(in crate::client) async fn pursue(self: &Arc<Self>, want: &Want) -> Result<Vec<Lease<S, R>>> {
        let place = self.place(want);
        // In memory a ticket costs nothing, and only the store knows those who came before from other handles.
        let in_turn = place.is_for_any() && !self.answers_at_once();
        let asking = if in_turn { self.room.let_ask() } else { Some(Asking::default()) };
        let crowded = want.patient && asking.is_none();
        let mut refused = Refused { why: Refusal::Exhausted, earliest: None };
        let mut stealing = None;
        if !crowded {
            match self.attempt(want, None).await? {
                Ok(leases) => return Ok(leases),
                Err(no) => refused = no,
            }
            if let Some(asking) = asking {
                self.room.found_none(asking);
            }
            self.give_up_on(&refused, want)?;
        }
        if !want.patient {
            return Err(self.late(&refused, want));
        }
        // Those before it have been answered: this one's silence is not the store's, and what they were told it is told too.
        if crowded {
            want.hear();
            #[cfg(feature = "crowds")]
            (refused = self.quiet().unwrap_or(refused));
        }
        let place = self.place(want);
        let names = if matches!(place, Place::Names(_)) { want.slots.clone() } else { None };
        let seat = self.room.enter(self.turn(want), place, names.unwrap_or_default())?;
        let mut waiter = Waiter { core: self, want, seat, asked: false };
        // Calls are heard from here on; what happened before is seen by asking once more.
        #[cfg_attr(
            not(feature = "crowds"),
            expect(unused_mut, reason = "who could not listen does not try again there")
        )]
        let mut fallback = if self.listen(want.deadline).await { RECHECK } else { POLL };
        // Behind others of this process there is time for that. But who steals claims nothing without a ticket.
        let mut call = (!crowded || want.steal.is_some()).then_some(Call::Ready);
        loop {
            if matches!(call, Some(Call::Ready | Call::Alarm)) {
                // It stands in line with this attempt, and may be called before the answer is here.
                waiter.seat.set(self.place(want), false);
                let outcome = self.attempt(want, Some(&waiter.seat)).await?;
                if refused.why == Refusal::Beyond
                    && !matches!(outcome, Err(Refused { why: Refusal::Beyond, .. }))
                {
                    self.room.call_beyond();
                }
                match outcome {
                    Ok(leases) => {
                        want.has_ticket.store(false, Relaxed);
                        waiter.seat.leave();
                        if let Some(since) = stealing {
                            self.yields.note(self.runtime.now().saturating_sub(since));
                        }
                        // The alarm rings for one; there may be more that came due.
                        if call == Some(Call::Alarm) {
                            self.room.pass_alarm();
                        }
                        return Ok(leases);
                    }
                    Err(no) => refused = no,
                }
                stealing = match refused.why {
                    Refusal::Claimed => stealing.or(Some(self.runtime.now())),
                    _ => None,
                };
                // What it was granted and had to give back was its ticket's. In a quiet time nobody gets one.
                waiter.asked = want.has_ticket.load(Relaxed) || refused.why == Refusal::Quiet;
                self.give_up_on(&refused, want)?;
                // It came too late. Who waits for names has its own to ask for, whoever sits before it.
                if !waiter.asked && matches!(place, Place::Names(_)) {
                    // Its next answer may be as late, and others could have had meanwhile what it then gives back.
                    #[cfg(feature = "crowds")]
                    {
                        if want.came_too_late() {
                            self.runtime.sleep(self.runtime.jitter(TOO_LATE)).await;
                        }
                        continue;
                    }
                    // Whatever was of no use, the alarm has it asked again.
                    #[cfg(not(feature = "crowds"))]
                    ((waiter.asked, refused.earliest) = (true, Some(0)));
                }
            }
            #[cfg(feature = "crowds")]
            if waiter.asked {
                match self.hears_by_now() {
                    // Else it would go on to have all of them ask so often.
                    Some(true) if fallback == POLL => {
                        (fallback, call) = (RECHECK, Some(Call::Ready));
                        // As after listening at first.
                        continue;
                    }
                    // It did at first, and would miss each call.
                    Some(false) => fallback = POLL,
                    Some(true) | None => {}
                }
            }
            let place =
                if waiter.asked && refused.why == Refusal::Beyond { Place::Beyond } else { self.place(want) };
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            waiter.seat.leave_standing(self.standing(want));
            waiter.seat.stay(place, waiter.asked);
            let recheck = waiter.asked.then_some(fallback);
            self.set_alarms(&waiter.seat, &refused, recheck);
            call = waiter.seat.called(&self.runtime, want.deadline).await;
            match call {
                None => return Err(self.late(&refused, want)),
                Some(Call::Closed) => return Err(closed()),
                Some(Call::Ready | Call::Alarm) => {}
            }
        }
    }

    /// What the store says in the quiet time that it told of last.
    #[cfg(feature = "crowds")]
    fn quiet(&self) -> Option<Refused> {
        let until = self.quiet_until.load(Relaxed);
        (until > self.runtime.now()).then_some(Refused { why: Refusal::Quiet, earliest: Some(until) })
    }

    /// Sees to it that who asked is called now and then.
    fn set_recheck(&self, recheck: Option<Micros>) {
        if let Some(recheck) = recheck {
            let late = self.runtime.random() % (recheck / JITTER + 1);
            self.room.set_recheck(&self.runtime, self.runtime.now() + recheck + late);
        }
    }

    /// Sees to it that who was refused is called when asking again can help, and who asked is so now and then.
    fn set_alarms(&self, seat: &Seat, refused: &Refused, recheck: Option<Micros>) {
        let now = self.runtime.now();
        self.set_recheck(recheck);
        // Behind one that wants more than can be had somebody moved up.
        if recheck.is_none() || refused.why == Refusal::Beyond {
            self.set_moved_up();
        }
        if let Some(earliest) = refused.earliest {
            // A moment later, so that what is due has come about.
            let due = earliest.max(now) + MILLISECOND;
            match refused.why {
                // Nobody got a ticket, so that the store calls none of them: all ask again.
                Refusal::Quiet => self.room.set_recheck(&self.runtime, due),
                _ => seat.set_due(&self.runtime, due),
            }
        }
    }

    /// Somebody left, or has what it waited for: sees to it that who moved up so asks for a ticket.
    pub(super) fn set_moved_up(&self) {
        self.room.set_moved_up(&self.runtime, self.runtime.now() + STEP);
    }

    /// Where an acquisition waits: in the store's line for any slot, in those of its process's slots, or of those that it names.
    pub(in crate::client) fn place(&self, want: &Want) -> Place {
        match &want.slots {
            Some(_) => Place::Names(self.holder(want)),
            None if self.names_own(want) && self.stands_for_all() => Place::Own(self.holder(want)),
            None => Place::Line(self.holder(want)),
        }
    }

    /// When an acquisition's turn is among those of this process.
    fn turn(&self, want: &Want) -> Turn {
        let (priority, arrival) = (i64::from(want.priority), want.began as i64);
        match self.options.ageing {
            0 => (-i32::from(want.priority), arrival),
            ageing => (0, arrival.saturating_sub(priority.saturating_mul(ageing as i64))),
        }
    }

    /// Makes sure that calls are heard; false if this store cannot call, or not by `deadline`.
    #[cfg(feature = "crowds")]
    pub(super) fn listen(self: &Arc<Self>, deadline: Micros) -> BoxedFuture<'static, bool> {
        let core = self.clone();
        Box::pin(async move {
            let now = core.runtime.now();
            // Who waits asks in what is left of its time.
            let limit = now + core.response_timeout.min(deadline.saturating_sub(now) / 2);
            runtime::by(&core.runtime, limit, pin!(core.hears())).await.unwrap_or(false)
        })
    }

    #[cfg(feature = "crowds")]
    async fn hears(self: &Arc<Self>) -> bool {
        // The others wait for the one subscription here.
        let heard = hears(&*self.watch.lock().await);
        if heard || self.is_deaf() {
            // It may have been closed meanwhile.
            self.hear_no_more();
            return heard;
        }
        let _ = self.begin_to_hear().await;
        let heard = hears(&*self.watch.lock().await);
        self.hear_no_more();
        heard
    }

    /// Whether calls are heard; nothing if it is tried just now. If not it is tried again, where that may help, for whoever asks next: a
    /// subscription that hangs keeps nobody from asking.
    #[cfg(feature = "crowds")]
    fn hears_by_now(self: &Arc<Self>) -> Option<bool> {
        let heard = self.watch.try_lock().map(|watch| hears(&watch))?;
        self.hear_no_more();
        if !heard && !self.is_deaf() {
            drop(self.begin_to_hear());
        }
        Some(heard)
    }

    /// By which of its subscriptions calls are heard now; 0 if they are not, or that is not known.
    #[cfg(feature = "crowds")]
    pub(super) fn heard_by(&self) -> u64 {
        let heard = self.watch.try_lock().is_some_and(|watch| hears(&watch));
        if heard { self.hearing.load(Acquire) } else { 0 }
    }

    /// Listens in a task, which ends what this returns: who has little time would take it away from all the others as it goes.
    #[cfg(feature = "crowds")]
    fn begin_to_hear(self: &Arc<Self>) -> oneshot::Receiver<()> {
        let (done, made) = oneshot::channel();
        let core = self.clone();
        self.runtime.spawn(async move {
            core.subscribe().await;
            drop(done);
        });
        made
    }

    /// Whether nobody tries to listen for a while.
    #[cfg(feature = "crowds")]
    fn is_deaf(&self) -> bool {
        self.runtime.now() < self.deaf_until.load(Relaxed)
    }

    #[cfg(feature = "crowds")]
    async fn subscribe(&self) {
        let mut watch = self.watch.lock().await;
        // Two may have begun at the same time.
        if hears(&watch) || self.is_deaf() {
            return;
        }
        let limit = self.runtime.now() + self.response_timeout;
        let making = pin!(self.courier.pool().watch(self.listener()));
        let made = runtime::by(&self.runtime, limit, making).await.and_then(|made| made.ok().flatten());
        // One that does not hear just now may do so again by itself.
        if made.is_some() {
            *watch = made;
            self.hearing.store(self.counter.fetch_add(1, Relaxed) + 1, Release);
        }
        let again = if hears(&watch) { 0 } else { self.runtime.now() + DEAF };
        self.deaf_until.store(again, Relaxed);
        drop(watch);
        // Who closes does not wait for the lock that was held here.
        self.hear_no_more();
    }

    /// The same, but whoever waits makes the subscription itself.
    #[cfg(not(feature = "crowds"))]
    pub(super) fn listen(self: &Arc<Self>, deadline: Micros) -> BoxedFuture<'static, bool> {
        let core = self.clone();
        Box::pin(async move {
            let now = core.runtime.now();
            if now < core.deaf_until.load(Relaxed) {
                return false;
            }
            // Who waits asks in what is left of its time.
            let limit = now + core.response_timeout.min(deadline.saturating_sub(now) / 2);
            let heard = runtime::by(&core.runtime, limit, pin!(core.subscribe())).await;
            let hears = heard == Some(true);
            // A caller that had little time says nothing of the store.
            if heard.is_some() || limit == now + core.response_timeout {
                let again = if hears { 0 } else { core.runtime.now() + DEAF };
                core.deaf_until.store(again, Relaxed);
            }
            hears
        })
    }

    #[cfg(not(feature = "crowds"))]
    async fn subscribe(&self) -> bool {
        // One subscription for all who wait: the others wait for it here.
        let mut watch = self.watch.lock().await;
        if watch.is_none() {
            *watch = self.courier.pool().watch(self.listener()).await.ok().flatten();
        }
        // Who closes does not wait for the lock that is held here.
        if self.room.is_closed() {
            *watch = None;
        }
        hears(&watch)
    }

    fn listener(&self) -> Listener {
        let (room, keeper) = (Arc::downgrade(&self.room), Arc::downgrade(&self.keeper));
        let runtime = self.runtime.clone();
        Arc::new(move |calls| {
            if let (Some(room), Some(keeper)) = (room.upgrade(), keeper.upgrade()) {
                room.hear(&runtime, calls);
                keeper.heed(calls.map(|calls| &*calls.claimed));
            }
        })
    }
}

fn hears(watch: &Option<Watch>) -> bool {
    watch.as_ref().is_some_and(Watch::hears)
}
