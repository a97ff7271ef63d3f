//! Finding what a project defines.

use super::{Definition, DefinitionKind};
use crate::model::placeholder::variables_in;
use crate::project::config::Config;
use crate::project::environment::{Environment, VariableSource};
use crate::project::load::{CONFIG, strip_dot};
use crate::project::models::{KeyCommand, KeySource, ProviderConfig};
use crate::store::StoreLocation;
use crate::tool::DeclaredSpec;
use crate::tool::command::{INHERITED_VARIABLES, literal_words, named_files, names_in};
use crate::tool::mcp::ServerConfig;
use crate::tool::sandbox::{Sandbox, SandboxPolicy};
use crate::tool::scripts::is_script;
use indexmap::IndexMap;
use patter_core::case::{self, Case, CaseFormat, Check};
use patter_core::declare::command::EnvValue;
use patter_core::declare::project::Project;
use patter_core::declare::template::{Part, Template};
use patter_core::declare::{CommandSpec, DeclarationKind};
use patter_core::provider::Provider;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The variables that decide which server or certificate a request relies on.
const NETWORK_VARIABLES: [&str; 7] =
    ["SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];
/// The inherited variables that only concern language and time.
const LOCALE_VARIABLES: [&str; 3] = ["LANG", "LC_ALL", "TZ"];
/// Returns the commands and HTTP tools that gram files declare. Invalid declarations are left out, as nothing runs them.
pub(in crate::project) fn project_definitions(
    project: &Project,
    specs: &[(String, DeclaredSpec)],
    environment: &Environment,
    policy: &SandboxPolicy,
) -> Vec<Definition> {
    let mut found = Vec::new();
    // A toolbox may have hundreds of tools for one server.
    let mut requests: IndexMap<String, BTreeSet<String>> = IndexMap::new();
    for (name, spec) in specs {
        match spec {
            DeclaredSpec::Command(command) => {
                let sandbox = policy.sandbox(command.sandbox.as_ref());
                found.push(command_definition(name, command, environment, &sandbox));
            }
            DeclaredSpec::Request { origin, variables } => {
                requests.entry(show_address(origin, environment)).or_default().extend(variables.iter().cloned());
            }
        }
    }
    found.extend(requests.into_iter().map(|(address, variables)| {
        let detail = with_variables(variables.iter().map(String::as_str));
        Definition::new(DefinitionKind::Requests, address, detail, &variables)
    }));
    found.extend(check_definitions(&project_cases(project)));
    found
}

/// Returns the commands that checks of cases run.
///
/// ```
/// use patter::case::{CaseFormat, read};
/// use patter::project::check_definitions;
/// let text = "[:Cases | [a:Case {input: 'Hi'} | (:Command {run: ['sh', 'check.sh']})]]";
/// let (cases, _) = read("cases.gram", CaseFormat::Gram, text.as_bytes());
/// assert_eq!(check_definitions(&cases)[0].to_string(), "check `sh check.sh`");
/// ```
pub fn check_definitions(cases: &[Case]) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    for check in cases.iter().flat_map(|case| &case.checks) {
        let Check::Command { run, .. } = check else { continue };
        let definition = Definition::new(DefinitionKind::Check, show_words(run.iter().map(String::as_str)), "", run);
        if !found.contains(&definition) {
            found.push(definition);
        }
    }
    found
}

