//! The schema, the list of components and the reference agree with what the reader accepts.
//!
//! Here the schema is checked by a small reader of the few keywords it uses; the Python tests check it with a
//! full validator.

use ftlab_config::{Base, components, presets, reference_markdown, resolve, schema};
use ftlab_files::settings::all;
use regex_lite::Regex;
use serde_json::{Value as Json, json};

/// Returns why `value` does not match `schema`, for the keywords that `schema()` uses.
fn fault(schema: &Json, value: &Json, path: &str) -> Option<String> {
    let wrong = |what: &str| Some(format!("{path}: {value} {what}"));
    let object = schema.as_object().unwrap();
    for (word, demand) in object {
        let broken = match word.as_str() {
            "$schema" | "title" | "description" | "default" | "x-taplo" | "properties" => continue,
            "type" => match demand.as_str().unwrap() {
                "object" => !value.is_object(),
                "string" => !value.is_string(),
                "boolean" => !value.is_boolean(),
                "integer" => !value.is_u64() && !value.is_i64(),
                "number" => !value.is_number(),
                other => panic!("type {other}"),
            },
            "additionalProperties" => {
                let known = object["properties"].as_object().unwrap();
                for (name, inner) in value.as_object()? {
                    let path = format!("{path}.{name}");
                    let Some(schema) = known.get(name) else { return Some(format!("{path}: unknown")) };
                    if let Some(fault) = fault(schema, inner, &path) {
                        return Some(fault);
                    }
                }
                false
            }
            "enum" => !demand.as_array().unwrap().contains(value),
            "anyOf" => demand.as_array().unwrap().iter().all(|schema| fault(schema, value, path).is_some()),
            "pattern" => !Regex::new(demand.as_str().unwrap()).unwrap().is_match(value.as_str()?),
            "minLength" => (value.as_str()?.chars().count() as u64) < demand.as_u64().unwrap(),
            "minimum" => value.as_f64()? < demand.as_f64().unwrap(),
            "exclusiveMinimum" => value.as_f64()? <= demand.as_f64().unwrap(),
            "maximum" => value.as_f64()? > demand.as_f64().unwrap(),
            other => panic!("the test knows no keyword {other}"),
        };
        if broken {
            return wrong(word);
        }
    }
    None
}

#[test]
fn presets_meet_the_schema() {
    let schema = schema();
    for preset in presets() {
        let resolved = resolve(Base::Preset(preset.name), &[]).unwrap();
        assert_eq!(fault(&schema, &resolved.to_json(), ""), None);
    }
}

#[test]
fn every_key_is_in_the_schema_with_a_legal_default() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for key in all() {
        // Tenants have whatever names their users give them.
        let property = key.path.split('.').fold(&schema, |schema, name| match name {
            "NAME" => &schema["additionalProperties"],
            name => &schema["properties"][name],
        });
        assert_eq!(property["description"], key.doc, "{}", key.path);
        assert_eq!(property["default"].is_null(), key.default.is_empty(), "{}", key.path);
        if !key.default.is_empty() {
            assert_eq!(fault(property, &property["default"], key.path), None);
        }
        for word in key.words {
            assert_eq!(fault(property, &json!(word), key.path), None);
        }
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    let schema = schema();
    let bad = [
        json!({"hots": {}}),
        json!({"host": {"schduler": "noop"}}),
        json!({"host": {"scheduler": "nop"}}),
        json!({"host": {"queue_depth": 0}}),
        json!({"host": {"queue_depth": 1.5}}),
        json!({"host": {"queue_depth": "128"}}),
        json!({"host": {"queue_depth": "unlimted"}}),
        json!({"host": {"alternate": 1}}),
        json!({"host": 3}),
        json!({"flash": {"page": 4096}}),
        json!({"flash": {"page": "16K"}}),
        json!({"flash": {"page": "16"}}),
        json!({"flash": {"page": "-16KiB"}}),
        json!({"flash": {"page": ".5KiB"}}),
        json!({"flash": {"page": "1__0KiB"}}),
        json!({"flash": {"page": " 1KiB"}}),
        json!({"flash": {"read": "5m"}}),
        json!({"flash": {"read": "1e3us"}}),
        json!({"ftl": {"over_provisioning": "7"}}),
        json!({"workload": {"speed": 0}}),
        json!({"workload": {"trace": ""}}),
        json!({"workload": {"synthetic": {"size": 1}}}),
        json!({"preset": "map-pls"}),
    ];
    for value in bad {
        assert!(fault(&schema, &value, "").is_some(), "the schema takes {value}");
        let text = toml_of(&value);
        assert!(resolve(Base::Text { name: "c.toml", text: &text }, &[]).is_err(), "the reader takes {text}");
    }
    let good = [
        json!({"flash": {"page": "16 KiB", "read": "1_000.5us", "transfer": "1.25ns"}}),
        json!({"host": {"queue_depth": "unlimited", "deadline": "none"}, "seed": 3}),
        json!({"ftl": {"mapping_cache": "unlimited", "over_provisioning": "4.98%"}, "preset": "map-plus"}),
        json!({"workload": {"speed": 2, "trace": "a.csv"}}),
    ];
    for value in good {
        assert_eq!(fault(&schema, &value, ""), None);
        let text = toml_of(&value);
        resolve(Base::Text { name: "c.toml", text: &text }, &[]).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Returns the value as an inline TOML text; its strings need no escapes.
fn toml_of(value: &Json) -> String {
    fn inline(value: &Json) -> String {
        match value {
            Json::Object(table) => {
                let entries: Vec<_> =
                    table.iter().map(|(name, value)| format!("{name} = {}", inline(value))).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            other => other.to_string(),
        }
    }
    let table = value.as_object().unwrap();
    table.iter().map(|(name, value)| format!("{name} = {}\n", inline(value))).collect()
}

#[test]
fn components_come_from_the_registries() {
    let components = components();
    let schedulers = components["host.scheduler"].as_array().unwrap();
    let names: Vec<_> = ftlab_core::host::sched::choices().iter().map(|choice| choice.name).collect();
    assert_eq!(schedulers.iter().map(|entry| entry["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    assert!(schedulers.iter().all(|entry| !entry["doc"].as_str().unwrap().is_empty()));
    for path in
        ["ftl.kind", "ftl.gc", "ftl.cache_policy", "host.awareness", "device.scheduler", "workload.format"]
    {
        assert!(!components[path].as_array().unwrap().is_empty(), "{path}");
    }
}

#[test]
fn the_reference_names_every_key_and_every_choice() {
    let text = reference_markdown();
    for key in all() {
        let leaf = key.path.rsplit('.').next().unwrap();
        assert!(text.contains(&format!("| `{leaf}` | ")), "{}", key.path);
        assert!(text.contains(key.doc), "{}", key.path);
    }
    let columns = |line: &str| line.matches('|').count() - line.matches("\\|").count();
    assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| columns(line) == 5));
    assert!(text.contains("- `map+`: map with the densest batch first"));
    assert!(text.contains("| `transfer` | 0ns to 1us | `0ns` |"));
}

#[test]
fn the_page_of_the_reference_is_this_one() {
    assert_eq!(reference_markdown(), include_str!("../../../docs/configuration.md"));
}
