//! Property tests of the merging of layers, and of the restrictions on a project.

use super::*;
use crate::key_rules;
use proptest::prelude::*;

/// Generates a layer with values for some of four keys: two that are replaced, two that are joined.
fn any_layer() -> impl Strategy<Value = Layers> {
    let level =
        prop::sample::select(vec![LayerKind::User, LayerKind::Project, LayerKind::File, LayerKind::Flag]);
    let retries = prop::option::of(0..10_u64);
    let model = prop::option::of("[a-c]{1,2}");
    let list = || prop::option::of(prop::collection::vec("[a-c]", 0..3));
    (level, retries, model, list(), list()).prop_map(|(level, retries, model, protected, excluded)| {
        let values = [
            ("llm.retries", retries.map(Value::from)),
            ("llm.model", model.map(Value::from)),
            ("guardrails.protected_files", protected.map(Value::from)),
            ("indexer.exclude_dirs", excluded.map(Value::from)),
        ];
        let leaves = values
            .into_iter()
            .filter_map(|(key, value)| Some(Leaf { key: key.to_owned(), value: value?, line: 1 }));
        Layers::from_leaves(&key_rules::embedded_schema().unwrap().rules, level, "file", leaves.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merging_is_associative(a in any_layer(), b in any_layer(), c in any_layer()) {
        let left = a.clone().overridden_by(b.clone()).overridden_by(c.clone());
        prop_assert_eq!(left, a.overridden_by(b.overridden_by(c)));
    }

    #[test]
    fn the_empty_layer_changes_nothing(a in any_layer()) {
        prop_assert_eq!(a.clone().overridden_by(Layers::default()), a.clone());
        prop_assert_eq!(Layers::default().overridden_by(a.clone()), a);
    }

    #[test]
    fn the_higher_layer_wins_and_no_protection_is_lost(low in any_layer(), high in any_layer()) {
        let merged = low.clone().overridden_by(high.clone());
        for key in ["llm.retries", "llm.model"] {
            prop_assert_eq!(merged.get(key), high.get(key).or(low.get(key)));
        }
        let items = |layers: &Layers| {
            layers.value("guardrails.protected_files").and_then(|list| list.as_array().cloned()).unwrap_or_default()
        };
        for item in items(&low).iter().chain(&items(&high)) {
            prop_assert!(items(&merged).contains(item));
        }
    }

    #[test]
    fn a_confined_layer_sets_only_what_may_be_set(mut layer in any_layer()) {
        let whole = layer.clone();
        let out = layer.take_restricted(&key_rules::embedded_schema().unwrap().rules, &Layers::default());
        prop_assert_eq!(layer.get("llm.model"), None);
        prop_assert!(out.never_from_project.is_empty());
        prop_assert!(out.needs_trust.layer_values().all(|(key, _)| key == "llm.model"));
        prop_assert_eq!(layer.overridden_by(out.needs_trust), whole, "trust gives all of it back");
    }
}
