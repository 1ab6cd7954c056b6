//! The Rust worker of `tests/languages`, whose conversation is described in its `crew.mjs`.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::amount::Amount;
use leasehold::client::{LimitKind, TokensInMemory};
use leasehold::tokens::Token;
use leasehold::{Error, NativeLeasehold, NativeLimit, NativeLocked, NativeSelection, NativeTokens};
use serde_json::{Value, json};

/// What the verbs work on.
struct Worker {
    lh: NativeLeasehold,
    tokens: NativeTokens,
    patience: Duration,
    /// The locks that it has, by their names.
    locked: Mutex<HashMap<String, Arc<NativeLocked>>>,
    /// The selections that it has, by the names that they were given.
    selected: Mutex<HashMap<String, Arc<NativeSelection>>>,
}

impl Worker {
    fn open(shared: &Value) -> Result<Self, Error> {
        let lock_ttl = time(&shared["lockTtl"]);
        let lh = leasehold::connect(text(&shared["url"]))
            .namespace(text(&shared["namespace"]))
            .lock_ttl(lock_ttl)
            .open()?;
        let Value::Object(wallet) = &shared["wallet"] else { panic!("a wallet") };
        let (name, options) = (text(&wallet["name"]), &wallet["options"]);
        let source = TokensInMemory::default();
        for token in wallet["tokens"].as_array().expect("a list") {
            source.add(name, "", Token::new(text(&token["id"]), amount(&token["amount"])));
        }
        let times = [&options["ttl"], &options["maxAge"], &options["settle"]].map(time);
        let tokens = lh.tokens(name, source).ttl(times[0]).max_age(times[1]).settle(times[2]).open()?;
        let patience = time(&shared["patience"]);
        Ok(Worker { lh, tokens, patience, locked: Mutex::default(), selected: Mutex::default() })
    }

    async fn carry_out(&self, verb: &str, what: &Value) -> Result<Value, Error> {
        let name = what["name"].as_str().unwrap_or_default();
        match verb {
            "contend" => {
                let lock = self.lh.lock(name).timeout(self.patience).open()?;
                for _ in 0..what["times"].as_u64().expect("a number") {
                    let locked = lock.acquire().await?;
                    let mut file =
                        OpenOptions::new().append(true).open(text(&what["file"])).expect("the file is there");
                    writeln!(file, "in {}", locked.fence()).expect("written");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    writeln!(file, "out {}", locked.fence()).expect("written");
                    locked.release().await?;
                }
            }
            "hold" => {
                let priority = what["priority"].as_i64().unwrap_or(0);
                let lock = self
                    .lh
                    .lock(name)
                    .timeout(self.patience)
                    .priority(i16::try_from(priority).expect("a priority"));
                let locked = if priority > 0 { lock.steal() } else { lock }.acquire().await?;
                let fence = locked.fence().to_string();
                self.locked.lock().expect("no panic").insert(name.to_owned(), Arc::new(locked));
                return Ok(fence.into());
            }
            "yield" => {
                let locked = self.locked(name);
                locked.claimed().await;
                let held = locked.is_held();
                locked.release().await?;
                return Ok(held.into());
            }
            "release" => match self.selection(name) {
                Some(selection) => selection.release().await?,
                None => self.locked(name).release().await?,
            },
            "take" => {
                let (limit, cost) = (self.limit(&what["limit"])?, amount(&what["cost"]));
                let takes = (0..what["times"].as_u64().expect("a number")).map(|_| {
                    let limit = limit.clone();
                    tokio::spawn(async move { limit.take(cost).await })
                });
                let mut allowed = 0;
                for take in takes.collect::<Vec<_>>() {
                    allowed += u64::from(take.await.expect("no panic")?.allowed);
                }
                return Ok(allowed.into());
            }
            "remaining" => return Ok(self.limit(&what["limit"])?.remaining().await?.to_string().into()),
            "reserve" => {
                let reserved =
                    self.limit(&what["limit"])?.reserve(amount(&what["cost"]), time(&what["ttl"])).await??;
                return Ok(reserved.hand_over().into());
            }
            "renew" => {
                self.limit(&what["limit"])?.renew_reservation(text(&what["id"]), time(&what["ttl"])).await?;
            }
            "commit" => self.limit(&what["limit"])?.commit_reservation(text(&what["id"])).await?,
            "refund" => self.limit(&what["limit"])?.refund_reservation(text(&what["id"])).await?,
            "select" => {
                let timeout = what.get("timeout").map_or(self.patience, time);
                let selection = self.tokens.select(amount(&what["target"])).timeout(timeout).await?;
                let ids: Vec<&str> = selection.tokens().iter().map(|token| &*token.id).collect();
                let answer = json!(ids);
                self.selected.lock().expect("no panic").insert(name.to_owned(), Arc::new(selection));
                return Ok(answer);
            }
            "spent" => self.selection(name).expect("a selection").spent().await?,
            other => panic!("{other} is no verb of mine"),
        }
        Ok(Value::Null)
    }

    fn limit(&self, spec: &Value) -> Result<NativeLimit, Error> {
        let kind = match spec["kind"].as_str() {
            None => LimitKind::Refill,
            Some("budget") => LimitKind::Budget,
            Some(other) => panic!("{other} is no kind of mine"),
        };
        self.lh
            .limit(text(&spec["name"]), amount(&spec["max"]))
            .kind(kind)
            .period(time(&spec["period"]))
            .open()
    }

    fn locked(&self, name: &str) -> Arc<NativeLocked> {
        Arc::clone(&self.locked.lock().expect("no panic")[name])
    }

    fn selection(&self, name: &str) -> Option<Arc<NativeSelection>> {
        self.selected.lock().expect("no panic").get(name).cloned()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Of milliseconds.
fn time(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().expect("milliseconds"))
}

/// As digits, or as a number.
fn amount(value: &Value) -> Amount {
    value.as_u64().map_or_else(|| text(value).parse().expect("digits"), Amount::from)
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").and_then(|()| out.flush()).expect("somebody reads");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    let mut lines = std::io::stdin()
        .lock()
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON"));
    let worker = Arc::new(Worker::open(&lines.next().expect("what is shared")).expect("it opens"));
    say(&json!({ "ready": true }));
    for what in lines {
        let worker = Arc::clone(&worker);
        runtime.spawn(async move {
            let number = &what["number"];
            match worker.carry_out(text(&what["verb"]), &what).await {
                Ok(answer) => say(&json!({ "number": number, "answer": answer })),
                Err(error) => say(&json!({ "number": number, "code": error.code().as_str() })),
            }
        });
    }
}
