//! Limits of money on servers that forget.

use super::scene::{DAY, HOUR, START, charge};
use crate::limits::{
    Act, Amount, Answer, Charge, Envelope, Ledger, MEMORY, Moment, Performed, REMEMBERED, Reply, Request,
    Rule, Seen, Settlement, Standing, Verdict,
};
use crate::{Micros, SECOND};
use proptest::prelude::*;

pub(super) const SPEND: Rule = Rule::Lifetime { max: Amount::MAX };

pub(super) fn daily(max: u64) -> Rule {
    Rule::Budget { max: max.into(), period: DAY, offset: 0 }
}

/// A server that can forget, on which limits are of money.
pub(super) struct Server {
    pub ledger: Ledger,
    pub wall: Micros,
    identity: u64,
}

/// A client, and what it has seen of the limit `a`.
#[derive(Clone, Default)]
pub(super) struct Client {
    pub seen: Option<Standing>,
}

impl Server {
    pub fn new() -> Self {
        Server { ledger: Ledger::default(), wall: START, identity: 1 }
    }

    /// It begins anew, with nothing.
    pub fn wipe(&mut self) {
        self.promote(Ledger::default());
    }

    /// Another server takes over, with what it has.
    pub fn promote(&mut self, data: Ledger) {
        self.ledger = data;
        self.identity += 1;
        self.wall += 1;
    }

    /// Its keys are deleted, and nothing else tells so.
    fn flush(&mut self) {
        self.ledger = Ledger::default();
        self.wall += 1;
    }

    pub fn perform(&mut self, envelope: &Envelope) -> Performed {
        let incarnation = format!("{:040x}", u128::from(self.identity) << 96);
        match self.ledger.apply(Moment { wall: self.wall, incarnation: &incarnation }, envelope) {
            Answer::Performed(performed) => performed,
            other => panic!("{other:?}"),
        }
    }
}

impl Client {
    pub fn envelope(&self, act: Act, charges: &[Charge]) -> Envelope {
        let kind = charges[0].rule.letter();
        let seen =
            |standing: &Standing| Seen { kind, limit: charges[0].limit.clone(), standing: standing.clone() };
        Envelope {
            seen: self.seen.iter().map(seen).collect(),
            requests: vec![Request { act, charges: charges.to_vec() }],
            ..Envelope::default()
        }
    }

    pub fn ask(&mut self, server: &mut Server, act: Act, charges: &[Charge]) -> Reply {
        let envelope = self.envelope(act, charges);
        self.send(server, &envelope)
    }

    pub fn send(&mut self, server: &mut Server, envelope: &Envelope) -> Reply {
        let performed = server.perform(envelope);
        if let Some(told) = &performed.standings[0] {
            match &mut self.seen {
                Some(seen) => seen.update(told),
                None => self.seen = Some(told.clone()),
            }
        }
        performed.replies[0]
    }

