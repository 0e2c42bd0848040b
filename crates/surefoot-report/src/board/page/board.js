// Addresses, updates and the connection to the server.

import { Disconnected } from "./dom.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";
import { StudyPage } from "./study.js";

const root = document.getElementById("page");
const state = document.getElementById("state");
let page = null;
let stream = null;
let isBusy = false;
let isStale = false;

function open() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const id = new URLSearchParams(query ?? "").get("id");
  page?.close?.();
  root.className = path.slice(1) || "runs";
  if (path === "/run") page = new RunPage(root, id);
  else if (path === "/study") page = new StudyPage(root, id);
  else page = new RunsPage(root);
  scrollTo(0, 0);
  update();
  listen();
}

/** Reads what has changed; one request at a time. */
async function update() {
  isStale = true;
  if (isBusy) return;
  isBusy = true;
  while (isStale) {
    isStale = false;
    const current = page;
    try {
      await current.update();
      current.recover?.();
      document.title = `${current.title} – surefoot board`;
    } catch (error) {
      if (current !== page) continue;
      // The stream of changes connects again, and the page is updated then.
      if (error instanceof Disconnected) say("no connection to the server", false);
      else current.fail(error.message);
    }
  }
  isBusy = false;
}

function say(text, isLive) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("is-live", isLive);
}

/** Listens for changes of what the page shows, while it is visible: a browser allows few connections. */
function listen() {
  stream?.close();
  stream = null;
  if (document.hidden) return;
  const current = new EventSource(`api/events?${new URLSearchParams(page.source)}`);
  stream = current;
  current.onopen = () => say("live", true);
  current.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.error) page.fail(message.error);
    else update();
  };
  current.onerror = () => {
    say("no connection to the server", false);
    if (current.readyState === EventSource.CLOSED) setTimeout(() => stream === current && listen(), 2000);
  };
}

addEventListener("hashchange", open);
document.addEventListener("visibilitychange", () => {
  listen();
  if (!document.hidden) update();
});
// Links inside a page are not addresses of other pages.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]:not([href^="#/"])');
  if (!link) return;
  event.preventDefault();
  const target = document.getElementById(link.getAttribute("href").slice(1));
  target?.scrollIntoView({ block: "start" });
  target?.focus?.();
});
open();
