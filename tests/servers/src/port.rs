//! Loopback ports that no two tests share.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A port that is ours as long as this lives, whether or not something listens on it just now.
///
/// The claim is a Unix socket with an abstract name: the kernel lets go of it when the process ends, however it
/// ends. Ports come from below the range of outgoing connections, so that none of these takes one in between.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: UnixListener,
}

const FIRST: u16 = 12_000;
/// The bus of a cluster node listens ten thousand above its port, so the range ends where that one begins.
const COUNT: u16 = 10_000;
pub(crate) const BUS_OFFSET: u16 = 10_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

impl Port {
    /// Claims a port on which nothing listens.
    pub(crate) fn claim() -> io::Result<Self> {
        // Processes begin at different places, so that they seldom ask for the same port.
        let start = (std::process::id().wrapping_mul(7_919) % u32::from(COUNT)) as u16;
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let number = FIRST + (start + step) % COUNT;
            let name = SocketAddr::from_abstract_name(format!("leasehold-servers-port-{number}"))?;
            let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
            if is_free(number) && is_free(number + BUS_OFFSET) {
                return Ok(Self { number, _claim: claim });
            }
        }
        Err(io::Error::other("no loopback port is free"))
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Whether nothing listens there. Asked by connecting: had we listened to find out, a child that another thread starts at that
/// moment would do so still, until it has become another program.
fn is_free(number: u16) -> bool {
    let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, number));
    refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn threads_never_get_the_same_port() {
        let claims: Vec<_> = (0..8).map(|_| thread::spawn(|| [0; 10].map(|_| Port::claim()))).collect();
        let ports: Vec<Port> = claims
            .into_iter()
            .flat_map(|claim| claim.join().expect("no panic"))
            .collect::<io::Result<_>>()
            .expect("claimed");
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), 80);
    }

    #[test]
    fn a_port_that_is_listened_on_is_left_alone() {
        let port = Port::claim().expect("claimed");
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).expect("free");
        assert!(!is_free(port.number()));
    }
}
