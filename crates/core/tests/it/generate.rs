//! Strategies that generate types, signatures and values.

use patter_core::types::signature::{Bounds, Facets, Field, Presence, Record, Records, Shape, Signature, Type};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Number, Value as Json, json};

/// Returns a configuration with a number of cases that writes no regression files.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns the record types that generated types may refer to; both are recursive.
pub(crate) fn records() -> Records {
    let optional = |name: &str, ty: Type| Field { name: name.into(), ty, presence: Presence::Optional };
    let required = |name: &str, ty: Type| Field { name: name.into(), ty, presence: Presence::Required };
    let record = |name: &str| Type::new(Shape::Record(name.into()));
    let node = vec![
        required("value", Type::new(Shape::Integer)),
        optional("children", Type::new(Shape::Array(Box::new(record("Node"))))),
    ];
    let tree = vec![optional("left", record("a/tree ~")), optional("node", record("Node"))];
    let mut records = Records::default();
    records.insert("Node", Record { description: Some("a node".into()), fields: node });
    records.insert("a/tree ~", Record { description: None, fields: tree });
    records
}

/// Returns the record types that a signature refers to, in order of appearance.
pub(crate) fn used(signature: &Signature) -> Records {
    fn visit(ty: &Type, used: &mut Records) {
        match &ty.shape {
            Shape::Array(item) => visit(item, used),
            Shape::Object(fields) => fields.iter().for_each(|field| visit(&field.ty, used)),
            Shape::Record(name) if used.get(name).is_none() => {
                let record = records().get(name).unwrap().clone();
                used.insert(name.clone(), record.clone());
                record.fields.iter().for_each(|field| visit(&field.ty, used));
            }
            _ => {}
        }
    }
    let mut used = Records::default();
    signature.parameters.iter().for_each(|parameter| visit(&parameter.ty, &mut used));
    visit(&signature.returns, &mut used);
    used
}

/// Returns schemas that no other type can express.
fn schemas() -> Vec<Json> {
    vec![
        json!({ "type": ["string", "integer"] }),
        json!({ "not": { "type": "string" } }),
        json!({ "type": "number", "exclusiveMinimum": 3 }),
        json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false }),
        json!({
            "$ref": "#/$defs/Expr",
            "$defs": { "Expr": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#/$defs/Expr" } }] } }
        }),
        json!({
            "anyOf": [{ "$ref": "#/$defs/Words" }, { "type": "boolean" }],
            "$defs": { "Words": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/Words" }] } } }
        }),
        json!(false),
    ]
}

/// Generates names, most of them simple.
pub(crate) fn name() -> BoxedStrategy<String> {
    prop_oneof![8 => "[a-d]", 2 => "[a-z][a-zA-Z0-9_]{0,6}", 1 => any::<String>(), 1 => select(vec!["", "default", "$ref", "type", "enum", "a/b", "a~b"]).prop_map(str::to_owned)].boxed()
}

/// Generates values that gram can represent: all but null.
fn representable() -> BoxedStrategy<Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        (-4_i64..12).prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-8_i32..24).prop_map(|eighths| json!(f64::from(eighths) / 4.0)),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(json!(0), Json::Number)),
        "[a-c0-9]{0,4}".prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Json::from),
            vec((name(), inner), 0..3).prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Generates any value.
pub(crate) fn anything() -> BoxedStrategy<Json> {
    prop_oneof![1 => Just(Json::Null), 6 => representable(), 1 => representable().prop_map(|value| json!([null, value]))].boxed()
}

fn bounds(bound: BoxedStrategy<Number>) -> BoxedStrategy<Option<Bounds>> {
    let some = (option::of(bound.clone()), option::of(bound)).prop_map(|(lower, upper)| match (lower, upper) {
        (None, None) => None,
        (Some(lower), Some(upper)) if lower.as_f64() > upper.as_f64() => {
            Some(Bounds { lower: Some(upper), upper: Some(lower) })
        }
        (lower, upper) => Some(Bounds { lower, upper }),
    });
    prop_oneof![3 => Just(None), 1 => some].boxed()
}

