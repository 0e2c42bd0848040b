//! Headless Chromium, controlled through the DevTools protocol.
//!
//! With `--remote-debugging-pipe` it reads commands from file descriptor 3 and answers on 4, JSON
//! ended by a zero byte. A shell puts the pipes there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Screen of the page.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

/// Events while a page was loaded.
pub(crate) struct Loaded {
    /// Console messages, exceptions, and requests that failed.
    pub(crate) complaints: Vec<String>,
    /// All requested addresses.
    pub(crate) requests: Vec<String>,
}

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    /// Events between answers.
    events: Vec<Value>,
    /// Removed with the browser.
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#])
            .arg(executable())
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--hide-scrollbars",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let messages = listen(child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            commands,
            messages,
            session: None,
            last_id: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        write!(self.commands, "{command}\0").unwrap();
        loop {
            let message = self.next(method);
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn next(&mut self, what: &str) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.unwrap_or_else(|_| panic!("Chromium does not answer to {what}"))
    }

    /// Loads a file and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &Path, view: View) -> Loaded {
        self.visit(&format!("file://{}", page.display()), view)
    }

    /// Loads a page and waits until it is loaded.
    pub(crate) fn visit(&mut self, url: &str, view: View) -> Loaded {
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        let metrics = json!({
            "width": view.width, "height": view.height, "deviceScaleFactor": 1,
            "mobile": view.width < 500,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.events.clear();
        // A page that differs only in what follows `#` would not be loaded again.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        while !self.has("Page.loadEventFired") {
            let event = self.next("Page.navigate");
            self.events.push(event);
        }
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        while !self.has("Page.loadEventFired") {
            let event = self.next("Page.navigate");
            self.events.push(event);
        }
        // Also collects events right after loading.
        self.evaluate("new Promise((done) => setTimeout(done, 200))");
        self.loaded()
    }

    fn has(&self, method: &str) -> bool {
        self.events.iter().any(|event| event["method"] == method)
    }

    /// Events since the page was opened.
    pub(crate) fn loaded(&mut self) -> Loaded {
        while let Ok(event) = self.messages.try_recv() {
            self.events.push(event);
        }
        self.collected()
    }

    fn collected(&self) -> Loaded {
        let mut loaded = Loaded { complaints: Vec::new(), requests: Vec::new() };
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled"
                | "Runtime.exceptionThrown"
                | "Log.entryAdded"
                | "Network.loadingFailed" => loaded.complaints.push(parameters.to_string()),
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    // Data URLs make no request.
                    if !url.starts_with("data:") {
                        loaded.requests.push(url.to_owned());
                    }
                }
                _ => {}
            }
        }
        loaded
    }

    /// Evaluates an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{result}");
        result["result"]["value"].clone()
    }

    /// Evaluates an expression until it is true.
    pub(crate) fn wait(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.evaluate(expression) != true {
            assert!(begun.elapsed() < PATIENCE, "{expression} stays false");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processor time of the page's main thread so far, in milliseconds. Unlike the clock, it does not count the time in
    /// which other programs ran.
    pub(crate) fn processor_time(&mut self) -> f64 {
        self.call("Performance.enable", json!({"timeDomain": "threadTicks"}));
        let metrics = self.call("Performance.getMetrics", json!({}));
        let metrics = metrics["metrics"].as_array().unwrap();
        let tasks = metrics.iter().find(|metric| metric["name"] == "TaskDuration").unwrap();
        tasks["value"].as_f64().unwrap() * 1000.0
    }

    /// Moves the pointer through places in the page, with the button down from the first to the last if `drag`.
    pub(crate) fn pointer(&mut self, places: &[(f64, f64)], drag: bool) {
        let mut send = |kind: &str, (x, y): (f64, f64), buttons: u32| {
            let button = if buttons > 0 || kind == "mouseReleased" { "left" } else { "none" };
            let parameters = json!({
                "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", parameters);
        };
        for (i, &place) in places.iter().enumerate() {
            send("mouseMoved", place, u32::from(drag && i > 0));
            if drag && i == 0 {
                send("mousePressed", place, 1);
            }
        }
        if let Some(&last) = places.last().filter(|_| drag) {
            send("mouseReleased", last, 0);
        }
    }

    /// The whole page as a PNG.
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        decoded(&self.call("Page.captureScreenshot", parameters))
    }

    /// The page as it is printed.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        decoded(&self.call("Page.printToPDF", json!({"preferCSSPageSize": false})))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = write!(self.commands, "{}\0", json!({"id": 0, "method": "Browser.close"}));
        let _ = self.commands.flush();
        std::thread::sleep(Duration::from_millis(200));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn decoded(answer: &Value) -> Vec<u8> {
    STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
}

fn listen(stdout: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(stdout).split(0) {
            let Ok(message) = message else { return };
            let message = serde_json::from_slice(&message).unwrap();
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// `$CHROMIUM`, or the first known browser name on the path.
fn executable() -> PathBuf {
    if let Some(path) = std::env::var_os("CHROMIUM") {
        return path.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut files = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    files
        .find(|file| file.is_file())
        .expect("Chromium is not on the path; set CHROMIUM to where it is")
}
