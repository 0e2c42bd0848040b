//! Encrypted connections to a PostgreSQL server.
//!
//! `sslmode`, `sslrootcert`, `sslcert` and `sslkey` of a URL mean what they mean to PostgreSQL's own clients, so that
//! a URL that works there works here; so do the variables of the environment that stand in for them. Three things differ.
//! Authorities that are named are never passed over. Without any, those of the system are asked, where the others look for
//! a file in the home directory. And where a server offers encryption and then fails at it, nothing is tried without.

use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
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
use tokio_postgres_rustls::MakeRustlsConnect;

/// The values of `sslmode`, from the least to the most that is asked for.
const MODES: [(&str, Mode); 5] = [
    ("disable", Mode::Disable),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

/// The value of `sslrootcert` that stands for the authorities of the system.
const SYSTEM: &str = "system";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Who a server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trust {
    /// Anyone: what is sent is hidden from those who only listen.
    Anyone,
    /// Whoever has a certificate of an authority in this file.
    Authorities(String),
    /// The host, by a certificate of an authority in this file.
    Host(String),
    /// The host, by a certificate of an authority that the system trusts.
    HostBySystem,
}

/// Files with the certificate of this side and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own {
    certificate: String,
    key: String,
}

/// What a URL and the environment say about encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encryption {
    /// Whether there has to be any.
    pub(super) mode: SslMode,
    trust: Trust,
    own: Option<Own>,
}

impl Encryption {
    /// Takes out of a URL what is about encryption, for the rest is understood elsewhere. What the URL does not say,
    /// variables of the environment may.
    pub(super) fn taken_from(
        url: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(Encryption, String), String> {
        let start = url.find("://").map_or(0, |at| at + 3);
        let slash = url[start..].find('/').map_or(url.len(), |at| start + at);
        let user = url[start..slash].find('@');
        if user.is_none() && url[slash..].contains('@') {
            let message =
                "in names, passwords and what follows `?`, `@` is written `%40` and `/` `%2F`";
            return Err(message.to_owned());
        }
        // A password may have a question mark in it.
        let host = start + user.unwrap_or(0);
        let end = url[host..].find('?').map_or(url.len(), |at| host + at);
        let (place, query) = (&url[..end], url[end..].trim_start_matches('?'));
        let (mut mode, mut roots, mut certificate, mut key) = (None, None, None, None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let value = || decoded(pair.split_once('=').unwrap_or_default().1);
            match self::key(pair)?.as_str() {
                "sslmode" => mode = Some(mode_called(&value()?)?),
                "sslrootcert" => roots = Some(value()?),
                "sslcert" => certificate = Some(value()?),
                "sslkey" => key = Some(value()?),
                _ => rest.push(pair),
            }
        }
        if mode.is_none()
            && let Some(name) = variable("PGSSLMODE")
        {
            mode = Some(mode_called(&name).map_err(|error| format!("PGSSLMODE: {error}"))?);
        }
        // An environment may name authorities for all servers, also those that nobody wants to look at.
        if !matches!(mode, Some(Mode::Disable | Mode::Prefer)) {
            roots = roots.or_else(|| variable("PGSSLROOTCERT"));
        }
        certificate = certificate.or_else(|| variable("PGSSLCERT"));
        key = key.or_else(|| variable("PGSSLKEY"));
        let own = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Own { certificate, key }),
            (None, None) => None,
            _ => return Err("`sslcert` and `sslkey` need each other".to_owned()),
        };
        let encryption = Encryption::new(mode, roots, own)?;
        let rest = match rest.is_empty() {
            true => place.to_owned(),
            false => format!("{place}?{}", rest.join("&")),
        };
        Ok((encryption, rest))
    }

    fn new(
        mode: Option<Mode>,
        roots: Option<String>,
        own: Option<Own>,
    ) -> Result<Encryption, String> {
        let (mode, trust) = match (mode, roots) {
            (None | Some(Mode::Prefer), None) => (SslMode::Prefer, Trust::Anyone),
            (Some(Mode::Disable), None) => (SslMode::Disable, Trust::Anyone),
            (Some(Mode::Require), None) => (SslMode::Require, Trust::Anyone),
            (Some(Mode::VerifyFull), None) => (SslMode::Require, Trust::HostBySystem),
            (Some(Mode::VerifyCa), None) => {
                return Err(
                    "`sslmode=verify-ca` needs `sslrootcert=FILE`, the authority".to_owned()
                );
            }
            (None | Some(Mode::VerifyFull), Some(roots)) => {
                let trust = match roots == SYSTEM {
                    true => Trust::HostBySystem,
                    false => Trust::Host(roots),
                };
                (SslMode::Require, trust)
            }
            (Some(Mode::Require | Mode::VerifyCa), Some(roots)) if roots != SYSTEM => {
                (SslMode::Require, Trust::Authorities(roots))
            }
            (Some(_), Some(roots)) => {
                return Err(format!(
                    "`sslrootcert={roots}` would be of no use with this `sslmode`; ask for `verify-full`"
                ));
            }
        };
        Ok(Encryption { mode, trust, own })
    }

    /// What makes connections that are encrypted like this.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(ring::default_provider());
        let credentials = match &self.trust {
            Trust::Anyone => None,
            Trust::Authorities(file) => Some(Credentials::in_file(file, false, &provider)?),
            Trust::Host(file) => Some(Credentials::in_file(file, true, &provider)?),
            Trust::HostBySystem => Some(Credentials::of_system(&provider)?),
        };
        let verifier = Verifier { credentials, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let chain = certificates("sslcert", &own.certificate)?;
                let failed = |error: &dyn Display| format!("`sslkey={}`: {error}", own.key);
                let key = PrivateKeyDer::from_pem_file(&own.key).map_err(|error| failed(&error))?;
                let config = config.with_client_auth_cert(chain, key);
                config.map_err(|error| failed(&error))?
            }
        };
        // A server that is spoken to without `sslnegotiation=postgres` insists on this.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }
}

