use super::*;
use crate::SECOND;
#[cfg(feature = "crowds")]
use crate::runtime::boot_time;

/// Callers of a pool that have just taken their places and try.
fn trying(room: &Arc<WaitingRoom>, count: i64) -> Vec<Seat> {
    let line = |number: i64| room.enter((0, number), Place::Line(number as u128), Vec::new());
    (0..count).map(|number| line(number).expect("there is room")).collect()
}

/// Which of those who sit down now are called at once, as they are to ask again.
fn ask_again(seats: &mut [Seat]) -> Vec<usize> {
    let place = |number: usize| Place::Line(number as u128);
    seats.iter_mut().enumerate().for_each(|(number, seat)| seat.stay(place(number), true));
    let called = |(number, seat): (usize, &mut Seat)| {
        let call = seat.bell.try_recv().ok().flatten();
        call.filter(|call| *call == Call::Ready).map(|_| number)
    };
    seats.iter_mut().enumerate().filter_map(called).collect()
}

fn runtime() -> crate::runtime::TokioRuntime {
    crate::runtime::TokioRuntime::new(tokio::runtime::Handle::current())
}

/// A slot is given back.
fn call_first(room: &WaitingRoom, freed: &SlotId) {
    #[cfg(feature = "crowds")]
    room.first_for(freed, 0).into_iter().for_each(Next::call);
    #[cfg(not(feature = "crowds"))]
    room.call_first(freed);
}

fn slot() -> SlotId {
    SlotId::new("a").expect("an id")
}

/// All of them once asked again for every slot, and tried on as the next one came free: a crowd kept itself at it,
/// at a fifth of the speed.
#[test]
fn of_those_who_try_as_many_ask_again_as_slots_come_free() {
    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, 5);
    call_first(&room, &slot());
    assert_eq!(ask_again(&mut seats), [0]);

    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, 5);
    call_first(&room, &slot());
    call_first(&room, &slot());
    assert_eq!(ask_again(&mut seats), [0, 1], "one that asks again already takes no other's call");
}

/// 64 callers of 32 slots, who all try by turns, once asked twice in vain each time, and took a ticket: at half of the speed.
#[test]
fn newcomers_leave_to_those_who_try_what_comes_free_for_them() {
    let room = Arc::new(WaitingRoom::default());
    let may_ask = || room.let_ask().is_some();
    assert!(may_ask(), "nobody is there");
    let mut seats = trying(&room, 2);
    assert!(!may_ask(), "two try what they were called for");
    call_first(&room, &slot());
    assert_eq!([may_ask(), may_ask()], [true, false], "one came free besides");
    seats[1].stay(Place::Line(1), true);
    call_first(&room, &slot());
    assert!(!may_ask(), "the second was called for it");
    (0..).zip(&seats).for_each(|(number, seat)| seat.set(Place::Line(number), true));
    assert!(may_ask(), "who has what it came for may still ask a chain");
    seats[0].stay(Place::Line(0), true);
    assert!(!may_ask(), "which was not to be believed");
}

/// The store takes those for gone of whose process nobody came for what it kept: they lost their tickets, were told by nobody, and waited
/// for the common look seconds later beside a slot that was free.
#[cfg(all(feature = "tokio", feature = "crowds"))]
#[tokio::test(start_paused = true)]
async fn where_one_stands_still_for_whom_something_is_kept_all_others_ask_again() {
    for comes in [true, false] {
        let runtime = runtime();
        let room = Arc::new(WaitingRoom::default());
        let mut seats = trying(&room, 4);
        assert_eq!(ask_again(&mut seats), Vec::<usize>::new());
        let calls = || Calls { tickets: vec![0], ..Calls::default() };
        // Who comes at once disturbs nobody.
        room.hear(&runtime, Some(&calls()));
        assert_eq!(seats[0].called(&runtime, Micros::MAX).await, Some(Call::Ready));
        runtime.sleep(2 * OFFER).await;
        assert_eq!(
            seats[1].bell.try_recv().ok().flatten(),
            Some(Call::Alarm),
            "it sees to the end of the offer"
        );
        seats[0].stay(Place::Line(0), true);
        seats[1].stay(Place::Line(1), true);
        let heard = |seats: &mut [Seat]| -> Vec<bool> {
            seats.iter_mut().map(|seat| seat.bell.try_recv().ok().flatten().is_some()).collect()
        };
        assert_eq!(heard(&mut seats[1..]), [false; 3]);
        room.hear(&runtime, Some(&calls()));
        if comes {
            runtime.sleep(OFFER * 3 / 4).await;
            assert_eq!(heard(&mut seats[1..]), [false; 3]);
            assert_eq!(seats[0].called(&runtime, Micros::MAX).await, Some(Call::Ready));
        } else {
            runtime.sleep(OFFER + 2 * MILLISECOND).await;
        }
        crate::runtime::idle().await;
        assert_eq!(heard(&mut seats[1..]), [true; 3], "{comes}");
    }
}

