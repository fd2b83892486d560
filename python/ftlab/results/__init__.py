"""Results: one, several side by side, and how they are told: reports, tables, notes."""
