//! Extraction of the arguments of a call from a message.
//!
//! Labelled values come first, then values with a recognizable format (an address, a date, one of the allowed values), then
//! people and places, and finally numbers and texts in order. Nothing is invented: optional parameters that are not found
//! are left out, and the model asks for required ones.

use super::find;
use super::label::find_labelled;
use super::person;
use super::schema::{Parameter, ParameterKind, kind, parameters, parse_value, resolve};
use super::word::{Word, words};
use serde_json::{Map, Value as Json};

/// The maximum nesting depth of objects.
const MAX_DEPTH: usize = 4;

/// The source of the arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArgumentSource<'s> {
    /// The message, or the part of it that is about this call.
    pub(super) text: &'s str,
    pub(super) words: &'s [Word<'s>],
    /// The name of the user, if known.
    pub(super) speaker: Option<&'s str>,
    /// The person that the call is about, if there is one call per person.
    pub(super) person: Option<&'s str>,
    /// The answers to questions about parameters.
    pub(super) answers: &'s [(String, &'s str)],
}

/// Extracts the arguments of a tool. The error is the first required parameter that was not found.
pub(super) fn fill(schema: &Json, source: ArgumentSource<'_>) -> Result<Map<String, Json>, String> {
    Filler { root: schema, source, used: vec![false; source.words.len()], depth: 0 }.fill_object(schema)
}

/// Returns whether a parameter is about a person.
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

/// Returns whether a quoted text can be the value of a parameter. Other formats are recognized by themselves.
fn may_be_quoted(parameter: &Parameter<'_>) -> bool {
    find::ValueFormat::from_parameter(parameter).is_none_or(|format| format == find::ValueFormat::Path)
}

struct Filler<'s> {
    root: &'s Json,
    source: ArgumentSource<'s>,
    /// The words that have been used.
    used: Vec<bool>,
    depth: usize,
}