/// Returns the MCP servers.
pub(in crate::project) fn server_definitions<'s>(
    servers: impl IntoIterator<Item = (&'s str, &'s ServerConfig)>,
    environment: &Environment,
    policy: &SandboxPolicy,
) -> Vec<Definition> {
    let definition = |(name, server): (&str, &ServerConfig)| {
        let login = server.oauth.iter().flat_map(|oauth| {
            // A login sends them to a server that the MCP server names.
            [&oauth.client_id, &oauth.client_secret, &oauth.issuer, &oauth.client_metadata_url, &oauth.redirect_uri]
        });
        let values = server.env.values().chain(server.headers.values()).chain(login.flatten());
        let texts: Vec<_> = server.command.iter().chain(&server.args).chain(&server.url).chain(values).collect();
        let used: BTreeSet<_> = texts.iter().flat_map(|text| variables_in(text)).collect();
        // Invalid settings are reported before the server is started.
        let sandbox = policy.sandbox(server.declared_sandbox().unwrap_or_default().as_ref());
        let shown = match (&server.command, &server.url) {
            (Some(command), _) => {
                let passed = server.env.keys().map(String::as_str).chain(used.iter().copied());
                let words = std::iter::once(command).chain(&server.args).map(String::as_str);
                let folder = server.cwd.as_ref().map(|folder| format!(" in {}", folder.display()));
                let with = with_variables(passed.collect::<BTreeSet<_>>());
                let folder = folder.unwrap_or_default();
                format!("{}{folder}{}{}", show_words(words), spaced(&with), show_sandbox(&sandbox))
            }
            (None, Some(url)) => {
                let (shown, _) = url.split_once('?').unwrap_or((url, ""));
                let shown = expand_file_variables(shown, environment);
                format!("{}{}", without_user(&shown), spaced(&with_variables(used.iter().copied())))
            }
            (None, None) => String::new(),
        };
        // The headers of requests may contain keys, which change; everything else decides what runs and where.
        let decisive = server.command.iter().chain(&server.args).chain(&server.url).chain(server.env.values());
        let decisive: BTreeSet<_> = decisive.flat_map(|text| variables_in(text)).collect();
        let mut content = json!({
            "command": server.command,
            "args": server.args,
            "env": server.env,
            "cwd": server.cwd,
            "sandbox": sandbox.to_string(),
            "url": server.url,
            "headers": server.headers,
            "values": file_values(decisive, environment),
        });
        // A login is made as this client, with these scopes, and the answer goes to its address.
        if let (Some(fields), Some(oauth)) = (content.as_object_mut(), &server.oauth) {
            let login = [&oauth.client_id, &oauth.client_secret, &oauth.client_metadata_url, &oauth.redirect_uri];
            fields.insert("oauth".to_owned(), json!([login, oauth.scopes]));
            fields.extend(oauth.issuer.as_ref().map(|issuer| ("issuer".to_owned(), json!(issuer))));
        }
        // What a server may do beyond its tools needs trust too.
        if let (Some(fields), true) = (content.as_object_mut(), server.elicitation || server.sampling) {
            fields.insert("questions".to_owned(), json!([server.elicitation, server.sampling]));
        }
        if let (Some(fields), false) = (content.as_object_mut(), server.roots.is_empty()) {
            fields.insert("roots".to_owned(), json!(server.roots));
        }
        Definition::new(DefinitionKind::Server, name, shown, &content)
    };
    servers.into_iter().map(definition).collect()
}

