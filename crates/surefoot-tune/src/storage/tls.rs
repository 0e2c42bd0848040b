//! Encryption of connections to a PostgreSQL server.
//!
//! `sslmode`, `sslrootcert`, `sslcert` and `sslkey` and the environment variables for them mean the same as for `psql`, with
//! two differences: without `sslrootcert`, `verify-full` uses the authorities of the system, and `prefer` does not fall back
//! to plain text after a failed handshake.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::error::Error as StdError;
use std::fmt::Display;
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Value of `sslrootcert` for the authorities of the system.
const SYSTEM: &str = "system";

/// Options of a URL that concern encryption, and the environment variables that replace them.
pub(super) const OPTIONS: [(&str, &str); 4] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
];

/// Check of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verify {
    /// No check.
    Nothing,
    /// It was signed by a trusted authority.
    Authority,
    /// Same, and it was issued for the host.
    Host,
}

/// Encryption of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encryption {
    pub(super) mode: SslMode,
    verify: Verify,
    /// File with trusted authorities; `None` for those of the system.
    roots: Option<String>,
    /// Files with the client's certificate and its key.
    own: Option<(String, String)>,
}

impl Encryption {
    /// Reads the values of [`OPTIONS`], each from the URL or else from the environment.
    pub(super) fn new(
        url: impl Fn(&str) -> Option<String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Encryption, String> {
        let [(mode, mode_variable), roots, certificate, key] = OPTIONS;
        let get = |(option, variable)| url(option).or_else(|| environment(variable));
        let mode = get((mode, mode_variable));
        let mode = mode.as_deref();
        // A variable may name authorities for other servers.
        let roots = match mode {
            Some("disable" | "prefer") => url(roots.0),
            _ => get(roots),
        };
        let verify = match (mode, &roots) {
            (None | Some("disable" | "prefer" | "require"), None) => Verify::Nothing,
            (None | Some("verify-full"), _) => Verify::Host,
            (Some("require" | "verify-ca"), Some(file)) if file != SYSTEM => Verify::Authority,
            (Some("verify-ca"), None) => {
                return Err("`sslmode=verify-ca` requires `sslrootcert=FILE`".to_owned());
            }
            (Some("disable" | "prefer" | "require" | "verify-ca"), Some(file)) => {
                return Err(format!("`sslrootcert={file}` requires `sslmode=verify-full`"));
            }
            (Some(other), _) => {
                return Err(format!(
                    "unknown sslmode `{other}`; available: disable, prefer, require, verify-ca, verify-full"
                ));
            }
        };
        Ok(Encryption {
            mode: match mode {
                Some("disable") => SslMode::Disable,
                None | Some("prefer") if verify == Verify::Nothing => SslMode::Prefer,
                _ => SslMode::Require,
            },
            verify,
            roots: roots.filter(|file| file != SYSTEM),
            own: match (get(certificate), get(key)) {
                (Some(certificate), Some(key)) => Some((certificate, key)),
                (None, None) => None,
                _ => return Err("`sslcert` and `sslkey` require each other".to_owned()),
            },
        })
    }

    /// Loads the certificates.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(self.verifier(&provider)?);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.own {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates("sslcert", certificate)?;
                let failed = |error: &dyn Display| format!("`sslkey={key}`: {error}");
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(&error))?;
                let config = config.with_client_auth_cert(chain, key);
                config.map_err(|error| failed(&error))?
            }
        };
        // Required by `sslnegotiation=direct`.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let mut verifier = Verifier {
            chains: None,
            trusted: Vec::new(),
            checks_host: self.verify == Verify::Host,
            provider: Arc::clone(provider),
        };
        if self.verify == Verify::Nothing {
            return Ok(verifier);
        }
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(file) => {
                verifier.trusted = certificates("sslrootcert", file)?;
                for certificate in &verifier.trusted {
                    let added = roots.add(certificate.clone());
                    added.map_err(|error| format!("`sslrootcert={file}`: {error}"))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        verifier.chains = Some(chains.build().map_err(|error| {
            format!("no authorities of the system ({error}); set `sslrootcert=FILE`")
        })?);
        Ok(verifier)
    }
}

/// Reads the certificates in the file of an option.
fn certificates(option: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |why: &dyn Display| format!("`{option}={path}`: {why}");
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let certificates: Vec<CertificateDer<'static>> =
        certificates.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
    match certificates.is_empty() {
        true => Err(failed(&"no certificate in the file")),
        false => Ok(certificates),
    }
}

