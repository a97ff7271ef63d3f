//! Private addresses are blocked unless a project allows them.

use super::server::{Server, call, reply, tool_with};
use patter::http::{HttpClient, HttpRequest, NetworkPolicy};
use serde_json::json;

#[test]
fn allows_public_addresses() {
    for (address, expected) in [
        ("8.8.8.8", true),
        ("1.1.1.1", true),
        ("172.15.0.1", true),
        ("100.63.255.255", true),
        ("2606:4700:4700::1111", true),
        ("64:ff9b::8.8.8.8", true),
        ("0.0.0.0", false),
        ("127.0.0.1", false),
        ("127.255.255.254", false),
        ("10.0.0.1", false),
        ("172.16.0.1", false),
        ("172.31.255.255", false),
        ("192.168.1.1", false),
        ("100.64.0.1", false),
        ("169.254.169.254", false),
        ("192.0.2.1", false),
        ("198.18.0.1", false),
        ("198.51.100.1", false),
        ("203.0.113.1", false),
        ("224.0.0.1", false),
        ("240.0.0.1", false),
        ("255.255.255.255", false),
        ("::", false),
        ("::1", false),
        ("fe80::1", false),
        ("fec0::1", false),
        ("fc00::1", false),
        ("fd12:3456::1", false),
        ("ff02::1", false),
        ("2001:db8::1", false),
        ("2001::1", false),
        ("100::1", false),
        ("::ffff:127.0.0.1", false),
        ("::ffff:169.254.169.254", false),
        ("::127.0.0.1", false),
        ("64:ff9b::10.0.0.1", false),
        ("64:ff9b:1::1", false),
        ("2002:7f00:1::", false),
        ("2002:0a00:1::1", false),
    ] {
        assert_eq!(NetworkPolicy::default().allows_address(address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn matches_entries_of_the_allow_list() {
    let check = |entry: &str, host: &str, port: u16, expected: bool| {
        assert_eq!(
            NetworkPolicy::from_allow_list([entry]).unwrap().allows_host(host, port),
            expected,
            "{entry} {host} {port}"
        );
    };
    check("localhost:8080", "localhost", 8080, true);
    check("localhost:8080", "LOCALHOST.", 8080, true);
    check("localhost:8080", "localhost", 80, false);
    check("localhost", "localhost", 9, true);
    check("localhost", "127.0.0.1", 9, false);
    check("internal.example.com", "internal.example.com", 443, true);
    check("internal.example.com", "evil.internal.example.com", 443, false);
    check("127.0.0.1", "127.0.0.1", 1, true);
    check("127.0.0.1:80", "127.0.0.1", 81, false);
    check("10.0.0.0/8", "10.9.8.7", 1, true);
    check("10.0.0.0/8", "11.0.0.0", 1, false);
    check("10.0.0.0/8", "[::ffff:10.1.1.1]", 1, true);
    check("0.0.0.0/0", "10.1.1.1", 1, true);
    check("[::1]:80", "[::1]", 80, true);
    check("fc00::/7", "[fd00::1]", 80, true);
    for wrong in ["", "http://x", "10.0.0.0/33", "x/8", "host:port", "a b"] {
        assert!(NetworkPolicy::from_allow_list([wrong]).is_err(), "{wrong}");
    }
}

/// Checks a request with an allow list.
async fn check(allow: &[&str], url: &str, expected: Result<&str, &str>) {
    let client = HttpClient::new(NetworkPolicy::from_allow_list(allow.iter().copied()).unwrap(), |_| None);
    let tool = tool_with(&client, url, "url: 'BASE', retries: 0", "()==>(::Text)", &[]);
    let result = call(&tool, json!({})).await;
    let found = result.as_ref().map(|value| value.as_str().unwrap()).map_err(patter::tool::ToolFailure::message);
    assert_eq!(found, expected, "{allow:?} {url}");
}

#[tokio::test]
async fn blocks_this_machine() {
    let server = Server::start(|_, _| reply(200, &[], "reached")).await;
    let port = server.base.rsplit_once(':').unwrap().1;
    let blocked = |host: &str, shown: &str| {
        format!(
            "`{shown}` is a private address, which is blocked by default; \
             to allow it, add `allow = [\"{shown}:{port}\"]` under `[http]` in patter.toml",
        )
        .replace("HOST", host)
    };
    for (host, shown) in [
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        // These are resolved by the name server.
        ("localhost", "localhost"),
        ("LocalHost", "localhost"),
    ] {
        let url = format!("http://{host}:{port}/");
        check(&[], &url, Err(&blocked(host, shown))).await;
    }
    let allowed = format!("localhost:{port}");
    let by_name = format!("http://localhost:{port}/");
    check(&[&allowed], &by_name, Ok("reached")).await;
    check(&["127.0.0.0/8", "::1"], &by_name, Ok("reached")).await;
    check(&["localhost:1"], &by_name, Err(&blocked("localhost", "localhost"))).await;
    check(&[&allowed], &server.base, Err(&blocked("127.0.0.1", "127.0.0.1"))).await;
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn sends_only_public_hosts_to_a_proxy() {
    let proxy = Server::start(|_, seen| reply(200, &[], format!("proxied {}", seen["target"].as_str().unwrap()))).await;
    let address = proxy.base.clone();
    let client = HttpClient::new(NetworkPolicy::default(), move |name| (name == "HTTP_PROXY").then(|| address.clone()));
    let unknown = "cannot look up `intranet.invalid`, and only public servers are requested through the proxy in \
        `HTTP_PROXY`; to allow it, add `allow = [\"intranet.invalid\"]` under `[http]` in patter.toml";
    for (url, expected) in [
        ("http://8.8.8.8/a", Ok("proxied http://8.8.8.8/a")),
        // The proxy may know the name: then it is not public.
        ("http://intranet.invalid/", Err(unknown)),
        ("http://10.0.0.1/", Err("`10.0.0.1` is a private address")),
        ("http://localhost/", Err("`localhost` is a private address")),
        (proxy.base.as_str(), Err("`127.0.0.1` is a private address")),
    ] {
        let tool = tool_with(&client, url, "url: 'BASE', retries: 0", "()==>(::Text)", &[]);
        match (call(&tool, json!({})).await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.message().starts_with(expected), "{found:?}"),
            (found, _) => panic!("{url}: {found:?}"),
        }
    }
    assert_eq!(proxy.count(), 1);

    let address = proxy.base.clone();
    let policy = NetworkPolicy::from_allow_list(["intranet.invalid"]).unwrap();
    let client = HttpClient::new(policy, move |name| (name == "HTTP_PROXY").then(|| address.clone()));
    let tool = tool_with(&client, "http://intranet.invalid/a", "url: 'BASE', retries: 0", "()==>(::Text)", &[]);
    assert_eq!(call(&tool, json!({})).await.unwrap(), "proxied http://intranet.invalid/a");
}

/// A redirect through a proxy to a name that is not public is not followed.
#[tokio::test]
async fn checks_the_names_of_redirects_through_a_proxy() {
    let proxy = Server::start(|_, _| reply(302, &[("location", "http://intranet.invalid/")], "")).await;
    let address = proxy.base.clone();
    let client = HttpClient::new(NetworkPolicy::default(), move |name| (name == "HTTP_PROXY").then(|| address.clone()));
    let tool = tool_with(&client, "http://8.8.8.8/", "url: 'BASE', retries: 0", "()==>(::Text)", &[]);
    let failure = call(&tool, json!({})).await.unwrap_err();
    assert!(failure.message().starts_with("cannot look up `intranet.invalid`"), "{failure:?}");
    assert_eq!(proxy.count(), 1);
}

#[tokio::test]
async fn reports_unreadable_certificates() {
    let client =
        HttpClient::new(NetworkPolicy::default(), |name| (name == "SSL_CERT_FILE").then(|| "/no/such.pem".to_owned()));
    let tool = tool_with(&client, "https://example.com", "url: 'BASE'", "()==>(::Text)", &[]);
    let message = call(&tool, json!({})).await.unwrap_err().message().to_owned();
    assert!(message.starts_with("cannot read the certificates in `/no/such.pem` (`SSL_CERT_FILE`): "), "{message}");
}

#[tokio::test]
async fn a_proxy_that_does_not_answer_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let variables = move |name: &str| (name == "HTTP_PROXY").then(|| format!("http://ada:sesame@127.0.0.1:{port}"));
    let client = HttpClient::new(NetworkPolicy::default(), variables);
    let error = client.send(HttpRequest::get("http://8.8.8.8/?key=sesame".parse().unwrap())).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to `8.8.8.8:80`: the connection was refused");
    assert_eq!(error.hint().unwrap(), "check the proxy in `HTTP_PROXY`, or list the host in `NO_PROXY`");
}
