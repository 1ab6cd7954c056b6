//! Connections that are encrypted.

use std::io;
use std::sync::Arc;

use ::redis::RedisResult;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Has the server prove that it is this host, to whoever the system believes, and encrypts what is sent to it. The driver would do the
/// same, and hide that the connection has ended.
pub(super) async fn encrypted(host: &str, stream: TcpStream) -> RedisResult<TlsStream<TcpStream>> {
    choose_cryptography();
    let config = ClientConfig::builder().with_root_certificates(believed()?).with_no_client_auth();
    let name = ServerName::try_from(host)?.to_owned();
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

/// Whoever the system believes. Among many there may be some that cannot be read, or are old and malformed: they keep nobody from the
/// servers of the others.
fn believed() -> RedisResult<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    match found.errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Err(io::Error::other("the system has no certificate of anybody to believe").into()),
    }
}

/// Rustls would do so by itself, and panic where the crates of a program bring several and nobody has chosen one.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another may have been faster.
        let _ = ring::default_provider().install_default();
    }
}
