//! The files of the pages, which are part of the program.
//!
//! Style sheets are parts of the pages. Modules are under one folder whose name is a hash of their contents, so that browsers may keep them,
//! and find each other by relative paths.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use patter::html::THEME;
use patter::report;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::OnceLock;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../studio/", $name)))),*] };
}

/// The files, by name.
const FILES: &[(&str, &str)] = files![
    "studio.css",
    "login.js",
    "live.js",
    "stream.js",
    "approve.js",
    "turn.js",
    "attach.js",
    "talk.js",
    "talk.css",
    "inbox.js",
    "runs.css",
    "session.js",
    "experiment.js",
    "new-experiment.js",
    "resume-experiment.js",
    "map.css",
    "map.js",
    "agent.css",
    "edit.css",
    "edit.js",
    "vendor/index.mjs",
    "vendor/preact.mjs",
    "vendor/hooks.mjs",
    "vendor/htm.mjs",
    "vendor/signals.mjs",
    "vendor/signals-core.mjs",
];

/// A module as it is sent.
struct Asset {
    plain: Bytes,
    gzip: Bytes,
}

/// A style sheet that is part of a page.
pub(super) struct Style {
    pub(super) text: &'static str,
    /// How the policy of a page names it: by its hash.
    pub(super) source: String,
}

struct Assets {
    version: String,
    files: BTreeMap<&'static str, Asset>,
    styles: BTreeMap<&'static str, Style>,
}

fn assets() -> &'static Assets {
    static ASSETS: OnceLock<Assets> = OnceLock::new();
    ASSETS.get_or_init(|| {
        let files = || {
            FILES.iter().copied().chain([
                ("theme.css", THEME),
                ("report.css", report::STYLE),
                ("report.js", report::SCRIPT),
                ("graph.css", patter::graph::STYLE),
            ])
        };
        let mut hash = Sha256::new();
        for (name, text) in files() {
            hash.update(name);
            hash.update([0]);
            hash.update(text);
            hash.update([0]);
        }
        let version = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let (styles, others): (Vec<_>, Vec<_>) = files().partition(|(name, _)| name.ends_with(".css"));
        Assets {
            version,
            files: others.into_iter().map(|(name, text)| (name, Asset::new(text))).collect(),
            styles: styles.into_iter().map(|(name, text)| (name, Style::new(text))).collect(),
        }
    })
}

impl Asset {
    fn new(text: &'static str) -> Self {
        Self { plain: Bytes::from_static(text.as_bytes()), gzip: compress(text.as_bytes(), Compression::best()) }
    }
}

impl Style {
    fn new(text: &'static str) -> Self {
        Self { text, source: format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text))) }
    }
}

/// Returns a page as it is sent to clients that accept gzip. It is compressed for each of them, so that must be quick.
pub(super) fn compress_page(page: &str) -> Bytes {
    compress(page.as_bytes(), Compression::fast())
}

fn compress(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    compressed.unwrap_or_default().into()
}

/// Returns a style sheet.
pub(super) fn style(name: &str) -> Option<&'static Style> {
    assets().styles.get(name)
}

/// Returns the address of a module.
pub(super) fn address(name: &str) -> String {
    format!("/studio/assets/{}/{name}", assets().version)
}

/// Sends a file.
pub(super) async fn serve(Path((version, path)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let assets = assets();
    let Some(asset) = assets.files.get(path.as_str()) else { return StatusCode::NOT_FOUND.into_response() };
    // A page of another version of the program may still be open.
    let is_current = version == assets.version;
    let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = format!("\"{}\"", assets.version);
    let common = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    if accepts_gzip(&headers) {
        return (common, [(header::CONTENT_ENCODING, "gzip")], asset.gzip.clone()).into_response();
    }
    (common, asset.plain.clone()).into_response()
}

/// Returns whether a client accepts gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| part == "q=0")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    /// All files together stay small, so that a page is there at once.
    #[test]
    fn assets_are_small() {
        let styles = assets().styles.values().map(|style| compress(style.text.as_bytes(), Compression::best()).len());
        let total: usize = assets().files.values().map(|asset| asset.gzip.len()).chain(styles).sum();
        assert!(total <= 80 << 10, "{total} bytes");
    }

    #[test]
    fn files_of_the_folder_are_embedded() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("studio");
        for sub in ["", "vendor/"] {
            for entry in std::fs::read_dir(folder.join(sub)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let is_sent = [".css", ".js", ".mjs"].iter().any(|ending| name.ends_with(ending));
                let path = format!("{sub}{name}");
                let assets = assets();
                assert!(!is_sent || assets.files.contains_key(&*path) || assets.styles.contains_key(&*path), "{path}");
            }
        }
    }

    /// Files of others are as they were published, except for the names by which they import each other.
    #[test]
    fn vendored_files_are_as_published() {
        for (name, published) in [
            ("preact.mjs", "bdcbd9abdf2c77c5c45326eab42191e949222d479d0d5f69467387a77040cb55"),
            ("hooks.mjs", "e862ab2973aa6455eaa0f77c5d832d2157d6be59a17c8ba546550a575b58c6b4"),
            ("htm.mjs", "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4"),
            ("signals.mjs", "ba8177597f45acaca4d05dcf3966b527d0a8264cfa2b0a87ace92dff324217f8"),
            ("signals-core.mjs", "0c80bc127d72ecb1496ef116ffddae75079829a3af01e7f417c8e5a6474c68b6"),
        ] {
            let (_, text) = FILES.iter().find(|(file, _)| *file == format!("vendor/{name}")).unwrap();
            let text = text.replace("from\"./hooks.mjs\"", "from\"preact/hooks\"");
            let text = text.replace("from\"./signals-core.mjs\"", "from\"@preact/signals-core\"");
            let text = text.replace("from\"./preact.mjs\"", "from\"preact\"");
            let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, published, "{name}");
        }
    }
}