fn whole() -> BoxedStrategy<Number> {
    prop_oneof![4 => (-3_i64..10).prop_map(Number::from), 1 => any::<i64>().prop_map(Number::from)].boxed()
}

fn fraction() -> BoxedStrategy<Number> {
    let float = prop_oneof![(-8_i32..24).prop_map(|eighths| f64::from(eighths) / 4.0), any::<f64>()];
    prop_oneof![2 => float.prop_filter_map("finite", Number::from_f64), 1 => whole()].boxed()
}

fn count() -> BoxedStrategy<Number> {
    (0_u64..5).prop_map(Number::from).boxed()
}

/// Generates a value sometimes, if it applies at all.
fn sometimes<T: Clone + std::fmt::Debug + 'static>(
    applies: bool,
    strategy: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<T>> {
    if applies { option::weighted(0.2, strategy).boxed() } else { Just(None).boxed() }
}

/// Adds facets to a shape: only those that apply to it, and in the one form in which a schema expresses them.
fn with_facets(shape: Shape) -> BoxedStrategy<Type> {
    let range = match shape {
        Shape::Text | Shape::Array(_) => bounds(count()),
        Shape::Integer => bounds(whole()),
        Shape::Number => bounds(fraction()),
        _ => Just(None).boxed(),
    };
    let is_text = shape == Shape::Text;
    let patterns = vec!["^[a-c]+$", "\\d", "^\\w{1,3}$", "b", "`\"'\\\\"];
    let pattern = sometimes(is_text, select(patterns).prop_map(str::to_owned));
    let has_format = is_text || shape == Shape::Any;
    let format = sometimes(has_format, select(vec!["date", "uri"]).prop_map(str::to_owned));
    let description = sometimes(true, prop_oneof![Just("what it is".to_owned()), any::<String>()]);
    let has_enum = !matches!(shape, Shape::Schema(_));
    let listed = vec(value(&Type::new(shape.clone()), 1), 1..4);
    let allowed = sometimes(has_enum, listed);
    (description, allowed, range, pattern, format, prop::bool::weighted(0.2))
        .prop_map(move |(description, allowed, range, pattern, format, nullable)| {
            // A listed value must satisfy the other constraints too.
            let mut plain = Type::new(shape.clone());
            plain.facets.range.clone_from(&range);
            plain.facets.pattern.clone_from(&pattern);
            let mut listed: Vec<Json> = Vec::new();
            for value in allowed.into_iter().flatten() {
                let is_allowed = plain.check(&value, &records()).is_ok() && is_representable(&value);
                if is_allowed && !listed.contains(&value) {
                    listed.push(value);
                }
            }
            let allowed = Some(listed).filter(|listed| !listed.is_empty());
            let nullable = nullable && (shape != Shape::Any || allowed.is_some());
            let facets = Facets { description, allowed, range, pattern, format, nullable };
            Type { shape: shape.clone(), facets }
        })
        .boxed()
}

/// Returns whether gram can represent a value.
fn is_representable(value: &Json) -> bool {
    patter_core::types::signature::json_to_value(value).is_some()
}

/// Generates types up to a depth.
pub(crate) fn ty(depth: u32) -> BoxedStrategy<Type> {
    let leaf = prop_oneof![
        6 => select(vec![Shape::Any, Shape::Text, Shape::Integer, Shape::Number, Shape::Boolean]),
        1 => select(vec!["Node", "a/tree ~"]).prop_map(|name| Shape::Record(name.to_owned())),
        1 => select(schemas()).prop_map(Shape::Schema),
    ];
    let shape = if depth == 0 {
        leaf.boxed()
    } else {
        prop_oneof![
            4 => leaf,
            2 => ty(depth - 1).prop_map(|item| Shape::Array(Box::new(item))),
            2 => fields(depth - 1).prop_map(Shape::Object),
        ]
        .boxed()
    };
    shape.prop_flat_map(with_facets).boxed()
}

