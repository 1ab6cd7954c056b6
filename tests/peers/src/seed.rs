//! The way of the seed, written anew from its description: list the locked keys of the whole database, take the
//! difference, shuffle it, lock the first that lets itself be locked, read its nonce.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::Anyhow;
use crate::connection::{Connection, Reply, command};
use crate::tally::rate;

const LOCK: &str = "relayer-lock:";
const NONCE: &str = "relayer-cache:";
/// Seconds that a lock and a nonce last.
const LOCK_TIME: &str = "5";
const NONCE_TIME: &str = "60";

/// The relayers of one process of the seed.
pub struct Seed {
    relayers: Vec<String>,
    connections: Connections,
}

/// Connections as its driver keeps them: two for each processor, and one that was used before is tried first.
struct Connections {
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    recycle: Vec<u8>,
}

struct Locked {
    relayer: String,
    nonce: u64,
}

impl Seed {
    /// Its connections, and the nonces of all relayers as they are after a minute of work.
    pub async fn new(port: u16, database: u8, relayers: Vec<String>) -> Anyhow<Arc<Self>> {
        let count = 2 * std::thread::available_parallelism()?.get();
        let mut idle = Vec::new();
        for _ in 0..count {
            idle.push(Connection::new(port, database).await?);
        }
        let mut recycle = command(&["UNWATCH"]);
        recycle.extend(command(&["PING", "1"]));
        let connections = Connections { idle: Mutex::new(idle), permits: Semaphore::new(count), recycle };
        let seed = Seed { relayers, connections };
        seed.warm().await?;
        Ok(Arc::new(seed))
    }

    /// Stores every nonce anew: they last for a minute.
    pub async fn warm(&self) -> Anyhow<()> {
        self.connections
            .with(async |connection| {
                for chunk in self.relayers.chunks(500) {
                    let set = |relayer| command(&["SETEX", &format!("{NONCE}{relayer}"), NONCE_TIME, "1"]);
                    connection.send(&chunk.iter().flat_map(set).collect::<Vec<u8>>()).await?;
                    for _ in chunk {
                        connection.reply().await?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// Pairs a second of so many callers.
    pub async fn pairs(self: &Arc<Self>, callers: usize, time: Duration) -> Anyhow<f64> {
        let began = Instant::now();
        let callers: Vec<_> = (0..callers)
            .map(|caller| {
                let seed = self.clone();
                tokio::spawn(async move {
                    let (mut count, mut random) = (0u64, Random(caller as u64));
                    while began.elapsed() < time {
                        let Some(locked) = seed.lock(&mut random).await? else { continue };
                        seed.unlock(locked).await?;
                        count += 1;
                    }
                    Anyhow::Ok(count)
                })
            })
            .collect();
        rate(callers, began).await
    }

    async fn lock(&self, random: &mut Random) -> Anyhow<Option<Locked>> {
        self.connections
            .with(async |connection| {
                let locked = list_locked(connection).await?;
                let mut free: Vec<&String> =
                    self.relayers.iter().filter(|relayer| !locked.contains(relayer.as_str())).collect();
                random.shuffle(&mut free);
                for relayer in free {
                    let key = format!("{LOCK}{relayer}");
                    if connection.call(&["SET", &key, "", "NX", "EX", LOCK_TIME]).await? != Reply::Nil {
                        let nonce = connection.call(&["GET", &format!("{NONCE}{relayer}")]).await?;
                        let nonce = nonce.text().map_or(Ok(0), |text| text.parse())?;
                        return Ok(Some(Locked { relayer: relayer.clone(), nonce }));
                    }
                }
                Ok(None)
            })
            .await
    }

    async fn unlock(&self, Locked { relayer, nonce }: Locked) -> Anyhow<()> {
        let next = (nonce + 1).to_string();
        self.connections
            .with(async |connection| {
                connection.call(&["SETEX", &format!("{NONCE}{relayer}"), NONCE_TIME, &next]).await?;
                connection.call(&["DEL", &format!("{LOCK}{relayer}")]).await?;
                Ok(())
            })
            .await
    }
}

async fn list_locked(connection: &mut Connection) -> Anyhow<HashSet<String>> {
    let (mut locked, mut cursor) = (HashSet::new(), "0".to_owned());
    loop {
        let page = connection.call(&["SCAN", &cursor, "MATCH", "relayer-lock:*"]).await?;
        let Reply::List(page) = page else { return Err("SCAN gave no list".into()) };
        let [Reply::Text(next), Reply::List(keys)] =
            <[Reply; 2]>::try_from(page).map_err(|_| "not a page")?
        else {
            return Err("SCAN gave something else".into());
        };
        let relayer = |key: Reply| Some(key.text()?.strip_prefix(LOCK)?.to_owned());
        locked.extend(keys.into_iter().filter_map(relayer));
        if next == "0" {
            return Ok(locked);
        }
        cursor = next;
    }
}

impl Connections {
    /// Lends a connection, after it has shown that it still works.
    async fn with<T>(&self, work: impl AsyncFnOnce(&mut Connection) -> Anyhow<T>) -> Anyhow<T> {
        let _permit = self.permits.acquire().await?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = idle().pop().ok_or("no connection")?;
        connection.send(&self.recycle).await?;
        connection.reply().await?;
        connection.reply().await?;
        let result = work(&mut connection).await;
        idle().push(connection);
        result
    }
}

/// Enough for a shuffle (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, (self.next() % (at as u64 + 1)) as usize);
        }
    }
}
