//! The HTTP server of the board.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::access::{Access, Verdict};
use super::catalog::Catalog;
use super::live_run::Part;
use crate::layer_map::LayerQuantity;

/// Connections at once. Further ones wait.
const CONNECTIONS: usize = 1024;

/// Threads that read files for requests.
const READERS: usize = 4;

/// Interval of checks for a request to stop.
const STOP: Duration = Duration::from_millis(100);

/// Time between two checks for changes for an open page.
const TICK: Duration = Duration::from_millis(400);

/// Ticks after which a page without changes gets a keep-alive message.
const HEARTBEAT: u32 = 30;

/// Allows the scripts and styles of this server, and connections to it only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self' http://localhost:* http://127.0.0.1:*";

/// Files of the page: path, media type, content.
static FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html", include_str!("page/index.html")),
    ("/report.css", "text/css", include_str!("../style.css")),
    ("/board.css", "text/css", include_str!("page/board.css")),
    ("/board.js", "text/javascript", include_str!("page/board.js")),
    ("/dom.js", "text/javascript", include_str!("page/dom.js")),
    ("/scale.js", "text/javascript", include_str!("page/scale.js")),
    ("/chart.js", "text/javascript", include_str!("page/chart.js")),
    ("/heat.js", "text/javascript", include_str!("page/heat.js")),
    ("/table.js", "text/javascript", include_str!("page/table.js")),
    ("/runs.js", "text/javascript", include_str!("page/runs.js")),
    ("/run.js", "text/javascript", include_str!("page/run.js")),
    ("/study.js", "text/javascript", include_str!("page/study.js")),
    ("/trials.js", "text/javascript", include_str!("page/trials.js")),
    ("/parallel.js", "text/javascript", include_str!("page/parallel.js")),
];

/// Serves until `stop` returns true.
pub(super) fn serve(
    listener: TcpListener,
    access: Access,
    catalog: Arc<Catalog>,
    stop: impl Fn() -> bool,
) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().enable_time().max_blocking_threads(READERS).build()?;
    let access = Arc::new(access);
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        while !stop() {
            let connection = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, listener.accept().await)
            };
            let connection = tokio::time::timeout(STOP, connection).await;
            // No client, one that has disconnected, or too many open files: the next one may succeed.
            let Ok((slot, Ok((stream, _)))) = connection else { continue };
            let (access, catalog) = (Arc::clone(&access), Arc::clone(&catalog));
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    answer(Arc::clone(&access), Arc::clone(&catalog), request)
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
                // A broken connection affects only its client.
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
                drop(slot);
            });
        }
        io::Result::Ok(())
    })?;
    // Requests that wait for a database are abandoned.
    runtime.shutdown_background();
    Ok(())
}

/// The body of an answer: a whole text, or messages as they come.
enum Content {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Content::Whole(bytes) => Poll::Ready(bytes.take()),
            Content::Stream(messages) => messages.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// An error for the page.
struct Refusal(StatusCode, String);

async fn answer(
    access: Arc<Access>,
    catalog: Arc<Catalog>,
    request: Request<Incoming>,
) -> Result<Response<Content>, Infallible> {
    let query = Query::of(request.uri().query().unwrap_or_default());
    let of_header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = of_header(header::HOST).unwrap_or_default();
    let cookies = of_header(header::COOKIE).unwrap_or_default();
    let verdict = access.judge(host, cookies, query.get("token"));
    let mut response = match verdict {
        Verdict::Allowed if request.method() == Method::GET => {
            route(&catalog, request.uri().path(), query).await
        }
        Verdict::Allowed => {
            text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "The board only answers GET.")
        }
        Verdict::Enter { cookie } => {
            let mut response = text(StatusCode::SEE_OTHER, "text/plain", "");
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("."));
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        Verdict::ForeignHost => text(
            StatusCode::FORBIDDEN,
            "text/plain",
            "This board can only be opened as localhost. Start it with --host to open it from other machines.\n",
        ),
        Verdict::NoToken => text(
            StatusCode::UNAUTHORIZED,
            "text/plain",
            "The token is missing or wrong. Open the address that `surefoot board` printed.\n",
        ),
    };
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn text(status: StatusCode, kind: &str, content: impl Into<Bytes>) -> Response<Content> {
    let mut response = Response::new(Content::Whole(Some(content.into())));
    *response.status_mut() = status;
    if let Ok(kind) = HeaderValue::from_str(&format!("{kind}; charset=utf-8")) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

async fn route(catalog: &Arc<Catalog>, path: &str, query: Query) -> Response<Content> {
    if let Some((_, kind, content)) = FILES.iter().find(|(name, ..)| *name == path) {
        return text(StatusCode::OK, kind, *content);
    }
    if path == "/api/events" {
        return events(Arc::clone(catalog), query);
    }
    let (catalog, path) = (Arc::clone(catalog), path.to_owned());
    // Files and stores are read on other threads.
    let read = tokio::task::spawn_blocking(move || match path.as_str() {
        "/report" => report(&catalog, &query),
        _ => data(&catalog, &path, &query)
            .map(|value| text(StatusCode::OK, "application/json", value.to_string())),
    });
    match read.await {
        Ok(Ok(response)) => response,
        Ok(Err(Refusal(status, message))) => {
            text(status, "application/json", json!({ "error": message }).to_string())
        }
        Err(_) => {
            let message = json!({ "error": "internal error; please report it" }).to_string();
            text(StatusCode::INTERNAL_SERVER_ERROR, "application/json", message)
        }
    }
}

fn missing(message: impl Into<String>) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, message.into())
}

