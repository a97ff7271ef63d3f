//! Security schemes: secrets come from variables of the environment.

use super::Notes;
use super::document::Document;
use super::naming::variable;
use super::operation::Operation;
use super::parameter::is_header;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

/// What a request carries to prove who sends it: names with templates.
#[derive(Default)]
pub(super) struct Credentials {
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
}

pub(super) struct Security<'d> {
    document: &'d Json,
    schemes: IndexMap<&'d str, Scheme<'d>>,
}

struct Scheme<'d> {
    kind: Kind<'d>,
    /// The variable of the environment that holds the secret.
    variable: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind<'d> {
    Header(&'d str),
    Query(&'d str),
    Cookie(&'d str),
    Bearer,
    Basic,
    /// OAuth 2 and OpenID Connect: a token that somebody else gets.
    Delegated,
    Unknown,
}

impl Credentials {
    /// Tells whether a parameter of a place is one of them.
    pub(super) fn carry(&self, place: &str, name: &str) -> bool {
        match place {
            "header" => self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)),
            "query" => self.query.iter().any(|(known, _)| known == name),
            _ => false,
        }
    }
}

impl<'d> Security<'d> {
    pub(super) fn read(document: &Document<'d>, toolbox: &str) -> Self {
        let root = document.root();
        let listed = root.pointer("/components/securitySchemes").and_then(Json::as_object);
        let kinds: Vec<_> = listed
            .into_iter()
            .flatten()
            .map(|(name, scheme)| (name.as_str(), document.resolve(scheme).map_or(Kind::Unknown, kind)))
            .collect();
        let scheme = |(name, kind): &(&'d str, Kind<'d>)| {
            let (noun, kind) = (kind.noun(), *kind);
            // The kind of secret names the variable, unless there are two of a kind.
            let is_only = kinds.iter().filter(|(_, other)| other.noun() == noun).count() == 1;
            (*name, Scheme { kind, variable: variable(toolbox, if is_only { noun } else { name }) })
        };
        Self { document: root, schemes: kinds.iter().map(scheme).collect() }
    }

    /// Returns what the requests of an operation carry: that of the first alternative which can be followed.
    pub(super) fn credentials(&self, operation: &Operation<'d>, notes: &mut Notes) -> Credentials {
        let Some(Json::Array(alternatives)) = operation.own.get("security").or_else(|| self.document.get("security"))
        else {
            return Credentials::default();
        };
        let alternatives: Vec<_> = alternatives.iter().filter_map(Json::as_object).collect();
        // A key of one's own is simpler than a token from somebody else.
        let can_be = |allowed: fn(Kind<'_>) -> bool| {
            let is_allowed = |name: &String| self.schemes.get(name.as_str()).is_some_and(|it| allowed(it.kind));
            alternatives.iter().find(move |alternative| alternative.keys().all(is_allowed))
        };
        let followed = can_be(|kind| !matches!(kind, Kind::Unknown | Kind::Delegated));
        let followed = followed.or_else(|| can_be(|kind| kind != Kind::Unknown));
        match followed {
            Some(alternative) => self.carried(alternative, notes),
            None => {
                if let Some(first) = alternatives.first() {
                    let names: Vec<_> = first.keys().map(|name| format!("`{name}`")).collect();
                    notes.add(format!("the security scheme {} is left out", names.join(" and ")));
                }
                Credentials::default()
            }
        }
    }

    fn carried(&self, alternative: &Map<String, Json>, notes: &mut Notes) -> Credentials {
        let mut found = Credentials::default();
        for scheme in alternative.keys().filter_map(|name| self.schemes.get(name.as_str())) {
            let secret = format!("${{{}}}", scheme.variable);
            let mut header = |name: &str, value: String| found.headers.push((name.to_owned(), value));
            match scheme.kind {
                Kind::Header(name) => header(name, secret),
                Kind::Cookie(name) => header("Cookie", format!("{name}={secret}")),
                Kind::Query(name) => found.query.push((name.to_owned(), secret)),
                Kind::Basic => header("Authorization", format!("Basic {secret}")),
                Kind::Bearer | Kind::Delegated => header("Authorization", format!("Bearer {secret}")),
                Kind::Unknown => {}
            }
            let what = match scheme.kind {
                Kind::Basic => "holds `user:password`",
                Kind::Delegated => "is a token that you get by OAuth yourself",
                _ => continue,
            };
            notes.add_about("document", format!("`{}` {what}", scheme.variable));
        }
        found
    }
}

impl Kind<'_> {
    fn noun(self) -> &'static str {
        match self {
            Kind::Header(_) | Kind::Query(_) => "api_key",
            Kind::Cookie(_) => "session",
            Kind::Bearer | Kind::Delegated => "token",
            Kind::Basic => "basic_auth",
            Kind::Unknown => "",
        }
    }
}

fn kind(scheme: &Map<String, Json>) -> Kind<'_> {
    let text = |key: &str| scheme.get(key).and_then(Json::as_str).unwrap_or_default();
    // What stands in a template may not open a hole of its own.
    let name = Some(text("name")).filter(|name| !name.is_empty() && !name.contains(['{', '}']));
    match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str(), name) {
        ("apiKey", "header", _, Some(name)) if is_header(name) => Kind::Header(name),
        ("apiKey", "query", _, Some(name)) => Kind::Query(name),
        ("apiKey", "cookie", _, Some(name)) => Kind::Cookie(name),
        ("http", _, "bearer", _) => Kind::Bearer,
        ("http", _, "basic", _) => Kind::Basic,
        ("oauth2" | "openIdConnect", ..) => Kind::Delegated,
        _ => Kind::Unknown,
    }
}