/// Generates fields with unique names.
pub(crate) fn fields(depth: u32) -> BoxedStrategy<Vec<Field>> {
    let field = (name(), ty(depth), 0..3).prop_flat_map(|(name, ty, presence)| {
        let default = value(&ty, 1);
        default.prop_map(move |default| {
            let is_default = presence == 2 && is_representable(&default) && ty.check(&default, &records()).is_ok();
            let presence = match presence {
                0 => Presence::Required,
                _ if is_default => Presence::Default(default),
                _ => Presence::Optional,
            };
            Field { name: name.clone(), ty: ty.clone(), presence }
        })
    });
    vec(field, 0..4)
        .prop_map(|fields| {
            let mut unique: Vec<Field> = Vec::new();
            for field in fields {
                if unique.iter().all(|other| other.name != field.name) {
                    unique.push(field);
                }
            }
            unique
        })
        .boxed()
}

/// Generates signatures.
pub(crate) fn signature() -> BoxedStrategy<Signature> {
    (fields(2), ty(2)).prop_map(|(parameters, returns)| Signature { parameters, returns }).boxed()
}

/// Generates mostly values of a type, and some that are close to it or arbitrary.
pub(crate) fn value(ty: &Type, depth: u32) -> BoxedStrategy<Json> {
    let likely = match (&ty.facets.allowed, &ty.shape) {
        (Some(allowed), _) => select(allowed.clone()).boxed(),
        (None, Shape::Any | Shape::Schema(_)) => anything(),
        (None, Shape::Text) => prop_oneof!["[a-c]{0,3}", "[a-c0-9é`]{0,5}"].prop_map(Json::from).boxed(),
        (None, Shape::Integer) => around(&ty.facets.range, (-3_i64..10).prop_map(Json::from).boxed()),
        (None, Shape::Number) => around(&ty.facets.range, fraction().prop_map(Json::Number).boxed()),
        (None, Shape::Boolean) => any::<bool>().prop_map(Json::from).boxed(),
        (None, Shape::Array(item)) => vec(value(item, depth), 0..4).prop_map(Json::from).boxed(),
        (None, Shape::Object(fields)) => object(fields, depth),
        (None, Shape::Record(_)) if depth == 0 => Just(json!({})).boxed(),
        (None, Shape::Record(name)) => {
            object(&records().get(name).map(|record| record.fields.clone()).unwrap_or_default(), depth - 1)
        }
    };
    let null = u32::from(ty.facets.nullable);
    prop_oneof![24 => likely, 1 => anything(), 1 + null => Just(Json::Null)].boxed()
}

/// Generates numbers at the bounds of a range, and right beyond them.
fn around(range: &Option<Bounds>, others: BoxedStrategy<Json>) -> BoxedStrategy<Json> {
    let ends: Vec<_> = range.iter().flat_map(|range| [&range.lower, &range.upper]).flatten().cloned().collect();
    let mut near = Vec::new();
    for end in ends {
        if let Some(whole) = end.as_i64() {
            near.extend([whole.saturating_sub(1), whole.saturating_add(1)].map(Json::from));
        } else if let Some(float) = end.as_f64() {
            near.extend([json!(float.next_down()), json!(float.next_up())]);
        }
        near.push(Json::Number(end));
    }
    if near.is_empty() { others } else { prop_oneof![select(near), others].boxed() }
}

/// Generates objects with these fields, some of them omitted and some added.
pub(crate) fn object(fields: &[Field], depth: u32) -> BoxedStrategy<Json> {
    let entries: Vec<_> = fields
        .iter()
        .map(|field| {
            let share = if field.presence == Presence::Required { 0.97 } else { 0.6 };
            (Just(field.name.clone()), option::weighted(share, value(&field.ty, depth)))
        })
        .collect();
    (entries, option::weighted(0.2, (name(), anything())))
        .prop_map(|(entries, extra)| {
            let entries = entries.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Json::Object(extra.into_iter().chain(entries).collect())
        })
        .boxed()
}

