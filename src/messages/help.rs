//! Texts about the manual.

/// Error for a topic without a page; `suggestion` ends with a question mark.
pub fn unknown_topic(topic: &str, suggestion: Option<&str>) -> String {
    let suggestion = suggestion.map_or_else(String::new, |text| format!("; {text}"));
    format!("there is no help on `{topic}`{suggestion} (`agent help` lists the topics)")
}
