//! Random workflows, whose calls finish in any order.

use super::graphs::{Inputs, Nodes, Ways, plan};
use patter_core::message::conversation::ToolOutcome;
use patter_core::workflow::Plan;
use proptest::prelude::*;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};

/// Returns graphs with up to some steps, of which many are accepted: most edges lead on.
pub(crate) fn graphs(most: usize) -> impl Strategy<Value = Vec<Ways>> {
    (2..=most).prop_flat_map(|steps| {
        let ways = (0..steps).map(move |step| {
            let next = (step + 1).min(steps - 1)..steps;
            let any = 0..steps;
            prop_oneof![
                1 => Just(if step + 1 == steps { Ways::End } else { Ways::All(vec![step + 1]) }),
                2 => prop::collection::btree_set(next.clone(), 1..3).prop_map(|all| Ways::All(all.into_iter().collect())),
                2 => (next.clone(), any.clone()).prop_map(|(one, other)| Ways::Route(one, other)),
                1 => (next, any.clone()).prop_filter("another", |(a, b)| a != b).prop_map(|(a, b)| Ways::Either(a, b)),
                1 => any.prop_map(Ways::OnFailure),
            ]
            .prop_map(move |ways| if step + 1 == steps { Ways::End } else { ways })
        });
        ways.collect::<Vec<_>>()
    })
}

/// Returns what a call returns, which depends only on its id.
pub(crate) fn outcome_of(id: &str, seed: u64) -> ToolOutcome {
    let hash = id
        .bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    match (hash >> 32) % 5 {
        0 | 1 => ToolOutcome::Value { value: "a".into() },
        2 | 3 => ToolOutcome::Value { value: "b".into() },
        _ => ToolOutcome::Error { message: format!("{id} broke") },
    }
}

/// Runs a workflow whose calls finish in an order. Returns its result, and the calls with their arguments.
fn run(plan: &Plan, seed: u64, mut order: u64) -> (Result<Json, String>, BTreeMap<String, Json>) {
    let mut results: HashMap<String, ToolOutcome> = HashMap::new();
    let mut calls = BTreeMap::new();
    loop {
        let evaluation = plan.evaluate("x", "", &|id| results.get(id));
        for call in &evaluation.calls {
            let known = calls.insert(call.id.clone(), call.arguments.clone());
            assert!(known.is_none_or(|known| known == call.arguments), "a call changed");
        }
        if let Some(outcome) = evaluation.outcome {
            return (outcome.map_err(|error| error.to_string()), calls);
        }
        order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let call = &evaluation.calls[(order >> 33) as usize % evaluation.calls.len()];
        results.insert(call.id.clone(), outcome_of(&call.id, seed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_results_does_not_matter(graph in graphs(7), seed: u64, orders: [u64; 3]) {
        let nodes = Nodes::new(graph.len());
        let (spec, findings) = nodes.workflow(&graph, Inputs::Explicit);
        prop_assume!(findings.is_empty());
        let plan = plan(&spec);
        let (result, calls) = run(&plan, seed, 0);
        for order in orders {
            let (other, other_calls) = run(&plan, seed, order);
            // The first failure ends a workflow, and which is first depends on the order.
            prop_assert_eq!(result.is_ok(), other.is_ok());
            if result.is_ok() {
                prop_assert_eq!(&result, &other);
                prop_assert_eq!(&calls, &other_calls);
            }
        }
    }
}
