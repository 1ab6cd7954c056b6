//! A server of tests, which answers as it is told to.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::redis::Client;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::poison::unpoisoned;

/// A sentinel, a server or a node.
#[derive(Clone)]
pub(super) struct Fake {
    pub port: u16,
    pub shared: Arc<Shared>,
}

pub(super) struct Shared {
    /// The epoch and the primary that it says as a sentinel; nothing if it is silent.
    says: Mutex<Option<(u64, u16)>>,
    /// Where it says, as a node, that a key is; with itself if nowhere.
    moved: Mutex<Option<u16>>,
    /// The epoch of its cluster, which it may not say if it is 0.
    epoch: AtomicUsize,
    connections: AtomicUsize,
    /// How often while it was gone.
    turned_away: AtomicUsize,
    /// How long it takes to connect to it, and to answer.
    takes: Mutex<[Duration; 2]>,
    writes: Mutex<usize>,
    /// What it refuses scripts with, if it does.
    refusal: Mutex<Option<String>>,
    /// The channel that nobody may listen to.
    denied: Mutex<String>,
    /// How often it was told to subscribe or to end that, and how often it must have been before it confirms any.
    subscribes: [AtomicUsize; 2],
    /// Told when it is asked what it does when its memory is full, which it may answer with a permit.
    pub asked: Notify,
    pub answers: Semaphore,
    /// Told when it closes its connections.
    hangs_up: Notify,
    is_gone: AtomicBool,
}