/// Returns what `patter.toml` and `.env` define. What the user sets in the environment takes precedence, and needs no trust.
pub(in crate::project) fn config_definitions(
    root: &Path,
    config: &Config,
    environment: &Environment,
) -> Vec<Definition> {
    let is_users = |name: &str| environment.source(name) == Some(VariableSource::Process);
    let in_file = |name: &str| environment.get(name).filter(|_| !is_users(name));
    let mut found = Vec::new();
    let declared = config.models.providers().filter(|provider| !Provider::ALL.contains(provider));
    for provider in Provider::ALL.into_iter().chain(declared) {
        found.extend(model_definition(provider, config, environment));
    }
    for (provider, KeyCommand { command, env }) in config.models.key_commands() {
        let words = show_words(command.iter().map(String::as_str));
        let names = || env.iter().map(String::as_str);
        let detail = format!("{words}{}", spaced(&with_variables(names())));
        let content = json!({"run": command, "env": env, "values": file_values(names(), environment)});
        found.push(Definition::new(DefinitionKind::Key, provider.name(), detail, &content));
    }
    let network = config.http.allow.iter();
    found.extend(network.map(|address| Definition::new(DefinitionKind::Network, address, "", address)));
    let store = in_file("PATTER_STORE").or_else(|| config.store.url.clone().filter(|_| !is_users("PATTER_STORE")));
    // The folder of a project's sessions may be a link to somewhere else.
    let is_default = store.is_none() && !is_users("PATTER_STORE") && root.join(CONFIG).is_file();
    let default = || is_default.then(|| strip_dot(root.join(".patter/sessions.db")).display().to_string());
    found.extend(store.or_else(default).and_then(|url| store_definition(root, &url)));
    for folder in config.fs.roots.iter().flatten() {
        let path = root.join(folder);
        let leaves = folder.components().any(|step| step == Component::ParentDir);
        // A folder that does not exist yet cannot be resolved.
        let (full, leaves) = path.canonicalize().map_or((path, leaves), |full| (full, false));
        if leaves || !root.canonicalize().is_ok_and(|root| full.starts_with(root)) {
            let name = folder.display().to_string();
            let detail = if folder.is_absolute() { String::new() } else { full.display().to_string() };
            found.push(Definition::new(DefinitionKind::Folder, name, detail, &full));
        }
    }
    for hook in &config.hooks {
        let calls: Vec<_> = hook.calls().map(|(stage, calls)| format!("{} {calls}", stage.name())).collect();
        let words = show_words(hook.run.iter().map(String::as_str));
        let detail = format!("{words}{}", spaced(&with_variables(hook.env.iter().map(String::as_str))));
        let values = file_values(hook.env.iter().map(String::as_str), environment);
        let content = json!({"calls": calls, "run": hook.run, "env": hook.env, "values": values});
        found.push(Definition::new(DefinitionKind::Hook, calls.join(", "), detail, &content));
    }
    let writable = config.fs.writable.iter();
    found.extend(writable.map(|glob| Definition::new(DefinitionKind::Writable, glob, "", glob)));
    let inherited = INHERITED_VARIABLES.iter().filter(|name| !LOCALE_VARIABLES.contains(name));
    for name in NETWORK_VARIABLES.iter().chain(inherited) {
        if let Some(value) = in_file(name) {
            found.push(Definition::new(DefinitionKind::Variable, *name, without_user(&value), &value));
        }
    }
    found
}

/// Returns where the key of a provider goes, if the project decides that: the address, or what is sent to it.
fn model_definition(provider: Provider, config: &Config, environment: &Environment) -> Option<Definition> {
    let endpoint = provider.endpoint()?;
    let is_users = |name: &str| environment.source(name) == Some(VariableSource::Process);
    let in_file = |name: &str| environment.get(name).filter(|_| !is_users(name));
    let ProviderConfig { url: own, key, key_header, headers, query, .. } = config.models.get(provider);
    let variable = endpoint.base_url_variable;
    let own = own.filter(|_| !is_users(variable));
    let written = in_file(variable).map(|url| (url, ".env")).or_else(|| own.map(|url| (url, CONFIG)));
    // The address of a declared provider is always that of the project.
    let is_declared = !Provider::ALL.contains(&provider);
    let written = written.filter(|(url, _)| is_declared || url != endpoint.base_url);
    let template = written.as_ref().map_or(endpoint.base_url, |(url, _)| url.as_str());
    let values = file_values(variables_in(template), environment);
    let sent: BTreeSet<_> = headers.values().chain(query.values()).flat_map(|text| variables_in(text)).collect();
    let key_variable = key.as_ref().and_then(|key| match key {
        KeySource::Variable(name) => Some(name.as_str()),
        KeySource::Command(_) => None,
    });
    let own_key = key_variable.filter(|name| !endpoint.key_variables.contains(name));
    // Only the user's own variables are in the address, and nothing of theirs is sent that would not be sent anyway.
    if written.is_none() && (values.is_empty() || is_users(variable)) && own_key.is_none() && sent.is_empty() {
        return None;
    }
    let keys = key_variable.map_or_else(|| endpoint.key_variables.to_vec(), |name| vec![name]);
    let passed = with_variables(keys.into_iter().chain(sent.iter().copied()));
    let (shown, _) = template.split_once('?').unwrap_or((template, ""));
    let file = written.as_ref().map_or(if values.is_empty() { CONFIG } else { ".env" }, |(_, file)| file);
    let detail = format!("{}{} ({file})", show_address(shown, environment), spaced(&passed));
    let is_plain = values.is_empty() && key.is_none() && key_header.is_none() && headers.is_empty() && query.is_empty();
    // The address alone identified a definition before there were other settings.
    if is_plain {
        return Some(Definition::new(DefinitionKind::Model, provider.name(), detail, &template));
    }
    let content = json!({
        "url": template,
        "values": values,
        "key": key_variable,
        "key-header": key_header,
        "headers": headers,
        "query": query,
    });
    Some(Definition::new(DefinitionKind::Model, provider.name(), detail, &content))
}

