//! What an agent may call: what each name is bound to and why, the permission in words, and the schemas of providers.

use super::view::{agent_address, layer_words, tool_address};
use patter::declare::{Agent, Element};
use patter::drive::Driver;
use patter::html::{Html, html, prose};
use patter::library::{BindFailure, Binding, Entry, MatchMode, Target, Toolkits, bind_each, declared_permissions};
use patter::name::FullName;
use patter::permission::{Decision, Permissions};
use patter::tool::Tool;
use patter::types::definition::Definition;
use patter::types::dialect::{Fidelity, SchemaDialect, adapt};
use serde_json::Value as Json;

/// The dialects of providers, with their names.
const DIALECTS: [(SchemaDialect, &str); 3] = [
    (SchemaDialect::OpenAiStrict, "OpenAI, strict"),
    (SchemaDialect::Anthropic, "Anthropic"),
    (SchemaDialect::Gemini, "Gemini"),
];

/// Shows everything that an agent may call, in the order of its declaration.
pub(super) fn show_callables(driver: &Driver, agent: &Agent) -> Html {
    let project = driver.project();
    let toolkits = Toolkits::new(project, driver.library());
    let members = project.members(agent);
    let members = members.iter().filter(|member| Element::cast(member.pattern).is_some());
    let bound = bind_each(agent, project, driver.library(), MatchMode::Compatible);
    let shown = members.zip(&bound).map(|(member, bound)| {
        let toolkit = match member.toolkit_name() {
            Some(name) => row("Toolkit", &html!("<code>{}</code>", &*name)),
            None => Html::default(),
        };
        let inherited = match member.base_name() {
            Some(name) => row("Inherited from", &html!("<a href=\"{}\">{}</a>", agent_address(&name), &*name)),
            None => Html::default(),
        };
        let toolkit = html!("{}{}", toolkit, inherited);
        let declared = row("Declared", &html!("{}", project.member_location(member)));
        let allowed = |name: &FullName| {
            let permissions = declared_permissions(agent, project, &toolkits, name);
            permissions.with_all(driver.rules().iter().map(|rule| toolkits.expand(rule.clone())))
        };
        match bound {
            Ok(binding) => show_binding(driver, binding, &allowed, &html!("{}{}", toolkit, declared)),
            Err(failure) => show_failure(failure, &html!("{}{}", toolkit, declared)),
        }
    });
    shown.collect()
}

fn show_binding(
    driver: &Driver,
    binding: &Binding,
    permissions: &dyn Fn(&FullName) -> Permissions,
    more: &Html,
) -> Html {
    match &binding.target {
        Target::Tool { name, declared } => {
            let entry = driver.library().get(name.as_str());
            let why = entry.map(|entry| bound_to(driver, &binding.name, entry)).unwrap_or_default();
            let effect = entry.map_or("", |entry| entry.value.effect.name());
            html!(
                "<article class=\"callable\"><h3><a href=\"{}\">{}</a> {}</h3><p>{}</p><dl>{}{}{}{}</dl>{}</article>",
                tool_address(name.as_str()),
                binding.name,
                effect_badge(effect),
                declared.description.trim(),
                row("Permission", &permission_words(&permissions(name), name)),
                row("Bound to", &why),
                row("Signature", &html!("<code>{}</code>", declared.signature.to_string())),
                more,
                schemas(declared)
            )
        }
        Target::Agent { agent } => {
            let path = agent.path().to_string();
            let permission = FullName::parse(&binding.name).ok();
            let permission = permission.map(|name| permission_words(&permissions(&name), &name)).unwrap_or_default();
            html!(
                "<article class=\"callable\"><h3><a href=\"{}\">{}</a> <span class=\"state\">delegate</span></h3><p>{}</p><dl>{}{}</dl></article>",
                agent_address(&path),
                binding.name,
                agent.description().unwrap_or_default().trim(),
                row("Permission", &permission),
                more
            )
        }
    }
}

fn show_failure(failure: &BindFailure, more: &Html) -> Html {
    let hint = match failure.hint() {
        Some(hint) => html!("<p class=\"quiet\">{}</p>", prose(&hint)),
        None => Html::default(),
    };
    html!(
        "<article class=\"callable\"><h3>{} <span class=\"state failed\">not bound</span></h3><p class=\"bad\">{}</p>{}<dl>{}</dl></article>",
        failure.name,
        prose(&failure.to_string()),
        hint,
        more
    )
}

