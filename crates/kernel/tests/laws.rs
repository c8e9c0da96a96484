//! Laws over all scenarios together: every word of the vocabulary is used, and old journals fold.