/// Verifies the certificates of servers.
#[derive(Debug)]
struct Verifier {
    /// Verifies chains up to an authority; `None` accepts every certificate.
    chains: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted themselves.
    trusted: Vec<CertificateDer<'static>>,
    checks_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chains) = &self.chains else {
            return Ok(ServerCertVerified::assertion());
        };
        let result = chains.verify_server_cert(own, others, host, &[], now);
        match &result {
            // The host is checked last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_host => Ok(ServerCertVerified::assertion()),
            // A self-signed certificate is usually that of an authority, which webpki rejects for a server, after it
            // has checked the dates.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.trusted.iter().any(|trusted| trusted == own) =>
            {
                if self.checks_host {
                    verify_server_name(&ParsedCertificate::try_from(own)?, host)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            _ => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, own, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, own, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Message for a failed handshake; `None` for other errors.
pub(super) fn handshake_error(error: &tokio_postgres::Error) -> Option<String> {
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner.or_else(|| error.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                let message = "the server's certificate is not signed by a trusted authority; \
                               set `sslrootcert=FILE`";
                return Some(message.to_owned());
            }
            Some(rustls::Error::InvalidCertificate(why)) => {
                return Some(format!("the server's certificate was rejected: {why}"));
            }
            Some(error) => return Some(format!("the TLS handshake failed: {error}")),
            None => cause = error.source(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str, variables: &[(&str, &str)]) -> Result<Encryption, String> {
        let find = |pairs: &[(&str, &str)], name: &str| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|&(_, value)| value.to_owned())
        };
        let pairs: Vec<(&str, &str)> = query.split('&').filter_map(|p| p.split_once('=')).collect();
        Encryption::new(|name| find(&pairs, name), |name| find(variables, name))
    }

    fn modes(query: &str, variables: &[(&str, &str)]) -> (SslMode, Verify, Option<String>) {
        let options = options(query, variables).expect(query);
        (options.mode, options.verify, options.roots)
    }

    #[test]
    fn modes_mean_the_same_as_for_psql() {
        let file = || Some("ca.pem".to_owned());
        for (query, mode, verify, roots) in [
            ("", SslMode::Prefer, Verify::Nothing, None),
            ("sslmode=disable", SslMode::Disable, Verify::Nothing, None),
            ("sslmode=prefer", SslMode::Prefer, Verify::Nothing, None),
            ("sslmode=require", SslMode::Require, Verify::Nothing, None),
            ("sslmode=verify-full", SslMode::Require, Verify::Host, None),
            ("sslrootcert=system", SslMode::Require, Verify::Host, None),
            ("sslmode=verify-full&sslrootcert=system", SslMode::Require, Verify::Host, None),
            ("sslrootcert=ca.pem", SslMode::Require, Verify::Host, file()),
            ("sslmode=verify-full&sslrootcert=ca.pem", SslMode::Require, Verify::Host, file()),
            ("sslmode=verify-ca&sslrootcert=ca.pem", SslMode::Require, Verify::Authority, file()),
            ("sslmode=require&sslrootcert=ca.pem", SslMode::Require, Verify::Authority, file()),
        ] {
            assert_eq!(modes(query, &[]), (mode, verify, roots), "{query}");
        }
    }

    #[test]
    fn variables_replace_missing_options() {
        let full = [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", "ca.pem")];
        let file = || Some("ca.pem".to_owned());
        for (query, mode, verify, roots) in [
            ("", SslMode::Require, Verify::Host, file()),
            ("sslmode=require", SslMode::Require, Verify::Authority, file()),
            ("sslrootcert=system", SslMode::Require, Verify::Host, None),
            ("sslmode=disable", SslMode::Disable, Verify::Nothing, None),
            ("sslmode=prefer", SslMode::Prefer, Verify::Nothing, None),
        ] {
            assert_eq!(modes(query, &full), (mode, verify, roots), "{query}");
        }
        assert!(options("sslcert=a.pem", &[("PGSSLKEY", "a.key")]).is_ok());
    }

    #[test]
    fn contradictory_options_are_rejected() {
        for (query, message) in [
            ("sslmode=disable&sslrootcert=ca.pem", "requires `sslmode=verify-full`"),
            ("sslmode=prefer&sslrootcert=ca.pem", "requires `sslmode=verify-full`"),
            ("sslmode=require&sslrootcert=system", "requires `sslmode=verify-full`"),
            ("sslmode=verify-ca&sslrootcert=system", "requires `sslmode=verify-full`"),
            ("sslmode=verify-ca", "requires `sslrootcert=FILE`"),
            ("sslcert=a.pem", "require each other"),
            ("sslkey=a.pem", "require each other"),
            ("sslmode=always", "unknown sslmode `always`; available: disable"),
        ] {
            let error = options(query, &[]).expect_err(query);
            assert!(error.contains(message), "{query}: {error}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ca.pem");
        let error = |query: &str| {
            let query = query.replace("FILE", &path.display().to_string());
            let connector = options(&query, &[]).expect("options").connector();
            connector.err().expect("an error")
        };
        let queries = ["sslrootcert=FILE", "sslcert=FILE&sslkey=FILE"];
        for query in queries {
            assert!(error(query).contains("ca.pem"));
        }
        std::fs::write(&path, "").expect("a file");
        for query in queries {
            assert!(error(query).ends_with("ca.pem`: no certificate in the file"));
        }
    }
}
