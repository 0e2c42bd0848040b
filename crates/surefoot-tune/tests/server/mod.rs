//! A temporary PostgreSQL server for tests.

#![allow(dead_code, reason = "no test uses all of it")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A certificate and its key, in PEM.
pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// User that logs in with a password, and user that logs in with a certificate.
pub(crate) const GUARDED: &str = "guarded";
pub(crate) const CERTIFIED: &str = "certified";

/// A server that listens on a socket in a temporary directory, and on localhost if it has a port.
pub(crate) struct Server {
    binaries: PathBuf,
    dir: TempDir,
    account: Option<&'static str>,
    port: Option<u16>,
    encrypts: bool,
}

impl Server {
    /// Returns true if PostgreSQL is installed.
    pub(crate) fn is_installed() -> bool {
        binaries().is_some()
    }

    /// Starts a server on a socket.
    pub(crate) fn start() -> Server {
        let server = Server::prepared();
        server.control(&["start"]);
        server
    }

    /// Starts a server that also listens on localhost.
    pub(crate) fn start_listening() -> Server {
        let mut server = Server::prepared();
        server.port = Some(free_port());
        server.control(&["start"]);
        server
    }

    /// Starts a server that listens on localhost with TLS. [`GUARDED`] needs a password, [`CERTIFIED`] a
    /// certificate.
    pub(crate) fn start_encrypted(certificate: &Certificate, authority: &str) -> Server {
        let mut server = Server::prepared();
        server.encrypts = true;
        for (name, text) in [
            ("server.crt", certificate.certificate.as_str()),
            ("server.key", &certificate.key),
            ("root.crt", authority),
        ] {
            // The key must belong to the account of the server and be private.
            let (given, own) = (server.dir.path().join(name), server.data() + "/" + name);
            fs::write(&given, text).expect("a file");
            server.run("/bin/cp", &[&given.display().to_string(), &own]);
            fs::set_permissions(own, fs::Permissions::from_mode(0o600)).expect("permissions");
        }
        let who = Path::new(&server.data()).join("pg_hba.conf");
        let others = fs::read_to_string(&who).expect("a file");
        let guarded = format!("hostssl all {GUARDED} all scram-sha-256");
        let certified = format!("hostssl all {CERTIFIED} all cert");
        fs::write(who, [guarded, certified, others].join("\n")).expect("a file");
        server.port = Some(free_port());
        server.control(&["start"]);
        server
    }

    /// Starts a server on a socket whose user needs a password.
    pub(crate) fn start_with_password(password: &str) -> Server {
        let server = Server::new();
        let file = server.dir.path().join("password");
        fs::write(&file, password).expect("a file");
        server.create(&["-A", "scram-sha-256", "--pwfile", &file.display().to_string()]);
        server.control(&["start"]);
        server
    }

    fn prepared() -> Server {
        let server = Server::new();
        server.create(&["-A", "trust"]);
        server
    }

    fn new() -> Server {
        let binaries = binaries().expect("PostgreSQL is installed");
        let dir = tempfile::tempdir().expect("a directory");
        let server =
            Server { binaries, account: account(dir.path()), dir, port: None, encrypts: false };
        fs::set_permissions(server.dir.path(), fs::Permissions::from_mode(0o777))
            .expect("a directory for all");
        server
    }

    fn create(&self, authentication: &[&str]) {
        let data = self.data();
        let options = ["-D", &data, "-U", "surefoot", "-E", "UTF8", "--no-sync"];
        self.run("initdb", &[&options, authentication].concat());
    }

    /// The URL of a new, empty database.
    pub(crate) fn database(&self, name: &str) -> String {
        let socket = self.dir.path().display().to_string();
        self.run("createdb", &["-h", &socket, "-U", "surefoot", name]);
        self.url_by_socket(name)
    }

    /// The URL of a database through the socket.
    pub(crate) fn url_by_socket(&self, database: &str) -> String {
        let socket = self.dir.path().display().to_string().replace('/', "%2F");
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("postgres://surefoot@{socket}{port}/{database}")
    }

    /// The URL of a database by a name of this machine.
    pub(crate) fn url_by_host(&self, host: &str, database: &str) -> String {
        let port = self.port.expect("a server that listens");
        format!("postgres://surefoot@{host}:{port}/{database}")
    }

    /// Kills the server and starts it again.
    pub(crate) fn restart(&self) {
        self.control(&["restart", "-m", "immediate"]);
    }

    /// Suspends all processes of the server until the result is dropped. Connections stay open.
    pub(crate) fn pause(&self) -> Paused {
        let about = fs::read_to_string(self.data() + "/postmaster.pid").expect("a server");
        let first = about.lines().next().expect("a process");
        let children = format!("/proc/{first}/task/{first}/children");
        let children = fs::read_to_string(children).expect("processes");
        let processes = std::iter::once(first).chain(children.split_whitespace());
        let processes = processes.filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let paused = Paused(processes.collect());
        paused.signal(Signal::STOP);
        paused
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }

    fn control(&self, what: &[&str]) {
        let data = self.data();
        let log = self.dir.path().join("log").display().to_string();
        let listening = match self.port {
            Some(port) => format!("-c listen_addresses=localhost -p {port}"),
            None => "-c listen_addresses=".to_owned(),
        };
        let ssl = match self.encrypts {
            true => "-c ssl=on -c ssl_ca_file=root.crt",
            false => "-c ssl=off",
        };
        let options = format!("{listening} {ssl} -k {}", self.dir.path().display());
        let mut arguments = vec!["-D", &data, "-w", "-t", "60", "-l", &log, "-o", &options];
        arguments.extend(what);
        self.run("pg_ctl", &arguments);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.binaries.join(program);
        let mut command = match self.account {
            Some(account) => {
                let mut command = Command::new("runuser");
                command.args(["-u", account, "--"]).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        // A pipe would be inherited by the server and never close.
        command.args(arguments).current_dir("/").stdin(Stdio::null());
        let output = self.dir.path().join("output");
        let file = fs::File::create(&output).expect("a file");
        command.stdout(file.try_clone().expect("a file")).stderr(file);
        let status = command.status().expect("a PostgreSQL program");
        let said = fs::read_to_string(output).unwrap_or_default();
        assert!(status.success(), "{}: {said}", program.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if Path::new(&self.data()).join("postmaster.pid").exists() {
            self.control(&["stop", "-m", "immediate"]);
        }
    }
}

/// A suspended server.
pub(crate) struct Paused(Vec<Pid>);

impl Paused {
    fn signal(&self, signal: Signal) {
        for process in &self.0 {
            let _ = kill_process(*process, signal);
        }
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// A free port.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Directory of the server's programs.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions.flatten().map(|v| v.path().join("bin")).collect();
        versions.sort();
        places.extend(versions);
    }
    places.into_iter().find(|place| {
        ["pg_ctl", "initdb", "createdb"].iter().all(|program| place.join(program).exists())
    })
}

/// Account to run the server as, because it refuses to run as root.
fn account(dir: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata(dir).expect("a directory").uid() == 0;
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has_postgres = known.lines().any(|line| line.starts_with("postgres:"));
    root.then_some(if has_postgres { "postgres" } else { "nobody" })
}