fn mode_called(name: &str) -> Result<Mode, String> {
    let known = MODES.iter().find(|(known, _)| *known == name);
    known.map(|&(_, mode)| mode).ok_or_else(|| {
        let names = MODES.map(|(name, _)| format!("`{name}`")).join(", ");
        format!("`sslmode` can be {names}, and not `{name}`")
    })
}

/// The key of a pair in a URL, which may be encoded as well.
pub(super) fn key(pair: &str) -> Result<String, String> {
    decoded(pair.split_once('=').unwrap_or((pair, "")).0)
}

fn decoded(value: &str) -> Result<String, String> {
    let value = percent_decode_str(value).decode_utf8();
    value.map(|value| value.into_owned()).map_err(|error| error.to_string())
}

/// The certificates in the file that a key of a URL names.
fn certificates(key: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |why: &dyn Display| format!("`{key}={path}`: {why}");
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let certificates: Vec<CertificateDer<'static>> =
        certificates.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
    match certificates.is_empty() {
        true => Err(failed(&"there is no certificate in it")),
        false => Ok(certificates),
    }
}

/// What a server has to show.
#[derive(Debug)]
struct Credentials {
    /// Certificates that are trusted themselves.
    trusted: Vec<CertificateDer<'static>>,
    /// Knows those that authorities have signed.
    chains: Arc<WebPkiServerVerifier>,
    /// Whether the certificate has to name the host.
    named: bool,
}

impl Credentials {
    fn in_file(
        path: &str,
        named: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Credentials, String> {
        let trusted = certificates("sslrootcert", path)?;
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            let added = roots.add(certificate.clone());
            added.map_err(|error| format!("`sslrootcert={path}`: {error}"))?;
        }
        Credentials::new(trusted, roots, named, provider)
    }