/// Returns the files that declare a project and those that its commands and servers run, so that tools do not write them,
/// whether they exist or not.
pub(in crate::project) fn guarded_files<'s>(
    root: &Path,
    project: &Project,
    specs: &[(String, DeclaredSpec)],
    servers: impl IntoIterator<Item = (&'s str, &'s ServerConfig, &'s Path)>,
    environment: &Environment,
) -> Vec<PathBuf> {
    let path = environment.get("PATH").unwrap_or_default();
    // A person may name a file that does not end with `.gram`.
    let mut found: Vec<_> = project.files().iter().map(|file| PathBuf::from(&file.path)).collect();
    let mut add = |words: &[String], folders: &[&Path]| found.extend(run_files(words, folders, &path));
    for (_, spec) in specs {
        let DeclaredSpec::Command(command) = spec else { continue };
        let words = literal_words(command);
        let folder = command.cwd.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
        add(&words, &[&folder, root]);
    }
    for (_, server, file) in servers {
        let words: Vec<_> = server.command.iter().chain(&server.args).cloned().collect();
        let folder = server.cwd.as_ref().map(|folder| file.parent().unwrap_or(root).join(folder));
        // Without a folder, a server runs in the current one.
        add(&words, &[folder.as_deref().unwrap_or(Path::new(".")), root]);
    }
    for case in project_cases(project) {
        for check in &case.checks {
            if let Check::Command { run, .. } = check {
                add(run, &[root]);
            }
        }
    }
    found
}

/// Returns the scripts whose names depend on arguments, such as `scripts/{name}.sh`, as patterns in a folder.
pub(in crate::project) fn guarded_patterns(root: &Path, specs: &[(String, DeclaredSpec)]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for (_, spec) in specs {
        let DeclaredSpec::Command(command) = spec else { continue };
        let folder = command.cwd.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
        for template in command.run.iter().filter(|template| template.literal().is_none()) {
            let part = |part: &Part| if let Part::Text(text) = part { text.clone() } else { "*".to_owned() };
            let pattern: String = template.parts().iter().map(part).collect();
            let words = names_in(&pattern).filter(|word| word.contains('*') && is_script(word));
            found.extend(
                words.flat_map(|word| [folder.clone(), root.to_owned()].map(|folder| (folder, word.to_owned()))),
            );
        }
    }
    found
}

/// Returns the files that hooks and the commands of keys run, so that tools do not write them, whether they exist or not.
pub(in crate::project) fn hook_files(root: &Path, config: &Config, environment: &Environment) -> Vec<PathBuf> {
    let path = environment.get("PATH").unwrap_or_default();
    let hooks = config.hooks.iter().map(|hook| &hook.run);
    let keys = config.models.key_commands().map(|(_, key)| &key.command);
    hooks.chain(keys).flat_map(|words| run_files(words, &[root], &path)).collect()
}

/// Returns the cases in the gram files of a project.
fn project_cases(project: &Project) -> Vec<Case> {
    let is_case = |kind| matches!(kind, DeclarationKind::Cases | DeclarationKind::Case);
    let declared = project.declarations().iter().filter(|declaration| is_case(declaration.kind));
    let files: BTreeSet<_> = declared.map(|declaration| declaration.file).collect();
    let files = files.into_iter().filter_map(|file| project.files().get(file));
    files.flat_map(|file| case::read(&file.path, CaseFormat::Gram, &file.tree.to_bytes()).0).collect()
}

