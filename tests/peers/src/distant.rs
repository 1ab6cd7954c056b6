//! A server that is far: what is sent and what comes back is on its way for a while. The proxy of the faults, which also delays,
//! takes one part after the other, and so hides how many are on their way at once.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep_until};

use crate::Anyhow;

/// A port at which a server of this machine is so far away, each way, as long as the runtime lives.
pub async fn port(server: u16, away: Duration) -> Anyhow<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(("127.0.0.1", server)).await else { return };
            if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
                return;
            }
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            carry(from_near, to_far, away);
            carry(from_far, to_near, away);
        }
    });
    Ok(port)
}

/// Carries bytes from one to the other until either ends; many are on their way at once.
fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, away: Duration) {
    let (sender, mut arrivals) = unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let part = buffer.get(..count).unwrap_or_default().to_vec();
            if sender.send((Instant::now() + away, part)).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((time, part)) = arrivals.recv().await {
            sleep_until(time).await;
            if to.write_all(&part).await.is_err() {
                return;
            }
        }
    });
}
