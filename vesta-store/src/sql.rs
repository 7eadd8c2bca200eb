//! What MySQL and PostgreSQL have in common.