    fn of_system(provider: &Arc<CryptoProvider>) -> Result<Credentials, String> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map(|error| format!(" ({error})"));
            return Err(format!(
                "no authority that this system trusts was found{}; name one by `sslrootcert=FILE`",
                why.unwrap_or_default()
            ));
        }
        Credentials::new(Vec::new(), roots, true, provider)
    }

    fn new(
        trusted: Vec<CertificateDer<'static>>,
        roots: RootCertStore,
        named: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Credentials, String> {
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        Ok(Credentials { trusted, chains: chains.map_err(|error| error.to_string())?, named })
    }

    fn check(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let chain = self.chains.verify_server_cert(own, others, host, &[], now);
        let Err(rustls::Error::InvalidCertificate(why)) = &chain else {
            return chain.map(|_| ());
        };
        if is_name(why) && !self.named {
            return Ok(());
        }
        // A server that has signed its certificate itself is trusted by that one, though such a certificate usually
        // claims to be an authority's, which a chain must not end in. Its dates are looked at before that.
        let is_trusted = self.trusted.iter().any(|trusted| trusted == own);
        match is_trusted && !is_name(why) && !is_date(why) {
            true if self.named => verify_server_name(&ParsedCertificate::try_from(own)?, host),
            true => Ok(()),
            false => chain.map(|_| ()),
        }
    }
}

/// Whether a certificate was refused for the host that it names, the last thing that is looked at.
fn is_name(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    )
}

