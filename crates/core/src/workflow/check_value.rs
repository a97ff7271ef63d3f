//! Whether steps get what they need: values that are there, of the right types.

use super::check::WorkflowContext;
use super::outcome::StepPossibilities;
use super::step_type::{Callee, FieldType, field_type};
use crate::declare::template::{Part, Template};
use crate::declare::workflow::{EdgeKind, EdgeSpec, InputSpec, StepKind, StepSpec, Text, WorkflowSpec};
use crate::rule;
use crate::text::nearest;
use crate::types::compatibility::{check_compatible, is_subtype};
use crate::types::signature::{Field, Presence, Records, Shape, Signature, Type};
use patter_gram::{Diagnostic, Span};
use std::collections::HashSet;

pub(super) struct ValueCheck<'c, 'p> {
    pub(super) spec: &'c WorkflowSpec<'p>,
    pub(super) context: &'c WorkflowContext<'c>,
    pub(super) outputs: &'c [Option<Type>],
    pub(super) possible: &'c [StepPossibilities],
}

/// The values that the placeholders of a text can stand for.
struct Values {
    /// The steps whose values are there.
    available: HashSet<usize>,
    /// The type of the item, in a step for each of them.
    item: Option<Option<Type>>,
}

impl ValueCheck<'_, '_> {
    pub(super) fn findings(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (index, step) in self.spec.steps.iter().enumerate() {
            if let Err(diagnostic) = self.step(index, step) {
                found.push(*diagnostic);
            }
        }
        found
    }

    fn step(&self, index: usize, step: &StepSpec<'_>) -> Result<(), Box<Diagnostic>> {
        let Some(possible) = self.possible.get(index) else { return Ok(()) };
        let mut values = Values { available: possible.available.clone().unwrap_or_default(), item: None };
        match &step.kind {
            StepKind::Human { question, .. } => drop(self.text(question, &values)?),
            StepKind::Give { value } => drop(self.text(value, &values)?),
            StepKind::Each { of, .. } => values.item = Some(self.item_type(step, of, &values)?),
            StepKind::Call { .. } => {}
        }
        if let Some(callee) = step.callee() {
            let callee = (self.context.callee)(callee);
            self.inputs(step, callee.as_ref(), &values, possible)?;
        }
        let is_end =
            !self.spec.edges_from(index).any(|edge| !matches!(edge.kind, EdgeKind::Failed | EdgeKind::Exhausted));
        if is_end { self.result(index, step, &values) } else { Ok(()) }
    }

    /// Checks what a step is called with, along each of the edges that lead to it.
    fn inputs(
        &self,
        step: &StepSpec<'_>,
        callee: Option<&Callee>,
        values: &Values,
        possible: &StepPossibilities,
    ) -> Result<(), Box<Diagnostic>> {
        if let Some(input) = &step.input {
            self.input(step, input, callee, values)?;
        }
        let ways: Vec<&Vec<usize>> = possible.edges.iter().chain(&possible.back).collect();
        for way in ways {
            let edges: Vec<_> = way.iter().filter_map(|edge| self.spec.edges.get(*edge)).collect();
            if let Some((edge, input)) = edges.iter().find_map(|edge| Some((*edge, edge.input.as_ref()?))) {
                if let [_, _, ..] = edges.as_slice() {
                    let message = format!("`{}` can be reached along several edges at once", step.name);
                    let found = rule::UNCLEAR_INPUT.at(edge.span, message);
                    return Err(Box::new(found.with_hint("write what it is called with at the step, not at the edge")));
                }
                let mut available: HashSet<_> =
                    self.possible.get(edge.from).and_then(|before| before.available.clone()).unwrap_or_default();
                available.extend(&values.available);
                available.extend((edge.kind != EdgeKind::Failed).then_some(edge.from));
                self.input(step, input, callee, &Values { available, item: values.item.clone() })?;
                continue;
            }
            if step.input.is_some() {
                continue;
            }
            if let Some(item) = &values.item {
                self.accepts(step, step.span(), callee, item.as_ref(), "an item")?;
                continue;
            }
            match edges.as_slice() {
                [] => {
                    let takes = self.context.takes.clone().unwrap_or_else(|| Type::new(Shape::Text));
                    self.accepts(step, step.span(), callee, Some(&takes), "the workflow")?;
                }
                [edge] => self.accepts(step, edge.span, callee, self.passed(edge).as_ref(), &self.source(edge))?,
                several => {
                    let names: Vec<_> = several.iter().map(|edge| format!("`{}`", self.name(edge.from))).collect();
                    let message = format!("`{}` receives the values of {}", step.name, names.join(" and "));
                    let hint = format!(
                        "say what to do with them: `({} {{ ask: \"… {{{}}} … {{{}}}\" }})`",
                        step.name,
                        self.name(several.first().map_or(0, |edge| edge.from)),
                        self.name(several.last().map_or(0, |edge| edge.from)),
                    );
                    return Err(Box::new(rule::UNCLEAR_INPUT.at(step.span(), message).with_hint(hint)));
                }
            }
        }
        Ok(())
    }