/// Returns the files that the words of a command name: those that exist, those that look like files and do not exist yet,
/// and the program.
fn run_files(words: &[String], folders: &[&Path], path: &str) -> Vec<PathBuf> {
    let mut found = named_files(words, folders);
    let program = words.first();
    let is_path =
        |word: &&str| !word.contains("://") && !word.starts_with('-') && (word.contains('/') || is_script(word));
    let paths = words.iter().flat_map(|word| names_in(word)).filter(is_path);
    found.extend(paths.flat_map(|word| folders.iter().map(move |folder| folder.join(word))));
    if let Some(program) = program.filter(|program| !program.contains('/')) {
        let mut places = std::env::split_paths(path).map(|folder| folder.join(program));
        found.extend(places.find(|place| place.is_file()));
    }
    found
}

fn command_definition(name: &str, command: &CommandSpec, environment: &Environment, sandbox: &Sandbox) -> Definition {
    let words: Vec<_> = command.run.iter().map(Template::to_string).collect();
    let used: BTreeSet<_> = command.variables().into_iter().collect();
    let folder = command.cwd.as_ref().map(|folder| format!(" in {folder}")).unwrap_or_default();
    let shown = show_words(words.iter().map(String::as_str));
    let with = with_variables(used.iter().copied());
    let detail = format!("{shown}{folder}{}{}", spaced(&with), show_sandbox(sandbox));
    let env: BTreeMap<_, _> = command.env.iter().map(|(name, value)| (name, env_text(value))).collect();
    let content = json!({
        "run": words,
        "stdin": command.stdin.as_ref().map(Template::to_string),
        "env": env,
        "cwd": command.cwd,
        "sandbox": sandbox.to_string(),
        "values": file_values(used, environment),
    });
    Definition::new(DefinitionKind::Command, name, detail, &content)
}

/// Returns the template of a variable; `None` if it is inherited.
fn env_text(value: &EnvValue) -> Option<String> {
    match value {
        EnvValue::Inherited => None,
        EnvValue::Text(template) => Some(template.to_string()),
    }
}

/// Returns a store outside of the project.
fn store_definition(root: &Path, url: &str) -> Option<Definition> {
    let location = StoreLocation::parse(url).ok().filter(|_| url != "none")?;
    if let StoreLocation::Sqlite(path) = &location {
        let root = root.canonicalize().ok()?;
        let full = std::path::absolute(path).ok()?;
        let above = full.ancestors().find_map(|above| above.canonicalize().ok())?;
        let leaves = path.components().any(|step| step == Component::ParentDir);
        if above.starts_with(root) && !leaves {
            return None;
        }
    }
    Some(Definition::new(DefinitionKind::Store, location.to_string(), "", &url))
}

/// Returns the values that variables have in `.env`: whoever changes that file changes what a definition does.
fn file_values<'v>(names: impl IntoIterator<Item = &'v str>, environment: &Environment) -> BTreeMap<&'v str, String> {
    let in_file = |name: &&str| environment.source(name) == Some(VariableSource::File);
    names.into_iter().filter(in_file).filter_map(|name| Some((name, environment.get(name)?))).collect()
}

/// Returns the address of a server, with variables that the project sets itself filled in.
fn show_address(origin: &str, environment: &Environment) -> String {
    without_user(&expand_file_variables(origin, environment))
}

fn expand_file_variables(text: &str, environment: &Environment) -> String {
    let names: BTreeSet<_> = variables_in(text).collect();
    let values = file_values(names, environment);
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// Returns an address without the user name and password in it.
fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Returns the words of a command, quoted where that is needed to tell them apart.
fn show_words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let is_plain = |word: &str| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    let quoted =
        |word: &str| if is_plain(word) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Lists the variables that are passed on.
fn with_variables<'v>(names: impl IntoIterator<Item = &'v str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    if names.is_empty() { String::new() } else { format!("with {}", names.join(", ")) }
}

/// Returns what a process may do, if it has a sandbox.
fn show_sandbox(sandbox: &Sandbox) -> String {
    if sandbox.is_none() { String::new() } else { format!(" (sandbox: {sandbox})") }
}

fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}
