//! The arguments of a call, from the words of a message.
//!
//! What is said about a parameter by name comes first, then what can only be meant for one (an address, a date, one of
//! the values that are allowed), then people and places, and at last numbers and texts in their order. Nothing is made up:
//! what is not found is left out, and a required parameter that is not found is asked for.

use super::find;
use super::label::labelled;
use super::person;
use super::schema::{Kind, Parameter, kind, parameters, resolved, value_of};
use super::word::{Word, words};
use serde_json::{Map, Value as Json};

/// How deep objects are filled.
const DEEPEST: usize = 4;

/// What the arguments of a call are taken from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'s> {
    /// The message, or the part of it that is about this call.
    pub(super) text: &'s str,
    pub(super) words: &'s [Word<'s>],
    /// Who speaks, if they said so.
    pub(super) speaker: Option<&'s str>,
    /// Who the call is about, where there is one call for each.
    pub(super) person: Option<&'s str>,
    /// What was said when a parameter was asked for.
    pub(super) given: &'s [(String, &'s str)],
}

/// Fills in the arguments of a tool; or tells the first required parameter that was not found.
pub(super) fn fill(schema: &Json, source: Source<'_>) -> Result<Map<String, Json>, String> {
    Filler { root: schema, source, used: vec![false; source.words.len()], depth: 0 }.object(schema)
}

/// Tells whether a parameter is about a person.
pub(super) fn is_person(parameter: &Parameter<'_>) -> bool {
    const PEOPLE: [&str; 9] = ["person", "who", "recipient", "guest", "friend", "visitor", "people", "first", "full"];
    let is_about = |word: &String| PEOPLE.contains(&word.as_str());
    let is_name = parameter.words.iter().any(|word| word == "nam");
    let others = parameter.words.iter().filter(|word| *word != "nam");
    match is_name {
        true => others.clone().count() == 0 || others.clone().all(is_about),
        false => others.clone().any(is_about),
    }
}

fn is_place(parameter: &Parameter<'_>) -> bool {
    const PLACES: [&str; 10] =
        ["city", "town", "plac", "location", "country", "region", "wher", "destination", "origin", "stat"];
    parameter.words.iter().any(|word| PLACES.contains(&word.as_str()))
}

/// A text in quotes may be anything but what has a form of its own.
fn may_be_quoted(parameter: &Parameter<'_>) -> bool {
    find::Form::of(parameter).is_none_or(|form| form == find::Form::Path)
}

struct Filler<'s> {
    root: &'s Json,
    source: Source<'s>,
    /// Which words were taken.
    used: Vec<bool>,
    depth: usize,
}

impl<'s> Filler<'s> {
    fn object(&mut self, schema: &'s Json) -> Result<Map<String, Json>, String> {
        let parameters = parameters(self.root, schema);
        let mut found: Vec<Option<Json>> = parameters.iter().map(|parameter| self.given(parameter)).collect();
        self.pass(&parameters, &mut found, |_| true, Self::by_name);
        self.pass(&parameters, &mut found, |_| true, Self::by_form);
        self.pass(&parameters, &mut found, |_| true, Self::by_person_or_place);
        self.pass(&parameters, &mut found, |parameter| parameter.is_required, Self::by_order);
        self.pass(&parameters, &mut found, |parameter| !parameter.is_required, Self::by_order);
        self.pass(&parameters, &mut found, |parameter| parameter.is_required, Self::by_rest);
        let mut arguments = Map::new();
        for (parameter, value) in parameters.iter().zip(found) {
            match value {
                Some(value) => {
                    arguments.insert(parameter.name.to_owned(), value);
                }
                None if parameter.is_required => return Err(parameter.name.to_owned()),
                None => {}
            }
        }
        Ok(arguments)
    }