/// Generates a small change somewhere in a type, which makes it wider, narrower, or neither.
pub(crate) fn changed(ty: Type) -> BoxedStrategy<Type> {
    let other = self::ty(0);
    (any::<prop::sample::Index>(), 0..14_u8, other, whole())
        .prop_map(move |(at, change, other, bound)| {
            let mut ty = ty.clone();
            let count = parts(&mut ty).len();
            change_part(parts(&mut ty).swap_remove(at.index(count)), change, other, bound);
            ty
        })
        .boxed()
}

/// Returns a type, or the types directly inside it.
fn parts(ty: &mut Type) -> Vec<&mut Type> {
    let has_parts =
        matches!(&ty.shape, Shape::Array(_)) || matches!(&ty.shape, Shape::Object(fields) if !fields.is_empty());
    if !has_parts || ty.facets.description.is_some() {
        return vec![ty];
    }
    match &mut ty.shape {
        Shape::Array(item) => vec![item],
        Shape::Object(fields) => fields.iter_mut().map(|field| &mut field.ty).collect(),
        _ => Vec::new(),
    }
}

fn change_part(ty: &mut Type, change: u8, other: Type, bound: Number) {
    match (change, &mut ty.shape) {
        (0, _) => ty.facets.allowed = None,
        (1, _) => ty.facets.range = None,
        (2, _) => ty.facets.pattern = None,
        (3, _) => ty.shape = Shape::Any,
        (4, _) => ty.facets.nullable = !ty.facets.nullable,
        (5, Shape::Integer) => ty.shape = Shape::Number,
        (5, Shape::Number) => ty.shape = Shape::Integer,
        (6, Shape::Object(fields)) => drop(fields.pop()),
        (7, Shape::Object(fields)) if fields.iter().all(|field| field.name != "new") => {
            fields.push(Field { name: "new".into(), ty: other, presence: Presence::Optional });
        }
        (8, Shape::Object(fields)) => fields.iter_mut().for_each(|field| field.presence = Presence::Required),
        (9, Shape::Object(fields)) => fields.iter_mut().for_each(|field| field.presence = Presence::Optional),
        (10, Shape::Integer | Shape::Number) => ty.facets.range = Some(Bounds { lower: Some(bound), upper: None }),
        (11, _) => *ty = other,
        (12, _) => {
            if let Some(allowed) = ty.facets.allowed.as_mut().filter(|allowed| allowed.len() > 1) {
                allowed.pop();
            }
        }
        (13, Shape::Record(name)) => {
            let fields = records().get(name).map(|record| record.fields.clone());
            ty.shape = Shape::Object(fields.unwrap_or_default());
        }
        _ => ty.facets.description = None,
    }
}

/// Generates two types, which are mostly similar.
pub(crate) fn two_types() -> BoxedStrategy<(Type, Type)> {
    ty(2)
        .prop_flat_map(|first| {
            let near = changed(first.clone()).prop_flat_map(changed);
            let second = prop_oneof![2 => changed(first.clone()), 2 => near, 1 => ty(2)];
            (Just(first), second, any::<bool>())
        })
        .prop_map(|(first, second, swap)| if swap { (second, first) } else { (first, second) })
        .boxed()
}

/// Generates two signatures, which are mostly similar.
pub(crate) fn two_signatures() -> BoxedStrategy<(Signature, Signature)> {
    let to_object = |signature: Signature| Type::new(Shape::Object(signature.parameters));
    let to_signature = |ty: Type, returns: Type| match ty.shape {
        Shape::Object(parameters) => Signature { parameters, returns },
        _ => Signature { parameters: Vec::new(), returns },
    };
    (signature(), any::<bool>())
        .prop_flat_map(move |(first, swap)| {
            let parameters = changed(to_object(first.clone())).prop_flat_map(changed);
            let returns = prop_oneof![2 => Just(first.returns.clone()), 1 => changed(first.returns.clone())];
            (Just(first), parameters, returns, Just(swap))
        })
        .prop_map(move |(first, parameters, returns, swap)| {
            let second = to_signature(parameters, returns);
            if swap { (second, first) } else { (first, second) }
        })
        .boxed()
}
