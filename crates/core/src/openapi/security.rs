//! Security schemes, with secrets from environment variables.

use super::document::Document;
use super::http::is_header;
use super::naming::variable;
use super::operation::Operation;
use super::warning::Warnings;
use crate::provider::Provider;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

/// The credentials of requests: names with templates.
#[derive(Default)]
pub(super) struct Credentials {
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) cookies: Vec<(String, String)>,
}

pub(super) struct Security<'d> {
    document: &'d Json,
    schemes: IndexMap<&'d str, Scheme<'d>>,
}

struct Scheme<'d> {
    kind: SchemeKind<'d>,
    /// The environment variable that holds the secret.
    variable: String,
    /// The variable to use instead if the first one holds a secret that is meant for another server.
    own_variable: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemeKind<'d> {
    Header(&'d str),
    Query(&'d str),
    Cookie(&'d str),
    Bearer,
    Basic,
    /// OAuth 2 and OpenID Connect: a token obtained elsewhere.
    Delegated,
    Unknown,
}

impl Credentials {
    /// Returns whether a parameter is one of the credentials.
    pub(super) fn contains(&self, location: &str, name: &str) -> bool {
        match location {
            "header" => self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)),
            "query" => self.query.iter().any(|(known, _)| known == name),
            "cookie" => self.cookies.iter().any(|(known, _)| known == name),
            _ => false,
        }
    }

    /// Adds a credential, unless one of that name is there: requests have one `Authorization`, even if several schemes ask
    /// for it.
    fn add(&mut self, location: &str, name: &str, value: String) {
        if self.contains(location, name) {
            return;
        }
        match location {
            "query" => self.query.push((name.to_owned(), value)),
            "cookie" => self.cookies.push((name.to_owned(), value)),
            _ => self.headers.push((name.to_owned(), value)),
        }
    }
}

impl<'d> Security<'d> {
    pub(super) fn read(document: &Document<'d>, toolbox: &str) -> Self {
        let root = document.root();
        let schemes = root.pointer("/components/securitySchemes").and_then(Json::as_object);
        let kinds: Vec<_> = schemes
            .into_iter()
            .flatten()
            .map(|(name, scheme)| (name.as_str(), document.resolve(scheme).map_or(SchemeKind::Unknown, scheme_kind)))
            .collect();
        let scheme = |(name, kind): &(&'d str, SchemeKind<'d>)| {
            let noun = kind.noun();
            // The variable is named after the kind of secret, unless there are several of a kind. One token serves all
            // schemes of OAuth, which are different ways to obtain it.
            let same: Vec<_> = kinds.iter().filter(|(_, other)| other.noun() == noun).map(|(_, kind)| *kind).collect();
            let is_only = same.len() == 1 || same.iter().all(|kind| *kind == SchemeKind::Delegated);
            let purpose = if is_only { noun } else { name };
            let own_variable = variable(&format!("{toolbox}_toolbox"), purpose);
            (*name, Scheme { kind: *kind, variable: variable(toolbox, purpose), own_variable })
        };
        Self { document: root, schemes: kinds.iter().map(scheme).collect() }
    }

    /// Returns the credentials of an operation at a server: those of the first supported alternative.
    pub(super) fn credentials(&self, operation: &Operation<'d>, server: &str, warnings: &mut Warnings) -> Credentials {
        let Some(Json::Array(alternatives)) =
            operation.object.get("security").or_else(|| self.document.get("security"))
        else {
            return Credentials::default();
        };
        let alternatives: Vec<_> = alternatives.iter().filter_map(Json::as_object).collect();
        // A secret is simpler to provide than a token obtained elsewhere.
        let find = |allowed: fn(SchemeKind<'_>) -> bool| {
            let is_allowed = |name: &String| self.schemes.get(name.as_str()).is_some_and(|scheme| allowed(scheme.kind));
            alternatives.iter().find(move |alternative| alternative.keys().all(is_allowed))
        };
        let supported = find(|kind| !matches!(kind, SchemeKind::Unknown | SchemeKind::Delegated));
        let supported = supported.or_else(|| find(|kind| kind != SchemeKind::Unknown));
        match supported {
            Some(alternative) => self.alternative_credentials(alternative, server, warnings),
            None => {
                if let Some(first) = alternatives.first() {
                    let names: Vec<_> = first.keys().map(|name| format!("`{name}`")).collect();
                    warnings.add(format!("the security scheme {} is not supported; left out", names.join(" and ")));
                }
                Credentials::default()
            }
        }
    }

    fn alternative_credentials(
        &self,
        alternative: &Map<String, Json>,
        server: &str,
        warnings: &mut Warnings,
    ) -> Credentials {
        let mut found = Credentials::default();
        for scheme in alternative.keys().filter_map(|name| self.schemes.get(name.as_str())) {
            let variable = scheme.variable_at(server);
            let secret = format!("${{{variable}}}");
            match scheme.kind {
                SchemeKind::Header(name) => found.add("header", name, secret),
                SchemeKind::Cookie(name) => found.add("cookie", name, secret),
                SchemeKind::Query(name) => found.add("query", name, secret),
                SchemeKind::Basic => found.add("header", "Authorization", format!("Basic {secret}")),
                SchemeKind::Bearer | SchemeKind::Delegated => {
                    found.add("header", "Authorization", format!("Bearer {secret}"));
                }
                SchemeKind::Unknown => {}
            }
            let content = match scheme.kind {
                SchemeKind::Basic => "`user:password`",
                SchemeKind::Delegated => "a token obtained by OAuth",
                _ => continue,
            };
            warnings.add_at("document", format!("set `{variable}` to {content}"));
        }
        found
    }
}

impl Scheme<'_> {
    /// Returns the variable that holds the secret for a server. The title of a document decides its name, so that a document
    /// could ask for the key of a provider of models, which is set already.
    fn variable_at(&self, server: &str) -> &str {
        match Provider::with_key_variable(&self.variable) {
            Some(provider) if !provider.is_at(server) => &self.own_variable,
            _ => &self.variable,
        }
    }
}

impl SchemeKind<'_> {
    fn noun(self) -> &'static str {
        match self {
            SchemeKind::Header(_) | SchemeKind::Query(_) => "api_key",
            SchemeKind::Cookie(_) => "session",
            SchemeKind::Bearer | SchemeKind::Delegated => "token",
            SchemeKind::Basic => "basic_auth",
            SchemeKind::Unknown => "",
        }
    }
}

fn scheme_kind(scheme: &Map<String, Json>) -> SchemeKind<'_> {
    let text = |key: &str| scheme.get(key).and_then(Json::as_str).unwrap_or_default();
    // A name inside a template must not add a placeholder.
    let name = Some(text("name")).filter(|name| !name.is_empty() && !name.contains(['{', '}']));
    match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str(), name) {
        ("apiKey", "header", _, Some(name)) if is_header(name) => SchemeKind::Header(name),
        ("apiKey", "query", _, Some(name)) => SchemeKind::Query(name),
        ("apiKey", "cookie", _, Some(name)) if is_header(name) => SchemeKind::Cookie(name),
        ("http", _, "bearer", _) => SchemeKind::Bearer,
        ("http", _, "basic", _) => SchemeKind::Basic,
        ("oauth2" | "openIdConnect", ..) => SchemeKind::Delegated,
        _ => SchemeKind::Unknown,
    }
}
