//! The fence checks for resources: each refuses a holder that wakes up after its lease, and all are of one mind.

use std::time::Duration;

use futures_util::FutureExt;
use leasehold::client::PoolOptions;
use leasehold::fence::{FenceGuard, MAX_FENCE, SCRIPT};
use leasehold::store::redis::{Resp, Transport};
use leasehold::{Code, MILLISECOND, SECOND};
use leasehold_agreement::{Embedded, Random, Real, seeds};
use leasehold_embedded::EmbeddedRedis;
use leasehold_servers::{RedisOptions, RedisServer};

/// Something that holders of a lease write to.
trait Resource {
    /// Writes, unless the holder of this fence is late.
    fn write(&mut self, fence: u64, text: &str) -> bool;
    /// What was written last.
    fn text(&mut self) -> String;
}

/// Trusts whoever comes.
#[derive(Default)]
struct Trusting(String);

impl Resource for Trusting {
    fn write(&mut self, _: u64, text: &str) -> bool {
        self.0 = text.to_owned();
        true
    }

    fn text(&mut self) -> String {
        self.0.clone()
    }
}

#[derive(Default)]
struct InProcess {
    guard: FenceGuard,
    text: String,
}

impl Resource for InProcess {
    fn write(&mut self, fence: u64, text: &str) -> bool {
        let admitted = self.guard.admit(fence).is_ok();
        if admitted {
            self.text = text.to_owned();
        }
        admitted
    }

    fn text(&mut self) -> String {
        self.text.clone()
    }
}

/// Keeps its text beside its fence.
struct InRedis<T>(T);

impl InRedis<Embedded> {
    fn embedded() -> Self {
        InRedis(Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND)))
    }
}

impl InRedis<Real> {
    fn real(server: &RedisServer) -> Self {
        InRedis(Real::new(server.connect().expect("connected")))
    }
}

impl<T: Transport> InRedis<T> {
    fn command(&self, words: &[&str]) -> Resp {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        self.0.send(words).now_or_never().expect("it answers at once").expect("a reply")
    }

    fn admit(&self, fence: &str) -> Resp {
        self.command(&["EVAL", SCRIPT, "1", "{account}:fence", fence])
    }

    fn highest(&self) -> Resp {
        self.command(&["GET", "{account}:fence"])
    }
}

impl<T: Transport> Resource for InRedis<T> {
    fn write(&mut self, fence: u64, text: &str) -> bool {
        let check = SCRIPT.strip_suffix("return 1\n").expect("its last line");
        let script = format!("{check}redis.call('SET', KEYS[2], ARGV[2])\nreturn 1");
        let fence = fence.to_string();
        match self.command(&["EVAL", &script, "2", "{account}:fence", "{account}:text", &fence, text]) {
            Resp::Integer(admitted) => admitted == 1,
            other => panic!("{other:?}"),
        }
    }

