//! One POST with a streamed body, deadlines and bounded errors.
