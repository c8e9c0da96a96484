//! Durability, and nothing else: entries go in, in order, and come back exactly as they went in.
