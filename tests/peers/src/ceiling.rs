//! What a server allows: how many empty scripts it runs in a second for many connections, each with one call
//! under way. An acquisition and a release cannot take less than two of them.

use std::time::{Duration, Instant};

use crate::Anyhow;
use crate::connection::{Connection, command};
use crate::tally::rate;

/// Calls of an empty script a second.
pub fn empty_scripts(port: u16, connections: usize, time: Duration) -> Anyhow<f64> {
    // One thread: the server needs the other processor, and this one waits for it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut loader = Connection::new(port, 0).await?;
        let digest = loader.call(&["SCRIPT", "LOAD", "return 1"]).await?.text().ok_or("no digest")?;
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(Connection::new(port, 0).await?);
        }
        let call: std::rc::Rc<[u8]> = command(&["EVALSHA", &digest, "0"]).into();
        let local = tokio::task::LocalSet::new();
        let began = Instant::now();
        let callers: Vec<_> = open
            .into_iter()
            .map(|mut connection| {
                let call = call.clone();
                local.spawn_local(async move {
                    let mut count = 0u64;
                    while began.elapsed() < time {
                        connection.send(&call).await?;
                        connection.skip_line().await?;
                        count += 1;
                    }
                    Anyhow::Ok(count)
                })
            })
            .collect();
        local.run_until(rate(callers, began)).await
    })
}
