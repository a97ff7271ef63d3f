//! The page in a real browser, driven by the DevTools protocol over a pipe.

use super::gallery;
use super::sample::{self, HOSTILE};
use crate::npm;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tempfile::TempDir;

/// The time limit for an answer of the browser.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Finds elements that are wider than the window, except in scrollable containers.
const TOO_WIDE: &str = r#"[...document.querySelectorAll("body *")]
  .filter((element) => !element.closest("nav ul, .scroll") && element.getBoundingClientRect().right > innerWidth + 0.5)
  .map((element) => element.outerHTML.slice(0, 90))
  .concat(document.documentElement.scrollWidth > innerWidth ? ["the page"] : [])"#;

/// Finds text with a contrast below 4.5:1 (WCAG 2).
const TOO_PALE: &str = r#"(() => {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = channels(color).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
  };
  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll("body *:not(script)")]
    .filter((element) => hasText(element) && element.getClientRects().length)
    .map((element) => {
      const style = getComputedStyle(element);
      const own = light(element.closest("svg") ? style.fill : style.color), other = light(behind(element));
      return [(Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05), element.outerHTML.slice(0, 90)];
    })
    .filter(([ratio]) => ratio < 4.5);
})()"#;

/// Runs axe on the page, and returns the rules that are violated and where.
const AXE: &str = r#"axe.run({ resultTypes: ["violations"] }).then((results) => results.violations.map((violation) =>
  `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ")}`))"#;

/// Returns the ids of the cases that are shown.
const SHOWN: &str =
    "[...document.querySelectorAll('table.cases > tbody')].map((row) => row.querySelector('a').textContent)";

#[test]
fn page_renders_without_requests_or_errors() {
    let Some(mut browser) = Browser::start() else { return };
    let page = browser.write(&patter::report::html(&sample::comparison(24, 2)));
    for (width, scheme) in [(390, "light"), (390, "dark"), (1280, "light")] {
        browser.emulate(width, scheme);
        browser.open(&page);
        browser.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))");
        assert_eq!(browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"), scheme == "dark");
        assert_eq!(browser.evaluate("document.querySelectorAll('table.cases > tbody').length"), 24);
        assert_eq!(browser.evaluate(TOO_WIDE), json!([]), "at {width} pixels");
        assert_eq!(browser.evaluate(TOO_PALE), json!([]), "{scheme}");
    }
    // Hostile texts are shown as text.
    assert_eq!(browser.evaluate("document.querySelectorAll('img, iframe, object').length"), 0);
    assert_eq!(browser.evaluate("document.querySelectorAll('script').length"), 3);
    assert_eq!(browser.evaluate(&format!("document.body.innerText.includes({})", json!(HOSTILE))), true);
    browser.assert_only_request(&page);
}

#[test]
fn every_kind_of_page_is_accessible_and_fits_the_window() {
    let Some(packages) = npm::installed("axe") else { return };
    let axe = std::fs::read_to_string(packages.join("axe-core/axe.min.js")).unwrap();
    let Some(mut browser) = Browser::start() else { return };
    // The script of the page is the only one its policy allows; the checker is not part of the page.
    browser.call("Page.setBypassCSP", json!({"enabled": true}));
    for (index, (name, report)) in gallery::reports().into_iter().enumerate() {
        let page = browser.write(&patter::report::html(&report));
        for (width, scheme) in [(1280, "light"), (390, "dark")] {
            browser.emulate(width, scheme);
            browser.open(&page);
            browser
                .evaluate("[...document.querySelectorAll('details')].slice(0, 3).forEach((one) => (one.open = true))");
            assert_eq!(browser.evaluate(TOO_WIDE), json!([]), "{name} at {width} pixels");
            // The checker is slow, so each page is checked in one of the windows, without what is hidden.
            if (width == 390) == (index % 2 == 0) {
                browser.evaluate(
                    "document.querySelectorAll('details:not([open]) > :not(summary)').forEach((one) => one.remove())",
                );
                browser.evaluate(&format!("{axe};0"));
                assert_eq!(browser.evaluate(AXE), json!([]), "{name} at {width} pixels, {scheme}");
            }
        }
        browser.assert_only_request(&page);
    }
}

/// Without JavaScript, the page has its first screen and the most telling cases.
#[test]
fn page_works_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.emulate(1280, "light");
    let page = browser.write(&patter::report::html(&sample::comparison(210, 1)));
    browser.open(&page);
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("Showing the 200 most telling cases; the other 10 need JavaScript."), "{text}");
    assert_eq!(browser.evaluate("document.querySelectorAll('table.cases > tbody').length"), 200);
    let bottom = browser.evaluate("document.querySelector('table.forest').getBoundingClientRect().bottom");
    assert!(bottom.as_f64().unwrap() < 900.0, "the plot is on the first screen: {bottom}");
    assert_eq!(browser.evaluate("document.getElementById('controls').getClientRects().length"), 0);
}

#[test]
fn cases_are_filtered_and_opened_with_the_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let page = browser.write(&patter::report::html(&sample::comparison(40, 2)));
    browser.open(&page);
    browser.tab_to("#find");
    browser.type_text("REFUND charged");
    let mut found: Vec<String> = serde_json::from_value(browser.evaluate(SHOWN)).unwrap();
    found.sort_by_key(|id| id.len() * 100 + id.as_bytes()[7] as usize);
    assert_eq!(found, ["refund-1", "refund-9", "refund-17", "refund-25", "refund-33"]);
    assert_eq!(browser.evaluate("document.getElementById('shown').textContent"), "5 cases (40 in total)");
    browser.tab_to("#sort");
    browser.press("ArrowDown", 40);
    assert_eq!(browser.evaluate("document.getElementById('sort').value"), "file");
    assert_eq!(browser.evaluate(SHOWN), json!(["refund-1", "refund-9", "refund-17", "refund-25", "refund-33"]));
    browser.tab_to("summary");
    browser.press("Enter", 13);
    assert_eq!(browser.evaluate("document.querySelectorAll('details[open]').length"), 1);
    browser.assert_only_request(&page);
}

