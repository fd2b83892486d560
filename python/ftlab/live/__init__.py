"""Live devices: where they are, what they are told, what they record, and cuts of their power."""
