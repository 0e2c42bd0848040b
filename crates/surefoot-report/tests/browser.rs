//! Pages in Chromium, controlled through its DevTools pipe.
//!
//! Ignored by `cargo test`, because it needs Chromium; `./test` runs it. Screenshots are in
//! `CARGO_TARGET_TMPDIR`.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod board_pages;
mod board_support;
mod devtools;
#[path = "../src/study/fixture.rs"]
#[allow(dead_code, reason = "the tests inside use the rest")]
mod fixture;
mod support;

use devtools::{Browser, View};
use fixture::Made;
use std::collections::BTreeSet;
use std::path::Path;
use support::{exploded, healthy, repaired};
use surefoot_record::{Record, Status};

const DESK: View = View { width: 1280, height: 900, dark: false };
const DARK: View = View { dark: true, ..DESK };
const PHONE: View = View { width: 360, height: 740, dark: false };

/// Layout errors of a page: invisible or faint text, and elements that overflow.
const PROBE: &str = r#"(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  let seen = 0;
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!text || element.closest('title, desc, details:not([open]) > :not(summary), option')) continue;
    // Left out on this screen on purpose.
    if (!element.checkVisibility() && element.closest('.wide, [hidden]')) continue;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height || style.visibility !== 'visible') { wrong.push(`invisible: ${text}`); continue; }
    const inPre = element.closest('pre, .scroll');
    if (!inPre && (box.left < -0.5 || box.right > root.clientWidth + 0.5)) wrong.push(`sticks out: ${text} ${box.left}..${box.right}`);
    const isSvg = element instanceof SVGElement;
    if (!(isSvg && element.closest('.marks'))) {
      const [a, b] = [light(isSvg ? style.fill : style.color), light(ground(element))].sort((x, y) => y - x);
      const contrast = (a + 0.05) / (b + 0.05);
      if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${text}`);
    }
    if (parseFloat(style.fontSize) < 11) wrong.push(`small: ${text}`);
    seen += text.length;
  }
  if (seen < 200) wrong.push(`only ${seen} letters can be seen`);
  for (const svg of document.querySelectorAll('svg[role=img]:not(.spark)')) {
    const names = svg.getAttribute('aria-labelledby').split(' ').map((id) => document.getElementById(id)?.textContent);
    if (!names.every(Boolean)) wrong.push('a chart has no title or description');
    if (svg.getBoundingClientRect().width < 150) wrong.push('a chart is too narrow');
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  if (new Set(ids).size < ids.length) wrong.push('an id is used twice');
  for (const link of document.querySelectorAll('a')) {
    const to = link.getAttribute('href');
    // Addresses of other pages of the board.
    if (to.startsWith('#/') || link.hasAttribute('download') || to === '#') continue;
    if (!to.startsWith('#') || !document.getElementById(to.slice(1))) wrong.push(`a link to nowhere: ${to}`);
  }
  return wrong;
})()"#;

/// Number of colors in an image, and the color of its first pixel.
fn colours(picture: &[u8]) -> (usize, [u8; 3]) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(picture)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let pixels = pixels[..info.buffer_size()].chunks(info.color_type.samples());
    let colours: Vec<[u8; 3]> = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let different: BTreeSet<[u8; 3]> = colours.iter().copied().collect();
    (different.len(), colours[0])
}

fn check(name: &str, dir: &Path) {
    let report = surefoot_report::report(&Record::open(dir).unwrap()).unwrap();
    check_page(name, &dir.join("report.html"), &report);
}

fn check_page(name: &str, page: &Path, report: &str) {
    std::fs::write(page, report).unwrap();
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&pictures).unwrap();

    let mut browser = Browser::start();
    for (view_name, view) in [("desk", DESK), ("dark", DARK), ("phone", PHONE)] {
        let loaded = browser.open(page, view);
        let what = format!("{name} {view_name}");
        assert_eq!(loaded.complaints, [""; 0], "{what}: console and failures");
        assert_eq!(loaded.requests.len(), 1, "{what}: {:?}", loaded.requests);
        assert!(loaded.requests[0].starts_with("file://"));
        let wrong = browser.evaluate(PROBE);
        assert_eq!(wrong, serde_json::json!([]), "{what}");
        let picture = browser.screenshot();
        std::fs::write(pictures.join(format!("{name}-{view_name}.png")), &picture).unwrap();
        let (count, ground) = colours(&picture);
        assert!(count > 100, "{what}: the picture has {count} colours");
        assert_eq!(ground[0] < 64, view.dark, "{what}: the paper is {ground:?}");
    }
    let print = browser.pdf();
    assert!(print.starts_with(b"%PDF-") && print.len() > 10_000);
    std::fs::write(pictures.join(format!("{name}.pdf")), print).unwrap();
}

#[test]
#[ignore = "needs Chromium; ./test runs it"]
fn the_page_of_a_repaired_run_has_no_layout_errors() {
    let runs = tempfile::tempdir().unwrap();
    check("repaired", &repaired(runs.path()));
}

#[test]
#[ignore = "needs Chromium; ./test runs it"]
fn the_page_of_a_deep_failed_run_has_no_layout_errors() {
    let runs = tempfile::tempdir().unwrap();
    check("exploded", &exploded(runs.path()));
}

#[test]
#[ignore = "needs Chromium; ./test runs it"]
fn the_page_of_a_normal_run_has_no_layout_errors() {
    let runs = tempfile::tempdir().unwrap();
    check("normal", &healthy().run(runs.path(), "moons", Status::Normal));
}

#[test]
#[ignore = "needs Chromium; ./test runs it"]
fn pages_of_studies_have_no_layout_errors() {
    let folder = tempfile::tempdir().unwrap();
    for (name, trials) in [("study", 200), ("large-study", 10_000), ("small-study", 3)] {
        let report = surefoot_report::study_report(&Made::study(trials).page());
        check_page(name, &folder.path().join("report.html"), &report);
    }
}

#[test]
#[ignore = "needs Chromium; ./test runs it"]
fn layout_errors_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("bad.html");
    let bad = r#"<!DOCTYPE html><main><p style="width: 3000px; color: #eee">Wide and faint</p>
        <script>console.error("no"); missing();</script><img src="https://example.org/x.png"></main>"#;
    std::fs::write(&page, bad).unwrap();
    let mut browser = Browser::start();
    let loaded = browser.open(&page, DESK);
    assert!(loaded.complaints.len() >= 3, "{:?}", loaded.complaints);
    assert_eq!(loaded.requests.len(), 2);
    let wrong = browser.evaluate(PROBE).to_string();
    assert!(wrong.contains("sideways") && wrong.contains("contrast"), "{wrong}");
}