    fn name(&self, step: usize) -> &str {
        self.spec.steps.get(step).map(|step| step.name.as_str()).unwrap_or_default()
    }

    fn source(&self, edge: &EdgeSpec) -> String {
        format!("`{}`", self.name(edge.from))
    }

    /// Returns the type of the value that an edge passes on.
    fn passed(&self, edge: &EdgeSpec) -> Option<Type> {
        match edge.kind {
            EdgeKind::Failed => Some(Type::new(Shape::Text)),
            EdgeKind::Handoff => Some(self.context.takes.clone().unwrap_or_else(|| Type::new(Shape::Text))),
            _ => self.outputs.get(edge.from).cloned().flatten(),
        }
    }

    /// Checks that a step accepts a value that it is passed as it is.
    fn accepts(
        &self,
        step: &StepSpec<'_>,
        span: Span,
        callee: Option<&Callee>,
        value: Option<&Type>,
        source: &str,
    ) -> Result<(), Box<Diagnostic>> {
        let (Some(callee), Some(value)) = (callee, value) else { return Ok(()) };
        let records = self.context.records;
        let name = &step.name;
        let wrong =
            |message: String, hint: String| Err(Box::new(rule::WRONG_EDGE_TYPE.at(span, message).with_hint(hint)));
        match callee {
            Callee::Agent { takes: None, .. } => Ok(()),
            Callee::Agent { takes: Some(takes), .. } if is_subtype((value, records), (takes, records)) => Ok(()),
            Callee::Agent { takes: Some(takes), .. } => {
                let hint = format!("pass it what it takes: `({name} {{ with: {{ … }} }})`");
                wrong(format!("{source} passes {value}, but `{name}` takes {takes}"), hint)
            }
            Callee::Tool { signature } => {
                let required: Vec<_> = required(&signature.parameters);
                let one = match (required.as_slice(), signature.parameters.as_slice()) {
                    ([one], _) => Some(*one),
                    ([], [one]) => Some(one),
                    _ => None,
                };
                if one.is_some_and(|one| is_subtype((value, records), (&one.ty, records)))
                    || signature.parameters.is_empty()
                    || matches!(value.shape, Shape::Any | Shape::Schema(_))
                {
                    return Ok(());
                }
                if let Some(fields) = fields_of(value, records) {
                    let given = Signature { parameters: fields, returns: Type::new(Shape::Any) };
                    let expected = Signature { returns: Type::new(Shape::Any), ..signature.clone() };
                    if check_compatible((&given, records), (&expected, records)).is_ok() {
                        return Ok(());
                    }
                }
                let names: Vec<_> = signature.parameters.iter().map(|field| field.name.as_str()).collect();
                let accepted: Vec<_> =
                    signature.parameters.iter().map(|field| format!("({}::{})", field.name, field.ty)).collect();
                let message = format!("{source} passes {value}, but `{name}` takes {}", accepted.join("==>"));
                let fields: Vec<_> = names.iter().map(|name| format!("{name}: \"{{…}}\"")).collect();
                wrong(message, format!("name the arguments: `({name} {{ with: {{ {} }} }})`", fields.join(", ")))
            }
        }
    }