fn data(catalog: &Catalog, path: &str, query: &Query) -> Result<Value, Refusal> {
    match path {
        "/api/runs" => Ok(catalog.changes(query.number("since").unwrap_or(0))),
        "/api/run" => {
            let id = query.id()?;
            let run = catalog.runs.get(&catalog.sources, id, true).map_err(missing)?;
            let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
            run.refresh().map_err(missing)?;
            let mut page = run.page(id);
            page["tags"] = catalog.row(id).map_or(json!([]), |row| json!(row.tags));
            Ok(page)
        }
        "/api/series" => {
            let wanted = query.get("heat");
            let mut quantities = LayerQuantity::ALL.into_iter();
            let quantity = quantities.find(|quantity| wanted == Some(quantity.id()));
            let part = Part {
                from: query.number("from").unwrap_or(0),
                to: query.number("to").unwrap_or(u64::MAX),
                buckets: query.number("buckets").unwrap_or(600).clamp(10, 4000) as usize,
                quantity,
            };
            let id = query.id()?;
            let with_layers = query.get("layers").is_some() || quantity.is_some();
            let run = catalog.runs.get(&catalog.sources, id, with_layers).map_err(missing)?;
            let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
            run.refresh().map_err(missing)?;
            run.part(part).map_err(missing)
        }
        "/api/study" => {
            let since = query.number("since").unwrap_or(0);
            let study = study(catalog, query.id()?)?;
            let unavailable = |message| Refusal(StatusCode::SERVICE_UNAVAILABLE, message);
            study.data(&catalog.studies, since).map_err(unavailable)
        }
        "/api/trial" => {
            let study = study(catalog, query.id()?)?;
            let run = study.run_of(query.number("number").unwrap_or(u64::MAX));
            let run = run.ok_or_else(|| missing("the trial has no run directory"))?;
            let id = catalog.run_of_trial(&study.store, &run);
            let id = id.ok_or_else(|| {
                missing(format!("{run} is not a run below the paths given to surefoot board"))
            })?;
            Ok(json!({ "id": id }))
        }
        _ => Err(missing("there is no such page")),
    }
}

fn study(catalog: &Catalog, id: &str) -> Result<Arc<super::live_study::LiveStudy>, Refusal> {
    let study = catalog.studies.get(id);
    study.ok_or_else(|| missing("there is no such study; it may have been deleted"))
}

/// The static report of a run or a study, to be saved.
fn report(catalog: &Catalog, query: &Query) -> Result<Response<Content>, Refusal> {
    let (name, page) = if let Some(id) = query.get("study") {
        study(catalog, id)?.report(&catalog.studies).map_err(missing)?
    } else {
        let run = catalog.runs.get(&catalog.sources, query.id()?, true).map_err(missing)?;
        let run = run.lock().unwrap_or_else(PoisonError::into_inner);
        run.report().map_err(missing)?
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let mut response = text(StatusCode::OK, "text/html", page);
    let headers = response.headers_mut();
    let disposition = format!("attachment; filename=\"{name}.html\"");
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    // Its style is in the page.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}

/// A message for each change of what the page shows: the lists, a run or a study.
fn events(catalog: Arc<Catalog>, query: Query) -> Response<Content> {
    let (sender, messages) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut last = None;
        let mut quiet = 0;
        let query = Arc::new(query);
        loop {
            let (catalog, query) = (Arc::clone(&catalog), Arc::clone(&query));
            let look = tokio::task::spawn_blocking(move || revision(&catalog, &query));
            let Ok(now) = look.await else { return };
            let message = if last.as_ref() != Some(&now) {
                format!("data: {}\n\n", now)
            } else if quiet >= HEARTBEAT {
                ":\n\n".to_owned()
            } else {
                String::new()
            };
            last = Some(now);
            quiet = if message.is_empty() { quiet + 1 } else { 0 };
            if !message.is_empty() && sender.send(message.into()).await.is_err() {
                return;
            }
            if tokio::time::timeout(TICK, sender.closed()).await.is_ok() {
                return;
            }
        }
    });
    let mut response = Response::new(Content::Stream(messages));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Number of changes of a run, a study or the lists, or an error.
fn revision(catalog: &Catalog, query: &Query) -> Value {
    let found = if let Some(id) = query.get("run") {
        let run = catalog.runs.get(&catalog.sources, id, true);
        run.and_then(|run| run.lock().unwrap_or_else(PoisonError::into_inner).refresh())
    } else if let Some(id) = query.get("study") {
        let study = catalog.studies.get(id);
        study.map(|study| study.revision()).ok_or_else(|| "the study was deleted".to_owned())
    } else {
        Ok(catalog.revision())
    };
    match found {
        Ok(revision) => json!({ "revision": revision }),
        Err(error) => json!({ "error": error }),
    }
}

/// The parameters of an address.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(query: &str) -> Query {
        let pairs = query.split('&').filter_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key.to_owned(), decoded(value)?))
        });
        Query(pairs.collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    fn id(&self) -> Result<&str, Refusal> {
        self.get("id").ok_or_else(|| Refusal(StatusCode::BAD_REQUEST, "id is missing".to_owned()))
    }
}

/// Decodes `%XX`; `None` if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escape = tail.get(..2).filter(|_| first == b'%');
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded() {
        let query = Query::of("id=0%2Fa%20b%2B&x=1+2&bad=%ff&broken=%2");
        assert_eq!(query.get("id"), Some("0/a b+"));
        assert_eq!(query.get("x"), Some("1 2"));
        assert_eq!(query.get("bad"), None);
        assert_eq!(query.get("broken"), Some("%2"));
    }
}
