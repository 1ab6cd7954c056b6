//! What a server that speaks TLS shows to its clients.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A certificate for one host, and the authority by which it is and that nobody believes yet.
#[derive(Clone, Debug)]
pub struct Certificate {
    authority: String,
    shown: String,
    key: String,
}

pub(crate) const AUTHORITY_FILE: &str = "authority.pem";
pub(crate) const CERTIFICATE_FILE: &str = "certificate.pem";
pub(crate) const KEY_FILE: &str = "key.pem";

impl Certificate {
    /// Makes one for a name or an address.
    pub fn of(host: &str) -> io::Result<Self> {
        Self::made(host).map_err(io::Error::other)
    }

    fn made(host: &str) -> Result<Self, rcgen::Error> {
        let mut of_authority = CertificateParams::default();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Another for each host: what is by one of the same name counts as forged, and not as unknown.
        of_authority.distinguished_name.push(DnType::CommonName, format!("authority of {host}"));
        let its_key = KeyPair::generate()?;
        let authority = of_authority.self_signed(&its_key)?.pem();
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(of_authority, its_key);
        let shown = CertificateParams::new([host.to_owned()])?.signed_by(&key, &issuer)?.pem();
        Ok(Certificate { authority, shown, key: key.serialize_pem() })
    }

    /// Puts it where a server looks for it, and the authority beside it.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        fs::write(directory.join(AUTHORITY_FILE), &self.authority)?;
        fs::write(directory.join(CERTIFICATE_FILE), &self.shown)?;
        fs::write(directory.join(KEY_FILE), &self.key)
    }
}
