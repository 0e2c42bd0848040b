//! A PostgreSQL server of the system's packages, for as long as a test runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A server that only listens on a socket in a directory of its own.
pub(crate) struct Server {
    binaries: PathBuf,
    dir: TempDir,
    account: Option<&'static str>,
}

impl Server {
    /// Starts a server, or says loudly why there is none.
    pub(crate) fn start(test: &str) -> Option<Server> {
        let Some(binaries) = binaries() else {
            eprintln!("SKIPPED {test}: no PostgreSQL server is installed (pg_ctl not found)");
            return None;
        };
        let dir = tempfile::tempdir().expect("a directory");
        let server = Server {
            binaries,
            account: account(dir.path()),
            dir,
        };
        fs::set_permissions(server.dir.path(), fs::Permissions::from_mode(0o777))
            .expect("a directory for all");
        let data = server.data();
        server.run(
            "initdb",
            &[
                "-D",
                &data,
                "-A",
                "trust",
                "-U",
                "surefoot",
                "-E",
                "UTF8",
                "--no-sync",
            ],
        );
        server.control(&["start"]);
        Some(server)
    }

    /// The URL of a new, empty database.
    pub(crate) fn database(&self, name: &str) -> String {
        let socket = self.dir.path().display().to_string();
        self.run("createdb", &["-h", &socket, "-U", "surefoot", name]);
        format!("postgres://surefoot@{}/{name}", socket.replace('/', "%2F"))
    }

    /// Kills the server in the middle of whatever it does and starts it again.
    #[allow(dead_code, reason = "only some tests want this")]
    pub(crate) fn restart(&self) {
        self.control(&["restart", "-m", "immediate"]);
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }

    fn control(&self, what: &[&str]) {
        let data = self.data();
        let log = self.dir.path().join("log").display().to_string();
        let options = format!("-c listen_addresses= -k {}", self.dir.path().display());
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
        // A server inherits what it can write to, and a pipe that it holds would never end.
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null());
        let output = self.dir.path().join("output");
        let file = fs::File::create(&output).expect("a file");
        command
            .stdout(file.try_clone().expect("a file"))
            .stderr(file);
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

/// Where the server's programs are.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions.flatten().map(|v| v.path().join("bin")).collect();
        versions.sort();
        places.extend(versions);
    }
    places.into_iter().find(|place| {
        ["pg_ctl", "initdb", "createdb"]
            .iter()
            .all(|program| place.join(program).exists())
    })
}

/// The account to run the server as, where root would be refused.
fn account(dir: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata(dir).expect("a directory").uid() == 0;
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has_postgres = known.lines().any(|line| line.starts_with("postgres:"));
    root.then_some(if has_postgres { "postgres" } else { "nobody" })
}