/// Says what a name is bound to, and why none of the other candidates is.
fn bound_to(driver: &Driver, name: &str, chosen: &Entry<Tool>) -> Html {
    let library = driver.library();
    let candidates = library.candidates(name);
    let reason = library.reason(name, chosen, Some(chosen), false);
    let others = candidates.iter().filter(|entry| !std::ptr::eq(**entry, chosen)).map(|entry| {
        html!(
            "<li><code>{}</code> of {} ({}): {}</li>",
            entry.name.as_str(),
            layer_words(entry.layer),
            &*entry.value.source,
            library.reason(name, entry, Some(chosen), false)
        )
    });
    let others: Html = others.collect();
    let others = if others.is_empty() { others } else { html!("<ul class=\"plain quiet\">{}</ul>", others) };
    html!(
        "<code>{}</code> of {} <span class=\"quiet\">({}, {}; {})</span>{}",
        chosen.name.as_str(),
        layer_words(chosen.layer),
        chosen.value.kind.name(),
        &*chosen.value.source,
        reason,
        others
    )
}

/// Says in words what happens to calls.
pub(super) fn permission_words(permissions: &Permissions, name: &FullName) -> Html {
    let verdict = permissions.decide(name, &serde_json::Map::new());
    let conditional: Vec<_> = permissions.rules_for(name).filter(|rule| !rule.conditions.is_empty()).collect();
    let rules: Html = conditional
        .iter()
        .map(|rule| html!("<li><code>{}</code> <span class=\"quiet\">{}</span></li>", rule.to_string(), &*rule.origin))
        .collect();
    let decision = match verdict.decision {
        Decision::Allow => html!("<b class=\"ok\">Allowed</b>"),
        Decision::Ask => html!("<b class=\"ask\">Asks first</b>"),
        Decision::Deny => html!("<b class=\"bad\">Denied</b>"),
    };
    let because = prose(&verdict.reason.to_string());
    match conditional.is_empty() {
        true => html!("{} <span class=\"quiet\">because {}</span>", decision, because),
        false => html!(
            "<ul class=\"plain\">{}<li>otherwise {} <span class=\"quiet\">because {}</span></li></ul>",
            rules,
            decision,
            because
        ),
    }
}

/// Shows the schema of a tool, and what each provider gets instead.
pub(super) fn schemas(definition: &Definition) -> Html {
    let schema = definition.input_schema();
    let dialects = DIALECTS.iter().map(|(dialect, name)| {
        let adapted = adapt(&schema, *dialect);
        if adapted.changes.is_empty() {
            return html!("<li><b>{}</b>: sent as it is</li>", name);
        }
        let changes = adapted.changes.iter().map(|change| {
            let effect = match change.fidelity {
                Fidelity::Preserved => "same meaning",
                Fidelity::Weakened => "less strict",
                Fidelity::Inexpressible => "not supported",
            };
            html!("<li><span class=\"state\">{}</span> {}</li>", effect, prose(&change.to_string()))
        });
        let changes: Html = changes.collect();
        html!("<li><b>{}</b><ul class=\"plain\">{}</ul>{}</li>", name, changes, code("as sent", &adapted.schema))
    });
    let dialects: Html = dialects.collect();
    html!(
        "<details><summary>Schemas</summary><pre class=\"json\" tabindex=\"0\">{}</pre><ul class=\"plain\">{}</ul></details>",
        format!("{schema:#}"),
        dialects
    )
}

fn code(title: &str, json: &Json) -> Html {
    html!(
        "<details><summary>{}</summary><pre class=\"json\" tabindex=\"0\">{}</pre></details>",
        title,
        format!("{json:#}")
    )
}

/// Shows the effect of a tool.
pub(super) fn effect_badge(effect: &str) -> Html {
    match effect {
        "" => Html::default(),
        "writes" => html!("<span class=\"state waiting\">writes</span>"),
        other => html!("<span class=\"state\">{}</span>", other),
    }
}

/// Shows a fact.
pub(super) fn row(title: &str, value: &Html) -> Html {
    if value.is_empty() { Html::default() } else { html!("<div><dt>{}</dt><dd>{}</dd></div>", title, value) }
}