#[test]
fn ten_thousand_cases_open_quickly_and_are_paged_with_the_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let mut report = sample::without_comparison(10_000, 1, &[sample::TODAY, sample::SHORTER]);
    report.comparison = sample::comparison(40, 1).comparison;
    let page = patter::report::html(&report);
    assert!(page.len() < 20_000_000, "{}", page.len());
    let page = browser.write(&page);
    browser.open(&page);
    // What determines how long it takes; a time would depend on the machine.
    let elements = browser.evaluate("document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(elements < 20_000, "{elements} elements");
    assert_eq!(browser.evaluate("document.getElementById('shown').textContent"), "1–25 of 10,000 cases");
    let first = browser.evaluate(SHOWN);
    browser.tab_to("#next");
    browser.press("Enter", 13);
    assert_eq!(browser.evaluate("document.getElementById('shown').textContent"), "26–50 of 10,000 cases");
    assert_ne!(browser.evaluate(SHOWN), first);
    browser.press("Enter", 13);
    // The last case in the file is not in the document until it is shown.
    browser.evaluate("location.hash = 'case-10000'");
    assert_eq!(browser.evaluate("document.querySelector(':target, #case-10000').id"), "case-10000");
    assert_eq!(browser.evaluate("document.querySelectorAll('table.cases > tbody').length"), 25);
    // The number of lost cases leads to them.
    browser.evaluate("document.querySelector('a[data-only=lost]').click()");
    let lost = browser.evaluate("document.getElementById('shown').textContent");
    assert!(lost.as_str().unwrap().ends_with("(10,000 in total)"), "{lost}");
    browser.assert_only_request(&page);
}

/// A browser with one page.
struct Browser {
    process: Child,
    requests: ChildStdin,
    replies: Receiver<Json>,
    last: u64,
    session: Option<String>,
    /// Events other than replies.
    events: Vec<Json>,
    folder: TempDir,
}

impl Browser {
    /// Starts Chromium. If it is not installed, the test is skipped; with `CI` set it fails.
    fn start() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let Some(program) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(has) else {
            assert!(std::env::var_os("CI").is_none(), "Chromium is not installed");
            eprintln!("skipped: Chromium is not installed");
            return None;
        };
        let folder = TempDir::new().unwrap();
        // The protocol uses the file descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; exec "$@""#, "sh", program])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, replies) = sync_channel(10_000);
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(reply) = serde_json::from_slice(&message) else { break };
                if sender.send(reply).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self { process, requests, replies, last: 0, session: None, events: Vec::new(), folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        Some(browser)
    }

    fn write(&self, page: &str) -> String {
        let file = self.folder.path().join("report.html");
        std::fs::write(&file, page).unwrap();
        address(&file)
    }

    fn next(&mut self) -> Json {
        self.replies.recv_timeout(TIMEOUT).expect("the browser does not answer")
    }

    fn call(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut reply = self.next();
            if reply["id"] == self.last {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].take();
            }
            self.events.push(reply);
        }
    }

    fn open(&mut self, address: &str) {
        let loaded = |event: &Json| event["method"] == "Page.loadEventFired";
        self.events.retain(|event| !loaded(event));
        self.call("Page.navigate", json!({"url": address}));
        while !self.events.iter().any(loaded) {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// Sets the width of the window and the colour scheme.
    fn emulate(&mut self, width: u32, scheme: &str) {
        let metrics = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    fn evaluate(&mut self, expression: &str) -> Json {
        let mut found = self
            .call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true, "awaitPromise": true}));
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].take()
    }

    fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", event);
            if key == "Enter" && kind == "rawKeyDown" {
                self.call("Input.dispatchKeyEvent", json!({"type": "char", "text": "\r"}));
            }
        }
    }

    fn type_text(&mut self, text: &str) {
        for character in text.chars() {
            self.call("Input.dispatchKeyEvent", json!({"type": "char", "text": character.to_string()}));
        }
    }

    /// Moves the focus to an element with the Tab key.
    fn tab_to(&mut self, selector: &str) {
        for _ in 0..120 {
            self.press("Tab", 9);
            if self.evaluate(&format!("document.activeElement.matches({})", json!(selector))) == true {
                return;
            }
        }
        panic!("the Tab key does not lead to {selector}");
    }

    /// Asserts that there was no error, no dialog, and no request except for the page.
    fn assert_only_request(&mut self, page: &str) {
        self.evaluate("0");
        let urls: Vec<&str> = self
            .events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent")
            .map(|event| event["params"]["request"]["url"].as_str().unwrap())
            .collect();
        assert!(urls.contains(&page));
        assert!(urls.iter().all(|url| *url == page || *url == "data:,"), "{urls:?}");
        let problem_events =
            ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening"];
        let problems: Vec<_> =
            self.events.iter().filter(|event| problem_events.iter().any(|name| event["method"] == *name)).collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn address(file: &Path) -> String {
    format!("file://{}", file.display())
}