/// Whether it was refused because it is not valid now.
fn is_date(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

/// Looks at the certificates of servers.
#[derive(Debug)]
struct Verifier {
    /// `None` where any server is taken.
    credentials: Option<Credentials>,
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
        if let Some(credentials) = &self.credentials {
            credentials.check(own, others, host, now)?;
        }
        Ok(ServerCertVerified::assertion())
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
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Why there is no encrypted connection, if encryption is the reason. That does not pass.
pub(super) fn refusal(error: &postgres::Error) -> Option<String> {
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(error) = inner.or_else(|| error.downcast_ref()) {
            return Some(in_words(error));
        }
        cause = error.source();
    }
    None
}

fn in_words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(why) = error else {
        return format!(
            "the server encrypts and failed at it ({error}); `sslmode=disable` does without"
        );
    };
    let why = match why {
        CertificateError::UnknownIssuer => {
            "it is of no authority that is trusted; `sslrootcert=FILE` names one".to_owned()
        }
        CertificateError::BadSignature => {
            "it is of another authority than it says, or not its own".to_owned()
        }
        why if is_date(why) => format!("it is not valid now ({why})"),
        why if is_name(why) => "it is that of another host".to_owned(),
        why => why.to_string(),
    };
    format!("the server's certificate is refused: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_from(url: &str) -> Result<(Encryption, String), String> {
        Encryption::taken_from(url, |_| None)
    }

    fn asked(query: &str) -> Result<(SslMode, Trust), String> {
        asked_with(query, &[])
    }

    fn asked_with(query: &str, variables: &[(&str, &str)]) -> Result<(SslMode, Trust), String> {
        let url = format!("postgres://me@db/studies?{query}");
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|&(_, value)| value.to_owned())
        };
        let taken = Encryption::taken_from(&url, variable);
        taken.map(|(encryption, _)| (encryption.mode, encryption.trust))
    }

    #[test]
    fn modes_mean_what_they_mean_elsewhere() {
        let file = || "/ca's.pem".to_owned();
        let cases = [
            ("", SslMode::Prefer, Trust::Anyone),
            ("sslmode=disable", SslMode::Disable, Trust::Anyone),
            ("sslmode=prefer", SslMode::Prefer, Trust::Anyone),
            ("sslmode=require", SslMode::Require, Trust::Anyone),
            ("sslmode=verify-full", SslMode::Require, Trust::HostBySystem),
            ("sslrootcert=system", SslMode::Require, Trust::HostBySystem),
            ("sslmode=verify-full&sslrootcert=system", SslMode::Require, Trust::HostBySystem),
            ("sslrootcert=%2Fca's.pem", SslMode::Require, Trust::Host(file())),
            ("sslmode=verify-full&sslrootcert=/ca's.pem", SslMode::Require, Trust::Host(file())),
            (
                "sslmode=verify-ca&sslrootcert=/ca's.pem",
                SslMode::Require,
                Trust::Authorities(file()),
            ),
            ("sslmode=require&sslrootcert=/ca's.pem", SslMode::Require, Trust::Authorities(file())),
        ];
        for (query, mode, trust) in cases {
            assert_eq!(asked(query), Ok((mode, trust)), "{query}");
        }
    }

    #[test]
    fn a_key_that_is_encoded_counts() {
        let url = "postgres://me@db/studies?ssl%6Dode=require&po%72t=5433";
        let (encryption, rest) = taken_from(url).expect("a URL");
        assert_eq!(encryption.mode, SslMode::Require);
        assert_eq!(rest, "postgres://me@db/studies?po%72t=5433");
    }

    #[test]
    fn the_environment_says_what_the_url_does_not() {
        let full = [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", "ca.pem")];
        let file = || "ca.pem".to_owned();
        let cases = [
            ("", SslMode::Require, Trust::Host(file())),
            ("sslmode=require", SslMode::Require, Trust::Authorities(file())),
            ("sslrootcert=system", SslMode::Require, Trust::HostBySystem),
            ("sslmode=disable", SslMode::Disable, Trust::Anyone),
            ("sslmode=prefer", SslMode::Prefer, Trust::Anyone),
        ];
        for (query, mode, trust) in cases {
            assert_eq!(asked_with(query, &full), Ok((mode, trust)), "{query}");
        }
        let wrong = asked_with("", &[("PGSSLMODE", "always")]).expect_err("no mode");
        assert!(wrong.starts_with("PGSSLMODE: `sslmode` can be"), "{wrong}");
        let half = asked_with("sslcert=a.pem", &[("PGSSLKEY", "a.key")]);
        assert_eq!(half, Ok((SslMode::Prefer, Trust::Anyone)));
    }

    #[test]
    fn no_authority_is_passed_over() {
        for query in [
            "sslmode=disable&sslrootcert=ca.pem",
            "sslmode=prefer&sslrootcert=ca.pem",
            "sslmode=require&sslrootcert=system",
            "sslmode=verify-ca&sslrootcert=system",
        ] {
            let refused = asked(query).expect_err(query);
            assert!(refused.contains("verify-full"), "{query}: {refused}");
        }
        let refused = asked("sslmode=verify-ca").expect_err("no authority");
        assert!(refused.contains("sslrootcert=FILE"), "{refused}");
    }

    #[test]
    fn a_mode_that_is_none_is_refused_with_those_there_are() {
        assert_eq!(
            asked("sslmode=always"),
            Err("`sslmode` can be `disable`, `prefer`, `require`, `verify-ca`, `verify-full`, and not `always`".to_owned())
        );
    }

    #[test]
    fn the_rest_of_a_url_is_left_as_it_is() {
        let url = "postgres://me:a?b@db/studies?port=5433&sslmode=require&connect_timeout=3";
        let (_, rest) = taken_from(url).expect("a URL");
        assert_eq!(rest, "postgres://me:a?b@db/studies?port=5433&connect_timeout=3");
        let (_, rest) = taken_from("postgres://db/s?sslmode=require").expect("a URL");
        assert_eq!(rest, "postgres://db/s");
    }

    #[test]
    fn an_at_sign_cannot_hide_what_is_asked_for() {
        let url = "postgres://db/s?sslmode=verify-full&sslrootcert=/home/me@corp/ca.pem";
        let refused = taken_from(url).expect_err("a misleading URL");
        assert!(refused.contains("%40"), "{refused}");
        let url = url.replace("//db", "//me@db");
        let (encryption, rest) = taken_from(&url).expect("a URL");
        assert_eq!(encryption.trust, Trust::Host("/home/me@corp/ca.pem".to_owned()));
        assert_eq!(rest, "postgres://me@db/s");
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ca.pem");
        let connector = |query: &str| {
            let query = query.replace("FILE", &path.display().to_string());
            let url = format!("postgres://db/s?{query}");
            let (encryption, _) = taken_from(&url).expect("a URL");
            encryption.connector().err().expect("no certificate")
        };
        let queries = ["sslrootcert=FILE", "sslcert=FILE&sslkey=FILE"];
        for query in queries {
            let missing = connector(query);
            assert!(missing.contains("ca.pem"), "{missing}");
        }
        std::fs::write(&path, "").expect("a file");
        for query in queries {
            assert!(connector(query).ends_with("ca.pem`: there is no certificate in it"));
        }
    }

    #[test]
    fn a_certificate_and_its_key_need_each_other() {
        for query in ["sslcert=a.pem", "sslkey=a.pem"] {
            let refused = asked(query).expect_err(query);
            assert_eq!(refused, "`sslcert` and `sslkey` need each other");
        }
    }
}