    fn pass(
        &mut self,
        parameters: &[Parameter<'s>],
        found: &mut [Option<Json>],
        is_meant: impl Fn(&Parameter<'s>) -> bool,
        find: impl Fn(&mut Self, &Parameter<'s>) -> Option<Json>,
    ) {
        for (parameter, value) in parameters.iter().zip(found) {
            if value.is_none() && is_meant(parameter) {
                *value = find(self, parameter);
            }
        }
    }

    /// What was said when it was asked for is the value, however it is written.
    fn given(&self, parameter: &Parameter<'s>) -> Option<Json> {
        let (_, answer) = self.source.given.iter().rfind(|(name, _)| name == parameter.name)?;
        let words = words(answer);
        let source = Source { text: answer, words: &words, speaker: None, person: None, given: &[] };
        let mut filler = Filler { root: self.root, source, used: vec![false; words.len()], depth: self.depth };
        let whole = answer.trim().trim_end_matches(['.', '!', '?']);
        let introduced = || is_person(parameter).then(|| person::introduced(&words)).flatten().map(Json::from);
        introduced()
            .or_else(|| filler.by_name(parameter))
            .or_else(|| filler.by_form(parameter))
            .or_else(|| words.iter().find(|word| word.is_quoted).and_then(|word| value_of(parameter.schema, word.text)))
            .or_else(|| value_of(parameter.schema, whole))
            .or_else(|| filler.by_order(parameter))
    }

    /// `amount 20`, `city: Paris`, `orderId=AB1`.
    fn by_name(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let (value, taken) = labelled(parameter, self.source.words, &self.used)?;
        self.take(taken);
        Some(value)
    }

    /// What can be meant for few parameters: addresses, dates, allowed values, what a pattern matches.
    fn by_form(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let schema = parameter.schema;
        let free = |used: &[bool], at: usize| !used.get(at).copied().unwrap_or(true);
        match kind(schema) {
            Kind::Text | Kind::Any => {
                if parameter.is_required && find::is_task(parameter) {
                    return value_of(schema, self.source.text.trim());
                }
                if find::is_expression(parameter) {
                    return find::expression(self.source.text).map(Json::from);
                }
                if schema.get("enum").is_some() {
                    return find::allowed(schema, self.source.words).into_iter().next();
                }
                let form = find::Form::of(parameter);
                if form.is_none() && schema.get("pattern").is_none() {
                    return None;
                }
                let words = self.source.words.iter().enumerate();
                let mut fitting = words.filter(|(at, word)| {
                    let has_form = form.map_or(word.looks_like_a_value(), |form| form.is(word.text));
                    free(&self.used, *at) && has_form && value_of(schema, word.text).is_some()
                });
                let (at, word) = fitting.next()?;
                let value = value_of(schema, word.text);
                self.take(at..at + 1);
                value
            }
            Kind::Boolean => find::mentioned(parameter, self.source.words).map(Json::from),
            Kind::Array => self.list(schema),
            Kind::Object => self.record(schema),
            Kind::Integer | Kind::Number => None,
        }
    }

    fn by_person_or_place(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        if kind(parameter.schema) != Kind::Text || parameter.schema.get("enum").is_some() {
            return None;
        }
        let words = self.source.words;
        let names = if is_person(parameter) {
            match self.source.person {
                Some(person) => vec![person.to_owned()],
                None => {
                    let mut people = person::addressed(words);
                    people.extend(person::introduced(words));
                    // Who speaks is meant where nobody else is.
                    if people.is_empty() {
                        people.extend(self.source.speaker.map(str::to_owned));
                    }
                    people
                }
            }
        } else if is_place(parameter) {
            person::places(words)
        } else {
            return None;
        };
        names.into_iter().find_map(|name| {
            let parts: Vec<&str> = name.split_whitespace().collect();
            let is_part = |word: &Word<'_>| parts.contains(&word.text);
            let taken = |at: &usize| self.used.get(*at).copied().unwrap_or(false);
            let places: Vec<usize> =
                words.iter().enumerate().filter(|(_, word)| is_part(word)).map(|(at, _)| at).collect();
            let value = value_of(parameter.schema, &name).filter(|_| places.is_empty() || !places.iter().all(taken))?;
            places.into_iter().for_each(|at| self.take(at..at + 1));
            Some(value)
        })
    }

    /// The next number or quoted text that nothing else took.
    fn by_order(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let schema = parameter.schema;
        let is_number = match kind(schema) {
            Kind::Integer | Kind::Number => true,
            Kind::Text | Kind::Any if schema.get("enum").is_none() && may_be_quoted(parameter) => false,
            _ => return None,
        };
        let words = self.source.words.iter().enumerate();
        let mut free = words.filter(|(at, _)| !self.used.get(*at).copied().unwrap_or(true));
        let (at, value) = free.find_map(|(at, word)| {
            let value = if word.is_quoted == is_number { None } else { value_of(schema, word.text) };
            Some((at, value?))
        })?;
        self.take(at..at + 1);
        Some(value)
    }

    /// Words of the message that are no name and no number: what is looked for, or all that was said.
    fn by_rest(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        if !matches!(kind(parameter.schema), Kind::Text | Kind::Any) {
            return None;
        }
        let text = find::rest(parameter, self.source.text, self.source.words)?;
        value_of(parameter.schema, &text)
    }

    fn list(&mut self, schema: &'s Json) -> Option<Json> {
        if let Some(list) = find::json(self.source.text, '[') {
            return Some(list);
        }
        let items = resolved(self.root, schema.get("items").unwrap_or(&Json::Null));
        if items.get("enum").is_some() {
            let allowed = find::allowed(items, self.source.words);
            return (!allowed.is_empty()).then_some(Json::Array(allowed));
        }
        let wants_numbers = matches!(kind(items), Kind::Integer | Kind::Number);
        let mut list = Vec::new();
        for (at, word) in self.source.words.iter().enumerate() {
            let is_free = !self.used.get(at).copied().unwrap_or(true);
            let value = value_of(items, word.text).filter(|_| is_free && wants_numbers != word.is_quoted);
            if let Some(value) = value {
                self.take(at..at + 1);
                list.push(value);
            }
        }
        if list.is_empty() && kind(items) == Kind::Text {
            list.extend(find::enumeration(self.source.text).into_iter().filter_map(|text| value_of(items, text)));
        }
        (!list.is_empty()).then_some(Json::Array(list))
    }

    fn record(&mut self, schema: &'s Json) -> Option<Json> {
        if let Some(object) = find::json(self.source.text, '{') {
            return Some(object);
        }
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let fields = self.object(schema);
        self.depth -= 1;
        fields.ok().filter(|fields| !fields.is_empty()).map(Json::Object)
    }

    fn take(&mut self, places: std::ops::Range<usize>) {
        for used in self.used.get_mut(places).unwrap_or_default() {
            *used = true;
        }
    }
}
