//! Data types that all layers share: events, messages, usage, prices, limits, stop reasons. No side effects.

pub mod approval;
pub mod billed_usage;
pub mod budget_share;
pub mod change_review;
pub mod compaction;
pub mod comparison;
pub mod decision;
pub mod evaluation;
pub mod event;
pub mod event_sink;
pub mod failure;
pub mod file_change;
pub mod finish_reason;
pub mod fleet;
pub mod guardrail;
pub mod health;
pub mod hub;
pub mod image;
pub mod image_header;
pub mod language;
pub mod limits;
pub mod line_number;
pub mod message;
pub mod message_origin;
pub mod notice_level;
pub mod prefix_hashes;
pub mod price;
pub mod purpose;
pub mod quality_gate;
pub mod ranking;
pub mod review;
pub mod run_result;
pub mod score;
pub mod secret;
pub mod skill;
pub mod statistics;
pub mod stop_reason;
pub mod task_transitions;
pub mod todo;
pub mod usage;
pub mod work;

/// Implements `name` for an enum that derives [`strum::IntoStaticStr`].
#[macro_export]
macro_rules! impl_name {
    ($enum:ty) => {
        impl $enum {
            /// Returns the name used in JSON and messages.
            pub fn name(self) -> &'static str {
                self.into()
            }
        }
    };
}

/// Checks whether a field has its default value, so that its JSON omits it.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
