//! Logins at servers with a URL, against a real authorization server on this machine, friendly and hostile.

mod world;

use super::{SOON, call};
use patter::tool::mcp::LoginStatus;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use world::{Replacement, World, browse, get, login_with, server_at};

/// Returns the message of the failure to list or call a tool, which must not contain a secret.
async fn failure(world: &World, more: &str) -> String {
    let server = world.server(more);
    let attempt = async {
        match server.tools().await {
            Ok(_) => call(&server, "whoami", json!({})).await.unwrap_err(),
            Err(failure) => failure,
        }
    };
    let failure = tokio::time::timeout(SOON, attempt).await.expect("it hangs");
    assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
    failure.message().to_owned()
}

/// Calls a tool with the stored login.
async fn check_call(world: &World) {
    let server = world.server("");
    // The tool repeats the token, which must not reach the model.
    assert_eq!(call(&server, "whoami", json!({})).await.unwrap(), "Bearer [redacted]");
}

#[tokio::test]
async fn a_login_is_stored_and_used() {
    let world = World::start().await;
    let server = world.server("");
    assert_eq!(server.login_status().unwrap().unwrap(), LoginStatus::LoggedOut);
    let failure = server.tools().await.unwrap_err();
    let expected = "the MCP server `demo` requires a login; run `patter mcp login demo`, or set its `headers`";
    assert_eq!(failure.message(), expected);

    let login = world.login("").await.unwrap();
    assert_eq!((login.issuer.as_str(), login.scopes.as_slice()), (world.base.as_str(), &["files:read".to_owned()][..]));
    let file = world.login_file();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let registered = world.requests("/authorize");
    assert_eq!(registered[0]["client_id"], "client-1");
    assert!(registered[0]["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert_eq!(world.requests("/token")[0]["resource"], format!("{}/mcp", world.base));
    check_call(&world).await;
    assert!(matches!(world.server("").login_status(), Some(Ok(LoginStatus::LoggedIn { .. }))));
    assert!(!format!("{:?}", world.server("").login_status()).contains("sesame"));

    assert!(world.server("").logout().unwrap());
    assert!(!world.server("").logout().unwrap());
    assert_eq!(self::failure(&world, "").await, expected);
}

/// Servers of 2024-11-05 require logins too.
#[tokio::test]
async fn a_login_is_used_over_the_older_transport() {
    for settings in ["transport = 'sse'", ""] {
        let world = World::start().await;
        world.behaviour().is_old = true;
        let expected = "the MCP server `demo` requires a login; run `patter mcp login demo`, or set its `headers`";
        assert_eq!(failure(&world, settings).await, expected, "{settings}");
        world.login(settings).await.unwrap();
        let server = world.server(settings);
        assert_eq!(call(&server, "whoami", json!({})).await.unwrap(), "Bearer [redacted]", "{settings}");
        world.seen().tokens.clear();
        world.seen().refresh_tokens.clear();
        let expected = "the MCP server `demo` no longer accepts the login; run `patter mcp login demo`";
        assert_eq!(failure(&world, settings).await, expected, "{settings}");
    }
}

#[tokio::test]
async fn clients_may_be_configured() {
    let world = World::start().await;
    world.login("oauth = {client-id = 'mine', scopes = ['own']}").await.unwrap();
    let page = &world.requests("/authorize")[0];
    assert_eq!((page["client_id"].as_str(), page["scope"].as_str()), ("mine", "own"));
    assert_eq!(world.requests("/register").len(), 0);

    world.behaviour().metadata.as_mut().unwrap()["client_id_metadata_document_supported"] = true.into();
    world.login("oauth = {client-metadata-url = 'https://example.com/client.json'}").await.unwrap();
    assert_eq!(world.requests("/authorize")[1]["client_id"], "https://example.com/client.json");

    // The secret of a registered client is sent as a header, and kept for renewals.
    world.behaviour().secret = Some("client-sesame");
    world.behaviour().lifetime = 1;
    world.login("").await.unwrap();
    check_call(&world).await;
    assert!(world.requests("/token").iter().all(|fields| !fields.contains_key("client_secret")));
}

#[tokio::test]
async fn tokens_are_renewed_once_for_all_callers() {
    let world = World::start().await;
    world.behaviour().lifetime = 1;
    world.login("").await.unwrap();
    world.behaviour().lifetime = 3600;
    // Each refresh token works only once, so that two renewals would end the login.
    let calls = (0..4).map(|_| check_call(&world));
    futures_util::future::join_all(calls).await;
    let renewals = world.requests("/token");
    assert_eq!(renewals.iter().filter(|fields| fields["grant_type"] == "refresh_token").count(), 1);
    assert!(renewals.iter().all(|fields| fields["resource"] == format!("{}/mcp", world.base)));

    // A token that the server no longer knows is renewed too.
    world.seen().tokens.clear();
    check_call(&world).await;

    // And if that is refused, a person has to log in.
    world.seen().tokens.clear();
    world.seen().refresh_tokens.clear();
    let expected = "the MCP server `demo` no longer accepts the login; run `patter mcp login demo`";
    assert_eq!(failure(&world, "").await, expected);
    world.login("").await.unwrap();
    check_call(&world).await;
}

#[tokio::test]
async fn more_scopes_are_granted_by_another_login() {
    let world = World::start().await;
    world.login("").await.unwrap();
    world.behaviour().call_scope = Some("files:write");
    let server = world.server("");
    let failure = call(&server, "whoami", json!({})).await.unwrap_err();
    let expected = "the MCP server `demo` requires more permissions (`files:write`); \
                    run `patter mcp login demo` to grant them";
    assert_eq!(failure.message(), expected);
    let missing = LoginStatus::MoreScopes { scopes: vec!["files:write".to_owned()] };
    assert_eq!(server.login_status().unwrap().unwrap(), missing);
    let login = world.login("").await.unwrap();
    assert_eq!(login.scopes, ["files:read", "files:write"]);
    // The server that is already connected uses the new token.
    assert_eq!(call(&server, "whoami", json!({})).await.unwrap(), "Bearer [redacted]");
}

#[tokio::test]
async fn a_token_goes_only_to_its_server() {
    let world = World::start().await;
    world.login("").await.unwrap();
    let other = World::start().await;
    // The project now names another server, or another path of the same one.
    for url in [format!("{}/mcp", other.base), format!("{}/mcp2", world.base), other.base.clone()] {
        let server = server_at(&url, world.folder.path(), "");
        assert_eq!(server.login_status().unwrap().unwrap(), LoginStatus::LoggedOut, "{url}");
        server.tools().await.unwrap_err();
    }
    assert!(other.seen().authorizations.iter().all(Option::is_none));
    // A file that is renamed to the name for another server is not used for it.
    let target = server_at(&format!("{}/mcp", other.base), other.folder.path(), "");
    login_with(&target, SOON, browse).await.unwrap();
    fs::copy(world.login_file(), other.login_file()).unwrap();
    assert_eq!(target.login_status().unwrap().unwrap(), LoginStatus::LoggedOut);
    // Nor is one that others can read.
    fs::set_permissions(world.login_file(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(failure(&world, "").await.contains("can be read by others"));
    assert!(world.server("").login_status().unwrap().unwrap_err().to_string().contains("can be read by others"));
}

#[tokio::test]
async fn a_configured_authorization_replaces_the_login() {
    let world = World::start().await;
    world.login("").await.unwrap();
    world.seen().authorizations.clear();
    let headers = "headers = {Authorization = 'Bearer own-sesame'}";
    assert!(failure(&world, headers).await.contains("denied access (401); check its `headers`"));
    assert!(world.seen().authorizations.iter().all(|value| value.as_deref() == Some("Bearer own-sesame")));
    assert_eq!(world.server(headers).login_status(), None);
    assert!(world.login(headers).await.unwrap_err().hint().unwrap().contains("remove that header"));
}

#[tokio::test]
async fn tokens_need_tls() {
    let world = World::start().await;
    let server = server_at("http://mcp.example.com/mcp", world.folder.path(), "");
    let error = login_with(&server, SOON, browse).await.unwrap_err();
    let expected = "`mcp.example.com:80` does not use TLS, so that tokens could be read on the way";
    assert_eq!(
        (error.to_string().as_str(), error.hint()),
        (expected, Some("change the `url` of the server to `https`"))
    );
}

/// Makes a server hostile.
type Change = fn(&World);

#[tokio::test]
async fn hostile_metadata_is_refused() {
    let cases: [(&str, Change, &str); 14] = [
        (
            "a resource of another server",
            |world| world.behaviour().resource.as_mut().unwrap()["resource"] = "https://bank.example/mcp".into(),
            "the server's metadata is about another resource, `https://bank.example/mcp`",
        ),
        (
            "no resource",
            |world| world.behaviour().resource = Some(json!({"authorization_servers": ["https://as.example"]})),
            "the server's metadata is about another resource, ``",
        ),
        (
            "an authorization server in the cloud's metadata service",
            |world| {
                world.behaviour().resource.as_mut().unwrap()["authorization_servers"] =
                    json!(["https://169.254.169.254/"]);
            },
            "cannot log in at `169.254.169.254:443`: `169.254.169.254` is a private address, which is blocked by default",
        ),
        (
            "an authorization server without TLS",
            |world| {
                world.behaviour().resource.as_mut().unwrap()["authorization_servers"] = json!(["http://as.example/"]);
            },
            "the `authorization server` cannot be used: `as.example:80` does not use TLS, so that tokens could be read on the way",
        ),
        (
            "a file",
            |world| {
                world.behaviour().resource.as_mut().unwrap()["authorization_servers"] = json!(["file:///etc/passwd"]);
            },
            "the `authorization server` cannot be used: the scheme `file` is not supported",
        ),
        (
            "another issuer",
            |world| world.behaviour().metadata.as_mut().unwrap()["issuer"] = "https://as.example".into(),
            "is about another one, `https://as.example`",
        ),
        (
            "no PKCE",
            |world| {
                world
                    .behaviour()
                    .metadata
                    .as_mut()
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove("code_challenge_methods_supported");
            },
            "the authorization server does not support PKCE with S256",
        ),
        (
            "a token endpoint without TLS",
            |world| world.behaviour().metadata.as_mut().unwrap()["token_endpoint"] = "http://evil.example/token".into(),
            "the `token_endpoint` cannot be used: `evil.example:80` does not use TLS, so that tokens could be read on the way",
        ),
        (
            "a page that is a script",
            |world| {
                world.behaviour().metadata.as_mut().unwrap()["authorization_endpoint"] = "javascript:alert(1)".into();
            },
            "the `authorization_endpoint` cannot be used: the scheme `javascript` is not supported",
        ),
        (
            "a registration in the local network",
            |world| world.behaviour().metadata.as_mut().unwrap()["registration_endpoint"] = "https://10.0.0.1/".into(),
            "cannot log in at `10.0.0.1:443`: `10.0.0.1` is a private address, which is blocked by default",
        ),
        (
            "a redirect of the metadata",
            |world| {
                let place = "https://192.168.0.1/metadata".to_owned();
                world
                    .behaviour()
                    .replaced
                    .insert("/.well-known/oauth-authorization-server", Replacement::Redirect(place));
            },
            "redirects to another server, `192.168.0.1:443`",
        ),
        (
            "metadata without an end",
            |world| {
                world.behaviour().replaced.insert("/.well-known/oauth-protected-resource/mcp", Replacement::Endless);
            },
            "the response is larger than 262144 bytes",
        ),
        (
            "a token response without an end",
            |world| {
                world.behaviour().replaced.insert("/token", Replacement::Endless);
            },
            "the response is larger than 262144 bytes",
        ),
        (
            "a token that is not a header",
            |world| {
                let token = json!({"token_type": "Bearer", "access_token": "a\r\nX-Evil: 1"});
                world.behaviour().replaced.insert("/token", Replacement::Json(200, token));
            },
            "the authorization server sent no usable token",
        ),
    ];
    for (name, change, expected) in cases {
        let world = World::start().await;
        change(&world);
        let error = tokio::time::timeout(SOON, world.login("")).await.expect("it hangs").unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!world.folder.path().join("mcp").exists(), "{name}");
        assert_eq!(world.server("").login_status().unwrap().unwrap(), LoginStatus::LoggedOut, "{name}");
    }
}

#[tokio::test]
async fn redirects_to_another_server_are_refused() {
    let world = World::start().await;
    let other = World::start().await;
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/token"] {
        world.behaviour().replaced = [(path, Replacement::Redirect(format!("{}{path}", other.base)))].into();
        let error = world.login("").await.unwrap_err().to_string();
        assert!(error.contains("redirects to another server") || error.contains("moved to"), "{path}: {error}");
    }
    assert!(other.seen().requests.is_empty(), "another server was contacted");
}

#[tokio::test]
async fn redirects_within_a_server_are_followed() {
    let world = World::start().await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    let metadata = world.behaviour().resource.clone().unwrap();
    world.behaviour().replaced.insert("/moved", Replacement::Json(200, metadata));
    world.behaviour().replaced.insert(path, Replacement::Redirect(format!("{}/moved", world.base)));
    world.login("").await.unwrap();
    // But not for ever.
    world.behaviour().replaced.insert(path, Replacement::Redirect(format!("{}{path}", world.base)));
    let error = world.login("").await.unwrap_err().to_string();
    assert!(error.ends_with("the server redirected more than 5 times"), "{error}");
}

/// A server must not be able to collect the secret of a client that is registered elsewhere.
#[tokio::test]
async fn a_client_secret_goes_only_to_its_authorization_server() {
    const CLIENT: &str = "client-id = 'mine', client-secret = 'client-sesame'";
    let world = World::start().await;
    let evil = World::start().await;
    world.behaviour().resource.as_mut().unwrap()["authorization_servers"] = json!([evil.base]);
    let error = world.login(&format!("oauth = {{{CLIENT}}}")).await.unwrap_err();
    let named = &evil.base;
    let expected = format!("the server names the authorization server `{named}`, which would get the client secret");
    assert_eq!(error.to_string(), expected);
    assert!(error.hint().unwrap().contains(&format!("set `issuer = \"{named}\"` under `oauth`")));
    let error = world.login(&format!("oauth = {{{CLIENT}, issuer = '{}'}}", world.base)).await.unwrap_err();
    let expected = format!("the server names the authorization server `{named}`, which is not the `issuer`");
    assert_eq!(error.to_string(), expected);
    assert!(evil.seen().requests.is_empty(), "the other server was contacted");

    // The configured one is used even if it is not the first.
    world.behaviour().resource.as_mut().unwrap()["authorization_servers"] = json!([evil.base, world.base]);
    world.login(&format!("oauth = {{{CLIENT}, issuer = '{}/'}}", world.base)).await.unwrap();
    world.behaviour().resource.as_mut().unwrap()["authorization_servers"] = json!([world.base]);
    world.login(&format!("oauth = {{{CLIENT}}}")).await.unwrap();
    assert!(evil.seen().requests.is_empty(), "the other server was contacted");
}

#[tokio::test]
async fn servers_that_hang_are_given_up() {
    for path in ["/mcp", "/.well-known/oauth-protected-resource/mcp", "/register", "/token"] {
        let world = World::start().await;
        world.behaviour().replaced.insert(path, Replacement::Hang);
        let error = tokio::time::timeout(SOON, world.login("timeout = '1s'")).await.expect("it hangs").unwrap_err();
        assert!(error.to_string().contains("did not respond"), "{path}: {error}");
    }
    // A renewal that hangs ends with the call.
    let world = World::start().await;
    world.behaviour().lifetime = 1;
    world.login("").await.unwrap();
    world.behaviour().replaced.insert("/token", Replacement::Hang);
    let message = failure(&world, "timeout = '1s'").await;
    assert!(message.starts_with("cannot renew the login at the MCP server `demo`"), "{message}");
}

#[tokio::test]
async fn only_the_right_answer_ends_the_wait() {
    // A page in the browser that guesses the port cannot end or hijack the login.
    let world = World::start().await;
    let attacked = |url: patter::http::Url| async move {
        let fields: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
        let callback = patter::http::Url::parse(&fields["redirect_uri"]).unwrap();
        for query in ["code=evil&state=wrong", "code=evil", "error=access_denied", "error=x&state="] {
            let mut forged = callback.clone();
            forged.set_query(Some(query));
            assert_eq!(get(&forged).await.status(), 404, "{query}");
        }
        let held = tokio::net::TcpStream::connect(("127.0.0.1", callback.port().unwrap())).await.unwrap();
        browse(url).await;
        drop(held);
    };
    login_with(&world.server(""), SOON, attacked).await.unwrap();
    check_call(&world).await;

    // The answer of another authorization server does not count (RFC 9207).
    let world = World::start().await;
    world.behaviour().answer = vec![("iss", "https://evil.example".to_owned())];
    let error = login_with(&world.server(""), Duration::from_millis(500), browse).await.unwrap_err();
    assert_eq!(error.to_string(), "nobody logged in within 500 ms");

    let world = World::start().await;
    world.behaviour().answer = vec![("error", "access_denied".to_owned())];
    let error = world.login("").await.unwrap_err();
    assert_eq!(error.to_string(), "the authorization server refused the login: access_denied");

    // Nobody comes.
    let start = Instant::now();
    let error = login_with(&world.server(""), Duration::from_millis(200), |_| async {}).await.unwrap_err();
    assert_eq!(error.hint(), Some("try again, and open the URL in a browser"));
    assert!(start.elapsed() < SOON);
}

#[tokio::test]
async fn metadata_that_the_challenge_names_must_exist() {
    let world = World::start().await;
    world.behaviour().replaced.insert("/.well-known/oauth-protected-resource/mcp", Replacement::Json(404, json!({})));
    let error = world.login("").await.unwrap_err().to_string();
    assert!(error.starts_with("there is no metadata at"), "{error}");
}
