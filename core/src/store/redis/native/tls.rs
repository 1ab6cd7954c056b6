//! Connections that are encrypted.

use std::sync::Arc;

use ::redis::RedisResult;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Has the server prove that it is this host, to whoever the system believes, and encrypts what is sent to it. The driver would do the
/// same, and hide that the connection has ended.
pub(super) async fn encrypted(host: &str, stream: TcpStream) -> RedisResult<TlsStream<TcpStream>> {
    let mut found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.pop() {
        return Err(error.into());
    }
    let mut roots = RootCertStore::empty();
    found.certs.into_iter().try_for_each(|certificate| roots.add(certificate))?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host)?.to_owned();
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}
