//! Encrypted connections to a PostgreSQL server.

#![cfg(feature = "postgres")]

mod server;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use server::{CERTIFIED, Certificate, GUARDED, Server};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use surefoot_tune::storage::Storage;
use tempfile::TempDir;

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    fn certificate(&self, host: &str) -> Certificate {
        self.signed(CertificateParams::new(vec![host.to_owned()]).expect("parameters"))
    }

    fn certificate_of_client(&self, name: &str) -> Certificate {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.distinguished_name.push(DnType::CommonName, name);
        self.signed(parameters)
    }

    fn signed(&self, parameters: CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.0);
        Certificate {
            certificate: certificate.expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    fn written_to(&self, path: &Path) -> String {
        fs::write(path, self.0.pem()).expect("a file");
        path.display().to_string()
    }
}

/// A self-signed certificate of an authority, as `openssl req -x509` creates it.
fn signed_by_itself(host: &str, last_year: i32) -> Certificate {
    let mut parameters = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
    parameters.not_after = date_time_ymd(last_year, 1, 1);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    Certificate { certificate: certificate.pem(), key: key.serialize_pem() }
}

/// Number of encrypted and of plain connections of Surefoot to this server.
fn connections(server: &Server) -> (i64, i64) {
    let url = server.url_by_socket("postgres");
    let mut client = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
    let row = client.query_one(
        "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl)
         FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'surefoot'",
        &[],
    );
    let row = row.expect("a row");
    (row.get(0), row.get(1))
}

/// Creates a superuser.
fn create_role(server: &Server, name: &str, with: &str) {
    let url = server.url_by_socket("postgres");
    let mut client = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
    let created = client.batch_execute(&format!("CREATE ROLE {name} LOGIN SUPERUSER {with}"));
    created.expect("a role");
}

/// Sessions end a little after their connection is closed.
fn wait_until_closed(server: &Server) {
    let begun = Instant::now();
    while connections(server) != (0, 0) {
        assert!(begun.elapsed() < Duration::from_secs(30), "connections stay open");
        sleep(Duration::from_millis(20));
    }
}