// Those who wait for a slot that is long in coming would keep all others from the store's line.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn who_takes_any_moves_up_beside_those_who_name_slots() {
    let runtime = runtime();
    let room = Arc::new(WaitingRoom::default());
    let named = |number: i64| room.enter((0, number), Place::Names(number as u128), vec![slot()]);
    let mut named: Vec<_> =
        (0..2 * FRONT as i64).map(|number| named(number).expect("there is room")).collect();
    (0..).zip(&mut named).for_each(|(number, seat)| seat.stay(Place::Names(number), true));
    let mut last = room.enter((0, 99), Place::Line(99), Vec::new()).expect("there is room");
    last.stay(Place::Line(99), false);
    room.set_moved_up(&runtime, runtime.now() + STEP);
    runtime.sleep(STEP).await;
    crate::runtime::idle().await;
    assert_eq!(last.bell.try_recv().ok().flatten(), Some(Call::Ready));
    assert!(named.iter_mut().all(|seat| seat.bell.try_recv().ok().flatten().is_none()), "they have asked");
}

/// Of a crowd that is served by what its process gives back, those in front were called every few milliseconds all the same, however
/// short a time they had been there: eight asked in vain each time, and had tickets for which slots were kept.
#[cfg(all(feature = "tokio", feature = "crowds"))]
#[tokio::test(start_paused = true)]
async fn who_moved_up_just_now_is_called_by_the_next_alarm() {
    let runtime = runtime();
    let room = Arc::new(WaitingRoom::default());
    let sit = |number: i64| {
        let mut seat =
            room.enter((0, number), Place::Line(number as u128), Vec::new()).expect("there is room");
        seat.stay(Place::Line(number as u128), false);
        seat
    };
    let mut seats: Vec<_> = (0..3 * FRONT as i64).map(sit).collect();
    room.set_moved_up(&runtime, runtime.now() + STEP);
    // All but the last of those in front leave, and as many move up; one may have sat there while another left.
    drop(seats.drain(..FRONT - 1));
    let called = |seats: &mut [Seat]| -> Vec<i64> {
        let calls = |seat: &mut Seat| seat.bell.try_recv().ok().flatten() == Some(Call::Ready);
        seats.iter_mut().filter_map(|seat| calls(seat).then_some(seat.turn.1)).collect()
    };
    runtime.sleep(STEP).await;
    crate::runtime::idle().await;
    let front = FRONT as i64;
    assert_eq!(called(&mut seats), [front - 1, front]);
    runtime.sleep(STEP).await;
    crate::runtime::idle().await;
    assert_eq!(called(&mut seats), Vec::from_iter(front + 1..2 * front - 1));
    runtime.sleep(9 * STEP).await;
    crate::runtime::idle().await;
    assert_eq!(called(&mut seats), [], "the others are not in front");
    assert!(room.lock().moved_up.is_none(), "nor does anybody look for them again and again");
}

#[test]
fn what_came_free_before_anybody_waited_is_for_newcomers() {
    let room = Arc::new(WaitingRoom::default());
    let may_ask = || room.let_ask().is_some();
    (0..3).for_each(|_| call_first(&room, &slot()));
    assert!(may_ask(), "one asks before anybody sits");
    let _seats = trying(&room, 1);
    assert_eq!([may_ask(), may_ask(), may_ask()], [true, true, false]);
}