    /// Checks what a step says that it is called with.
    fn input(
        &self,
        step: &StepSpec<'_>,
        input: &InputSpec,
        callee: Option<&Callee>,
        values: &Values,
    ) -> Result<(), Box<Diagnostic>> {
        let types: Vec<_> = input.texts().into_iter().map(|text| self.text(text, values)).collect::<Result<_, _>>()?;
        let Some(callee) = callee else { return Ok(()) };
        let name = &step.name;
        let wrong = |span: Span, message: String| Box::new(rule::WRONG_EDGE_TYPE.at(span, message));
        let text = Type::new(Shape::Text);
        let records = self.context.records;
        let parameters = match callee {
            Callee::Agent { takes: None, .. } => None,
            Callee::Agent { takes: Some(takes), .. } => match fields_of(takes, records) {
                Some(fields) => Some(fields),
                None if matches!(input, InputSpec::Ask(_)) => {
                    return match is_subtype((&text, records), (takes, records)) {
                        true => Ok(()),
                        false => {
                            let span = input.texts().first().map_or(step.span(), |text| text.span);
                            Err(wrong(span, format!("`ask` is a text, but `{name}` takes {takes}")))
                        }
                    };
                }
                None => return Ok(()),
            },
            Callee::Tool { signature } => Some(signature.parameters.clone()),
        };
        match (input, parameters) {
            (InputSpec::Ask(_), None) => Ok(()),
            (InputSpec::Ask(text), Some(_)) => {
                let found = wrong(text.span, format!("`ask` is a text, but `{name}` takes several values"));
                Err(Box::new(found.with_hint("name them with `with: { … }`")))
            }
            (InputSpec::With { span, .. }, None) => {
                let found = wrong(*span, format!("`{name}` takes a text"));
                Err(Box::new(found.with_hint("write it with `ask`")))
            }
            (InputSpec::With { fields, span }, Some(parameters)) => {
                for ((key, text), ty) in fields.iter().zip(types) {
                    let Some(parameter) = parameters.iter().find(|parameter| parameter.name == *key) else {
                        let names = parameters.iter().map(|parameter| parameter.name.as_str());
                        let found = wrong(text.span, format!("`{name}` takes no `{key}`"));
                        return Err(Box::new(match nearest(key, names.clone()) {
                            Some(near) => found.with_hint(format!("did you mean `{near}`?")),
                            None => found.with_hint(format!("it takes {}", names.collect::<Vec<_>>().join(", "))),
                        }));
                    };
                    if let Some(ty) = ty.filter(|ty| !is_subtype((ty, records), (&parameter.ty, records))) {
                        let message = format!("`{key}` of `{name}` is {}, but this is {ty}", parameter.ty);
                        return Err(wrong(text.span, message));
                    }
                }
                match required(&parameters).into_iter().find(|parameter| !fields.contains_key(&parameter.name)) {
                    Some(missing) => Err(wrong(*span, format!("`{name}` needs `{}`", missing.name))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Returns the type of the items of the list that a step is for.
    fn item_type(&self, step: &StepSpec<'_>, of: &Text, values: &Values) -> Result<Option<Type>, Box<Diagnostic>> {
        match self.text(of, values)? {
            None => Ok(None),
            Some(Type { shape: Shape::Array(item), .. }) => Ok(Some(*item)),
            Some(Type { shape: Shape::Any | Shape::Schema(_), .. }) => Ok(None),
            Some(other) => {
                let message = format!("`of` of `{}` is {other}, not a list", step.name);
                let hint = "write one placeholder that is a list, such as `of: \"{takes.documents}\"`";
                Err(Box::new(rule::WRONG_EDGE_TYPE.at(of.span, message).with_hint(hint)))
            }
        }
    }

    /// Checks the type of a step that ends the workflow.
    fn result(&self, index: usize, step: &StepSpec<'_>, values: &Values) -> Result<(), Box<Diagnostic>> {
        let Some(returns) = &self.context.returns else { return Ok(()) };
        let (ty, span) = match &step.kind {
            StepKind::Give { value } => (self.text(value, values)?, value.span),
            _ => (self.outputs.get(index).cloned().flatten(), step.span()),
        };
        let records = self.context.records;
        match ty.filter(|ty| !is_subtype((ty, records), (returns, records))) {
            None => Ok(()),
            Some(ty) => {
                let message = format!("the workflow returns {returns}, but `{}` returns {ty}", step.name);
                let found = rule::WRONG_RESULT_TYPE.at(span, message);
                Err(Box::new(found.with_hint("change `returns`, or end with a step of that type")))
            }
        }
    }

    /// Checks the placeholders of a text, and returns its type, if it is known.
    fn text(&self, text: &Text, values: &Values) -> Result<Option<Type>, Box<Diagnostic>> {
        let template = parse_template(text)?;
        for part in template.parts() {
            if let Part::Parameter(path) = part {
                self.placeholder(path, text.span, values)?;
            }
        }
        match template.sole_parameter() {
            Some(path) => self.placeholder(path, text.span, values),
            None => Ok(Some(Type::new(Shape::Text))),
        }
    }

    fn placeholder(&self, path: &str, span: Span, values: &Values) -> Result<Option<Type>, Box<Diagnostic>> {
        let mut names = path.split('.');
        let first = names.next().unwrap_or_default();
        let ty = match (first, &values.item) {
            ("takes", _) => Some(self.context.takes.clone().unwrap_or_else(|| Type::new(Shape::Text))),
            ("item", Some(item)) => item.clone(),
            _ => {
                let Some(step) = self.spec.steps.iter().position(|step| step.name == first) else {
                    return Err(Box::new(self.no_such_step(first, path, span)));
                };
                if !values.available.contains(&step) {
                    let message =
                        format!("`{{{path}}}` may be missing: `{first}` has not always returned a value here");
                    let found = rule::MISSING_VALUE.at(span, message);
                    let hint = "use the value of a step that every way here passes, or write the text at an edge";
                    return Err(Box::new(found.with_hint(hint)));
                }
                self.outputs.get(step).cloned().flatten()
            }
        };
        let Some(ty) = ty else { return Ok(None) };
        placeholder_type(path, first, &ty, names, span, self.context.records)
    }

    fn no_such_step(&self, first: &str, path: &str, span: Span) -> Diagnostic {
        let names = self.spec.steps.iter().map(|step| step.name.as_str()).chain(["takes"]);
        let found = rule::UNKNOWN_VALUE.at(span, format!("`{{{path}}}` is not the value of a step"));
        found.with_hint(match nearest(first, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write the name of a step, or `takes` for the input of the workflow".to_owned(),
        })
    }
}

fn parse_template(text: &Text) -> Result<Template, Box<Diagnostic>> {
    let template = Template::parse(&text.text)
        .map_err(|error| Box::new(rule::BAD_TEMPLATE.at(text.span, error.to_string()).with_hint(error.hint())))?;
    let variable = template.variables().next().map(str::to_owned);
    match variable {
        None => Ok(template),
        Some(name) => {
            let found = rule::UNKNOWN_VALUE.at(text.span, format!("`${{{name}}}` is not available here"));
            Err(Box::new(found.with_hint("environment variables are for tools; models must not see them")))
        }
    }
}

/// Returns the type of a placeholder, or what is wrong with the path into the type of its first name.
fn placeholder_type<'n>(
    path: &str,
    first: &str,
    ty: &Type,
    names: impl IntoIterator<Item = &'n str>,
    span: Span,
    records: &Records,
) -> Result<Option<Type>, Box<Diagnostic>> {
    match field_type(ty, names, records) {
        FieldType::Known(ty) => Ok(Some(ty)),
        FieldType::Any => Ok(None),
        FieldType::Missing { field } => {
            let found = rule::MISSING_VALUE.at(span, format!("`{{{path}}}` may be missing: `{field}` is optional"));
            Err(Box::new(found.with_hint("make the field required, or give it a default")))
        }
        FieldType::Unknown { field, known } => {
            let what = if first == "takes" { "the input".to_owned() } else { format!("`{first}`") };
            let found = rule::UNKNOWN_VALUE.at(span, format!("{what} has no field `{field}`"));
            Err(Box::new(found.with_hint(match nearest(&field, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => format!("it is {ty}"),
                None => format!("its fields are {}", known.join(", ")),
            })))
        }
    }
}

/// Returns what is wrong with the placeholders of an instruction, which stand for fields of the input of its agent.
pub fn placeholder_findings(text: &str, span: Span, takes: &Type, records: &Records) -> Vec<Diagnostic> {
    let text = Text { text: text.to_owned(), span };
    let template = match parse_template(&text) {
        Ok(template) => template,
        Err(diagnostic) => return vec![*diagnostic],
    };
    let found = template.parameters().filter_map(|path| {
        let mut names = path.split('.').peekable();
        if names.peek() == Some(&"takes") {
            names.next();
        }
        placeholder_type(path, "takes", takes, names, span, records).err().map(|found| *found)
    });
    found.collect()
}

fn fields_of(ty: &Type, records: &Records) -> Option<Vec<Field>> {
    match &ty.shape {
        Shape::Object(fields) => Some(fields.clone()),
        Shape::Record(name) => records.get(name).map(|record| record.fields.clone()),
        _ => None,
    }
}

fn required(fields: &[Field]) -> Vec<&Field> {
    fields.iter().filter(|field| field.presence == Presence::Required).collect()
}
