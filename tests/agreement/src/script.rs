//! The script on a Redis inside the process, and what the machine has to be told of that server.

use leasehold::Micros;
use leasehold::slots::{Answer, Envelope, Moment, Pool};
use leasehold::store::redis::RedisStore;
use leasehold::store::{Store, StorePool};
use leasehold_embedded::{EmbeddedRedis, Snapshot};

use crate::{Embedded, ledger, perform, pool_name, without_hints};

/// A server, its pools in the script's wording, and the same pools in the machine's.
#[derive(Debug)]
pub struct Script {
    transport: Embedded,
    pools: Vec<<RedisStore<Embedded> as Store>::Pool>,
    machines: Vec<Pool>,
    started: Micros,
    copy: (Snapshot, Vec<Pool>),
}

impl Script {
    /// So many pools on a server that has been up since this time.
    pub fn new(started: Micros, pools: usize) -> Self {
        let redis = EmbeddedRedis::new(started);
        let copy = (redis.snapshot(), vec![Pool::default(); pools]);
        let transport = Embedded::new(redis);
        let store = RedisStore::new(transport.clone());
        let pools: Vec<_> = (0..pools).map(|pool| store.pool(&pool_name(&format!("pool:{pool}")))).collect();
        let machines = vec![Pool::default(); pools.len()];
        Script { transport, pools, machines, started, copy }
    }

    /// The transport to the server.
    pub fn transport(&self) -> &Embedded {
        &self.transport
    }

    /// The server's wall clock.
    pub fn wall(&self) -> Micros {
        self.transport.redis().time()
    }

    /// Sets the server's wall clock.
    pub fn set_wall(&self, wall: Micros) {
        self.transport.redis().set_time(wall);
    }

    /// The server's data is copied, as to a replica.
    pub fn copy(&mut self) {
        self.copy = (self.transport.redis().snapshot(), self.machines.clone());
    }

    /// The last copy takes over: what was written since is lost.
    pub fn promote(&mut self) {
        let (data, machines) = self.copy.clone();
        self.transport.redis().promote(data);
        self.machines = machines;
    }

    /// The server restarts, its data kept.
    pub fn restart(&mut self) {
        self.transport.redis().restart();
        self.started = self.wall();
    }

    /// The server restarts without its data.
    pub fn wipe(&mut self) {
        self.transport.redis().wipe();
        self.started = self.wall();
        self.machines = vec![Pool::default(); self.pools.len()];
        self.copy();
    }

    /// The server forgets its keys while it runs.
    pub fn flush(&mut self) {
        self.transport.redis().command(&[b"FLUSHALL"]);
        self.machines = vec![Pool::default(); self.pools.len()];
        self.copy();
    }

    /// The answers to an envelope: the script's and the machine's.
    ///
    /// # Panics
    /// If the server answers with an error, or what it keeps of the pool is not of one mind.
    pub fn answers(&mut self, pool: usize, envelope: &Envelope) -> (Answer, Answer) {
        let theirs = perform(&self.pools[pool], envelope).expect("an answer");
        debug_assert!(!self.pools[pool].answers_at_once());
        ledger::audit(&mut self.transport.redis(), &format!("eth%3A1:{{pool%3A{pool}}}:"));
        let incarnation = self.transport.redis().replication_id();
        let wall = self.wall();
        // A server tells the second in which it started; it started before that second's end.
        let up_since = wall.min((self.started / 1_000_000 + 1) * 1_000_000);
        let moment = Moment { wall, incarnation: &incarnation, up_since };
        let ours = self.machines[pool].apply(moment, envelope);
        (without_hints(theirs), without_hints(ours))
    }
}