/// A chain may be long in answering all of those in front.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn who_is_behind_those_who_have_what_they_came_for_moves_up() {
    let runtime = runtime();
    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, FRONT as i64 + 1);
    assert_eq!(ask_again(&mut seats), []);
    room.call(u32::MAX, Call::Ready, &|_| true);
    let mut newcomer = room.enter((0, 100), Place::Line(100), Vec::new()).expect("there is room");
    newcomer.stay(Place::Line(100), false);
    let moves_up = || {
        room.set_moved_up(&runtime, runtime.now() + crate::SECOND);
        room.lock().moved_up.is_some()
    };
    assert!(!moves_up(), "all before it have asked");
    seats[0].set(Place::Line(0), true);
    assert!(moves_up());
}

/// Eight of them had no ticket and were in front all the same: the ninth was never called, nor did anybody else ask.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn those_who_want_more_than_can_be_had_are_in_nobodys_way() {
    let runtime = runtime();
    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, FRONT as i64);
    seats.iter_mut().for_each(|seat| seat.stay(Place::Beyond, true));
    let may_ask = || room.let_ask().is_some();
    assert!(may_ask(), "nobody waits in turn");
    let mut newcomer = room.enter((0, 100), Place::Line(100), Vec::new()).expect("there is room");
    newcomer.stay(Place::Line(100), false);
    room.set_moved_up(&runtime, runtime.now() + crate::SECOND);
    assert!(room.lock().moved_up.is_some(), "it is in front");
    assert!(!may_ask(), "it is before those who come later");
    call_first(&room, &slot());
    assert_eq!(newcomer.bell.try_recv(), Ok(Some(Call::Ready)));
    let mut called = || seats.iter_mut().filter_map(|seat| seat.bell.try_recv().ok().flatten()).count();
    call_first(&room, &slot());
    room.pass_alarm();
    assert_eq!(called(), 0, "there are not more than before");
    room.hear(&runtime, Some(&Calls { freed: 1, ..Calls::default() }));
    assert_eq!(called(), 1, "somebody may have added one");
    room.call_all();
    assert_eq!(called(), FRONT - 1, "a message may have been lost");
}

/// Else each of those who come after it would ask in vain for what others took, or what rests.
#[cfg(feature = "crowds")]
#[test]
fn who_asked_in_vain_leaves_to_newcomers_only_what_came_free_since() {
    let room = Arc::new(WaitingRoom::default());
    let _seats = trying(&room, 1);
    (0..5).for_each(|_| call_first(&room, &slot()));
    let asking = room.let_ask().expect("something came free");
    call_first(&room, &slot());
    room.found_none(asking);
    assert_eq!([room.let_ask().is_some(), room.let_ask().is_some()], [true, false]);
}

#[test]
fn nobody_who_tries_asks_again_where_others_wait() {
    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, 3);
    seats[2].stay(Place::Line(2), true);
    call_first(&room, &slot());
    assert_eq!(ask_again(&mut seats[..2]), []);
    assert!(seats[2].bell.try_recv().is_ok_and(|call| call == Some(Call::Ready)), "who waits is called");
}

#[tokio::test(start_paused = true)]
async fn whom_the_store_calls_by_name_asks_again() {
    let room = Arc::new(WaitingRoom::default());
    let mut seats = trying(&room, 3);
    let calls = Calls { tickets: vec![1, 7], ..Calls::default() };
    room.hear(&runtime(), Some(&calls));
    assert_eq!(ask_again(&mut seats), [1]);
}

// The alarm was set anew for who was called alone: a lock whose holder had died was noticed up to six seconds late. And then one
// looked for all, who was not told when that comes due which others want.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn what_comes_due_for_those_behind_is_looked_at_too() {
    let (runtime, room) = (runtime(), Arc::new(WaitingRoom::default()));
    let names = ["a", "b", "b"].map(|name| vec![SlotId::new(name).expect("an id")]);
    let enter = |names| room.enter((0, 0), Place::Names(1), names).expect("there is room");
    let mut seats = names.map(enter);
    let late = runtime.now() + 20 * crate::SECOND;
    for (seat, due) in seats.iter_mut().zip([10, 20, 20]) {
        seat.stay(Place::Names(1), true);
        seat.set_due(&runtime, runtime.now() + due * MILLISECOND);
    }
    let [first, second, third] = &mut seats;
    for looks in [first, second] {
        assert_eq!(looks.called(&runtime, late).await, Some(Call::Alarm));
        looks.stay(Place::Names(1), true);
        looks.set_due(&runtime, late);
    }
    assert_eq!(third.bell.try_recv(), Ok(None), "one looks for both");
    let due = room.lock().seats.iter().map(|chair| chair.due).collect::<Vec<_>>();
    assert_eq!(due, [late, late, Micros::MAX]);
}

