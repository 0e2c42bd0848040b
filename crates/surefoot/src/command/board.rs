//! `surefoot board`: a live page for runs and studies.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{Console, Role};
use clap::Args;
use serde::Serialize;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use surefoot_report::{Board, BoardConfig, BoardError};

const EXAMPLES: &str = "\
Examples:
  surefoot board
      Serves the runs and studies below runs/ at http://127.0.0.1:6060/.

  surefoot board runs experiments/2026 postgres://me@host/tune
      Several directories, and the studies on a server.

  surefoot board --host 0.0.0.0
      Other machines can open the page. The printed address has a token that they need.

Ctrl-C ends it. Runs and studies appear when they start, and are only read.

Exit codes: 0 success, 2 wrong path, address or port, 3 internal error.";

/// Serve a live page of runs and studies
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directories with runs and studies, or stores (study.db, sqlite:PATH, postgres://...)
    #[arg(value_name = "PATH", default_value = "runs")]
    paths: Vec<String>,

    /// Address to listen on; addresses other than 127.0.0.1 and ::1 require a token
    #[arg(long, value_name = "IP", default_value_t = Ipv4Addr::LOCALHOST.into())]
    host: IpAddr,

    /// Port; 0 takes any free one [default: 6060 or the next free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,

    /// Print the address as a JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// JSON event for the address.
#[derive(Serialize)]
struct Serving<'a> {
    event: &'static str,
    url: &'a str,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { paths, host, port, json } = arguments;
    let console = Console::new(*json, false);
    let config = BoardConfig { paths: paths.clone(), host: *host, port: *port };
    let board = Board::bind(&config)?;
    let interrupt = Interrupt::listen(|| {})?;
    for path in board.missing() {
        console.say(&format!("  {path} does not exist yet; its runs appear as soon as it does"));
    }
    console.say(&format!("  board    {}", Role::Strong.paint(board.url())));
    console.event(&Serving { event: "board", url: board.url() });
    board.serve(|| interrupt.asked())?;
    Ok(Exit::Done)
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        let message = error.to_string();
        match error {
            BoardError::Listen { source, .. } => {
                let failure = Failure::input(message);
                match source.kind() {
                    ErrorKind::AddrInUse => {
                        failure.help("choose another port with --port, or 0 for any free one")
                    }
                    ErrorKind::AddrNotAvailable => {
                        failure.help("this machine does not have the address given with --host")
                    }
                    _ => failure,
                }
            }
            BoardError::Path { .. } => Failure::input(message),
            _ => Failure::broken(message),
        }
    }
}
