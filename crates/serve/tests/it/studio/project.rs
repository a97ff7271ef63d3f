//! The map, the pages of agents and tools, and editing.

use super::{packages, play};
use crate::lab::Lab;
use crate::sdk;
use patter_serve::{Editing, Scope, Scopes, Token, TokenHash};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

const SHOP: &str = r#"// A shop with what a project can have.
[desk:Agent {
  description: "Answers questions about orders",
  instruction: "Find orders with `shop/order`, refund with `refunds`, and never call `shop/wipe`.",
  model: "demo",
  deny: ["shop/wipe"],
  ask: ["shop/order when id = \"1\""]
} | `shop/order`, refunds, `shop/wipe`]

[refunds:Agent {
  description: "Refunds orders",
  instruction: "Refund with `shop/refund`.",
  model: "OpenAI/gpt-4o-mini",
  ask: ["shop/refund"]
} | `shop/refund`, `nowhere/tool`, [judge:Agent { description: "Judges", instruction: "Judge.", model: "demo", modle: "x" }]]

[shop:Toolbox |
  [order:Command { description: "Finds an order", run: ["cat", "{id}"], effect: "reads" } | (id::Text { description: "The number", default: "1" })==>(::Text)],
  [refund:Command { description: "Refunds an order", run: ["refund", "{id}", "{amount}"] } | (id::Text)==>(amount::Integer)==>(::Text)],
  [wipe:Command { description: "Removes all orders", run: ["wipe"] } | ()==>(::Text)]
]
"#;

/// Everything that could break out of a page.
const HOSTILE: &str = r#"[`</script><script>alert(1)</script>`:Agent {
  description: "<img src=x onerror=alert(1)> BIDIreversed \"quoted\" 'quoted' &amp;",
  instruction: "</textarea></pre><script>alert(1)</script>",
  model: "demo"
} | `"><svg onload=alert(1)>`]
"#;

fn hostile() -> String {
    HOSTILE.replace("BIDI", "\u{202e}")
}

fn fleet(agents: usize) -> String {
    let mut text = String::new();
    for toolbox in 0..40 {
        let _ = writeln!(text, "[box{toolbox}:Toolbox");
        for tool in 0..50 {
            let lead = if tool == 0 { '|' } else { ',' };
            let effect = ["reads", "writes", "network", "pure"][tool % 4];
            let _ = writeln!(
                text,
                "  {lead} [tool{tool}:Command {{ description: \"Does it\", run: [\"true\"], effect: \"{effect}\" }} | (id::Text)==>(::Text)]"
            );
        }
        text.push_str("]\n");
    }
    for agent in 0..agents {
        let tools: Vec<_> =
            (0..5).map(|tool| format!("`box{}/tool{}`", (agent + tool) % 40, (agent * 7 + tool * 11) % 50)).collect();
        let next = if agent % 4 == 3 { String::new() } else { format!(", agent{:04}", agent + 1) };
        let _ = writeln!(
            text,
            "[agent{agent:04}:Agent {{ description: \"Number {agent}\", instruction: \"Work.\", model: \"demo\" }} | {}{next}]",
            tools.join(", ")
        );
    }
    text
}

async fn lab_with(files: &[(&str, &str)], editing: Editing) -> Lab {
    let mut lab = Lab::with(|settings| settings.editing = editing).await;
    for (name, text) in files {
        std::fs::write(lab.folder.path().join(name), text).unwrap();
    }
    lab.restart().await;
    lab
}

fn file(lab: &Lab, name: &str) -> String {
    lab.folder.path().join(name).display().to_string()
}

/// Returns the address of the page that edits a file.
fn edit_address(path: &str) -> String {
    format!("/studio/edit/{}", path.replace('/', "%2F"))
}

#[tokio::test]
async fn a_project_is_seen() {
    let Some(packages) = packages() else { return };
    let lab = lab_with(&[("shop.gram", SHOP), ("hostile.gram", &hostile())], Editing::Off).await;
    play(&lab, &packages, "map", &[]).await;
}

#[tokio::test]
async fn agents_and_tools_are_seen() {
    let Some(packages) = packages() else { return };
    let lab = lab_with(&[("shop.gram", SHOP), ("hostile.gram", &hostile())], Editing::Off).await;
    play(&lab, &packages, "agent", &[]).await;
}

#[tokio::test]
async fn files_are_edited() {
    let Some(packages) = packages() else { return };
    let lab = lab_with(&[("shop.gram", SHOP), ("hostile.gram", &hostile())], Editing::On).await;
    play(&lab, &packages, "edit", &[&lab.folder.path().display().to_string()]).await;
}

#[tokio::test]
async fn a_thousand_agents_are_seen() {
    let Some(packages) = packages() else { return };
    let lab = lab_with(&[("fleet.gram", &fleet(1000))], Editing::Off).await;
    // The first request computes the map.
    assert_eq!(lab.get("/").await.status, 200);
    play(&lab, &packages, "fleet", &[]).await;
}