/// The error of a storage that cannot be opened. It is not retried.
fn error_of(url: &str) -> String {
    let begun = Instant::now();
    let error = Storage::open(url).map(|_| ()).expect_err("an error");
    // Temporary errors are retried for ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(9), "{error}");
    error.to_string()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_url_controls_the_encryption() {
    let authority = Authority::new("our own");
    let certificate = authority.certificate("localhost");
    let server = Server::start_encrypted(&certificate, &authority.0.pem());
    let dir = tempfile::tempdir().expect("a directory");
    let own = authority.written_to(&dir.path().join("own.pem"));
    let other = Authority::new("another").written_to(&dir.path().join("other.pem"));
    let url = |host: &str, query: &str| format!("{}?{query}", server.url_by_host(host, "postgres"));

    for (host, query, encrypted) in [
        ("localhost", "".to_owned(), true),
        ("localhost", "sslmode=disable".to_owned(), false),
        ("localhost", "sslmode=require".to_owned(), true),
        ("localhost", format!("sslrootcert={own}"), true),
        ("localhost", format!("sslmode=verify-full&sslrootcert={own}"), true),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={own}"), true),
    ] {
        let url = url(host, &query);
        let storage = Storage::open(&url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let expected = if encrypted { (1, 0) } else { (0, 1) };
        assert_eq!(connections(&server), expected, "{url}");
        drop(storage);
        wait_until_closed(&server);
    }

    for query in [format!("sslrootcert={other}"), format!("sslmode=verify-ca&sslrootcert={other}")]
    {
        let url = url("localhost", &query);
        assert_eq!(
            error_of(&url),
            format!(
                "{url}: the server's certificate is not signed by a trusted authority; \
                 set `sslrootcert=FILE`"
            ),
            "{query}"
        );
    }
    // The system may have no authorities.
    let by_system = error_of(&url("localhost", "sslmode=verify-full"));
    assert!(by_system.contains("sslrootcert=FILE"), "{by_system}");
    let another = error_of(&url("127.0.0.1", &format!("sslrootcert={own}")));
    assert!(another.contains("not valid for name"), "{another}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn channel_binding_is_supported() {
    let authority = Authority::new("our own");
    let certificate = authority.certificate("localhost");
    let server = Server::start_encrypted(&certificate, &authority.0.pem());
    create_role(&server, GUARDED, "PASSWORD 'secret'");
    let url = |password: &str, query: &str| {
        let url = server.url_by_host("localhost", "postgres");
        let user = format!("//{GUARDED}:{password}@");
        format!("{}?{query}", url.replace("//surefoot@", &user))
    };
    let bound = "sslmode=require&channel_binding=require";
    let _store = Storage::open(&url("secret", bound)).expect("a store");
    assert_eq!(connections(&server), (1, 0));
    for query in [bound, "sslmode=require"] {
        let wrong = error_of(&url("guess", query));
        assert!(wrong.contains("password authentication failed"), "{wrong}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn client_certificates_are_sent() {
    let authority = Authority::new("our own");
    let certificate = authority.certificate("localhost");
    let server = Server::start_encrypted(&certificate, &authority.0.pem());
    create_role(&server, CERTIFIED, "");
    let dir = tempfile::tempdir().expect("a directory");
    let url = |certificate: &Certificate| {
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("own.pem"), &certificate.certificate).expect("a file");
        fs::write(path("own.key"), &certificate.key).expect("a file");
        let url = server.url_by_host("localhost", "postgres");
        let url = url.replace("//surefoot@", &format!("//{CERTIFIED}@"));
        let (certificate, key) = (path("own.pem"), path("own.key"));
        format!("{url}?sslmode=require&sslcert={certificate}&sslkey={key}")
    };
    let _store = Storage::open(&url(&authority.certificate_of_client(CERTIFIED))).expect("a store");
    assert_eq!(connections(&server), (1, 0));
    let another = error_of(&url(&authority.certificate_of_client("somebody")));
    assert!(another.contains("authentication failed"), "{another}");
}

/// A server with a self-signed certificate, and a file with that certificate.
struct SelfSigned {
    server: Server,
    dir: TempDir,
}

impl SelfSigned {
    fn start(last_year: i32) -> SelfSigned {
        let own = signed_by_itself("localhost", last_year);
        let server = Server::start_encrypted(&own, &own.certificate);
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("server.pem"), &own.certificate).expect("a file");
        SelfSigned { server, dir }
    }

    fn url(&self, host: &str, mode: &str) -> String {
        let url = self.server.url_by_host(host, "postgres");
        let file = self.dir.path().join("server.pem");
        format!("{url}?sslmode={mode}&sslrootcert={}", file.display())
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_self_signed_certificate_is_trusted_for_its_host() {
    let signed = SelfSigned::start(4000);
    let _by_name = Storage::open(&signed.url("localhost", "verify-full")).expect("a store");
    let _by_any = Storage::open(&signed.url("127.0.0.1", "verify-ca")).expect("a store");
    assert_eq!(connections(&signed.server), (2, 0));
    let another = error_of(&signed.url("127.0.0.1", "verify-full"));
    assert!(another.contains("not valid for name"), "{another}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_self_signed_certificate_expires() {
    let signed = SelfSigned::start(2020);
    for mode in ["verify-ca", "verify-full"] {
        let expired = error_of(&signed.url("localhost", mode));
        assert!(expired.contains("expired"), "{expired}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_without_encryption_is_rejected_if_it_is_required() {
    let server = Server::start_listening();
    let url = server.url_by_host("localhost", "postgres");
    assert_eq!(
        error_of(&format!("{url}?sslmode=require")),
        format!(
            "{url}?sslmode=require: error performing TLS handshake: server does not support TLS"
        )
    );
    let _store = Storage::open(&url).expect("a store");
    assert_eq!(connections(&server), (0, 1));
}