impl<'s> Filler<'s> {
    fn fill_object(&mut self, schema: &'s Json) -> Result<Map<String, Json>, String> {
        let parameters = parameters(self.root, schema);
        let mut found: Vec<Option<Json>> = parameters.iter().map(|parameter| self.by_answer(parameter)).collect();
        self.apply(&parameters, &mut found, |_| true, Self::by_name);
        self.apply(&parameters, &mut found, |_| true, Self::by_format);
        self.apply(&parameters, &mut found, |_| true, Self::by_person_or_place);
        self.apply(&parameters, &mut found, |parameter| parameter.is_required, Self::by_order);
        self.apply(&parameters, &mut found, |parameter| !parameter.is_required, Self::by_order);
        self.apply(&parameters, &mut found, |parameter| parameter.is_required, Self::by_rest);
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

    fn apply(
        &mut self,
        parameters: &[Parameter<'s>],
        found: &mut [Option<Json>],
        is_eligible: impl Fn(&Parameter<'s>) -> bool,
        find: impl Fn(&mut Self, &Parameter<'s>) -> Option<Json>,
    ) {
        for (parameter, value) in parameters.iter().zip(found) {
            if value.is_none() && is_eligible(parameter) {
                *value = find(self, parameter);
            }
        }
    }

    /// Takes the answer to a question about the parameter, in whatever form it is written.
    fn by_answer(&self, parameter: &Parameter<'s>) -> Option<Json> {
        let (_, answer) = self.source.answers.iter().rfind(|(name, _)| name == parameter.name)?;
        let words = words(answer);
        let source = ArgumentSource { text: answer, words: &words, speaker: None, person: None, answers: &[] };
        let mut filler = Filler { root: self.root, source, used: vec![false; words.len()], depth: self.depth };
        let whole = answer.trim().trim_end_matches(['.', '!', '?']);
        let introduced = || is_person(parameter).then(|| person::introduced(&words)).flatten().map(Json::from);
        introduced()
            .or_else(|| filler.by_name(parameter))
            .or_else(|| filler.by_format(parameter))
            .or_else(|| {
                words.iter().find(|word| word.is_quoted).and_then(|word| parse_value(parameter.schema, word.text))
            })
            .or_else(|| parse_value(parameter.schema, whole))
            .or_else(|| filler.by_order(parameter))
    }

    /// Finds a labelled value: `amount 20`, `city: Paris`, `orderId=AB1`.
    fn by_name(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let (value, taken) = find_labelled(parameter, self.source.words, &self.used)?;
        self.take(taken);
        Some(value)
    }

    /// Finds a value with a recognizable format: addresses, dates, allowed values, matches of a pattern.
    fn by_format(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let schema = parameter.schema;
        let free = |used: &[bool], at: usize| !used.get(at).copied().unwrap_or(true);
        match kind(schema) {
            ParameterKind::Text | ParameterKind::Any => {
                if parameter.is_required && find::is_task(parameter) {
                    return parse_value(schema, self.source.text.trim());
                }
                if find::is_expression(parameter) {
                    return find::find_expression(self.source.text).map(Json::from);
                }
                if schema.get("enum").is_some() {
                    return find::enum_values(schema, self.source.words).into_iter().next();
                }
                let format = find::ValueFormat::from_parameter(parameter);
                if format.is_none() && schema.get("pattern").is_none() {
                    return None;
                }
                let words = self.source.words.iter().enumerate();
                let mut matching = words.filter(|(at, word)| {
                    let has_format = format.map_or(word.looks_like_a_value(), |format| format.matches(word.text));
                    free(&self.used, *at) && has_format && parse_value(schema, word.text).is_some()
                });
                let (at, word) = matching.next()?;
                let value = parse_value(schema, word.text);
                self.take(at..at + 1);
                value
            }
            ParameterKind::Boolean => find::mentioned_bool(parameter, self.source.words).map(Json::from),
            ParameterKind::Array => self.fill_list(schema),
            ParameterKind::Object => self.fill_record(schema),
            ParameterKind::Integer | ParameterKind::Number => None,
        }
    }

    fn by_person_or_place(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        if kind(parameter.schema) != ParameterKind::Text || parameter.schema.get("enum").is_some() {
            return None;
        }
        let words = self.source.words;
        let names = if is_person(parameter) {
            match self.source.person {
                Some(person) => vec![person.to_owned()],
                None => {
                    let mut people = person::addressed(words);
                    people.extend(person::introduced(words));
                    // Defaults to the user.
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
            let positions: Vec<usize> =
                words.iter().enumerate().filter(|(_, word)| is_part(word)).map(|(at, _)| at).collect();
            let value = parse_value(parameter.schema, &name)
                .filter(|_| positions.is_empty() || !positions.iter().all(taken))?;
            positions.into_iter().for_each(|at| self.take(at..at + 1));
            Some(value)
        })
    }

    /// Finds the next unused number or quoted text.
    fn by_order(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        let schema = parameter.schema;
        let is_number = match kind(schema) {
            ParameterKind::Integer | ParameterKind::Number => true,
            ParameterKind::Text | ParameterKind::Any if schema.get("enum").is_none() && may_be_quoted(parameter) => {
                false
            }
            _ => return None,
        };
        let words = self.source.words.iter().enumerate();
        let mut free = words.filter(|(at, _)| !self.used.get(*at).copied().unwrap_or(true));
        let (at, value) = free.find_map(|(at, word)| {
            let value = if word.is_quoted == is_number { None } else { parse_value(schema, word.text) };
            Some((at, value?))
        })?;
        self.take(at..at + 1);
        Some(value)
    }

    /// Finds a free text, such as a search query.
    fn by_rest(&mut self, parameter: &Parameter<'s>) -> Option<Json> {
        if !matches!(kind(parameter.schema), ParameterKind::Text | ParameterKind::Any) {
            return None;
        }
        let text = find::free_text(parameter, self.source.text, self.source.words)?;
        parse_value(parameter.schema, &text)
    }

    fn fill_list(&mut self, schema: &'s Json) -> Option<Json> {
        if let Some(list) = find::find_json(self.source.text, '[') {
            return Some(list);
        }
        let items = resolve(self.root, schema.get("items").unwrap_or(&Json::Null));
        if items.get("enum").is_some() {
            let allowed = find::enum_values(items, self.source.words);
            return (!allowed.is_empty()).then_some(Json::Array(allowed));
        }
        let is_numeric = matches!(kind(items), ParameterKind::Integer | ParameterKind::Number);
        let mut list = Vec::new();
        for (at, word) in self.source.words.iter().enumerate() {
            let is_free = !self.used.get(at).copied().unwrap_or(true);
            let value = parse_value(items, word.text).filter(|_| is_free && is_numeric != word.is_quoted);
            if let Some(value) = value {
                self.take(at..at + 1);
                list.push(value);
            }
        }
        if list.is_empty() && kind(items) == ParameterKind::Text {
            list.extend(find::enumeration(self.source.text).into_iter().filter_map(|text| parse_value(items, text)));
        }
        (!list.is_empty()).then_some(Json::Array(list))
    }

    fn fill_record(&mut self, schema: &'s Json) -> Option<Json> {
        if let Some(object) = find::find_json(self.source.text, '{') {
            return Some(object);
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let fields = self.fill_object(schema);
        self.depth -= 1;
        fields.ok().filter(|fields| !fields.is_empty()).map(Json::Object)
    }

    fn take(&mut self, range: std::ops::Range<usize>) {
        for used in self.used.get_mut(range).unwrap_or_default() {
            *used = true;
        }
    }
}
