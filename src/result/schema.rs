//! The JSON Schema of the record, generated from its types.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::document::{Document, SCHEMA};

/// The schema of what this copysim writes, as pretty-printed JSON with a final newline: the content of `docs/result.schema.json`.
#[must_use]
pub fn json() -> String {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Document>();
    let mut schema = schema.to_value();
    if let Some(members) = schema.as_object_mut() {
        members.insert("title".to_owned(), Value::String(SCHEMA.to_owned()));
    }
    format!("{schema:#}\n")
}
