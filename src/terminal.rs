//! What kind of terminal we have, and text made harmless for it.