// The alarm rang once: a slot that was offered last to somebody who had died lay for six seconds. Who was just trying did not see
// to it at all.
#[cfg(feature = "crowds")]
#[tokio::test]
async fn the_last_of_several_offers_made_elsewhere_is_seen_to_its_end_too() {
    let (runtime, room) = (runtime(), Arc::new(WaitingRoom::default()));
    let mut seats = trying(&room, 1);
    let elsewhere = |ticket| room.hear(&runtime, Some(&Calls { tickets: vec![ticket], ..Calls::default() }));
    let rings_at = || room.lock().due.as_ref().map(|alarm| alarm.at);
    elsewhere(77);
    let first = rings_at().expect("while it tries");
    seats[0].stay(Place::Line(0), true);
    while runtime.now() + OFFER + MILLISECOND <= first {
        tokio::task::yield_now().await;
    }
    elsewhere(78);
    assert_eq!(rings_at(), Some(first), "the earlier one first");
    room.lock().due = None;
    room.ring(&runtime);
    assert_eq!(seats[0].bell.try_recv(), Ok(Some(Call::Alarm)));
    assert!(rings_at() > Some(first), "the other one too");
}

#[cfg(feature = "crowds")]
#[tokio::test]
async fn the_end_of_each_rest_is_seen_to() {
    let runtime = runtime();
    let is_seen_to = async || {
        let room = Arc::new(WaitingRoom::default());
        let mut seats = trying(&room, 1);
        let rests = |rest| room.hear(&runtime, Some(&Calls { rest: Some(rest), ..Calls::default() }));
        let seat = &mut seats[0];
        let began = runtime.now();
        seat.stay(Place::Names(7), true);
        [300, 20, 10, 299, 60_000].iter().for_each(|rest| rests(rest * MILLISECOND));
        let mut looks = Vec::new();
        // Before the end of a longer one all ask again.
        while room.lock().due.is_some() {
            assert_eq!(seat.called(&runtime, began + 20 * SECOND).await, Some(Call::Alarm), "{looks:?}");
            looks.push(runtime.now() - began);
            seat.stay(Place::Names(7), true);
        }
        let ends = [10, 20, 299].map(|rest| rest * MILLISECOND);
        assert!(looks.last() >= ends.last(), "{looks:?}");
        looks.len() == ends.len() && looks.iter().zip(ends).all(|(look, end)| *look >= end)
    };
    // On a machine that stands still one look is for all that has ended meanwhile.
    for _ in 0..20 {
        if is_seen_to().await {
            return;
        }
    }
    panic!("one of the ends had no look of its own, time after time");
}

// It was given the alarm, and could not hear it: who waited beside what had come due looked five seconds later.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_has_what_it_came_for_is_not_the_one_that_looks() {
    let (runtime, room) = (runtime(), Arc::new(WaitingRoom::default()));
    let mut seats = trying(&room, 2);
    let due = runtime.now();
    for seat in &mut seats {
        seat.stay(Place::Line(0), true);
        room.lock().seats.iter_mut().for_each(|chair| chair.due = due);
    }
    call_first(&room, &slot());
    seats[0].set(Place::Line(0), true);
    room.ring(&runtime);
    assert_eq!(seats[1].bell.try_recv(), Ok(Some(Call::Alarm)));
}

// They were kept for good, one for each that was called, and all were gone through each time.
#[tokio::test(start_paused = true)]
async fn where_nobody_waits_no_end_is_kept() {
    let (runtime, room) = (runtime(), Arc::new(WaitingRoom::default()));
    room.hear(&runtime, Some(&Calls { tickets: vec![7], rest: Some(SECOND), ..Calls::default() }));
    assert!(room.lock().ends.is_empty());
}