#[tokio::test]
async fn editing_needs_an_option_and_a_scope() {
    let request = json!({"text": "[x:Agent]", "hash": ""});
    let lab = lab_with(&[], Editing::Off).await;
    let path = edit_address(&file(&lab, "a.gram"));
    let refused = lab.post(&path, &request).await;
    assert_eq!(refused.error(), "403 this server does not edit files: start it with `--edit`");
    assert_eq!(lab.post(&format!("{path}/check"), &json!({"text": ""})).await.status, 403);
    assert_eq!(lab.get(&path).await.status, 403);

    let reader = Token::new("reader", TokenHash::of("reader-token-000"));
    let reader = reader.with_scopes(Scopes::from_iter([Scope::Read, Scope::Run]));
    let lab = Lab::with(|settings| {
        settings.editing = Editing::On;
        settings.tokens = vec![reader, Token::new("all", TokenHash::of(sdk::TOKEN))];
    });
    let lab = lab.await;
    let path = edit_address(&file(&lab, "a.gram"));
    let as_reader = [("Authorization", "Bearer reader-token-000")];
    let refused = lab.post_with(&path, &as_reader, &request).await;
    assert!(refused.error().starts_with("403 the token does not permit this"), "{refused:?}");
    let bearer = format!("Bearer {}", sdk::TOKEN);
    let as_admin = [("Authorization", bearer.as_str())];
    assert_eq!(lab.post_with(&path, &as_admin, &request).await.status, 409);
    let from_elsewhere = [as_admin[0], ("Origin", "http://evil.example")];
    assert_eq!(lab.post_with(&path, &from_elsewhere, &request).await.status, 403);
}

#[tokio::test]
async fn only_files_of_the_project_are_edited() {
    let lab = lab_with(&[("shop.gram", SHOP)], Editing::On).await;
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("x.gram");
    std::fs::write(&target, "[x:Agent]").unwrap();
    std::os::unix::fs::symlink(&target, lab.folder.path().join("later.gram")).unwrap();
    for path in [
        "/etc/passwd".to_owned(),
        target.display().to_string(),
        file(&lab, "patter.toml"),
        file(&lab, "later.gram"),
        file(&lab, "../x.gram"),
        format!("{}/./shop.gram", lab.folder.path().display()),
    ] {
        let response = lab.post(&edit_address(&path), &json!({"text": "", "hash": ""})).await;
        assert_eq!(response.status, 404, "{path}: {response:?}");
    }
    assert_eq!(std::fs::read_to_string(target).unwrap(), "[x:Agent]");
}

#[tokio::test]
async fn what_is_saved_is_used_unless_it_starts_something() {
    let lab = lab_with(&[("shop.gram", SHOP)], Editing::On).await;
    let path = lab.folder.path().join("shop.gram");
    let address = edit_address(&path.display().to_string());
    let hash = |path: &Path| {
        let page = std::fs::read(path).unwrap();
        patter_core::types::definition::hash(&page)
    };
    let text = SHOP.replace("Answers questions about orders", "Answers politely");
    let checked = lab.post(&format!("{address}/check"), &json!({"text": text})).await.json();
    assert_eq!(checked["changes"][0]["text"], "agent `desk`: `description` changed", "{checked}");
    let found = checked["findings"].as_array().unwrap();
    assert!(found.iter().any(|finding| finding["code"] == "P004" && finding["line"] == 15), "{checked}");
    let saved = lab.post(&address, &json!({"text": text, "hash": hash(&path)})).await.json();
    assert_eq!(saved["note"], "Saved. New turns use it.");
    assert_eq!((saved["hash"].as_str().unwrap(), hash(&path)), (hash(&path).as_str(), hash(&path)));
    assert!(lab.get("/studio/agents/desk").await.body.contains("Answers politely"));

    let other = text.replace("\"wipe\"", "\"rm\"");
    let saved = lab.post(&address, &json!({"text": other, "hash": hash(&path)})).await.json();
    assert_eq!(saved["used"], false, "{saved}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    let stale = lab.post(&address, &json!({"text": "", "hash": "old"})).await;
    assert_eq!((stale.status, stale.json()["text"].as_str().unwrap()), (409, other.as_str()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
}

#[tokio::test]
async fn readers_of_some_agents_see_only_these() {
    let token = Token { agents: Some(vec!["boss".to_owned()]), ..Token::new("boss", TokenHash::of(sdk::TOKEN)) };
    let lab = Lab::with(|settings| settings.tokens = vec![token]).await;
    let bearer = format!("Bearer {}", sdk::TOKEN);
    let get = async |path: &str| lab.request("GET", path, &[("Authorization", &bearer)], "").await;
    let page = get("/").await.body;
    assert!(page.contains("boss") && page.contains("clerk") && !page.contains("painter"), "{page}");
    assert_eq!(get("/studio/agents/painter").await.status, 404);
    assert_eq!(get("/studio/tools/look").await.status, 404);
    assert_eq!(get("/studio/agents/clerk").await.status, 200);
    assert!(!get("/studio/map.svg").await.body.contains("painter"));
}

#[tokio::test]
async fn runs_of_an_agent_are_on_its_page() {
    let lab = Lab::new().await;
    assert!(lab.get("/studio/agents/greeter").await.body.contains("No runs are stored."));
    let message = json!({"agent": "greeter", "message": "Hi <b>there</b>"});
    assert_eq!(lab.post("/api/sessions?wait=true", &message).await.status, 200);
    let page = lab.get("/studio/agents/greeter").await.body;
    assert!(page.contains(">Hi &lt;b&gt;there&lt;/b&gt;</a>") && page.contains(", 26 tokens, "), "{page}");
}
