//! Who may see pages, and how they are sent.

use crate::lab::{Lab, Response};
use crate::sdk;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};

const HTML: (&str, &str) = ("Accept", "text/html");

/// Logs in, and returns the cookie.
async fn log_in(lab: &Lab) -> String {
    let response = lab.post("/studio/login", &json!({"token": sdk::TOKEN})).await;
    assert_eq!(response.status, 204, "{response:?}");
    let cookie = response.header("set-cookie").to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(sdk::TOKEN), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn cookies_are_for_pages_of_the_server() {
    let lab = sdk::lab().await;
    let page = lab.request("GET", "/", &[HTML], "").await;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("Log in to Patter") && !page.body.contains("greeter"), "{page:?}");
    let wrong = lab.post("/studio/login", &json!({"token": "wrong"})).await;
    assert_eq!(wrong.error(), "401 the token is not valid");
    let cookie = log_in(&lab).await;
    let cookie = ("Cookie", cookie.as_str());
    let origin = format!("http://{}", lab.address);
    let get = async |more: &[(&str, &str)]| {
        let headers: Vec<_> = [cookie, HTML].into_iter().chain(more.iter().copied()).collect();
        lab.request("GET", "/", &headers, "").await.status
    };
    assert_eq!(get(&[("Sec-Fetch-Site", "none")]).await, 200);
    assert_eq!(get(&[("Sec-Fetch-Site", "same-origin")]).await, 200);
    assert_eq!(get(&[("Sec-Fetch-Site", "same-site")]).await, 401);
    assert_eq!(get(&[("Sec-Fetch-Site", "cross-site")]).await, 401);
    assert_eq!(get(&[]).await, 200);
    let post = async |more: &[(&str, &str)]| {
        let headers: Vec<_> = [cookie].into_iter().chain(more.iter().copied()).collect();
        lab.post_with("/api/sessions?wait=true", &headers, &json!({"agent": "counter", "message": "Hi"})).await.status
    };
    assert_eq!(post(&[]).await, 401);
    assert_eq!(post(&[("Sec-Fetch-Site", "none")]).await, 401);
    assert_eq!(post(&[("Sec-Fetch-Site", "cross-site"), ("Origin", &origin)]).await, 401);
    assert_eq!(post(&[("Origin", "http://127.0.0.1:1")]).await, 403);
    assert_eq!(post(&[("Origin", &origin)]).await, 200);
    assert_eq!(post(&[("Sec-Fetch-Site", "same-origin"), ("Origin", &origin)]).await, 200);
}

#[tokio::test]
async fn all_servers_of_a_store_accept_a_login() {
    let lab = sdk::lab().await;
    let cookie = log_in(&lab).await;
    let beside = lab.beside().await;
    // Behind a proxy they have the same port.
    let cookie = cookie.replace(&lab.address.port().to_string(), &beside.address.port().to_string());
    let headers = [("Cookie", cookie.as_str()), HTML];
    assert_eq!(beside.request("GET", "/", &headers, "").await.status, 200);
    // A server with another store, although the token is the same.
    let other = sdk::lab().await;
    log_in(&other).await;
    let cookie = cookie.replace(&beside.address.port().to_string(), &other.address.port().to_string());
    assert_eq!(other.request("GET", "/", &[("Cookie", cookie.as_str()), HTML], "").await.status, 401);
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere() {
    let lab = Lab::new().await;
    let page = lab.get("/").await;
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; connect-src 'self'; "), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for inline in [" style=\"", " onclick=\"", "<script>"] {
        assert!(!page.body.contains(inline), "{inline}");
    }
    // Style sheets are parts of the page, each named by its hash, and nothing else is.
    let (_, named) = policy.split_once("; style-src ").unwrap();
    let sheets = page.body.split("<style>").skip(1).map(|rest| rest.split("</style>").next().unwrap());
    let hashes: Vec<_> = sheets.map(|text| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect();
    assert!(hashes.len() > 2 && hashes.join(" ") == named, "{named}");
}

fn asset(page: &Response) -> &str {
    let start = page.body.find("/studio/assets/").unwrap();
    page.body[start..].split('"').next().unwrap()
}

#[tokio::test]
async fn assets_are_kept_by_browsers() {
    let lab = sdk::lab().await;
    let page = lab.request("GET", "/", &[HTML], "").await;
    let path = asset(&page);
    let file = lab.get(path).await;
    assert_eq!((file.status, file.header("content-type")), (200, "text/javascript; charset=utf-8"));
    assert!(file.header("cache-control").contains("immutable") && file.header("content-encoding").is_empty());
    let known = file.header("etag").to_owned();
    assert_eq!(lab.request("GET", path, &[("If-None-Match", &known)], "").await.status, 304);
    let packed = lab.request("GET", path, &[("Accept-Encoding", "br, gzip")], "").await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    let old = lab.get("/studio/assets/0000/live.js").await;
    assert_eq!((old.status, old.header("cache-control")), (200, "no-cache"));
    assert_eq!(lab.get("/studio/assets/0000/../secret").await.status, 404);
}
