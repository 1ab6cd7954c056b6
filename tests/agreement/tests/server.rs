//! The machine against the script on a real server: its Lua, its sorted sets, its clock.
//!
//! The server's time cannot be set, so the machine is told the time that the server's answer names.

use std::time::{Duration, Instant};

use leasehold::slots::{Answer, Envelope, Moment, Pool};
use leasehold::store::Store;
use leasehold::store::redis::RedisStore;
use leasehold::{MILLISECOND, Micros};
use leasehold_agreement::{Real, Scale, Traffic, perform, pool_name, seeds, without_hints};
use leasehold_servers::{RedisOptions, RedisServer};

/// How long a command takes at most to begin.
const MAY_PASS: Micros = 20 * MILLISECOND;

/// A real server, and what the machine is told of it.
struct Subject {
    server: RedisServer,
    transport: Real,
    incarnation: String,
    /// The second in which it started.
    started: Micros,
}

impl Subject {
    fn start() -> Self {
        let server = RedisServer::start(RedisOptions::default()).expect("started");
        let transport = Real::new(server.connect().expect("connected"));
        let mut subject = Subject { server, transport, incarnation: String::new(), started: 0 };
        subject.look();
        subject
    }

    fn look(&mut self) {
        self.transport = Real::new(self.server.connect().expect("connected"));
        let script = "return redis.call('INFO', 'server') .. redis.call('INFO', 'replication')";
        let reply = self.transport.command(&["EVAL", script, "0"]);
        let text = reply.as_text().expect("text").to_owned();
        let after = |mark: &str| {
            text.split(mark).nth(1).and_then(|rest| rest.split_whitespace().next()).expect("there")
        };
        // The time by which the server counts how long it has been up, which it reads once a command.
        let now: Micros = after("server_time_usec:").parse().expect("a time");
        let uptime: Micros = after("uptime_in_seconds:").parse().expect("a number");
        self.started = now / 1_000_000 - uptime;
        self.incarnation = after("master_replid:").to_owned();
    }

    /// As [`leasehold_agreement::Script::answers`], at a time of the server's choice.
    fn answers(&self, pool: &str, machine: &mut Pool, envelope: &Envelope) -> (Answer, Answer) {
        let store = RedisStore::new(self.transport.clone());
        let theirs = perform(&store.pool(&pool_name(pool)), envelope).expect("an answer");
        let wall = match &theirs {
            // An answer from before names its own time: whatever time it is, the machine must recall it.
            Answer::Performed(performed) => performed.now,
            Answer::Stale { now } => *now,
        };
        let up_since = wall.min((self.started + 1) * 1_000_000);
        let apply = |machine: &mut Pool, up_since| {
            let ours = machine.apply(Moment { wall, incarnation: &self.incarnation, up_since }, envelope);
            without_hints(ours)
        };
        let (theirs, before) = (without_hints(theirs), machine.clone());
        let mut ours = apply(machine, up_since);
        // A second may begin after the server has read how long it was up and before the script reads the time: then the
        // script takes the server to have started a second later, to be safe.
        if theirs != ours && wall - up_since < MAY_PASS {
            *machine = before;
            ours = apply(machine, wall);
        }
        (theirs, ours)
    }
}

#[test]
fn a_real_server_agrees() {
    let scale = Scale { pools: 2, slots: 7, unit: MILLISECOND };
    let mut subject = Subject::start();
    let begun = Instant::now();
    let mut sent = 0;
    for seed in seeds(25) {
        let mut traffic = Traffic::new(seed, scale);
        let mut machines = vec![Pool::default(); scale.pools];
        for step in 0..400 {
            match traffic.random().below(400) {
                0 => drop(subject.transport.command(&["SCRIPT", "FLUSH"])),
                1 => {
                    // Without persistence: all is lost.
                    subject.server.restart().expect("restarted");
                    subject.look();
                    machines = vec![Pool::default(); scale.pools];
                }
                2..60 => std::thread::sleep(Duration::from_micros(traffic.random().below(4_000))),
                _ => {}
            }
            let pool = traffic.pool();
            let envelope = traffic.envelope(pool);
            let name = format!("{seed}:{pool}");
            let (theirs, ours) = subject.answers(&name, &mut machines[pool], &envelope);
            assert_eq!(
                theirs, ours,
                "the server's answer is on the left, the machine's on the right\nto {envelope:#?}\n\
                 in pool {pool} at step {step}; try again: LEASEHOLD_SEED={seed}"
            );
            traffic.hear(pool, &ours);
            sent += 1;
        }
    }
    println!("{sent} envelopes, {:?}", begun.elapsed());
}
