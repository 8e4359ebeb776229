//! A compressed, searchable shard of records with layered sampled arrays.