    pub fn judge(&mut self, server: &mut Server, act: Act, rule: Rule, cost: u64) -> Verdict {
        match self.ask(server, act, &[charge("a", rule, cost)]) {
            Reply::Judged(verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }

    pub fn takes(&mut self, server: &mut Server, rule: Rule, cost: u64) -> bool {
        self.judge(server, Act::Take, rule, cost).allowed
    }

    pub fn used(&mut self, server: &mut Server, rule: Rule) -> Amount {
        rule.most().saturating_sub(self.judge(server, Act::Peek, rule, 0).remaining)
    }
}

/// How a server loses what was written since a copy was made.
#[derive(Clone, Copy, Debug)]
enum Loss {
    RestartsEmpty,
    IsFlushed,
    LagsBehind,
}

const LOSSES: [Loss; 3] = [Loss::RestartsEmpty, Loss::IsFlushed, Loss::LagsBehind];

/// How something is charged that is given back, and how that is done.
const WAYS: [(Act, Act); 2] =
    [(Act::Take, Act::Refund), (Act::Reserve { id: 1, ttl: HOUR, waited: None }, Act::GiveBack { id: 1 })];

impl Loss {
    fn strike(self, server: &mut Server, copy: &Ledger) {
        match self {
            Loss::RestartsEmpty => server.wipe(),
            Loss::IsFlushed => server.flush(),
            Loss::LagsBehind => server.promote(copy.clone()),
        }
    }
}

#[test]
fn what_a_client_has_seen_outlasts_the_loss() {
    for rule in [daily(100), Rule::Lifetime { max: 100u64.into() }] {
        for loss in LOSSES {
            let (mut server, mut client) = (Server::new(), Client::default());
            assert!(client.takes(&mut server, rule, 30));
            let copy = server.ledger.clone();
            assert!(client.takes(&mut server, rule, 50));
            loss.strike(&mut server, &copy);
            assert_eq!(client.used(&mut server, rule), 80u64.into(), "{loss:?}, {rule:?}");
            let refused = client.judge(&mut server, Act::Take, rule, 21);
            assert_eq!((refused.allowed, refused.binding), (false, 0), "{loss:?}");
            assert!(client.takes(&mut server, rule, 20), "{loss:?}");
            // Who has seen nothing is told by those who have.
            assert!(!Client::default().takes(&mut server, rule, 1), "{loss:?}");
        }
    }
}

#[test]
fn a_refusal_and_a_look_bring_back_what_is_forgotten() {
    for act in [Act::Take, Act::Peek] {
        let (mut server, mut client) = (Server::new(), Client::default());
        assert!(client.takes(&mut server, daily(100), 100));
        server.wipe();
        assert!(!client.judge(&mut server, act, daily(100), 1).allowed);
        assert!(!Client::default().takes(&mut server, daily(100), 1), "{act:?}");
    }
}

#[test]
fn what_was_taken_before_the_loss_was_noticed_is_added() {
    for loss in LOSSES {
        let (mut server, mut client, mut other) = (Server::new(), Client::default(), Client::default());
        assert!(client.takes(&mut server, daily(100), 10));
        let copy = server.ledger.clone();
        assert!(other.takes(&mut server, daily(100), 20));
        assert!(client.takes(&mut server, daily(100), 30));
        loss.strike(&mut server, &copy);
        // One that has seen nothing, one that has seen a part, and one that has seen it all.
        assert!(Client::default().takes(&mut server, daily(100), 5));
        assert!(other.takes(&mut server, daily(100), 5));
        assert_eq!(client.used(&mut server, daily(100)), 70u64.into(), "{loss:?}");
        assert_eq!(other.used(&mut server, daily(100)), 70u64.into(), "{loss:?}");
    }
}

// With the last birth alone to compare with, what was charged between two losses was forgotten.
#[test]
fn several_losses_add_up() {
    let mut server = Server::new();
    let mut clients: Vec<Client> = vec![Client::default(); 5];
    for client in &mut clients {
        assert!(client.takes(&mut server, daily(100), 10));
        server.wipe();
    }
    let mut sums: Vec<_> =
        clients.iter_mut().map(|client| client.used(&mut server, daily(100)).saturating_u64()).collect();
    assert_eq!(sums, [10, 20, 30, 40, 50]);
    sums = clients.iter_mut().map(|client| client.used(&mut server, daily(100)).saturating_u64()).collect();
    assert_eq!(sums, [50; 5]);
}

// More births than are told apart: what is folded is in the sum.
#[test]
fn more_losses_than_are_told_apart_forget_nothing_of_who_lives_on() {
    let (mut server, mut client) = (Server::new(), Client::default());
    for round in 1..=90u64 {
        assert!(client.takes(&mut server, SPEND, 1));
        assert_eq!(client.used(&mut server, SPEND), round.into());
        server.wipe();
    }
    let text = client.seen.unwrap().to_string();
    assert!(text.len() < 1_600, "{text}");
}

#[test]
fn what_was_given_back_stays_so() {
    for loss in LOSSES {
        let (mut server, mut client) = (Server::new(), Client::default());
        assert!(client.takes(&mut server, SPEND, 80));
        let copy = server.ledger.clone();
        client.judge(&mut server, Act::Refund, SPEND, 50);
        loss.strike(&mut server, &copy);
        assert_eq!(client.used(&mut server, SPEND), 30u64.into(), "{loss:?}");
        client.judge(&mut server, Act::Refund, SPEND, 30);
        assert_eq!(client.used(&mut server, SPEND), Amount::ZERO, "{loss:?}");
    }
}

#[test]
fn an_old_standing_does_not_bring_back_what_was_reset() {
    for rule in [daily(100), SPEND] {
        let (mut server, mut admin, mut idle) = (Server::new(), Client::default(), Client::default());
        assert!(idle.takes(&mut server, rule, 80));
        // Of what it does not know, too.
        server.wipe();
        admin.judge(&mut server, Act::Reset, rule, 0);
        assert_eq!(idle.used(&mut server, rule), Amount::ZERO);
        let mut later = Client { seen: None };
        server.wipe();
        assert_eq!(admin.used(&mut server, rule), Amount::ZERO);
        assert!(later.takes(&mut server, rule, 7));
        assert_eq!(idle.used(&mut server, rule), 7u64.into());
    }
}

#[test]
fn that_nothing_is_used_is_kept_for_as_long_as_anybody_remembers_what_was() {
    // Of a budget to the end of the next period, as all of it.
    for (rule, kept) in [(SPEND, REMEMBERED), (daily(100), 2 * DAY - HOUR)] {
        for act in [Act::Reset, Act::Refund] {
            let (mut server, mut client) = (Server::new(), Client::default());
            server.wall += HOUR;
            assert!(client.takes(&mut server, rule, 80));
            client.judge(&mut server, act, rule, 80);
            let nothing = Envelope::default();
            for (pass, left) in [(MEMORY.min(kept) - 1_000, 1), (kept - MEMORY.min(kept) + 3_000, 0)] {
                server.wall += pass;
                server.perform(&nothing);
                assert_eq!(server.ledger.size().0, left, "{rule:?} {act:?}");
            }
        }
    }
}

#[test]
fn what_was_seen_of_a_period_that_is_over_means_nothing() {
    let (mut server, mut client) = (Server::new(), Client::default());
    assert!(client.takes(&mut server, daily(100), 80));
    server.wipe();
    server.wall = START + DAY;
    assert_eq!(client.used(&mut server, daily(100)), Amount::ZERO);
    assert!(client.takes(&mut server, daily(100), 100));
}

// A give-back whose reply was lost with the server is sent again to its successor.
#[test]
fn what_is_given_back_before_and_after_a_loss_counts_once() {
    for loss in LOSSES {
        for (charges, back) in WAYS {
            let (mut server, mut client, mut other) = (Server::new(), Client::default(), Client::default());
            let ten = [charge("a", daily(100), 10)];
            client.ask(&mut server, charges, &ten);
            assert!(other.takes(&mut server, daily(100), 20));
            let sent = client.envelope(back, &ten);
            let copy = server.ledger.clone();
            server.perform(&sent);
            assert_eq!(other.used(&mut server, daily(100)), 20u64.into());
            loss.strike(&mut server, &copy);
            server.perform(&sent);
            assert_eq!(other.used(&mut server, daily(100)), 20u64.into(), "{loss:?}, {back:?}");
        }
    }
}

// Who had seen nothing was not thought to be of before the loss: 10 was given back twice, and 40 used of 30.
#[test]
fn what_is_given_back_by_who_has_seen_nothing_counts_once() {
    for (charges, back) in WAYS {
        for loss in LOSSES {
            let (mut server, mut client, mut other) = (Server::new(), Client::default(), Client::default());
            let ten = [charge("a", daily(30), 10)];
            client.ask(&mut server, charges, &ten);
            assert!(other.takes(&mut server, daily(30), 20));
            let copy = server.ledger.clone();
            let sent = Client::default().envelope(back, &ten);
            server.perform(&sent);
            assert_eq!(other.used(&mut server, daily(30)), 20u64.into());
            loss.strike(&mut server, &copy);
            if !matches!(loss, Loss::LagsBehind) {
                assert_eq!(other.used(&mut server, daily(30)), 20u64.into());
            }
            server.perform(&sent);
            let used = other.used(&mut server, daily(30));
            assert_eq!(used, 20u64.into(), "{loss:?}, {back:?}");
            assert!(!Client::default().takes(&mut server, daily(30), 11), "{loss:?}, {back:?}");
        }
    }
}

// What the envelope brought along said nothing of the new day, and so it was taken to be of no loss.
#[test]
fn what_is_given_back_before_a_loss_is_not_given_back_of_the_next_period() {
    let (mut server, mut client) = (Server::new(), Client::default());
    assert!(client.takes(&mut server, daily(30), 10));
    let sent = client.envelope(Act::Refund, &[charge("a", daily(30), 10)]);
    server.perform(&sent);
    server.wipe();
    server.wall = START + DAY;
    assert!(Client::default().takes(&mut server, daily(30), 30));
    server.perform(&sent);
    assert!(!Client::default().takes(&mut server, daily(30), 1));
}

// Each had looked first, and so had heard of what was lost.
#[test]
fn a_reservation_that_two_processes_end_is_given_back_once_whatever_is_lost_between() {
    let (mut server, mut client, mut other) = (Server::new(), Client::default(), Client::default());
    let ten = [charge("a", daily(30), 10)];
    client.ask(&mut server, Act::Reserve { id: 1, ttl: HOUR, waited: None }, &ten);
    assert!(other.takes(&mut server, daily(30), 20));
    let copy = server.ledger.clone();
    let done = Reply::Settled(Settlement::Done);
    assert_eq!(Client::default().ask(&mut server, Act::GiveBack { id: 1 }, &ten), done);
    assert_eq!(other.used(&mut server, daily(30)), 20u64.into());
    server.promote(copy);
    let mut again = Client::default();
    again.used(&mut server, daily(30));
    let gone = Reply::Settled(Settlement::Gone);
    assert_eq!(again.ask(&mut server, Act::GiveBack { id: 1 }, &ten), gone);
    assert_eq!(other.used(&mut server, daily(30)), 20u64.into());
    assert!(!again.takes(&mut server, daily(30), 11));
}

#[test]
fn reservations_of_what_was_lost_give_nothing_back() {
    let ten = [charge("a", daily(100), 10)];
    for loss in LOSSES {
        let (mut server, mut client) = (Server::new(), Client::default());
        let copy = server.ledger.clone();
        client.ask(&mut server, Act::Reserve { id: 1, ttl: HOUR, waited: None }, &ten);
        loss.strike(&mut server, &copy);
        assert_eq!(client.used(&mut server, daily(100)), 10u64.into());
        let settled = client.ask(&mut server, Act::GiveBack { id: 1 }, &ten);
        assert_eq!(settled, Reply::Settled(Settlement::Gone));
        assert_eq!(client.used(&mut server, daily(100)), 10u64.into());
    }
    // One of which the server knows, but nobody what was given back of it before: it was told to be given back by who asked again.
    for act in [Act::GiveBack { id: 1 }, Act::Commit { id: 1 }] {
        let (mut server, mut client) = (Server::new(), Client::default());
        client.ask(&mut server, Act::Reserve { id: 1, ttl: HOUR, waited: None }, &ten);
        server.promote(server.ledger.clone());
        let settled = client.ask(&mut server, Act::GiveBack { id: 1 }, &ten);
        assert_eq!(settled, Reply::Settled(Settlement::Gone));
        assert_eq!(client.used(&mut server, daily(100)), 10u64.into());
        let before = Reply::Settled(Settlement::Before { given_back: false });
        assert_eq!(client.ask(&mut server, act, &ten), before);
        assert_eq!(client.used(&mut server, daily(100)), 10u64.into());
        server.wall += 121 * SECOND;
        assert_eq!(client.ask(&mut server, act, &ten), Reply::Settled(Settlement::Gone));
    }
    // What the other server reserves it gives back, whatever it hears of what was before.
    let (mut server, mut client) = (Server::new(), Client::default());
    assert!(client.takes(&mut server, daily(100), 20));
    server.promote(server.ledger.clone());
    let mut fresh = Client::default();
    fresh.ask(&mut server, Act::Reserve { id: 1, ttl: HOUR, waited: None }, &ten);
    assert_eq!(client.used(&mut server, daily(100)), 30u64.into());
    assert_eq!(fresh.ask(&mut server, Act::GiveBack { id: 1 }, &ten), Reply::Settled(Settlement::Done));
    assert_eq!(client.used(&mut server, daily(100)), 20u64.into());
}

#[test]
fn a_server_that_forgets_nothing_tells_one_birth() {
    let (mut server, mut client) = (Server::new(), Client::default());
    for version in 1..=3u64 {
        assert!(client.takes(&mut server, SPEND, 10));
        let text = client.seen.as_ref().unwrap().to_string();
        assert_eq!(text, format!("{START:016}0000000000000001 {version} 0 {}", 10 * version));
        server.wall += SECOND;
    }
    // Of what is not of money, and of what was never used, nothing is told.
    let rate = Rule::Refill { max: 5, period: SECOND };
    let requests = vec![Request { act: Act::Take, charges: vec![charge("a", rate, 1)] }];
    assert_eq!(server.perform(&Envelope { requests, ..Envelope::default() }).standings, []);
    let requests = vec![Request { act: Act::Peek, charges: vec![charge("b", SPEND, 1)] }];
    assert_eq!(server.perform(&Envelope { requests, ..Envelope::default() }).standings, [None]);
}

#[test]
fn answers_that_overtake_each_other_are_sorted() {
    let (mut server, mut client) = (Server::new(), Client::default());
    let mut told = Vec::new();
    for round in 0..6 {
        assert!(client.takes(&mut server, daily(100), 10));
        told.push(client.seen.clone().unwrap());
        if round == 3 {
            server.wipe();
        }
    }
    let last = told[5].clone();
    for first in &told {
        for second in &told {
            let mut seen = first.clone();
            seen.update(&last);
            seen.update(second);
            assert_eq!(seen, last);
        }
    }
    // One of the day before says nothing.
    server.wall = START + DAY;
    assert!(client.takes(&mut server, daily(100), 1));
    let mut seen = client.seen.clone().unwrap();
    seen.update(&last);
    assert_eq!(Some(seen), client.seen);
}

#[test]
fn texts_that_are_no_standing_are_refused() {
    let birth = "17000064000000000000000000000001";
    for good in [
        format!("{birth} 1 0 5"),
        format!("{birth} 3 1700006400000000 {}", Amount::MAX),
        format!("{birth} 3 0 5 -"),
        format!("{birth} 3 0 5 {birth}"),
        format!("{birth} 3 0 5 - {birth} 4 -7"),
        format!("{birth} 3 1700006400000000 5 -1700006300000000"),
    ] {
        assert_eq!(Standing::parse(&good).map(|standing| standing.to_string()), Some(good));
    }
    for bad in ["", "-", "1 1 0 5", &format!("{birth} 1 0"), &format!("{birth} 1 0 -5")] {
        assert_eq!(Standing::parse(bad), None, "{bad}");
    }
    for tail in [" ", " x", " - 1", " -17", &format!(" - {birth} 1"), &format!(" - {birth} 1 -0")] {
        assert_eq!(Standing::parse(&format!("{birth} 1 0 5{tail}")), None, "{tail}");
    }
}

/// What happens in a world of a few clients and a server that forgets.
#[derive(Clone, Debug)]
enum Step {
    Takes {
        client: usize,
        max: u64,
        cost: u64,
    },
    Refunds {
        client: usize,
        cost: u64,
    },
    Copies,
    Loses {
        how: Loss,
    },
    /// A reply is lost with its server, and the envelope sent again to the next.
    Repeats {
        client: usize,
        cost: u64,
        back: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (client, cost) = (0..4usize, 1..40u64);
    prop_oneof![
        8 => (client.clone(), prop_oneof![Just(60u64), Just(100)], cost.clone())
            .prop_map(|(client, max, cost)| Step::Takes { client, max, cost }),
        2 => (client.clone(), cost.clone()).prop_map(|(client, cost)| Step::Refunds { client, cost }),
        2 => Just(Step::Copies),
        1 => prop::sample::select(&LOSSES[..]).prop_map(|how| Step::Loses { how }),
        1 => (client, cost, any::<bool>())
            .prop_map(|(client, cost, back)| Step::Repeats { client, cost, back }),
    ]
}

proptest! {
    // Whatever the server forgets, and however often an envelope is performed: nothing is allowed beyond the maximum of
    // whoever asks, counted over all that those clients were allowed, less what they gave back, who have asked since the last
    // loss. And once all have, all of it is known.
    #[test]
    fn living_clients_never_overspend(steps in prop::collection::vec(step(), 1..60)) {
        let (mut server, mut clients) = (Server::new(), vec![Client::default(); 4]);
        let (mut spent, mut heard, mut copy, mut losses_left) = ([0u64; 4], [true; 4], Ledger::default(), 32);
        for step in steps {
            server.wall += 1_000;
            let mut admitted = None;
            match step {
                Step::Takes { client, max, cost } => {
                    heard[client] = true;
                    if clients[client].takes(&mut server, daily(max), cost) {
                        spent[client] += cost;
                        admitted = Some(max);
                    }
                }
                Step::Refunds { client, cost } => {
                    heard[client] = true;
                    let cost = cost.min(spent[client]);
                    clients[client].judge(&mut server, Act::Refund, daily(100), cost);
                    spent[client] -= cost;
                }
                Step::Copies => copy = server.ledger.clone(),
                Step::Loses { how } if losses_left > 0 => {
                    (heard, losses_left) = ([false; 4], losses_left - 1);
                    how.strike(&mut server, &copy);
                }
                Step::Repeats { client, cost, back } if losses_left > 0 => {
                    // It is performed, somebody sees that, the server forgets it, and it is performed again.
                    let cost = if back { cost.min(spent[client]) } else { cost };
                    let act = if back { Act::Refund } else { Act::Take };
                    let envelope = clients[client].envelope(act, &[charge("a", daily(100), cost)]);
                    let copied = server.ledger.clone();
                    server.perform(&envelope);
                    clients[(client + 1) % 4].used(&mut server, daily(100));
                    server.promote(copied);
                    (heard, losses_left) = ([false; 4], losses_left - 1);
                    heard[client] = true;
                    let again = clients[client].send(&mut server, &envelope);
                    if back {
                        spent[client] -= cost;
                    } else if matches!(again, Reply::Judged(Verdict { allowed: true, .. })) {
                        spent[client] += cost;
                        admitted = Some(100);
                    }
                }
                Step::Loses { .. } | Step::Repeats { .. } => {}
            }
            let all: u64 = spent.iter().zip(heard).filter(|(_, heard)| *heard).map(|(spent, _)| spent).sum();
            prop_assert!(admitted.is_none_or(|max| all <= max), "{all} of {admitted:?}: {spent:?}");
        }
        for client in &mut clients {
            client.used(&mut server, daily(10_000));
        }
        let used = Client::default().used(&mut server, daily(10_000)).saturating_u64();
        prop_assert!(used >= spent.iter().sum::<u64>(), "{used}: {spent:?}");
    }
}

#[test]
fn limits_of_one_envelope_are_told_in_the_order_of_their_names() {
    let mut server = Server::new();
    let names = ["c", "a", "b"];
    let charges: Vec<_> = names.iter().zip([1, 2, 3]).map(|(name, cost)| charge(name, SPEND, cost)).collect();
    let requests = vec![
        Request { act: Act::Take, charges: charges[..2].to_vec() },
        Request { act: Act::Take, charges: vec![charge("a", Rule::InFlight { max: 5 }, 1)] },
        Request { act: Act::Take, charges },
    ];
    let told = server.perform(&Envelope { requests, ..Envelope::default() }).standings;
    let used: Vec<_> = told.iter().flatten().map(|standing| standing.used().saturating_u64()).collect();
    assert_eq!(used, [2, 4, 3]);
}
