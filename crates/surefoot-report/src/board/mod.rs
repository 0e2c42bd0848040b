//! The board: a live page for runs and studies.
//!
//! A thread looks for runs below the given directories, and one per store reads its studies. Requests
//! read what these have published, so a slow disk or database delays no other page. Runs are only
//! read, by offset, and downsampled to a bounded size.

mod access;
mod catalog;
mod live_run;
mod live_study;
mod rows;
mod server;
mod source;
mod store;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use access::Access;
use catalog::Catalog;

/// Port that is tried first.
pub const PORT: u16 = 6060;

/// Ports that are tried after it.
const PORTS: u16 = 100;

/// Contents and address of a board.
#[derive(Clone, Debug)]
pub struct BoardConfig {
    /// Directories with runs and studies, and stores: files, `sqlite:PATH`, `postgres://...`.
    pub paths: Vec<String>,
    /// Address to listen on. Addresses other than loopback require a token.
    pub host: IpAddr,
    /// Port; `None` is the first free one from 6060, 0 any free one.
    pub port: Option<u16>,
}

impl Default for BoardConfig {
    /// `runs`, for this machine only.
    fn default() -> BoardConfig {
        let paths = vec!["runs".to_owned()];
        BoardConfig { paths, host: Ipv4Addr::LOCALHOST.into(), port: None }
    }
}

/// Error of starting a board.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// The address cannot be used.
    #[error("cannot listen on {host} port {port}: {source}")]
    Listen {
        /// Address.
        host: IpAddr,
        /// Port, or first port that was tried.
        port: u16,
        /// Cause.
        source: io::Error,
    },
    /// A path is neither a directory nor a store.
    #[error("{path}: {message}")]
    Path {
        /// The path, without a password.
        path: String,
        /// Cause.
        message: String,
    },
    /// The server cannot run.
    #[error("cannot run the server: {0}")]
    Server(#[from] io::Error),
}

/// A board that is ready to serve.
///
/// ```no_run
/// use surefoot_report::{Board, BoardConfig};
///
/// let board = Board::bind(&BoardConfig::default())?;
/// println!("{}", board.url());
/// board.serve(|| false)?;
/// # Ok::<(), surefoot_report::BoardError>(())
/// ```
#[derive(Debug)]
pub struct Board {
    listener: TcpListener,
    access: Access,
    catalog: Arc<Catalog>,
    url: String,
}

impl Board {
    /// Takes the port and checks the paths. Directories may be created later.
    pub fn bind(config: &BoardConfig) -> Result<Board, BoardError> {
        let sources = source::parse(&config.paths)?;
        let listener = listen(config.host, config.port)?;
        let port = listener.local_addr()?.port();
        let access = Access::new(config.host, port)?;
        let url = access.url(config.host);
        Ok(Board { listener, access, catalog: Arc::new(Catalog::new(sources)), url })
    }

    /// Address of the page, with the token if it needs one.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The given paths that do not exist yet.
    pub fn missing(&self) -> Vec<String> {
        self.catalog.missing()
    }

    /// Serves until `stop` returns true. It is called several times a second.
    pub fn serve(self, stop: impl Fn() -> bool) -> Result<(), BoardError> {
        let followers = self.catalog.follow()?;
        let served = server::serve(self.listener, self.access, Arc::clone(&self.catalog), stop);
        self.catalog.stop();
        // A store may wait for its database for a minute; nothing is lost by not waiting.
        drop(followers);
        Ok(served?)
    }
}

fn listen(host: IpAddr, port: Option<u16>) -> Result<TcpListener, BoardError> {
    let (first, last) = match port {
        Some(port) => (port, port),
        None => (PORT, PORT + PORTS),
    };
    let mut error = None;
    for port in first..=last {
        match TcpListener::bind(SocketAddr::new(host, port)) {
            Ok(listener) => return Ok(listener),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => error = Some(source),
            Err(source) => return Err(BoardError::Listen { host, port, source }),
        }
    }
    let source = error.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    Err(BoardError::Listen { host, port: first, source })
}