// It counted as set for all who wait, and those in other threads were called by nobody while the host's turn lasted.
#[tokio::test(start_paused = true)]
async fn an_alarm_that_is_set_in_a_turn_of_a_host_rings_in_it() {
    let (runtime, room) = (runtime(), Arc::new(WaitingRoom::default()));
    let mut seats = trying(&room, 1);
    seats[0].stay(Place::Line(0), true);
    let soon = runtime.now() + MILLISECOND;
    crate::runtime::tasks::holding(|| room.set_recheck(&runtime, soon));
    room.set_recheck(&runtime, soon + MILLISECOND);
    assert_eq!(seats[0].called(&runtime, soon + 10 * crate::SECOND).await, Some(Call::Ready));
    crate::runtime::tasks::let_go();
}

/// How long it takes, at best of some rounds, to do this among so many who wait for names of their own.
#[cfg(feature = "crowds")]
fn among(count: i64, what: impl Fn(&Arc<WaitingRoom>)) -> Micros {
    let room = Arc::new(WaitingRoom::default());
    let name = |number: i64| vec![SlotId::new(&format!("lock-{number}")).expect("an id")];
    let mut seats: Vec<_> = (0..count)
        .map(|number| {
            room.enter((0, number), Place::Names(number as u128), name(number)).expect("there is room")
        })
        .collect();
    (0..).zip(&mut seats).for_each(|(number, seat)| seat.stay(Place::Names(number), true));
    let round = |_| {
        let began = boot_time();
        what(&room);
        boot_time() - began
    };
    (0..20).map(round).min().expect("a round")
}

// Each walked all who wait in this process, for whatever lock: 50,000 that timed out together walked past a billion.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn what_concerns_one_name_costs_no_more_where_many_wait_for_others() {
    let runtime = runtime();
    let free = SlotId::new("free").expect("an id");
    type What<'a> = (&'a str, &'a dyn Fn(&Arc<WaitingRoom>));
    let whats: [What<'_>; 3] = [
        ("a ticket of another process is called", &|room| room.call_tickets(&[1 << 100], || 0)),
        ("a name is given back that nobody waits for", &|room| call_first(room, &free)),
        ("somebody leaves", &|room| room.set_moved_up(&runtime, 0)),
    ];
    for (what, does) in whats {
        let (few, many) = (among(10, does), among(20_000, does));
        assert!(many < 20 * few + 50, "{what}: {few} us, {many} us");
    }
}

#[cfg(feature = "crowds")]
#[test]
fn the_first_is_called_who_waits_for_the_name_that_is_given_back() {
    let room = Arc::new(WaitingRoom::default());
    let id = |name: &str| SlotId::new(name).expect("an id");
    let sits = |turn: i64, names: &[&str]| {
        let place = Place::Names(turn as u128);
        let mut seat =
            room.enter((0, turn), place, names.iter().map(|name| id(name)).collect()).expect("there is room");
        seat.stay(place, true);
        seat
    };
    let (mut third, mut first, mut second) = (sits(3, &["b", "a"]), sits(1, &["a"]), sits(2, &["b"]));
    let called = |seat: &mut Seat| seat.bell.try_recv().ok().flatten();
    call_first(&room, &id("b"));
    assert_eq!(
        [called(&mut first), called(&mut second), called(&mut third)],
        [None, Some(Call::Ready), None]
    );
    // Who tries may have asked before; of those who wait the next is called.
    call_first(&room, &id("b"));
    assert_eq!([called(&mut first), called(&mut third)], [None, Some(Call::Ready)]);
    // Nobody waits for it any more: one who tries asks again, and then it is to spare.
    call_first(&room, &id("b"));
    second.stay(Place::Names(2), true);
    assert_eq!(called(&mut second), Some(Call::Ready));
    // By their tickets, of which another took the place.
    third.stay(Place::Names(33), true);
    room.call_tickets(&[3, 1], || 0);
    assert_eq!([called(&mut first), called(&mut third)], [Some(Call::Ready), None]);
    room.call_tickets(&[33], || 0);
    assert_eq!(called(&mut third), Some(Call::Ready));
    drop((first, second, third));
    let left = room.lock();
    assert_eq!((left.directory.named, left.directory.anyone, left.directory.tickets.len()), (0, 0, 0));
}