    fn text(&mut self) -> String {
        match self.command(&["GET", "{account}:text"]) {
            Resp::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

/// A holder is paused, its lease ends, another one has the lease and writes; then the first goes on and writes, knowing
/// nothing of all that.
async fn paused_beyond_its_lease(resource: &mut dyn Resource) -> (bool, String) {
    let handle = leasehold::connect("memory:").namespace("fences").open().expect("a good address");
    let options =
        PoolOptions { ttl: 50 * MILLISECOND, ..PoolOptions::slots(["account"]).expect("a good slot") };
    let pool = handle.pool_with("relayers", options, None).await.expect("the pool opens");
    let paused = pool.acquire().await.expect("granted");
    assert!(resource.write(paused.fence(), "the first"));
    tokio::time::sleep(Duration::from_millis(60)).await;
    let other = pool.acquire().await.expect("granted after the end");
    assert!(resource.write(other.fence(), "the other"));
    assert!(resource.write(other.fence(), "the other again"), "a holder may write more than once");
    let admitted = resource.write(paused.fence(), "the first, late");
    (admitted, resource.text())
}

#[tokio::test]
async fn without_a_check_a_paused_holder_destroys_what_the_other_wrote() {
    let outcome = paused_beyond_its_lease(&mut Trusting::default()).await;
    assert_eq!(outcome, (true, "the first, late".to_owned()));
}

#[tokio::test]
async fn every_check_refuses_a_paused_holder() {
    let server = RedisServer::start(RedisOptions::default()).expect("a server starts");
    let resources: [(&str, &mut dyn Resource); 3] = [
        ("in the process", &mut InProcess::default()),
        ("in an embedded Redis", &mut InRedis::embedded()),
        ("in Redis", &mut InRedis::real(&server)),
    ];
    for (place, resource) in resources {
        let outcome = paused_beyond_its_lease(resource).await;
        assert_eq!(outcome, (false, "the other again".to_owned()), "{place}");
    }
}

/// Fences of every length, and their neighbours; now and then none at all.
fn fence(random: &mut Random, highest: u64) -> u64 {
    match random.below(8) {
        0 => random.any() >> random.below(64),
        1 => random.any() >> 11,
        2 => 10u64.pow(random.below(17) as u32) - random.below(2),
        3 => random.of(&[0, 1, MAX_FENCE, MAX_FENCE + 1, u64::MAX]),
        _ => (highest + random.below(5)).saturating_sub(2),
    }
}

#[test]
fn the_script_admits_whom_the_guard_admits() {
    let server = RedisServer::start(RedisOptions::default()).expect("a server starts");
    for seed in seeds(40) {
        let mut random = Random::new(seed);
        let mut guard = FenceGuard::default();
        let (embedded, real) = (InRedis::embedded(), InRedis::real(&server));
        real.command(&["FLUSHALL"]);
        for _ in 0..60 {
            let fence = fence(&mut random, guard.highest());
            let expected = guard.admit(fence).map_err(|error| error.code());
            let text = fence.to_string();
            for reply in [embedded.admit(&text), real.admit(&text)] {
                let same = match expected {
                    Ok(()) => reply == Resp::Integer(1),
                    Err(Code::Lost) => reply == Resp::Integer(0),
                    Err(_) => matches!(&reply, Resp::Error(text) if text.starts_with("ERR fence: ")),
                };
                assert!(same, "{fence}: {expected:?} {reply:?}; again: LEASEHOLD_SEED={seed}");
            }
            let highest = match guard.highest() {
                0 => Resp::Nil,
                highest => Resp::Text(highest.to_string()),
            };
            assert_eq!([embedded.highest(), real.highest()], [highest.clone(), highest]);
        }
    }
}

fn what_the_script_refuses<T: Transport>(redis: &InRedis<T>) {
    assert_eq!(redis.admit("10"), Resp::Integer(1));
    // As a number that was formatted on the way would look, as text that was never one, and as a longer number.
    for fence in [
        "",
        "0",
        "007",
        "1.7e+15",
        "12.0",
        "-3",
        "+12",
        " 12",
        "12 ",
        "12\n",
        "0x0c",
        "nil",
        "90071992547409920",
    ] {
        let reply = redis.admit(fence);
        assert!(
            matches!(&reply, Resp::Error(text) if text.starts_with("ERR fence: ")),
            "{fence:?}: {reply:?}"
        );
        assert_eq!(redis.highest(), Resp::Text("10".to_owned()), "{fence:?}");
    }
    assert_eq!(redis.admit("9"), Resp::Integer(0));
    // A key that is something else stays what it is.
    redis.command(&["SET", "{account}:fence", "hello"]);
    assert!(matches!(redis.admit("12"), Resp::Error(text) if text.contains("a key of its own")));
    assert_eq!(redis.highest(), Resp::Text("hello".to_owned()));
    redis.command(&["DEL", "{account}:fence"]);
    redis.command(&["RPUSH", "{account}:fence", "12"]);
    assert!(matches!(redis.admit("12"), Resp::Error(text) if text.contains("WRONGTYPE")));
    // A key that would go takes the memory of late holders with it.
    redis.command(&["SET", "{account}:fence", "12", "EX", "100"]);
    assert_eq!(redis.admit("12"), Resp::Integer(1));
    assert_eq!(redis.command(&["TTL", "{account}:fence"]), Resp::Integer(-1));
}

#[test]
fn the_script_refuses_what_is_no_fence() {
    what_the_script_refuses(&InRedis::embedded());
    let server = RedisServer::start(RedisOptions::default()).expect("a server starts");
    what_the_script_refuses(&InRedis::real(&server));
}