impl Fake {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            says: Mutex::default(),
            moved: Mutex::default(),
            epoch: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            turned_away: AtomicUsize::new(0),
            takes: Mutex::default(),
            writes: Mutex::default(),
            refusal: Mutex::default(),
            denied: Mutex::new("denied".to_owned()),
            subscribes: Default::default(),
            asked: Notify::new(),
            answers: Semaphore::new(Semaphore::MAX_PERMITS),
            hangs_up: Notify::new(),
            is_gone: AtomicBool::new(false),
        });
        let fake = Fake { port: listener.local_addr().unwrap().port(), shared };
        let serves = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // It keeps its port, or a server of another test could be taken for it.
                if serves.shared.is_gone.load(Relaxed) {
                    serves.shared.turned_away.fetch_add(1, Relaxed);
                    continue;
                }
                let fake = serves.clone();
                fake.shared.connections.fetch_add(1, Relaxed);
                // As a server does: else each answer takes 40 ms.
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let [connecting, _] = *unpoisoned(&fake.shared.takes);
                    tokio::time::sleep(connecting).await;
                    tokio::select! {
                        _ = fake.serve(BufReader::new(stream)) => {}
                        () = fake.shared.hangs_up.notified() => {}
                    }
                });
            }
        });
        fake
    }

    /// How it is spoken to.
    pub fn client(&self) -> Client {
        Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap()
    }

    pub fn says(&self, epoch: u64, primary: &Fake) {
        *unpoisoned(&self.shared.says) = Some((epoch, primary.port));
    }

    pub fn is_silent(&self) {
        *unpoisoned(&self.shared.says) = None;
    }

    pub fn names(&self, node: &Fake) {
        *unpoisoned(&self.shared.moved) = Some(node.port);
    }

    /// The epoch of its cluster is this one.
    pub fn is_in(&self, epoch: usize) {
        self.shared.epoch.store(epoch, Relaxed);
    }

    pub fn serves(&self) {
        *unpoisoned(&self.shared.moved) = None;
    }

    /// Answers each script as it should again.
    pub fn refuses_no_more(&self) {
        *unpoisoned(&self.shared.refusal) = None;
    }

    /// Answers each script with this error.
    pub fn refuses(&self, error: &str) {
        *unpoisoned(&self.shared.refusal) = Some(error.to_owned());
    }

    /// Nobody may listen to this channel from now on.
    pub fn denies(&self, channel: &str) {
        *unpoisoned(&self.shared.denied) = channel.to_owned();
    }

    /// How often it was told to subscribe or to end that.
    pub fn subscribes(&self) -> usize {
        self.shared.subscribes[0].load(Relaxed)
    }

    /// Confirms no subscription, and no end of one, until it was told to do so many more.
    pub fn confirms_after(&self, more: usize) {
        self.shared.subscribes[1].store(self.subscribes() + more, Relaxed);
    }

    /// Closes its connections. Whoever comes anew is served.
    pub fn hangs_up(&self) {
        self.shared.hangs_up.notify_waiters();
    }

    /// From now on it takes so long to connect to it, and to have an answer of it.
    pub fn takes(&self, connecting: Duration, answering: Duration) {
        *unpoisoned(&self.shared.takes) = [connecting, answering];
    }

    /// Who connects to it waits.
    pub fn hangs(&self) {
        self.shared.answers.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Closes its connections, and whatever is made anew.
    pub fn goes(&self) {
        self.shared.is_gone.store(true, Relaxed);
        self.hangs_up();
    }

    /// Whoever comes anew is served again.
    pub fn comes_back(&self) {
        self.shared.is_gone.store(false, Relaxed);
    }

    /// How often it was connected to.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// How often while it was gone.
    pub fn turned_away(&self) -> usize {
        self.shared.turned_away.load(Relaxed)
    }

    /// How often it was written to.
    pub fn writes(&self) -> usize {
        *unpoisoned(&self.shared.writes)
    }

    async fn serve(&self, mut stream: BufReader<TcpStream>) -> Option<()> {
        let mut unconfirmed = String::new();
        loop {
            let words = command(&mut stream).await?;
            // What a connection begins with is answered at once, and with the first question the second that was sent together with it.
            if ["SENTINEL MASTER", "PING"].iter().any(|word| words.join(" ").starts_with(word)) {
                let [_, answering] = *unpoisoned(&self.shared.takes);
                tokio::time::sleep(answering).await;
            }
            let said = *unpoisoned(&self.shared.says);
            let refusal = unpoisoned(&self.shared.refusal).clone();
            let answer = match (words.join(" ").as_str(), said) {
                (text, None) if text.starts_with("SENTINEL") => continue,
                (text, Some((epoch, _))) if text.starts_with("SENTINEL MASTER") => {
                    format!("*2\r\n+config-epoch\r\n+{epoch}\r\n")
                }
                (text, Some((_, port))) if text.starts_with("SENTINEL") => {
                    format!("*2\r\n+127.0.0.1\r\n+{port}\r\n")
                }
                (text, _) if text.starts_with("CONFIG GET") => {
                    self.shared.asked.notify_one();
                    drop(self.shared.answers.acquire().await);
                    "*2\r\n+maxmemory-policy\r\n+noeviction\r\n".to_owned()
                }
                ("CLUSTER INFO", _) => match self.shared.epoch.load(Relaxed) {
                    0 => "-NOPERM no permissions to run the 'cluster|info' command\r\n".to_owned(),
                    epoch => format!("+cluster_state:ok cluster_current_epoch:{epoch} \r\n"),
                },
                (text, _) if text.starts_with("CLUSTER") => "*0\r\n".to_owned(),
                (text, _) if text.starts_with("EVALSHA") && refusal.is_some() => {
                    format!("-{}\r\n", refusal.unwrap_or_default())
                }
                (text, _) if ["EVALSHA", "EXISTS"].iter().any(|word| text.starts_with(word)) => {
                    let moved = *unpoisoned(&self.shared.moved);
                    *unpoisoned(&self.shared.writes) +=
                        usize::from(moved.is_none() && text.starts_with("EVALSHA"));
                    moved.map_or(":0\r\n".to_owned(), |port| format!("-MOVED 7 127.0.0.1:{port}\r\n"))
                }
                // Nobody may listen to this channel.
                (text, _)
                    if text.starts_with("SUBSCRIBE ")
                        && words.contains(&*unpoisoned(&self.shared.denied)) =>
                {
                    "-NOPERM No permissions to access a channel\r\n".to_owned()
                }
                (text, _) if ["SUBSCRIBE ", "UNSUBSCRIBE "].iter().any(|word| text.starts_with(word)) => {
                    let [subscribes, confirms] = &self.shared.subscribes;
                    for channel in words.iter().skip(1) {
                        let kind = words[0].to_lowercase();
                        let [kind, channel] =
                            [&kind, channel].map(|word| format!("${}\r\n{word}", word.len()));
                        unconfirmed += &format!("*3\r\n{kind}\r\n{channel}\r\n:1\r\n");
                    }
                    if subscribes.fetch_add(1, Relaxed) + 1 < confirms.load(Relaxed) {
                        continue;
                    }
                    std::mem::take(&mut unconfirmed)
                }
                ("QUIT", _) => {
                    stream.write_all(b"+OK\r\n").await.ok()?;
                    return None;
                }
                // The command was renamed.
                (text, _) if text.starts_with("HELLO") => {
                    let args: String = words.iter().skip(1).map(|word| format!("'{word}' ")).collect();
                    format!("-ERR unknown command 'HELLO', with args beginning with: {args}\r\n")
                }
                (text, _) => {
                    *unpoisoned(&self.shared.writes) += usize::from(text.starts_with("SET "));
                    "+OK\r\n".to_owned()
                }
            };
            stream.write_all(answer.as_bytes()).await.ok()?;
        }
    }
}

/// The next command, in the form in which clients send it.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(stream, '*').await? {
        let mut word = vec![0; number(stream, '$').await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
    }
    Some(words)
}

async fn number(stream: &mut BufReader<TcpStream>, sign: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(sign)?.parse().ok()
}
